"""Training's speed beside sentence-transformers' own: ``python -m tests.benchmarks.training``.

Pairs a second against ST's ``MultipleNegativesRankingLoss`` in ST's trainer, on the same encoder, data, batch size and
precision: multilingual-e5-small (the folder in ``ST_XLING_E5``), its vocabulary cut to the training text's, on real
parallel text of four languages (``ST_XLING_DATA``), shuffled as each trainer does by default. A step is all of it, from
loading to the optimiser.

- tr: our trainer with ``TranslationRankingLoss`` (targets: 1.3x in float32, 2x in bfloat16 against ST's in bfloat16);
- tr, shuffled: the same without batches of like length: ``group_by_length: false``;
- tr, whole: without batches of like length, and not encoded in groups of like length: ``split_by_length: false`` too;
- dap: its two terms (target: 1.3x the step of tr).

Each row runs between two runs of ST's, a ratio a round. ``--quick`` runs a toy, to see that all is well.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import sys
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import TrainerCallback

from tests.benchmarks.measure import spread

LANGUAGES = ("de", "fr", "ru", "zh")
ROWS = ("tr", "tr, shuffled", "tr, whole", "dap")


class StepTimes(TrainerCallback):
    """The clock at every step's end; the first step warms up."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.ends = clock, list[float]()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(self.clock())


def parallel_text(folder: Path | None, rows: int) -> Any:
    """Source and target, languages mixed."""
    from datasets import Dataset

    if folder is None:
        from st_xling.data.phrasebook import parallel_phrases

        return parallel_phrases("de", "en", size=rows).select_columns(["source", "target"])
    pairs = []
    for language in LANGUAGES:
        with gzip.open(folder / "parallel" / f"{language}-en.tsv.gz", "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in islice(file, 4 * rows)]
        pairs += random.Random(0).sample(lines, rows)
    random.Random(1).shuffle(pairs)
    return Dataset.from_dict({"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]})


def start(folder: str | None, data: Any, layers: int | None) -> Any:
    """The encoder that every row begins with a copy of."""
    texts = [text for side in ("source", "target") for text in data[side]]
    if folder is None:
        from st_xling.models import tiny_encoder

        return tiny_encoder(texts, vocabulary=500, hidden_size=32, layers=2)
    from sentence_transformers import SentenceTransformer

    from st_xling.models.layers import cut_to_layer
    from st_xling.models.slim import slim_encoder

    model: Any = SentenceTransformer(folder, device="cpu")
    model = model if layers is None else cut_to_layer(model, layers)
    return slim_encoder(model, texts).model


def run(row: str, folder: Path, data: Any, arguments: argparse.Namespace, clock: Any) -> float:
    """Seconds of a step; ``row`` is ``st`` for ST's own."""
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
    from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
    from st_xling.training import CrossLingualTrainer

    model: Any = SentenceTransformer(str(folder), device="cpu")
    loss: Any
    if row == "st":
        loss, kind, more = MultipleNegativesRankingLoss(model), SentenceTransformerTrainer, {}
    else:
        sampler = LengthGroupedBatchSampler if row in ("tr", "dap") else ShuffledBatchSampler
        loss, kind, more = TranslationRankingLoss(model), CrossLingualTrainer, {"batch_sampler": partial(sampler)}
    if row == "dap":
        ids = sorted({number for text in model.tokenizer(data["target"][:])["input_ids"] for number in text})
        loss = loss + RepresentationTranslationLoss(model, layers=2, target_vocabulary=ids)
    times = StepTimes(clock)
    with tempfile.TemporaryDirectory() as out:
        options: Any = {"per_device_train_batch_size": arguments.batch, "max_steps": arguments.steps + 1}
        options |= {"bf16": arguments.bf16, "use_cpu": True, "logging_steps": 10**6, "dataloader_drop_last": True}
        options |= {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, **more}
        args = SentenceTransformerTrainingArguments(output_dir=out, **options)
        args.split_by_length = row != "tr, whole"  # type: ignore[attr-defined]
        kind(model=model, args=args, train_dataset=data, loss=loss, callbacks=[times]).train()
    return (times.ends[-1] - times.ends[0]) / arguments.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layers", type=int, help="of the encoder (default: all)")
    parser.add_argument("--rows", default="; ".join(ROWS), help="separated by semicolons (default: all)")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("--cpu-time", action="store_true", help="processor time: for a busy machine, with --threads 1")
    parser.add_argument("--quick", action="store_true", help="a toy: figures without meaning")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    folder, text = os.environ.get("ST_XLING_E5"), os.environ.get("ST_XLING_DATA")
    if arguments.quick:
        folder, text, arguments.steps, arguments.rounds, arguments.batch = None, None, 2, 1, 4
    elif not folder or not text:
        parser.error("set ST_XLING_E5 to a folder of multilingual-e5-small and ST_XLING_DATA to real text, or --quick")
    data = parallel_text(Path(text) if text else None, 40 if arguments.quick else 5000)
    with tempfile.TemporaryDirectory() as place:
        model = start(folder, data, arguments.layers)
        model.save_pretrained(place)
        size = f"{model[0].auto_model.config.num_hidden_layers} layers, {len(model.tokenizer):,} tokens"
        steps = dict[str, list[float]]()
        ratios = dict[str, list[float]]()
        for number in range(arguments.rounds):
            before = run("st", Path(place), data, arguments, clock)
            for row in (row.strip() for row in arguments.rows.split(";")):
                own = run(row, Path(place), data, arguments, clock)
                after = run("st", Path(place), data, arguments, clock)
                steps.setdefault(row, []).append(own)
                ratios.setdefault(row, []).append((before + after) / 2 / own)
                print(f"  round {number + 1}: {row} {own:.3f} s, st {before:.3f} and {after:.3f} s", file=sys.stderr)
                before = after
    print(f"{'':<14}{'pairs/s by ST':<20}{'pairs/s':<10}step by tr")
    for row, found in ratios.items():
        step = median(steps[row])
        beside = f"{step / median(steps['tr']):.2f}" if "tr" in steps else ""
        print(f"{row:<14}{spread(found):<20}{arguments.batch / step:<10.1f}{beside}")
    print(f"{size}, batch {arguments.batch}, {'bf16' if arguments.bf16 else 'fp32'}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
