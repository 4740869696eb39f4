"""Training's speed by sentence-transformers' trainer, and by an earlier commit of this project.

On the same encoder, data, batch size and precision: multilingual-e5-small (``ST_XLING_E5``, or ``--model``), its
vocabulary cut to the training text's, or without either a smaller one of random weights; on real parallel text of four
languages (``ST_XLING_DATA``), shuffled as each trainer does by default. A step is all of it, from loading to the
optimizer.

By sentence-transformers' trainer with ``MultipleNegativesRankingLoss``:

- tr: our trainer with ``TranslationRankingLoss``; with ``--bf16`` both sides are;
- dap: its two terms, also by the step of tr.

By the trainer of ``--commit``, which is read from this repository; each in a separate process, in turn:

- earlier: a step of tr, on the same batches of mixed lengths. e02cee7c patched the encoder's forward pass, so that it
  read rows of similar length together;
- cache: a step of ``CachedLoss`` with ``--cache-batch`` rows, ``--tokens`` at a time, by the earlier one of 32 rows at
  a time; and the difference of both losses.
"""

import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.measure import Ratio, Run, Skipped, encoder_folder, in_round, log, main, parallel, quotients
from tests.benchmarks.train_build import StepTimes

LANGUAGES = ("de", "fr", "ru", "zh")
CHECKOUT = Path(__file__).parents[2]
ROWS = ("tr", "dap", "earlier", "cache")


