"""Adapters on a frozen encoder's layer (mBERT-SF): cached vectors → a small network → one stock model.

A recipe sets layer, network, loss and training; a sweep compares all layers: their vectors as they are, centered, and
under a trained adapter.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.modules import Dense, Normalize
from torch import Tensor, nn
from transformers import get_scheduler

from st_xling.data.leak import Texts
from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.data.text_cells import column_texts
from st_xling.losses import siamese_contrastive
from st_xling.losses.siamese_contrastive_loss import Negatives, SiameseDistance, check_options
from st_xling.models.load import model_of
from st_xling.models.lora import has_adapters, merge_adapters
from st_xling.models.normalization import Centering, fit_centering
from st_xling.models.sidecar import model_fingerprint
from st_xling.models.training_dtype import to_float32
from st_xling.models.view import check_layer, cut_to_layer, layer_count
from st_xling.training.arguments import total_steps
from st_xling.training.development import development_score
from st_xling.training.mixture import describe, mix
from st_xling.training.options import AdapterArguments, AdapterOptions, OptimizationArguments
from st_xling.training.recipe import BaseRecipe, trains_by_recipe
from st_xling.training.run import OnLeak, Run
from st_xling.training.sentence_vectors import CachedVectors, LayerPooling, cached_vectors, layer_vectors
from st_xling.training.trainer import NotFiniteError
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import Center, Pooling
from st_xling.utils.tables import format_table
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from datasets import Dataset

STAGES = ("untrained", "centered", "trained")

_ACTIVATIONS: dict[str, tuple[type[nn.Module], ...]] = {
    "linear": (nn.Identity,),
    "tanh": (nn.Tanh,),
    "relu": (nn.ReLU,),
    "two-layer": (nn.Tanh, nn.Identity),
}


class Adapter(nn.Module):
    """A siamese layer: both languages' sentence vectors go through the same weights.

    Args:
        dim: Width of the vectors, in and out.
        options: Network, dropout of the outputs of each layer, and whether to scale the vectors to length 1 first.

    Source:
        Huang et al. 2023 (mBERT-SF), equation 1 and figure 5; table 6 compares the networks.
    """

    def __init__(self, dim: int, options: AdapterOptions) -> None:
        super().__init__()
        # ST's modules from the start: what is trained is what is published.
        stages: list[nn.Module] = [Normalize()] if options.normalize else []
        for activation in _ACTIVATIONS[options.network]:
            stages.append(Dense(dim, dim, activation_function=activation()))
        self.stages = nn.ModuleList(stages)
        self.dropout = nn.Dropout(options.dropout)
        self.centering: Centering | None = None

    def forward(self, vectors: Tensor) -> Tensor:
        """*Shape:* ``(batch, dim)`` → the same"""
        for stage in self.stages:
            vectors = stage({"sentence_embedding": vectors})["sentence_embedding"]
            if isinstance(stage, Dense):
                vectors = self.dropout(vectors)
        return vectors

    @torch.no_grad()
    def finish(self, vectors: Tensor, languages: Sequence[str], center: Center) -> None:
        """End the training, and compute the means of the training text, see :func:`fit_centering`.

        Args:
            vectors: Sentence vectors of the training text. *Shape:* ``(texts, dim)``
            languages: Language of each text.
            center: ``"per_language"``, ``"joint"`` or ``"none"``: vectors are only brought to unit length.
        """
        self.eval()
        self.centering = fit_centering(self(vectors), languages, center)

    @torch.no_grad()
    def adapt(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Adapt, normalize, center, normalize. *Shape:* ``(texts, dim)`` → the same, of length 1

        Args:
            vectors: Sentence vectors of one language.
            language: Language of the vectors, which are centered by its mean, or by the joint one if it has none.
        """
        adapted = self(vectors)
        if self.centering is None:
            return F.normalize(adapted, dim=-1)
        return self.centering(adapted, language)

    def stock_modules(self) -> list[nn.Module]:
        """Return the same as modules of sentence-transformers, to follow an encoder's pooling."""
        last_modules = [Normalize()] if self.centering is None else self.centering.modules()
        return [*self.stages, *last_modules]


@dataclass(frozen=True)
class SiameseOptions:
    """Options of :func:`~st_xling.losses.siamese_contrastive`."""

    margin: float = 1.0
    distance: SiameseDistance = "euclidean"
    negatives: Negatives = "worst"


