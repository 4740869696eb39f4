"""What one process does, or each of two by torchrun, that trains by our arguments and writes down how it ended.

``FOLDER/NAME.rankN.json`` says the steps, the losses and the languages of each step's rows, ``….safetensors`` the
model and the heads of its loss.
"""

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets
from safetensors.torch import save_file
from torch import Tensor
from transformers import set_seed

from st_xling.data.pairs import COLUMNS
from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer, CrossLingualTrainingArguments, LoraOptions
from st_xling.training.trainer import own_state

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "one pair, cached": {"batches": "one_pair", "language_alpha": 0.3, "mini_batch_size": 4},
    "cached by tokens": {"mini_batch_num_tokens": 60},
    "adapters": {"lora": LoraOptions(rank=2, dropout=0.0)},
}


class Watched(CrossLingualTrainer):
    """Writes down the languages of each step's sources."""

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any) -> Tensor:
        self.seen.append(sorted(set(inputs["source_language"].tolist())))
        return super().training_step(model, inputs, *args)


def train(name: str, start: Any, rows: Dataset, folder: Path, rank: int, step_rows: int) -> None:
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    arguments = CrossLingualTrainingArguments(
        str(folder / name / "run"),
        per_device_train_batch_size=step_rows // processes,
        max_steps=6,
        learning_rate=1e-2,
        logging_steps=1,
        warm_up_heads=3,
        keep_duplicates_apart=False,
        disable_tqdm=True,
        use_cpu=True,
        **CASES[name],
    )
    set_seed(0)  # of the loss's new head
    model = copy.deepcopy(start)
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1, languages=["de", "en", "vi"])
    trainer = Watched(model, arguments, rows, loss=loss)
    trainer.seen = []
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    facts = {"steps": trainer.state.global_step, "losses": losses, "languages": trainer.seen}
    (folder / f"{name}.rank{rank}.json").write_text(json.dumps(facts), encoding="utf-8")
    state = {**model.state_dict(), **{f"loss.{part}": value for part, value in own_state(loss, model).items()}}
    save_file(
        {part: value.clone().contiguous() for part, value in state.items()}, folder / f"{name}.rank{rank}.safetensors"
    )


def run(folder: Path) -> None:
    rank = int(os.environ.get("RANK", "0"))
    parts = [parallel_phrases(language, "en", size=16).select_columns(list(COLUMNS)) for language in ("de", "vi")]
    rows = concatenate_datasets([Dataset.from_list(part.to_list()) for part in parts])
    # All rows are in each step: whatever their order, two processes see what one sees.
    texts = [*rows["source"], *rows["target"]]
    start = tiny_encoder(texts, vocabulary=300, hidden_size=16, heads=2, layers=1, dropout=0.0)
    for name in CASES:
        train(name, start, rows, folder, rank, step_rows=len(rows) // (2 if "one pair" in name else 1))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