def parallel_text(run: Run, rows: int) -> Any:
    """Source and target, languages mixed."""
    from datasets import Dataset

    pairs: list[tuple[str, str]] = []
    for language in LANGUAGES:
        pairs += random.Random(0).sample(parallel(run, language, 4 * rows), rows)
    random.Random(1).shuffle(pairs)
    return Dataset.from_dict({"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]})


def start(run: Run, folder: str | None, data: Any, layers: int | None) -> Any:
    """Build the encoder of which every row trains a copy."""
    from st_xling.models import tiny_encoder
    from st_xling.models.slim import slim_encoder
    from st_xling.models.view import cut_to_layer

    texts = [*data["source"], *data["target"]]
    if run.quick:
        return tiny_encoder(texts, vocabulary=500, hidden_size=32, layers=2)
    if folder is None and not os.environ.get("ST_XLING_E5"):
        return tiny_encoder(texts, vocabulary=8000, hidden_size=384, heads=12, layers=layers or 4, max_length=128)
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(encoder_folder(folder), device="cpu")
    if layers is not None:
        model = cut_to_layer(model, layers)
    return slim_encoder(model, texts)


def seconds_of_step(row: str, folder: Path, data: Any, steps: int, batch: int, bf16: bool, clock: Any) -> float:
    """Return the mean seconds of a step; ``row`` is ``ST`` for sentence-transformers' loss and trainer."""
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
    trainer: Any
    if row == "ST":
        loss = MultipleNegativesRankingLoss(model)
        trainer = SentenceTransformerTrainer
    else:
        loss = TranslationRankingLoss(model)
        trainer = CrossLingualTrainer
    if row == "dap":
        vocabulary = sorted(set(chain.from_iterable(model.tokenizer(data["target"][:])["input_ids"])))
        loss = loss + RepresentationTranslationLoss(model, layers=2, target_vocabulary=vocabulary)
    times = StepTimes(clock)
    with tempfile.TemporaryDirectory() as out:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=out,
            per_device_train_batch_size=batch,
            max_steps=steps + 1,
            bf16=bf16,
            use_cpu=True,
            logging_steps=10**6,
            dataloader_drop_last=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        if row != "ST":
            arguments.batch_sampler = partial(LengthGroupedBatchSampler)
        trainer(model=model, args=arguments, train_dataset=data, loss=loss, callbacks=[times]).train()
    return (times.ends[-1] - times.ends[0]) / steps


def extract(commit: str, folder: Path) -> None:
    """Write the package of a commit to ``folder``."""
    command = ["git", "-C", str(CHECKOUT), "archive", commit, "st_xling"]
    archive = subprocess.run(command, capture_output=True)
    if archive.returncode:
        raise Skipped(
            f"git has no commit {commit} here ({archive.stderr.decode().strip()}); fetch it, or name --commit"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        # The filter came with 3.10.12 and 3.11.4; the archive is of this repository.
        if hasattr(tarfile, "data_filter"):
            files.extractall(folder, filter="data")
        else:
            files.extractall(folder)


def train_build(build: Path, run: Run, *options: object) -> dict[str, Any]:
    """Train with the package in ``build``, in a separate process; see :mod:`tests.benchmarks.train_build`."""
    script = Path(__file__).with_name("train_build.py")
    command = [sys.executable, str(script), *map(str, options), f"--threads={run.threads}"]
    if run.clock is time.process_time:
        command.append("--processor-time")
    # Modules next to the script have names of the package's.
    environment = os.environ | {"PYTHONPATH": str(build), "PYTHONSAFEPATH": "1"}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert Path(result["package"]) == build / "st_xling", result["package"]
    seconds = ", ".join(f"{spent:.2f}" for spent in result["seconds"])
    log(f"{build.name}: loss {result['loss']:.6f}, steps of {seconds} s")
    return result


def by_earlier_build(
    run: Run, earlier: Path, encoder: Path, data: Path, *options: object, now: tuple[str, ...], before: tuple[str, ...]
) -> tuple[list[float], list[float]]:
    """Return how many times as fast a step is as of the earlier build in each round, and the relative difference of
    both losses.

    Args:
        now: Further options of this build.
        before: Of the earlier one.
    """
    faster: list[float] = []
    differences: list[float] = []
    for number in range(run.rounds):
        builds = {"now": (CHECKOUT, now), "before": (earlier, before)}
        results: dict[str, dict[str, Any]] = {}
        for name in in_round(builds, number):
            build, further_options = builds[name]
            results[name] = train_build(build, run, encoder, data, *options, *further_options)
        faster += quotients(results["before"]["seconds"], results["now"]["seconds"])  # the same batches, step by step
        differences.append(abs(results["now"]["loss"] / results["before"]["loss"] - 1))
    return faster, differences


def measure(
    run: Run,
    *,
    model: str | None = None,
    rows: str = "tr; dap; earlier; cache",
    steps: int = 20,
    batch: int = 32,
    layers: int | None = None,
    bf16: bool = False,
    commit: str = "e02cee7c",
    cache_batch: int = 1024,
    cache_steps: int = 2,
    tokens: int = 1024,
) -> Iterator[Ratio]:
    names = [row.strip() for row in rows.split(";")]
    if unknown := set(names) - set(ROWS):
        raise SystemExit(f"--rows knows {'; '.join(ROWS)}: got {', '.join(unknown)}")
    rows_a_language = 40 if run.quick else 5000
    data = parallel_text(run, rows_a_language)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        encoder = start(run, model, data, layers)
        encoder.save_pretrained(str(folder / "encoder"))
        size = f"{encoder[0].auto_model.config.num_hidden_layers} layers, {len(encoder.tokenizer):,} tokens"
        del encoder
        if {"tr", "dap"} & {*names}:
            trained = [name for name in names if name in ("tr", "dap")]
            yield from by_sentence_transformers(run, trained, folder / "encoder", data, steps, batch, bf16, size)
        if {"earlier", "cache"} & {*names}:
            extract(commit, folder / commit)
            pairs = folder / "pairs.json"
            pairs.write_text(json.dumps({side: data[side][:] for side in ("source", "target")}), encoding="utf-8")
            compare = partial(by_earlier_build, run, folder / commit, folder / "encoder", pairs)
        if "earlier" in names:
            faster, _ = compare(f"--batch={batch}", f"--steps={steps}", now=(), before=())
            yield Ratio("tr: speed by an earlier build", commit, faster, at_least=0.9, note=f"{size}, batch {batch}")
        if "cache" in names:
            sizes = (f"--batch={cache_batch}", f"--steps={cache_steps}")
            faster, differences = compare(
                *sizes, now=(f"--mini-batch-num-tokens={tokens}",), before=("--mini-batch-size=32",)
            )
            note = f"{size}, batch {cache_batch}, {tokens} tokens by 32 rows at a time"
            yield Ratio("cache: speed by an earlier build", commit, faster, at_least=1.5, note=note)
            yield Ratio("cache: difference of losses", commit, differences, at_most=1e-5)


def by_sentence_transformers(
    run: Run, names: list[str], encoder: Path, data: Any, steps: int, batch: int, bf16: bool, size: str
) -> Iterator[Ratio]:
    """Yield the ratios by sentence-transformers' trainer."""
    seconds: dict[str, list[float]] = {row: [] for row in ("ST", *names)}
    for _ in range(run.rounds):
        for row, spent in seconds.items():
            spent.append(seconds_of_step(row, encoder, data, steps, batch, bf16, run.clock))
    precision = "bf16" if bf16 else "fp32"
    at_least = {"tr": 2 if bf16 else 2.5}
    for row in names:
        note = f"{batch / median(seconds[row]):.1f} pairs/s; {size}, batch {batch}, {precision}"
        faster = quotients(seconds["ST"], seconds[row])
        yield Ratio(f"{row}: speed", "ST", faster, at_least=at_least.get(row), note=note)
    if {"tr", "dap"} <= {*names}:
        yield Ratio("dap: time", "tr", quotients(seconds["dap"], seconds["tr"]), at_most=1.3)


if __name__ == "__main__":
    main(measure, rounds=2, quick={"steps": 2, "batch": 4, "cache_batch": 16, "cache_steps": 1, "tokens": 64})