@dataclass(frozen=True)
class VectorOptions:
    """The sentence vectors below the adapter. ``max_length=None`` keeps the model's own."""

    pooling: Pooling = "mean"
    max_length: int | None = None


@dataclass(frozen=True)
class AdapterRecipe(BaseRecipe):
    """A named way to train an adapter."""

    kind: ClassVar[str] = "adapter"
    arguments_class: ClassVar[type[OptimizationArguments]] = AdapterArguments

    name: str
    summary: str
    arguments: AdapterArguments
    adapter: AdapterOptions = field(default_factory=AdapterOptions)
    loss: SiameseOptions = field(default_factory=SiameseOptions)
    model: VectorOptions = field(default_factory=VectorOptions)

    def check(self) -> None:
        if not 0 <= self.adapter.dropout < 1:
            raise ValueError(f"adapter.dropout must be in [0, 1): got {self.adapter.dropout}; the paper's is 0.2.")
        check_options(self.loss.margin, self.loss.distance, self.loss.negatives)


load_adapter_recipe = AdapterRecipe.load


def fit_adapter(
    source: Tensor, target: Tensor, pairs: Dataset, recipe: AdapterRecipe, *, description: str = "adapter"
) -> tuple[Adapter, list[dict[str, Any]]]:
    """Train the recipe's network on row-aligned vectors.

    Args:
        source: Sentence vectors of one language, float32. *Shape:* ``(pairs, dim)``
        target: Sentence vectors of their translations, on the same device. *Shape:* ``(pairs, dim)``
        pairs: The ``Dataset`` of their texts, with their languages; no text is its own negative.
        recipe: Network, loss and training options; its seed fixes weights, dropout, batches and random negatives.
        description: Text before the progress bar.

    Returns:
        The adapter with the mean of its training text; and mean losses, about fifty: ``step``, ``epoch``, ``loss``.

    Raises:
        NotFiniteError: A loss that is no longer a number.
    """
    options = recipe.arguments
    size = options.per_device_train_batch_size
    steps = total_steps(options, len(source))
    sampler = ShuffledBatchSampler(pairs, size, drop_last=len(source) >= size, seed=options.seed)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        adapter = Adapter(source.shape[1], recipe.adapter).to(source.device).train()
        optimizer = torch.optim.AdamW(
            adapter.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, foreach=True
        )
        warmup = options.warmup_steps
        if warmup < 1:  # a share of the steps
            warmup *= steps
        schedule = get_scheduler(
            options.lr_scheduler_type, optimizer, num_warmup_steps=round(warmup), num_training_steps=steps
        )
        history: list[dict[str, Any]] = []
        losses: list[Tensor] = []
        log_interval = max(1, steps // 50)  # logs fifty times a run
        batches = itertools.islice(_endless_batches(sampler), steps)
        for step, (epoch, rows) in enumerate(progress_bar(batches, total=steps, desc=description, unit="steps"), 1):
            index = torch.as_tensor(rows, device=source.device)
            loss = siamese_contrastive(adapter(source[index]), adapter(target[index]), **asdict(recipe.loss))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
            if step % log_interval == 0 or step == steps:
                mean = float(torch.stack(losses).mean())
                losses.clear()
                if not math.isfinite(mean):
                    raise NotFiniteError(step, {"the loss": str(mean)}, checkpoint=None)
                history.append({"step": step, "epoch": epoch, "loss": mean})
    adapter.finish(torch.cat([source, target]), languages_of(pairs), recipe.adapter.center)
    return adapter, history


def languages_of(pairs: Dataset) -> list[str]:
    """Language of each text, all source texts first."""
    return [*pairs["source_language"][:], *pairs["target_language"][:]]


def _endless_batches(sampler: ShuffledBatchSampler) -> Iterator[tuple[int, list[int]]]:
    """Yield the epoch and the rows of one batch after the other, without end."""
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for batch in sampler:
            yield epoch, batch


@dataclass(frozen=True)
class LayerResult:
    """One row of the table.

    Attributes:
        label: ``"7"``; ``"all"``: the mean over all layers; ``"cls"``: the last layer's first token.
        adapter: The adapter with the means of its training text.
        history: Mean losses of its training.
        figures: Metrics of the evaluator for each of ``STAGES``; empty without one.
        centered_by: What gave the metrics of ``centered``: the better one of ``"joint"`` and ``"per_language"``.
    """

    label: str
    adapter: Adapter = field(repr=False)
    history: list[dict[str, Any]] = field(repr=False)
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    centered_by: str | None = None

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return self.history[-1]["step"]


def sweep_rows(layers: int, pooling: Pooling = "mean") -> dict[str, list[LayerPooling]]:
    """The rows of the paper's table 8: every layer, the mean over all of them, the last layer's CLS."""
    all_layers = [LayerPooling(layer, pooling) for layer in range(1, layers + 1)]
    rows = {str(column.layer): [column] for column in all_layers}
    rows["all"] = all_layers
    if pooling != "cls":
        rows["cls"] = [LayerPooling(layers, "cls")]
    return rows


def _try_layer(
    run: Run,
    recipe: AdapterRecipe,
    label: str,
    columns: Sequence[LayerPooling],
    cached: Mapping[str, CachedVectors],
    pairs: Dataset,
    device: torch.device,
) -> LayerResult:
    """Train on one row of the table and evaluate it.

    Args:
        run: Perhaps with a ``PrecisionEvaluator``, which evaluates the vectors of its pairs.
        recipe: Network, loss and options.
        label: Name of the row.
        columns: Vectors to train on; several are averaged before training.
        cached: Column → vectors of the texts of ``pairs`` and of the evaluator.
        pairs: Training text.
        device: Where to train.
    """
    evaluator: Any = run.evaluator  # a PrecisionEvaluator, whose module is imported after this one

    def vectors_of(texts: Sequence[str]) -> Tensor:
        return torch.stack([cached[column.name].of(texts) for column in columns]).mean(dim=0).to(device)

    source = vectors_of(pairs["source"][:])
    target = vectors_of(pairs["target"][:])
    adapter, history = fit_adapter(source, target, pairs, recipe, description=f"{recipe.name}, layer {label}")
    if evaluator is None:
        return LayerResult(label, adapter, history)
    development: dict[str, tuple[Tensor, Tensor]] = {}
    for name, (source_texts, target_texts) in evaluator.pairs.items():
        development[name] = (vectors_of(source_texts), vectors_of(target_texts))

    def evaluate(change: Callable[[Tensor, str | None], Tensor]) -> dict[str, float]:
        changed: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for name, (source_vectors, target_vectors) in development.items():
            source_language, target_language = evaluator.languages[name]
            changed[name] = (
                change(source_vectors, source_language).cpu().numpy(),
                change(target_vectors, target_language).cpu().numpy(),
            )
        return evaluator.measure_vectors(changed).metrics

    def unchanged(vectors: Tensor, language: str | None) -> Tensor:
        return vectors

    # An adapter has to beat the better way to center, whichever its own is.
    training_vectors = torch.cat([source, target])
    languages = languages_of(pairs)
    centered: dict[str, dict[str, float]] = {}
    centers: tuple[Center, ...] = ("per_language", "joint")
    for center in centers:
        centering = fit_centering(training_vectors, languages, center)
        assert centering is not None  # as it is for "none" only
        centered[center] = evaluate(centering)
    best = max(centered, key=lambda center: centered[center][evaluator.primary_measure])
    stages = (evaluate(unchanged), centered[best], evaluate(adapter.adapt))
    return LayerResult(label, adapter, history, dict(zip(STAGES, stages)), best)


def layer_table(results: Sequence[LayerResult], at: Sequence[int] = (1, 5)) -> str:
    """Layer x P@N, mean of both directions, in percent: one line a row, without a final newline.

    The last column is how the vectors without an adapter were centered: by the better of both ways.
    """
    columns = list(itertools.product(STAGES, at))
    head = ["layer", *(f"{stage} P@{n}" for stage, n in columns), "centered by"]
    rows: list[list[Any]] = []
    for result in results:
        figures = [100 * result.figures[stage][f"mean_p@{n}"] for stage, n in columns]
        rows.append([result.label, *figures, result.centered_by])
    return format_table(head, rows)


@dataclass(frozen=True)
class AdapterResult:
    """Result of a run.

    Attributes:
        model: The encoder, cut, with the adapter as stock modules.
        folder: Where it was saved.
        chosen: The layer that was saved: the recipe's, or a sweep's best.
        layers: All rows that were trained, in order.
        encoded: Texts that were not in the cache.
        seconds: Wall time of encoding, and of the trainings with their evaluations.
        scores: ``best_dev`` with its number of pairs and interval, and the evaluator's ``signature``; empty without
            one.
    """

    model: SentenceTransformer
    folder: Path
    chosen: LayerResult
    layers: list[LayerResult]
    encoded: int
    seconds: dict[str, float]
    scores: dict[str, Any] = field(default_factory=dict)

    @property
    def history(self) -> list[dict[str, Any]]:
        """Losses of all layers."""
        entries: list[dict[str, Any]] = []
        for result in self.layers:
            entries += [{"layer": result.label, **entry} for entry in result.history]
        return entries

    def figures(self) -> dict[str, Any]:
        """Figures for ``results.json``."""
        layers = []
        for result in self.layers:
            layers.append({"layer": result.label, **result.figures, "centered_by": result.centered_by})
        return {
            "seconds": self.seconds,
            "encoded": self.encoded,
            "layer": int(self.chosen.label),
            "steps": self.chosen.steps,
            "layers": layers,
            **self.scores,
        }


@trains_by_recipe
def train_adapter(
    recipe: AdapterRecipe,
    data: Mapping[str, Dataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer,
    tiny: Mapping[str, Any] | None = None,
    sweep: bool = False,
    cache: str | Path | None = None,
    evaluator: BaseEvaluator | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
    provenance: Sequence[Mapping[str, Any]] = (),
    load_options: Mapping[str, Any] | None = None,
) -> AdapterResult:
    """Encode once, train an adapter on a layer's sentence vectors, and save both as one stock model.

    Args:
        recipe: Layer, network, loss and options, from :func:`load_adapter_recipe`.
        data: Name → data set with ``source``, ``target`` and their languages; all are put together.
        out: Folder of the run, see :class:`~st_xling.training.run_folder.RunFolder`.
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        sweep: Train on every layer; the one whose adapter the evaluator finds best is saved.
        cache: Folder of sentence vectors, see :func:`~st_xling.training.sentence_vectors.cached_vectors`; ``None``: one
            next to downloaded models.
        evaluator: A ``PrecisionEvaluator``, which evaluates the vectors as they are, centered, and under the adapter.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Resume the run in ``out``: its vectors are in the cache, and its training starts again.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
        load_options: ``revision`` and ``trust_remote_code`` of
            :func:`~st_xling.models.load.load_sentence_transformer`, for a model that is loaded.

    Raises:
        ValueError: Empty data, one pair only, a layer that the encoder lacks, an occupied folder; a sweep without an
            evaluator; means by language, of text whose language is not known.
        TrainingInterrupted: Ctrl-C while training.
    """
    run = Run(
        recipe=recipe,
        out=out,
        model=model,
        tiny=tiny,
        evaluator=evaluator,
        evaluation=evaluation,
        on_leak=on_leak,
        resume=resume,
        overwrite=overwrite,
        command=command,
        provenance=provenance,
        load_options=load_options,
    )
    if sweep and run.evaluator is None:
        raise ValueError("a sweep compares layers on development pairs: got none; pass some.")
    with run.opened("adapters"):
        mix(data)  # or an error, before texts are compared
        data = run.check_leaks(data)
        pairs = mix(data)
        if recipe.adapter.center == "per_language":
            _check_languages(data)
        run.claim({"data": describe(data), "sweep": sweep})
        encoder = _load_encoder(run, recipe, pairs)
        pooling = recipe.model.pooling
        layer = recipe.adapter.layer
        if sweep:
            rows = sweep_rows(layer_count(encoder), pooling)
        else:
            rows = {str(layer): [LayerPooling(check_layer(encoder, layer), pooling)]}
        return run.fit(lambda: _fit(run, recipe, encoder, rows, pairs, cache))


def _check_languages(data: Mapping[str, Dataset]) -> None:
    """Raise ``ValueError`` for data sets with text whose language is not known."""
    unknown: list[str] = []
    for name, dataset in data.items():
        if UNKNOWN in dataset.unique("source_language") or UNKNOWN in dataset.unique("target_language"):
            unknown.append(name)
    if unknown:
        raise ValueError(
            f"a mean for each language needs the languages of the text: {', '.join(unknown)} does not say them "
            "all; name them (zh-vi=PATH), or take adapter.center joint."
        )


def _load_encoder(run: Run, recipe: AdapterRecipe, pairs: Dataset) -> SentenceTransformer:
    # Vectors are pooled by the recipe in the cache: the encoder's own pooling is left as it is.
    encoder = run.load_start(
        lambda: column_texts(pairs, "source", "target"),
        seed=recipe.arguments.seed,
        max_length=recipe.model.max_length,
    )
    is_users = not isinstance(run.model, str)  # a loaded model, which stays as it is
    if has_adapters(encoder):
        if is_users:
            encoder = copy.deepcopy(encoder)
        encoder = merge_adapters(encoder)
    if not is_users:
        to_float32(encoder)
    dtype = next(encoder.parameters()).dtype
    if dtype != torch.float32:
        raise ValueError(
            f"the encoder must have float32 weights, as its adapter has: got {dtype}; call .float() first."
        )
    return encoder.eval()


def _fit(
    run: Run,
    recipe: AdapterRecipe,
    encoder: SentenceTransformer,
    rows: Mapping[str, Sequence[LayerPooling]],
    pairs: Dataset,
    cache: str | Path | None,
) -> AdapterResult:
    """Encode, train an adapter on each of the layers, and build the model of the best.

    There are no checkpoints: a run that is resumed trains again on the vectors in the cache.
    """
    evaluator: Any = run.evaluator  # as in _try_layer
    started = time.perf_counter()
    vectors, encoded = _encode(encoder, rows, pairs, evaluator, cache)
    seconds = {"encoding": round(time.perf_counter() - started, 2)}

    started = time.perf_counter()
    results: list[LayerResult] = []
    for label, columns in rows.items():
        results.append(_try_layer(run, recipe, label, columns, vectors, pairs, encoder.device))
    seconds["training"] = round(time.perf_counter() - started, 2)

    chosen = results[0]
    if len(rows) > 1:  # only a single layer can be cut out of the encoder and published; of equals the lowest
        single_layers = [result for result in results if result.label.isdigit()]
        chosen = max(single_layers, key=lambda result: result.figures["trained"][evaluator.primary_measure])

    # Centered by language, encode(texts, task="zh") takes the mean of that language, encode the joint one.
    cut_encoder = cut_to_layer(encoder, int(chosen.label), pooling=recipe.model.pooling)
    modules = [*cut_encoder, *copy.deepcopy(chosen.adapter).stock_modules()]
    model = model_of(SentenceTransformer, modules, device=str(encoder.device)).eval()
    model.model_card_data.base_model = run.base_model
    scores = {} if evaluator is None else _record_scores(model, chosen.figures["trained"], evaluator)
    return AdapterResult(model, run.folder.path, chosen, results, encoded, seconds, scores)


def _encode(
    encoder: SentenceTransformer,
    rows: Mapping[str, Sequence[LayerPooling]],
    pairs: Dataset,
    evaluator: Any,
    cache: str | Path | None,
) -> tuple[dict[str, CachedVectors], int]:
    """Encode training and development text by all columns of the rows, and return how many texts were not cached."""
    texts = dict.fromkeys(column_texts(pairs, "source", "target"))
    if evaluator is not None:
        for source, target in evaluator.pairs.values():
            texts |= dict.fromkeys(source)
            texts |= dict.fromkeys(target)
    columns = list(dict.fromkeys(itertools.chain.from_iterable(rows.values())))

    def encode(block: list[str]) -> dict[str, np.ndarray]:
        return layer_vectors(encoder, block, columns)

    return cached_vectors(
        list(texts),
        [column.name for column in columns],
        encode,
        fingerprint=model_fingerprint(encoder),
        folder=cache,
    )


def _record_scores(model: SentenceTransformer, trained: Mapping[str, float], evaluator: Any) -> dict[str, Any]:
    """Write the metrics of the trained adapter into the model's card data, and return them for ``results.json``."""
    best = trained[evaluator.primary_measure]
    scores: dict[str, Any] = {"best_dev": best, "signature": evaluator.identity}
    development = development_score(best, evaluator)
    if development is not None:
        scores |= development.facts()
    metrics = evaluator.prefix_name_to_metrics(dict(trained), evaluator.name)
    evaluator.store_metrics_in_model_card_data(model, metrics, -1, -1)
    return scores
