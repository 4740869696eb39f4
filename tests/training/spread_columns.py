"""What each of two processes does that add columns to a data set, train on it and write down what they had."""

import json
import os
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments

from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import make
from st_xling.training import CrossLingualTrainer, add_hard_negatives, add_teacher_vectors


def run(folder: Path) -> None:
    model_folder = str(folder / "model")
    model = SentenceTransformer(model_folder)
    pairs = parallel_phrases("de", "en", size=64).select_columns(["source", "target"])
    # Before the arguments are made, which is when transformers lets the processes meet.
    pairs = add_hard_negatives(pairs, model, relative_margin=None)
    pairs = add_teacher_vectors(pairs, model_folder, student=model, cache=folder / "cache")
    arguments = SentenceTransformerTrainingArguments(
        str(folder / "run"), max_steps=2, per_device_train_batch_size=8, report_to="none", disable_tqdm=True
    )
    loss = make("MSELoss", model).on(0, 1)
    trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=pairs, loss=loss)
    trainer.train()
    facts = {
        "negatives": pairs["negative_1"][:],
        "labels": pairs.with_format(None)["label"][:],
        "processes": arguments.world_size,
        "steps": trainer.state.global_step,
    }
    (folder / f"rank{os.environ['RANK']}.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
