"""Training from today's architectures: seconds a step, loss of the first and the last step, saved and loaded alike.

Two tables. The first is of small models with random weights (``tests/modern_models.py``), each trained by each recipe
on the phrasebook; a recipe that does not fit says why. The second is of an encoder of real size (``ST_XLING_E5``, or
``--model``): its first layers, with the vocabulary of the text, trained by tr on German and English text
(``ST_XLING_DATA``) from weights stored in float32 and in bfloat16, and by sentence-transformers' trainer from bfloat16.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from tests.benchmarks.measure import Ratio, Run, Skipped, encoder_folder, main, parallel

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformerTrainingArguments

RECIPES = ("tr", "tr-tlm", "amber", "mexma", "dap")
STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3, padded left": ("qwen3", {}),
    "qwen3, padded right": ("qwen3", {"padding_side": "right"}),
    "embedding-gemma": ("embedding-gemma", {}),
    "embedding-gemma, bfloat16": ("embedding-gemma", {"dtype": "bfloat16"}),
    "modernbert": ("modernbert", {}),
    "modernbert, MLM head": ("modernbert", {"head": True}),
    "xlm-r-large, MLM head": ("xlm-r-large", {"head": True}),
    "t5": ("t5", {}),
    "static": ("static", {}),
}
TEXTS = ["Das Buch ist alt.", "我买了三本旧书。", "The dog is sleeping under the table."]


def rows_of_starts(recipes: Sequence[str], steps: int, folder: Path) -> Iterator[tuple[str, str, float, float]]:
    """Print a line for each start and recipe; yield those that train, with the first and the last loss."""
    import torch
    from sentence_transformers import SentenceTransformer

    from st_xling.data.phrasebook import parallel_phrases
    from st_xling.training import load_recipe, train
    from tests.modern_models import modern_start

    data = {code: parallel_phrases(code[:2], "en", size=200) for code in ("de-en", "zh-en")}
    changes = {"arguments.max_steps": steps, "arguments.per_device_train_batch_size": 32}
    changes |= {"arguments.learning_rate": 1e-3, "arguments.logging_steps": 1, "arguments.warm_up_heads": 0}
    print(
        "| start | recipe | seconds a step | loss, first → last | saved and loaded |\n| --- | --- | --- | --- | --- |"
    )
    for start, (name, options) in STARTS.items():
        if "dtype" in options:
            options = {**options, "dtype": getattr(torch, options["dtype"])}
        path = modern_start(name, folder / start.replace(", ", "-").replace(" ", "-"), **options)
        for recipe in recipes:
            out = folder / f"{path.name}-{recipe}"
            try:
                result = train(load_recipe(recipe, overrides=changes), data, out, model=str(path))
            except ValueError as error:
                print(f"| {start} | {recipe} | – | refused: {str(error).partition(': ')[2].partition(';')[0]} | – |")
                continue
            losses = [entry["loss"] for entry in result.history if "loss" in entry]
            trained = result.model.encode(TEXTS)
            loaded = SentenceTransformer(str(out)).encode(TEXTS)
            distance = float(abs(trained - loaded).max())
            same = "equal" if distance == 0 else f"differ by {distance:.0e}"
            pace = result.seconds / result.steps
            print(f"| {start} | {recipe} | {pace:.2f} | {losses[0]:.2f} → {losses[-1]:.2f} | {same} |", flush=True)
            yield start, recipe, losses[0], losses[-1]


def rows_of_storage(
    run: Run, model: str | None, layers: int, steps: int, folder: Path
) -> Iterator[tuple[str, float, float]]:
    """Print a line for each type of storage; yield mean loss of the last tenth, and the share of weights that moved."""
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.losses import TranslationRankingLoss
    from st_xling.models.view import cut_to_layer
    from st_xling.models.vocabulary import slim_encoder
    from st_xling.training import CrossLingualTrainer

    batch = 32
    n_held_out = 1000
    encoder = SentenceTransformer(encoder_folder(model), device="cpu")
    pairs = parallel(run, "de", steps * batch + n_held_out)
    held_out, rows = pairs[:n_held_out], pairs[n_held_out:]
    evaluator = TatoebaEvaluator({"deu": ([pair[0] for pair in held_out], [pair[1] for pair in held_out])}, name="dev")
    start = slim_encoder(cut_to_layer(encoder, layers), [*chain.from_iterable(pairs)])
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        start.to(dtype).save_pretrained(str(folder / name))
    print(
        "| weights stored in | trained by | seconds a step | loss, last tenth | weights moved | P@1, held out, in % |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    kinds: Sequence[tuple[str, str, Any]] = (
        ("float32", "CrossLingualTrainer", CrossLingualTrainer),
        ("bfloat16", "CrossLingualTrainer", CrossLingualTrainer),
        ("bfloat16", "SentenceTransformerTrainer", SentenceTransformerTrainer),
    )
    for stored, title, kind in kinds:
        encoder = SentenceTransformer(str(folder / stored), device="cpu")
        before = {key: value.detach().float().clone() for key, value in encoder.named_parameters() if "layer." in key}
        arguments = storage_arguments(folder / "run", steps, batch)
        data = Dataset.from_dict({"source": [pair[0] for pair in rows], "target": [pair[1] for pair in rows]})
        trainer = kind(model=encoder, args=arguments, train_dataset=data, loss=TranslationRankingLoss(encoder))
        began = time.perf_counter()
        trainer.train()
        seconds = (time.perf_counter() - began) / steps
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        last = mean(losses[-max(1, steps // 10) :])
        weights = dict(encoder.named_parameters())
        moved = sum(int((weights[key].float() != value).sum()) for key, value in before.items())
        share = moved / sum(value.numel() for value in before.values())
        score = 100 * evaluator(encoder)[evaluator.primary_metric]
        print(f"| {stored} | {title} | {seconds:.2f} | {last:.4f} | {100 * share:.1f} % | {score:.2f} |", flush=True)
        yield f"{stored}, {title}", last, share


def storage_arguments(out: Path, steps: int, batch: int) -> SentenceTransformerTrainingArguments:
    """Return the arguments with which each type of storage is trained."""
    from sentence_transformers import SentenceTransformerTrainingArguments

    return SentenceTransformerTrainingArguments(
        str(out),
        max_steps=steps,
        per_device_train_batch_size=batch,
        learning_rate=1e-5,
        warmup_steps=0.1,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )


def measure(
    run: Run,
    recipes: tuple[str, ...] = RECIPES,
    steps: int = 12,
    real_steps: int = 100,
    layers: int = 4,
    model: str | None = None,
) -> Iterator[Ratio]:
    """Yield the last loss by the first one, and what becomes of weights in bfloat16."""
    with tempfile.TemporaryDirectory() as folder:
        for start, recipe, first, last in rows_of_starts(recipes, steps, Path(folder)):
            yield Ratio(f"loss of {start}, {recipe}", "that of the first step", last / first)
        try:
            rows = list(rows_of_storage(run, model, layers, real_steps, Path(folder)))
        except Skipped as why:
            print(f"skipped: {why}")
            return
        _, float32_loss, float32_share = rows[0]
        for title, loss, share in rows[1:]:
            yield Ratio(f"loss from {title}", "float32", loss / float32_loss)
            yield Ratio(f"weights moved from {title}", "float32", share / float32_share)


if __name__ == "__main__":
    main(measure, quick={"recipes": ("tr", "tr-tlm"), "steps": 2, "real_steps": 2})
