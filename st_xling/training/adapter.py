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

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from torch import Tensor, nn
from transformers import get_scheduler

from st_xling.data.leak import Texts
from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.data.text_cells import column_texts
from st_xling.losses import siamese_contrastive
from st_xling.losses.siamese_contrastive_loss import Distance, Negatives, check_options
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
from st_xling.training.sentence_vectors import CachedVectors, Column, cached_vectors, layer_vectors
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
        layers = [Dense(dim, dim, activation_function=kind()) for kind in _ACTIVATIONS[options.network]]
        self.stages = nn.ModuleList([Normalize(), *layers] if options.normalize else layers)
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
            languages: Of each of its texts.
            center: ``"per_language"``, ``"joint"`` or ``"none"``: vectors are brought to unit length alone.
        """
        self.eval()
        self.centering = fit_centering(self(vectors), languages, center)

    @torch.no_grad()
    def adapt(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Adapt, normalize, center, normalize. *Shape:* ``(texts, dim)`` → the same, of length 1

        Args:
            vectors: Sentence vectors of one language.
            language: Centered by its mean; by the joint one where it has none.
        """
        adapted = self(vectors)
        return F.normalize(adapted, dim=-1) if self.centering is None else self.centering(adapted, language)

    def stock_modules(self) -> list[Any]:
        """Return the same as modules of sentence-transformers, to follow an encoder's pooling."""
        return [*self.stages, *([Normalize()] if self.centering is None else self.centering.modules())]


@dataclass(frozen=True)
class SiameseOptions:
    """Options of :func:`~st_xling.losses.siamese_contrastive`."""

    margin: float = 1.0
    distance: Distance = "euclidean"
    negatives: Negatives = "worst"


@dataclass(frozen=True)
class EncoderOptions:
    """The vectors below the adapter. ``max_length=None`` keeps the model's own."""

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
    model: EncoderOptions = field(default_factory=EncoderOptions)

    def check(self) -> None:
        if not 0 <= self.adapter.dropout < 1:
            raise ValueError(f"adapter.dropout must be in [0, 1): got {self.adapter.dropout}; the paper's is 0.2.")
        check_options(self.loss.margin, self.loss.distance, self.loss.negatives)


load_adapter_recipe = AdapterRecipe.load


