"""Train some steps with the ``st_xling`` that is imported, which may be of another commit: see :mod:`.training`.

Prints a line of JSON: the folder of that package, the loss of the first rows without dropout, and the seconds of each
step after the first one.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from transformers import TrainerCallback

import st_xling
from st_xling.losses import CachedLoss, TranslationRankingLoss
from st_xling.training import CrossLingualTrainer


class StepTimes(TrainerCallback):
    """Records the clock at the end of every step; the first step warms up."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.ends: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(self.clock())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder")
    parser.add_argument("data", type=Path, help="pairs in JSON: source, target")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--mini-batch-size", type=int, help="train with the cache")
    parser.add_argument("--mini-batch-num-tokens", type=int, help="train with the cache")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    pairs = json.loads(options.data.read_text(encoding="utf-8"))
    model: Any = SentenceTransformer(options.encoder, device="cpu")
    loss: Any = TranslationRankingLoss(model)
    if options.mini_batch_num_tokens is not None:
        loss = CachedLoss(loss, mini_batch_num_tokens=options.mini_batch_num_tokens)
    elif options.mini_batch_size is not None:
        loss = CachedLoss(loss, mini_batch_size=options.mini_batch_size)
    loss.eval()
    first = [model.preprocess(pairs[side][: options.batch]) for side in ("source", "target")]
    value = loss(first, None)
    loss.train()

    clock = time.process_time if options.processor_time else time.perf_counter
    times = StepTimes(clock)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder,
            per_device_train_batch_size=options.batch,
            max_steps=options.steps + 1,
            dataloader_drop_last=True,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        data = Dataset.from_dict(pairs)
        CrossLingualTrainer(model=model, args=arguments, train_dataset=data, loss=loss, callbacks=[times]).train()
    seconds = [end - start for start, end in zip(times.ends, times.ends[1:])]
    package = str(Path(st_xling.__file__).parent)
    print(json.dumps({"package": package, "loss": value.item(), "seconds": seconds}))


if __name__ == "__main__":
    main()
