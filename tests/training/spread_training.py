"""The program of each of two processes that train together; run by torchrun.

``FOLDER/rankN.json`` says which rows it saw in each step and how shared steps ended, ``FOLDER/rankN.safetensors`` holds
its model and heads. At last it gives the command line a folder that is not empty.
"""

import copy
import faulthandler
import json
import sys
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from st_xling.cli import main
from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.losses import CachedLoss, RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer
from st_xling.training.trainer import own_state
from st_xling.utils import distributed
from tests.conftest import PAIRS

SECONDS = 100


class Watched(CrossLingualTrainer):
    """Writes down the rows of each step, by the number in their source text."""

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any) -> torch.Tensor:
        texts = self.model.tokenizer.batch_decode(inputs["source_input_ids"], skip_special_tokens=True)
        self.seen.append([text.split()[-1] for text in texts])
        return super().training_step(model, inputs, *args)


def train(folder: Path, rank: int, model: Any, rows: Dataset) -> dict[str, torch.Tensor]:
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1)
    with torch.no_grad():
        loss.terms[1].loss.head.vocabulary_head.bias.fill_(float(rank))  # type: ignore[union-attr, operator]
    options: dict[str, Any] = {"per_device_train_batch_size": 3, "num_train_epochs": 2, "learning_rate": 1e-2}
    options |= {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "batch_sampler": ShuffledBatchSampler}
    arguments = SentenceTransformerTrainingArguments(str(folder / "run"), **options)
    trainer = Watched(model=model, args=arguments, train_dataset=rows, loss=loss)
    trainer.seen = []
    trainer.train()
    (folder / f"rank{rank}.json").write_text(json.dumps({"rows": trainer.seen, "failures": failures()}))
    return {**model.state_dict(), **{f"loss.{name}": part for name, part in own_state(trainer.loss, model).items()}}


def train_by_tokens(folder: Path, model: Any, rows: Dataset) -> dict[str, torch.Tensor]:
    """By sentence-transformers' trainer and its gradient cache, in mini-batches whose number differs in processes."""
    loss = CachedLoss(TranslationRankingLoss(model), mini_batch_num_tokens=40)
    options: dict[str, Any] = {"per_device_train_batch_size": 6, "max_steps": 2, "learning_rate": 1e-2}
    options |= {"save_strategy": "no", "report_to": "none", "disable_tqdm": True}
    arguments = SentenceTransformerTrainingArguments(str(folder / "run"), **options)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows.select(range(12)), loss=loss).train()
    return {name: part.clone().contiguous() for name, part in model.state_dict().items()}


def failures() -> list[str]:
    """How it ends in this process when one, the other, or neither fails."""

    def fail_in(rank: int | None) -> str:
        if rank == (0 if distributed.is_main() else 1):
            raise ValueError(f"no room in {rank}")
        return "done"

    ends = []
    for rank in (None, 0, 1):
        try:
            ends.append(distributed.run_on_all(lambda: fail_in(rank)))  # noqa: B023
        except ValueError as error:
            ends.append(f"{type(error).__name__}: {error}")
    return [*ends, distributed.run_on_main(lambda: "from main" if distributed.is_main() else "from another")]


if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    folder = Path(sys.argv[1])
    texts = [text for pair in PAIRS for text in pair] + [" ".join(map(str, range(20)))]
    start = tiny_encoder(texts, vocabulary=300, hidden_size=16, heads=2, layers=1)
    # 14 rows in batches of 3: the last of five, which is short or not, has no partner.
    sources = [f"{PAIRS[row % 8][0]} {row}" for row in range(14)]
    data = Dataset.from_dict({"source": sources, "target": [PAIRS[row % 8][1] for row in range(14)]})
    distributed.init_distributed()
    me = int(not distributed.is_main())
    if me == 0:
        first = {name: part.clone().contiguous() for name, part in start.state_dict().items()}
        save_file(first, folder / "start.safetensors")
    cached = train_by_tokens(folder, copy.deepcopy(start), data)
    save_file(cached, folder / f"cached{me}.safetensors")
    state = train(folder, me, start, data)
    save_file({name: part.clone().contiguous() for name, part in state.items()}, folder / f"rank{me}.safetensors")
    distributed.run_on_main(lambda: None)  # both have written
    main(["train", "tr", "--model", "tiny", "--data", "phrasebook:de?size=8", "--out", str(folder)])
