"""One run of an adapter's recipe, from data sets to a saved model of stock modules."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.layers import check_layer, cut_to_layer, layer_count
from st_xling.models.load import st_model
from st_xling.models.lora import has_adapters, merge_adapters
from st_xling.training import processes
from st_xling.training.adapter.layer_vectors import Column
from st_xling.training.adapter.network import FittedAdapter
from st_xling.training.adapter.recipe import AdapterRecipe
from st_xling.training.adapter.sweep import LayerResult, LayerRow, best_row, sweep_rows, try_layer
from st_xling.training.adapter.vector_cache import VectorCache
from st_xling.training.leak_check import OnLeak, check_leaks
from st_xling.training.mixture import fingerprint, mix
from st_xling.training.prepare import check_tiny, model_name
from st_xling.training.run import TrainingInterrupted, dev_data
from st_xling.training.run_folder import RunFolder
from st_xling.training.saving import save_run
from st_xling.utils.languages import UNKNOWN

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.leak import Texts


@dataclass(frozen=True)
class AdapterResult:
    """What a run leaves behind.

    Attributes:
        model: The encoder, cut, with the adapter as stock modules.
        folder: Where it was saved.
        chosen: The layer that was saved: the recipe's, or a sweep's best.
        layers: All rows that were trained, in order.
        encoded: Texts that were not in the cache.
        seconds: Wall time of encoding, and of the trainings with their judging.
    """

    model: SentenceTransformer
    folder: Path
    chosen: LayerResult
    layers: list[LayerResult]
    encoded: int
    seconds: dict[str, float]


def train_adapter(
    recipe: AdapterRecipe,
    data: Mapping[str, Dataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer = "tiny",
    tiny: Mapping[str, Any] | None = None,
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    sweep: bool = False,
    cache: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> AdapterResult:
    """Encode once, train an adapter on a layer's sentence vectors, and save both as one stock model.

    Args:
        recipe: Layer, network, loss and options, from :func:`load_adapter_recipe`.
        data: Name → data set with ``source``, ``target`` and their languages; all are put together.
        out: Folder of the run, see :class:`RunFolder`.
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small encoder of random weights, built from the data.
        tiny: Options of :func:`tiny_encoder`, for ``model="tiny"``.
        evaluator: A ``PrecisionEvaluator``; it judges the vectors as they are, centred, and under the adapter.
        evaluation: Further texts that will judge the model, to be looked for in the data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        sweep: Train on every layer; the one whose adapter the evaluator finds best is saved.
        cache: Folder of sentence vectors, see :class:`VectorCache`; ``None``: the model's own, beside the host's.
        resume: Repeat a run that was interrupted: its vectors are in the cache, its training starts again.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Empty data, one pair only, a layer that the encoder lacks, a cache of another model, an occupied
            folder; a sweep without an evaluator; means by language, of text whose language is not known.
        TrainingInterrupted: Ctrl-C while training.
    """
    tiny = check_tiny(tiny, model)
    processes.require_one("adapters")
    if sweep and evaluator is None:
        raise ValueError("a sweep compares layers on development pairs: got none; pass some.")
    with RunFolder(out, resume=resume, overwrite=overwrite, start=model) as folder:
        mixed = mix(data)
        data, leak = check_leaks(data, evaluator, evaluation, on_leak=on_leak)
        pairs = mixed if leak is None or not leak.dropped else mix(data)
        _check_languages(recipe, data)
        encoder = _encoder(recipe, model, tiny, pairs)
        rows = _rows(recipe, encoder, sweep=sweep)
        manifest = _manifest(recipe, data, model, tiny, evaluator, sweep=sweep, command=command)
        folder.claim(manifest)  # there are no checkpoints: the vectors are in the cache
        vectors = VectorCache(encoder, cache, name=model_name(model))
        started = time.perf_counter()
        texts = [text for side in ("source", "target") for text in pairs[side][:]]
        judged = (
            () if evaluator is None else [text for sides in evaluator.pairs.values() for side in sides for text in side]
        )
        columns = list(dict.fromkeys(column for row in rows for column in row.columns))
        encoded = vectors.fill([*texts, *judged], columns)
        seconds = {"encoding": round(time.perf_counter() - started, 2)}
        folder.begin(manifest)
        started = time.perf_counter()
        try:
            results = [try_layer(row, pairs, recipe, vectors, evaluator) for row in rows]
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, None) from stop
        seconds["training"] = round(time.perf_counter() - started, 2)
        chosen = best_row(results, evaluator.primary_measure) if sweep else results[0]
        assert chosen.row.layer is not None
        published = stock_model(encoder, chosen.row.layer, chosen.fit.fitted, recipe)
        published.model_card_data.base_model = None if model == "tiny" else model_name(model)
        result = AdapterResult(published, folder.path, chosen, results, encoded, seconds)
        _save(result, folder, evaluator, leak)
    return result


def stock_model(
    encoder: SentenceTransformer, layer: int, fitted: FittedAdapter, recipe: AdapterRecipe
) -> SentenceTransformer:
    """The encoder cut to ``layer``, pooling, the adapter, and its centring: modules of sentence-transformers alone.

    Centred by language, ``encode(texts, task="zh")`` takes the mean of that language, ``encode`` the joint one; see
    :meth:`~st_xling.models.view.Centring.modules`.
    """
    cut = cut_to_layer(encoder, layer, pooling=recipe.model.pooling)
    stock = [*cut, *copy.deepcopy(fitted).stock_modules()]
    return st_model(SentenceTransformer, modules=stock, device=str(encoder.device)).eval()


def _encoder(
    recipe: AdapterRecipe, model: str | SentenceTransformer, tiny: dict[str, Any], pairs: Dataset
) -> SentenceTransformer:
    if model == "tiny":
        shape: dict[str, Any] = {"seed": recipe.training.seed, **tiny}
        if recipe.model.max_length is not None:
            shape.setdefault("max_length", recipe.model.max_length)
        encoder = tiny_encoder([*pairs["source"][:], *pairs["target"][:]], **shape)
    elif isinstance(model, str):
        encoder = load_encoder(model, max_length=recipe.model.max_length)
    else:
        encoder = model
    if has_adapters(encoder):
        encoder = merge_adapters(encoder if isinstance(model, str) else copy.deepcopy(encoder))
    kind = next(encoder.parameters()).dtype
    if kind != torch.float32:
        raise ValueError(f"the encoder must have float32 weights, as its adapter has: got {kind}; call .float() first.")
    return encoder.eval()


def _check_languages(recipe: AdapterRecipe, data: Mapping[str, Dataset]) -> None:
    unknown = [
        name
        for name, part in data.items()
        if UNKNOWN in (*part.unique("source_language"), *part.unique("target_language"))
    ]
    if unknown and recipe.adapter.centre == "per_language":
        raise ValueError(
            f"a mean for each language needs the languages of the text: {', '.join(unknown)} does not say them all; "
            "name them (zh-vi=PATH), or take adapter.centre joint."
        )


def _rows(recipe: AdapterRecipe, encoder: SentenceTransformer, *, sweep: bool) -> list[LayerRow]:
    pooling = recipe.model.pooling
    if sweep:
        return sweep_rows(layer_count(encoder), pooling)
    layer = check_layer(encoder, recipe.adapter.layer)
    return [LayerRow(str(layer), (Column(layer, pooling),))]


def _manifest(
    recipe: AdapterRecipe,
    data: Mapping[str, Dataset],
    model: str | SentenceTransformer,
    tiny: dict[str, Any],
    evaluator: Any,
    *,
    sweep: bool,
    command: str | None,
) -> dict[str, Any]:
    return {
        "version": __version__,
        "command": command,
        "recipe": recipe.as_dict(),
        "model": model_name(model),
        "tiny": tiny,
        "data": {name: {"rows": len(part), "sha8": fingerprint(part)} for name, part in data.items()},
        "dev": dev_data(evaluator),
        "sweep": sweep,
    }


def _save(result: AdapterResult, folder: RunFolder, evaluator: Any, leak: Any) -> None:
    figures: dict[str, Any] = {
        "seconds": result.seconds,
        "encoded": result.encoded,
        "layer": result.chosen.row.layer,
        "steps": result.chosen.fit.steps,
        "layers": [row.as_dict() for row in result.layers],
    }
    if evaluator is not None:
        trained = result.chosen.figures["trained"]
        figures |= {"best_dev": trained[evaluator.primary_measure], "signature": evaluator.signature}
        metrics = evaluator.prefix_name_to_metrics(dict(trained), evaluator.name)
        evaluator.store_metrics_in_model_card_data(result.model, metrics, -1, -1)
    history = [{"layer": row.row.label, **entry} for row in result.layers for entry in row.fit.history]
    save_run(result.model, folder, history=history, figures=figures, leak=leak)
