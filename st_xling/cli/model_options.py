"""Options of the model: how it is loaded, and how it is used in another way than as saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli.options import argument, given, option
from st_xling.utils.languages import UNKNOWN, match_language

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from st_xling.models.normalization import Center

#: Values of ``--center``.
CenterBy = Literal["none", "joint", "language"]
CENTERS: dict[CenterBy, Center] = {"none": "none", "joint": "joint", "language": "per_language"}

PANEL = "Model (what differs from the saved model is named in signatures)"

MODEL = argument("MODEL", "Hub id or folder.", default=...)
REVISION = option("--revision", panel=PANEL, help="Version on the Hub: a branch, a tag or a commit.")
TRUST_REMOTE_CODE = option(
    "--trust-remote-code",
    panel=PANEL,
    default=False,
    help="Run code that comes with the model. It can do whatever you can, so read it before.",
)
DEVICE = option("--device", panel=PANEL, help="Device: cpu, cuda, cuda:1, … (default: a GPU if there is one).")
DTYPE = option("--dtype", panel=PANEL, help="Type to compute in (default: as saved).")
BACKEND = option("--backend", panel=PANEL, help="Backend (default: torch; openvino: see st-xling\\[openvino]).")
LAYER = option("--layer", panel=PANEL, help="End at this layer, counted from 1.")
POOLING = option("--pooling", panel=PANEL, help="How token states become the embedding of a sentence.")
TRUNCATE_DIM = option("--truncate-dim", panel=PANEL, help="Keep this many dimensions of an embedding.")
PROMPT = option(
    "--prompt", panel=PANEL, help="Text before each sentence, or each query in retrieval, such as 'query: '."
)
PROMPT_NAME = option("--prompt-name", panel=PANEL, help="One of the model's own prompts.")
PASSAGE_PROMPT = option("--passage-prompt", panel=PANEL, help="Text before each passage.")
CENTER_BY = option(
    "--center",
    panel=PANEL,
    help="Center embeddings: none, subtract one mean of all languages, or each language's own. The means are those "
    "saved with the model, of --center-text, or of the evaluated text (default: as the model was saved).",
)
CENTER_TEXT = option(
    "--center-text",
    metavar="SPEC",
    panel=PANEL,
    help="Parallel text for the means, such as xx-yy=PATH or phrasebook (repeatable).",
)

TOKEN_BUDGET = option("--token-budget", help="Number of tokens scored at a time (default: 2048, on a GPU 16384).")
AUTOCAST = option("--autocast", help="Type of matrix products, the rest as loaded (default: as loaded).")

LOADING = ("revision", "dtype", "backend", "trust_remote_code")
ENCODING = ("device", "layer", "pooling", "truncate_dim", "prompt", "prompt_name", "passage_prompt")


def model_options(context: typer.Context, names: Sequence[str] = (*LOADING, *ENCODING)) -> dict[str, Any]:
    """Return the options of the model that were set, as :func:`~st_xling.models.load_encoder` takes them."""
    return given(**{name: context.params.get(name) or None for name in names})


def load_model(context: typer.Context, *, without: Sequence[str] = ()) -> SentenceTransformer:
    """Load the encoder of ``MODEL`` with the options of the model, except those that the caller applies itself."""
    from st_xling.models import load_encoder

    options = model_options(context, [name for name in (*LOADING, *ENCODING) if name not in without])
    return load_encoder(context.params["model"], **options)


def encoding_options(context: typer.Context) -> dict[str, Any]:
    """Return what functions that embed files take: the loaded model, the prompt and the type of stored embeddings.

    The prompt stays apart from the model, so that embeddings of queries and of passages are of one model.
    """
    values = context.params
    stored: dict[str, Any] = {"dtype": values["store_dtype"] or "float32"}
    if values["model"] is None:
        if others := sorted(model_options(context).keys() - {"device"}):
            raise ValueError(f"--{others[0].replace('_', '-')} needs --model, the model that embeds.")
        return stored
    from st_xling.models.view import prompt_text

    model = load_model(context, without=("prompt", "prompt_name"))
    return {**stored, "model": model, "prompt": prompt_text(model, values["prompt"], values["prompt_name"])}


def load_cross_encoder(context: typer.Context) -> CrossEncoder:
    """Load the cross-encoder of ``MODEL`` with its head."""
    from st_xling.mining.pipeline.rescore import load_reranker

    return load_reranker(context.params["model"], context.params["device"], **model_options(context, LOADING))[0]


def check_center(context: typer.Context) -> None:
    """Raise ``ValueError`` if there is text for means that no option asks for."""
    if context.params["center_text"] and context.params["center"] not in ("joint", "language"):
        raise ValueError("--center-text needs --center joint or --center language.")


def centered(
    model: SentenceTransformer,
    context: typer.Context,
    columns: Sequence[Sequence[str]] | None,
    languages: Sequence[str | None],
    *,
    batch_size: int | None,
) -> SentenceTransformer:
    """Return the model centered according to ``--center``, which signatures name.

    Args:
        model: An encoder.
        context: Context of the command.
        columns: Columns of the evaluated text; ``None`` if it is too long to be encoded for its means, too.
        languages: Language of each column; ``None`` if unknown, or several.
        batch_size: Maximum batch size for the means.
    Raises:
        ValueError: For a language without a mean, or if there is no text for the means.
    """
    from st_xling.data import load_data_specs
    from st_xling.models.normalization import (
        Centering,
        apply_centering,
        center_by_text,
        find_centering,
        language_routes,
    )
    from st_xling.models.view import with_options
    from st_xling.utils.signature import sha8

    how, specs, own = context.params["center"], context.params["center_text"], find_centering(model)
    if how is None or (how == "none" and own is None):
        return model
    if how == "none":
        return with_options(apply_centering(model, None), center="none")
    codes = [UNKNOWN if code is None else code for code in languages]
    if own is not None and not specs and (how == "joint" or own.languages):
        result, where = apply_centering(model, own if how == "language" else Centering(own.joint, {})), "model"
    else:
        if specs:
            read = load_data_specs(specs, skip_bad_lines=context.params.get("skip_bad_lines", False))
            sides = [(part, side) for part in read.values() for side in ("source", "target")]
            texts = [text for part, side in sides for text in part[side][:]]
            means = [code for part, side in sides for code in part[f"{side}_language"][:]]
            where = f"{','.join(read)}@{sha8([[part['source'][:], part['target'][:]] for part in read.values()])}"
        elif columns is None:
            raise ValueError(f"--center {how} needs text for the means; name it with --center-text xx-yy=PATH.")
        else:
            texts = [text for column in columns for text in column]
            means = [code for column, code in zip(columns, codes) for _ in column]
            where = "evaluated text"
        result = center_by_text(model, texts, means, CENTERS[how], batch_size=batch_size, show_progress_bar=True)
    # A language without a mean of its own would silently be centered by the joint one.
    lacking = {code for code in codes if match_language(code, language_routes(result)) is None}
    if lacking and how == "language":
        raise ValueError(
            f"--center language needs a mean for each language: {where} has none for {', '.join(sorted(lacking))}."
        )
    return with_options(result, center=f"{how}@{where}")
