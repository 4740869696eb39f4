"""Options of the model: how it is loaded, and how it is used in another way than as saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from st_xling.cli.options import BATCH_SIZE, KEEP, argument, flag, option, options_of, required
from st_xling.cli.results import check_keep
from st_xling.utils.languages import UNKNOWN, match_language
from st_xling.utils.lazy_model import LazyModel, configured_prompts
from st_xling.utils.options import Autocast, Backend, Dtype, Pooling

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from st_xling.models.normalization import Center

#: Values of ``--center``.
CenterBy = Literal["none", "joint", "language"]
CENTERS: dict[CenterBy, Center] = {"none": "none", "joint": "joint", "language": "per_language"}

PANEL = "Model (what differs from the saved model is named in signatures)"
model_option = partial(option, panel=PANEL)
scoring_option = partial(option, panel="Scoring")

MODEL = argument("MODEL", "Hub id or folder.")
CROSS_ENCODER = argument("MODEL", "Cross-encoder: Hub id or folder.")
ENCODER = required("--model MODEL", "Hub id or folder of an encoder.")
PASSAGE_PROMPT = model_option("--passage-prompt", "Text before each passage.")
REVISION = model_option("--revision", "Version on the Hub: a branch, a tag or a commit.")
TRUST_REMOTE_CODE = flag("--trust-remote-code", "Run the model's own code, which can do whatever you can.", panel=PANEL)


@dataclass(frozen=True)
class LoadOptions:
    """Options that say how a model is loaded."""

    device: str | None = model_option("--device", "Device: cpu, cuda, cuda:1, … (default: a GPU if there is one).")
    dtype: Dtype | None = model_option("--dtype", "Type to compute in (default: as saved).")
    backend: Backend | None = model_option("--backend", "Backend (default: torch; openvino: see st-xling\\[openvino]).")
    revision: str | None = REVISION
    trust_remote_code: bool = TRUST_REMOTE_CODE

    def given(self) -> dict[str, Any]:
        """Return the options that were set, by the names that they have in the library; a prompt may be empty."""
        return {name: value for name, value in vars(self).items() if value is not None and value is not False}


@dataclass(frozen=True)
class ViewOptions:
    """Options that use an encoder in another way than as saved."""

    prompt: str | None = model_option("--prompt", "Text before each sentence, in retrieval query, such as 'query: '.")
    prompt_name: str | None = model_option("--prompt-name", "One of the model's own prompts.")
    layer: int | None = model_option("--layer", "End at this layer, counted from 1.")
    pooling: Pooling | None = model_option("--pooling", "How token states become the embedding of a sentence.")
    truncate_dim: int | None = model_option("--truncate-dim", "Keep this many dimensions of an embedding.")


@dataclass(frozen=True)
class EncoderOptions(LoadOptions, ViewOptions):
    """Options of an encoder, as :func:`~st_xling.models.load_encoder` takes them."""


@dataclass(frozen=True)
class ScoringOptions:
    """Options of the computation of a cross-encoder's scores."""

    token_budget: int | None = scoring_option("--token-budget", "Tokens at a time (default: 2048, on a GPU 16384).")
    autocast: Autocast | None = scoring_option("--autocast", "Type of matrix products (default: as loaded).")


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of the evaluation of an encoder."""

    batch_size: int | None = BATCH_SIZE
    keep: bool = KEEP
    center: CenterBy | None = model_option(
        "--center",
        "Center embeddings: none, subtract one mean of all languages, or each language's own. The means are those "
        "of --center-text, or saved with the model (default: as the model was saved).",
    )
    center_text: list[str] | None = model_option("--center-text SPEC", "Parallel text for the means (repeatable).")


class EmbeddingModel(NamedTuple):
    """The encoder that embeds files.

    Attributes:
        model: The model, which is yet to be loaded; ``None`` if there is none.
        prompt: Text put before every sentence. It stays apart from the model, so that embeddings of queries and of
            passages are of one model.
        device: Device to embed on.
    """

    model: LazyModel | None
    prompt: str | None
    device: str | None


def embedding_model(context: typer.Context, model: str | None) -> EmbeddingModel:
    """Return the encoder that embeds files, by the options of the model."""
    encoder_options = options_of(context, EncoderOptions)
    options = encoder_options.given()
    if model is None:
        if others := sorted(options.keys() - {"device"}):
            raise ValueError(f"--{others[0].replace('_', '-')} needs --model, the model that embeds.")
        return EmbeddingModel(None, None, encoder_options.device)
    prompt = options.pop("prompt", None)
    prompt_name = options.pop("prompt_name", None)
    if prompt_name is not None:
        prompts = configured_prompts(model, encoder_options.revision)
        if prompt_name not in prompts:
            raise ValueError(f"{model} has no prompt {prompt_name!r}: it has {', '.join(map(repr, prompts))}.")
        prompt = prompts[prompt_name]

    def load() -> SentenceTransformer:
        from st_xling.models import load_encoder

        return load_encoder(model, **options)

    lazy = LazyModel(model, load, revision=encoder_options.revision)
    return EmbeddingModel(lazy, prompt, encoder_options.device)


def lazy_cross_encoder(context: typer.Context, model: str) -> LazyModel:
    """Return a cross-encoder with its head, which is yet to be loaded."""
    return LazyModel(model, lambda: load_cross_encoder(context, model))


def load_cross_encoder(context: typer.Context, model: str) -> CrossEncoder:
    """Load a cross-encoder with its head."""
    from st_xling.mining.pipeline.rescore import load_reranker

    return load_reranker(model, **options_of(context, LoadOptions).given())[0]


def check_evaluated(context: typer.Context, model: str, *, publishes: bool = False) -> EvaluationOptions:
    """Return the options of an evaluation, once it is known that its results can be saved."""
    options = options_of(context, EvaluationOptions)
    if options.keep:
        check_keep(Path(model), publishes=publishes)
    return options


def load_evaluated(context: typer.Context, model: str, *, passage_prompt: str | None = None) -> SentenceTransformer:
    """Load the encoder to evaluate, after the data, whose faults are named sooner than a model is loaded."""
    from st_xling.models import load_encoder

    return load_encoder(model, passage_prompt=passage_prompt, **options_of(context, EncoderOptions).given())


def centered(
    model: SentenceTransformer, options: EvaluationOptions, languages: Iterable[str | None]
) -> SentenceTransformer:
    """Return the model centered according to ``--center``, which signatures name.

    Args:
        model: An encoder.
        options: Options of the evaluation.
        languages: Languages of the evaluated text; ``None`` if one is unknown, or several.

    Raises:
        ValueError: For a language without a mean, or if there is no text for the means.
    """
    from st_xling.models import normalization
    from st_xling.models.view import with_signed_options

    how = options.center
    saved_centering = normalization.find_centering(model)
    if how is None or (how == "none" and saved_centering is None):
        return model
    if how == "none":
        return with_signed_options(normalization.apply_centering(model, None), center="none")
    if options.center_text:
        result, source = _center_by_text(model, how, options.center_text, options.batch_size)
    elif saved_centering is not None and (how == "joint" or saved_centering.languages):
        centering = saved_centering
        if how == "joint":
            centering = normalization.Centering(saved_centering.joint, {})
        result = normalization.apply_centering(model, centering)
        source = "model"
    else:
        raise ValueError(f"--center {how} needs text for the means; name it with --center-text xx-yy=PATH.")
    if how == "language":
        # A language without a mean would silently be centered by the joint one.
        codes = {UNKNOWN if code is None else code for code in languages}
        routes = normalization.language_routes(result)
        lacking = sorted(code for code in codes if match_language(code, routes) is None)
        if lacking:
            raise ValueError(
                f"--center language needs a mean for each language: {source} has none for {', '.join(lacking)}."
            )
    return with_signed_options(result, center=f"{how}@{source}")


def _center_by_text(
    model: SentenceTransformer, how: CenterBy, specs: list[str], batch_size: int | None
) -> tuple[SentenceTransformer, str]:
    """Center a model by the means of parallel text.

    Args:
        model: An encoder.
        how: One mean, or one for each language.
        specs: Specs of the text.
        batch_size: Maximum batch size.

    Returns:
        The centered model, and the name of the text in signatures.
    """
    from st_xling.data import load_data_specs
    from st_xling.models import normalization
    from st_xling.utils.signature import sha8

    data = load_data_specs(specs, identify=True)
    texts: list[str] = []
    codes: list[str] = []
    for pairs in data.values():
        for side in ("source", "target"):
            texts += pairs[side][:]
            codes += pairs[f"{side}_language"][:]
    result = normalization.center_by_text(
        model, texts, codes, CENTERS[how], batch_size=batch_size, show_progress_bar=True
    )
    content = [[pairs["source"][:], pairs["target"][:]] for pairs in data.values()]
    return result, f"{','.join(data)}@{sha8(content)}"