def fit_adapter(
    source: Tensor, target: Tensor, pairs: Any, recipe: AdapterRecipe, *, description: str = "adapter"
) -> tuple[Adapter, list[dict[str, Any]]]:
    """Train the recipe's network on row-aligned vectors.

    Args:
        source: Sentence vectors of one language, float32. *Shape:* ``(pairs, dim)``
        target: Of their translations, on the same device. *Shape:* ``(pairs, dim)``
        pairs: The ``Dataset`` of their texts, with their languages; no text is its own negative.
        recipe: Network, loss and training options; its seed fixes weights, dropout, batches and random negatives.
        description: Of the progress bar.

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
        warmup = round(options.warmup_steps * steps if options.warmup_steps < 1 else options.warmup_steps)
        schedule = get_scheduler(
            options.lr_scheduler_type, optimizer, num_warmup_steps=warmup, num_training_steps=steps
        )
        history: list[dict[str, Any]] = []
        losses: list[Tensor] = []
        every = max(1, steps // 50)  # logs fifty times a run
        batches = itertools.islice(_batches(sampler), steps)
        for step, (epoch, rows) in enumerate(progress_bar(batches, total=steps, desc=description, unit="steps"), 1):
            index = torch.as_tensor(rows, device=source.device)
            loss = siamese_contrastive(adapter(source[index]), adapter(target[index]), **asdict(recipe.loss))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
            if step % every == 0 or step == steps:
                mean = float(torch.stack(losses).mean())
                losses.clear()
                if not math.isfinite(mean):
                    raise NotFiniteError(step, {"the loss": str(mean)}, checkpoint=None)
                history.append({"step": step, "epoch": epoch, "loss": mean})
    adapter.finish(torch.cat([source, target]), languages_of(pairs), recipe.adapter.center)
    return adapter, history


def languages_of(pairs: Any) -> list[str]:
    """Language of each text, all source texts first."""
    return [*pairs["source_language"][:], *pairs["target_language"][:]]


def _batches(sampler: ShuffledBatchSampler) -> Iterator[tuple[int, list[int]]]:
    """Epoch and rows of one batch after the other, without end."""
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
        figures: Of each of ``STAGES`` the evaluator's metrics; empty without one.
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


def sweep_rows(layers: int, pooling: Pooling = "mean") -> dict[str, list[Column]]:
    """The rows of the paper's table 8: every layer, the mean over all of them, the last layer's CLS."""
    rows = {str(layer): [Column(layer, pooling)] for layer in range(1, layers + 1)}
    rows["all"] = [column for [column] in rows.values()]
    return rows if pooling == "cls" else {**rows, "cls": [Column(layers, "cls")]}


def _try_layer(
    run: Run,
    recipe: AdapterRecipe,
    label: str,
    columns: Sequence[Column],
    cached: Mapping[str, CachedVectors],
    pairs: Dataset,
    device: Any,
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
    evaluator = run.evaluator

    def vectors(texts: Sequence[str]) -> Tensor:
        return torch.stack([cached[column.name].of(texts) for column in columns]).mean(dim=0).to(device)

    source, target = vectors(pairs["source"][:]), vectors(pairs["target"][:])
    adapter, history = fit_adapter(source, target, pairs, recipe, description=f"{recipe.name}, layer {label}")
    if evaluator is None:
        return LayerResult(label, adapter, history)
    sides = {name: (vectors(left), vectors(right)) for name, (left, right) in evaluator.pairs.items()}

    def evaluate(change: Callable[[Tensor, str | None], Tensor]) -> dict[str, float]:
        changed = {
            name: tuple(change(*side).cpu().numpy() for side in zip(pair, evaluator.languages[name]))
            for name, pair in sides.items()
        }
        return evaluator.measure_vectors(changed).metrics

    # What an adapter has to beat is the better way to center, whichever its own is.
    text, languages = torch.cat([source, target]), languages_of(pairs)
    ways: Any = {way: fit_centering(text, languages, way) for way in ("per_language", "joint")}
    centered = {way: evaluate(centering) for way, centering in ways.items()}
    best = max(centered, key=lambda way: centered[way][evaluator.primary_measure])
    stages = (evaluate(lambda matrix, _: matrix), centered[best], evaluate(adapter.adapt))
    return LayerResult(label, adapter, history, dict(zip(STAGES, stages)), best)


def layer_table(results: Sequence[LayerResult], at: Sequence[int] = (1, 5)) -> str:
    """Layer x P@N, mean of both directions, in percent: one line a row, without a final newline.

    The last column is how the vectors without an adapter were centered: by the better of both ways.
    """
    head = ["layer", *(f"{stage} P@{n}" for stage in STAGES for n in at), "centered by"]
    rows: list[list[Any]] = []
    for result in results:
        figures = [100 * result.figures[stage][f"mean_p@{n}"] for stage in STAGES for n in at]
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
        return [{"layer": result.label, **entry} for result in self.layers for entry in result.history]

    def figures(self) -> dict[str, Any]:
        """Figures for ``results.json``."""
        layers = [{"layer": each.label, **each.figures, "centered_by": each.centered_by} for each in self.layers]
        figures = {"seconds": self.seconds, "encoded": self.encoded, "layer": int(self.chosen.label)}
        return {**figures, "steps": self.chosen.steps, "layers": layers, **self.scores}


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
    evaluator: Any = None,
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
            sides = ("source_language", "target_language")
            if unknown := [name for name, part in data.items() if any(UNKNOWN in part.unique(side) for side in sides)]:
                raise ValueError(
                    f"a mean for each language needs the languages of the text: {', '.join(unknown)} does not say them "
                    "all; name them (zh-vi=PATH), or take adapter.center joint."
                )
        run.claim({"data": describe(data), "sweep": sweep})
        encoder = _load_encoder(run, recipe, pairs)
        pooling = recipe.model.pooling
        layer = recipe.adapter.layer
        if sweep:
            rows = sweep_rows(layer_count(encoder), pooling)
        else:
            rows = {str(layer): [Column(check_layer(encoder, layer), pooling)]}
        return run.fit(lambda: _fit(run, recipe, encoder, rows, pairs, cache))


def _load_encoder(run: Run, recipe: AdapterRecipe, pairs: Dataset) -> SentenceTransformer:
    # Vectors are pooled by the recipe in the cache: the encoder's own pooling is left as it is.
    encoder = run.load_start(
        lambda: column_texts(pairs, "source", "target"),
        seed=recipe.arguments.seed,
        max_length=recipe.model.max_length,
    )
    if has_adapters(encoder):
        encoder = merge_adapters(encoder if isinstance(run.model, str) else copy.deepcopy(encoder))
    if isinstance(run.model, str):
        to_float32(encoder)
    kind = next(encoder.parameters()).dtype
    if kind != torch.float32:
        raise ValueError(f"the encoder must have float32 weights, as its adapter has: got {kind}; call .float() first.")
    return encoder.eval()


def _fit(
    run: Run,
    recipe: AdapterRecipe,
    encoder: SentenceTransformer,
    rows: Mapping[str, Sequence[Column]],
    pairs: Dataset,
    cache: str | Path | None,
) -> AdapterResult:
    """Encode, train an adapter on each of the layers, and build the model of the best.

    There are no checkpoints: a run that is resumed trains again on the vectors in the cache.
    """
    evaluator = run.evaluator
    started = time.perf_counter()
    texts = [*column_texts(pairs, "source", "target")]
    if evaluator is not None:
        texts += [text for sides in evaluator.pairs.values() for side in sides for text in side]
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    vectors, encoded = cached_vectors(
        list(dict.fromkeys(texts)),
        [column.name for column in columns],
        lambda part: layer_vectors(encoder, part, columns),
        fingerprint=model_fingerprint(encoder),
        folder=cache,
    )
    seconds = {"encoding": round(time.perf_counter() - started, 2)}
    started = time.perf_counter()
    results = []
    for label, of_row in rows.items():
        results.append(_try_layer(run, recipe, label, of_row, vectors, pairs, encoder.device))
    seconds["training"] = round(time.perf_counter() - started, 2)
    chosen = results[0]
    if len(rows) > 1:  # only a single layer can be cut out of the encoder and published; of equals the lowest
        single = [result for result in results if result.label.isdigit()]
        chosen = max(single, key=lambda result: result.figures["trained"][evaluator.primary_measure])
    # Centered by language, encode(texts, task="zh") takes the mean of that language, encode the joint one.
    cut = cut_to_layer(encoder, int(chosen.label), pooling=recipe.model.pooling)
    stock = [*cut, *copy.deepcopy(chosen.adapter).stock_modules()]
    model = model_of(SentenceTransformer, stock, device=str(encoder.device)).eval()
    model.model_card_data.base_model = run.base_model
    scores: dict[str, Any] = {}
    if evaluator is not None:
        trained = chosen.figures["trained"]
        best = trained[evaluator.primary_measure]
        development = development_score(best, evaluator)
        scores = {"best_dev": best, "signature": evaluator.identity}
        if development is not None:
            scores |= development.facts()
        metrics = evaluator.prefix_name_to_metrics(dict(trained), evaluator.name)
        evaluator.store_metrics_in_model_card_data(model, metrics, -1, -1)
    return AdapterResult(model, run.folder.path, chosen, results, encoded, seconds, scores)
