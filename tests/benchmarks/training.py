"""Training's speed in pairs a second, by sentence-transformers' trainer with ``MultipleNegativesRankingLoss``.

On the same encoder, data, batch size and precision: multilingual-e5-small (``ST_XLING_E5``, or ``--model``), its
vocabulary cut to the training text's, on real parallel text of four languages (``ST_XLING_DATA``), shuffled as each
trainer does by default. A step is all of it, from loading to the optimizer.

- tr: our trainer with ``TranslationRankingLoss``; with ``--bf16`` both sides are;
- dap: its two terms, also by the step of tr.
"""

import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from transformers import TrainerCallback

from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel, quotients

LANGUAGES = ("de", "fr", "ru", "zh")


class StepTimes(TrainerCallback):
    """The clock at every step's end; the first step warms up."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.ends = clock, list[float]()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(self.clock())


def parallel_text(run: Run, rows: int) -> Any:
    """Source and target, languages mixed."""
    from datasets import Dataset

    pairs = [
        pair for language in LANGUAGES for pair in random.Random(0).sample(parallel(run, language, 4 * rows), rows)
    ]
    random.Random(1).shuffle(pairs)
    return Dataset.from_dict({"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]})


def start(run: Run, folder: str | None, data: Any, layers: int | None) -> Any:
    """The encoder that every row begins with a copy of."""
    from st_xling.models import tiny_encoder
    from st_xling.models.slim import slim_encoder
    from st_xling.models.view import cut_to_layer

    texts = [text for side in ("source", "target") for text in data[side]]
    if run.quick:
        return tiny_encoder(texts, vocabulary=500, hidden_size=32, layers=2)
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(encoder_folder(folder), device="cpu")
    return slim_encoder(model if layers is None else cut_to_layer(model, layers), texts)


def seconds_of_step(row: str, folder: Path, data: Any, steps: int, batch: int, bf16: bool, clock: Any) -> float:
    """The mean; ``row`` is ``ST`` for sentence-transformers' own."""
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from st_xling.data.samplers import LengthGroupedBatchSampler
    from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
    from st_xling.training import CrossLingualTrainer

    model: Any = SentenceTransformer(str(folder), device="cpu")
    loss: Any
    if row == "ST":
        loss, kind, more = MultipleNegativesRankingLoss(model), SentenceTransformerTrainer, {}
    else:
        sampler = {"batch_sampler": partial(LengthGroupedBatchSampler)}
        loss, kind, more = TranslationRankingLoss(model), CrossLingualTrainer, sampler
    if row == "dap":
        ids = sorted({number for text in model.tokenizer(data["target"][:])["input_ids"] for number in text})
        loss = loss + RepresentationTranslationLoss(model, layers=2, target_vocabulary=ids)
    times = StepTimes(clock)
    with tempfile.TemporaryDirectory() as out:
        options: Any = {"per_device_train_batch_size": batch, "max_steps": steps + 1, "bf16": bf16, "use_cpu": True}
        options |= {"logging_steps": 10**6, "dataloader_drop_last": True, "save_strategy": "no", "report_to": "none"}
        args = SentenceTransformerTrainingArguments(output_dir=out, disable_tqdm=True, **options, **more)
        kind(model=model, args=args, train_dataset=data, loss=loss, callbacks=[times]).train()
    return (times.ends[-1] - times.ends[0]) / steps


def measure(
    run: Run,
    *,
    model: str | None = None,
    rows: str = "tr; dap",
    steps: int = 20,
    batch: int = 32,
    layers: int | None = None,
    bf16: bool = False,
) -> Iterator[Ratio]:
    names = [row.strip() for row in rows.split(";")]
    data = parallel_text(run, 40 if run.quick else 5000)
    with tempfile.TemporaryDirectory() as place:
        encoder = start(run, model, data, layers)
        encoder.save_pretrained(place)
        size = f"{encoder[0].auto_model.config.num_hidden_layers} layers, {len(encoder.tokenizer):,} tokens"
        seconds: dict[str, list[float]] = {row: [] for row in ("ST", *names)}
        for _ in range(run.rounds):
            for row, spent in seconds.items():
                spent.append(seconds_of_step(row, Path(place), data, steps, batch, bf16, run.clock))
    for row in names:
        note = f"{batch / median(seconds[row]):.1f} pairs/s; {size}, batch {batch}, {'bf16' if bf16 else 'fp32'}"
        faster = quotients(seconds["ST"], seconds[row])
        yield Ratio(f"{row}: speed", "ST", faster, at_least=(2 if bf16 else 1.3) if row == "tr" else None, note=note)
    if {"tr", "dap"} <= {*names}:
        yield Ratio("dap: time", "tr", quotients(seconds["dap"], seconds["tr"]), at_most=1.3)


if __name__ == "__main__":
    main(measure, rounds=2, quick={"steps": 2, "batch": 4})
