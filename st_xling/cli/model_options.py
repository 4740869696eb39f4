"""The model's options, the same on every command that loads one: how it is loaded, and used other than as saved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from st_xling.cli.options import Options, set_options
from st_xling.utils.languages import UNKNOWN, match_language

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from st_xling.models.normalization import Center

CENTERS: dict[str, Center] = {"none": "none", "joint": "joint", "language": "per_language"}

_LOADED = """
the model (what is not as it was saved is named in signatures):
--revision REV                      version on the Hub: a branch, a tag or a commit
--device DEVICE                     where to compute: cpu, cuda, cuda:1, … (default: a GPU if there is one)
--dtype {float32,float16,bfloat16}  type to compute in (default: as saved)
--backend {torch,onnx,openvino}     what runs the model (default: torch; openvino: see st-xling[openvino])
--trust-remote-code                 run code that comes with the model; it can do whatever you can, so read it before
"""
_USED = """
--layer N                           end at this layer, counted from 1
--pooling {mean,cls,max}            how token states become the vector of a sentence
--truncate-dim N                    keep this many dimensions of an embedding
--prompt TEXT                       before each text (of retrieval and search: each query), such as 'query: '
--prompt-name NAME                  one of the model's own prompts, instead
"""
_CENTERING = """
--center {none,joint,language}
          unit length, less a mean, unit length: less one mean of all languages, or each language its own; those saved
          with the model, or of --center-text, or else of the evaluated text (default: as the model was saved)
--center-text SPEC                  parallel text of the means, such as xx-yy=PATH or phrasebook (repeatable)
"""
#: Of commands that train: what they start from. Devices, types of numbers and prompts are the trainer's.
START = Options("""
the model to start from:
--revision REV         version on the Hub: a branch, a tag or a commit
--trust-remote-code    run code that comes with the model; it can do whatever you can, so read it before
""")
#: Of commands that load a cross-encoder, or anything of an encoder but its use.
MODEL = Options(_LOADED)
#: Of commands that embed text.
ENCODER = Options(_LOADED + _USED.lstrip())
#: Of evaluations of an encoder.
VIEW = Options(_LOADED + _USED.lstrip() + _CENTERING.lstrip())
VIEW_OF_PASSAGES = Options(_LOADED + _USED.lstrip() + "--passage-prompt TEXT  before each passage" + _CENTERING)


def load_model(arguments: argparse.Namespace, name: str | None = None, *, prompted: bool = True) -> SentenceTransformer:
    """The encoder of the command line, as its options want it.

    Args:
        arguments: With ``model``, and options of :data:`ENCODER` or :data:`VIEW`.
        name: In place of ``model``.
        prompted: Whether the prompt becomes the model's; otherwise it is for the caller to put before each text.
    """
    from st_xling.models import load_encoder

    options = set_options(arguments, load_encoder)
    if not prompted:
        options = {key: value for key, value in options.items() if key not in ("prompt", "prompt_name")}
    return load_encoder(name or arguments.model, **options)


def encoding_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What functions that embed files take: the loaded model, the prompt, the type of stored vectors.

    The prompt stays apart from the model, so that vectors of queries and of passages are of one model.
    """
    stored: dict[str, Any] = {"dtype": arguments.store_dtype or "float32"}
    if arguments.model is None:
        if others := sorted(name for name in ENCODER.set(arguments) if name != "device"):
            raise ValueError(f"--{others[0].replace('_', '-')} is for the model that embeds: give --model as well.")
        return stored
    from st_xling.models.view import prompt_text

    model = load_model(arguments, prompted=False)
    return {**stored, "model": model, "prompt": prompt_text(model, arguments.prompt, arguments.prompt_name)}


def load_cross_encoder(arguments: argparse.Namespace) -> CrossEncoder:
    """The cross-encoder of the command line, with the head that it has."""
    from st_xling.mining.pipeline.rescore import load_reranker
    from st_xling.models.load import load_sentence_transformer

    return load_reranker(arguments.model, arguments.device, **set_options(arguments, load_sentence_transformer))[0]


def check_center(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` for text of means that nothing asks for, before anything is read."""
    if arguments.center_text and arguments.center not in ("joint", "language"):
        raise ValueError("--center-text is the text of the means: say which, --center language or --center joint.")


def centered(
    model: SentenceTransformer,
    arguments: argparse.Namespace,
    columns: Sequence[Sequence[str]] | None,
    languages: Sequence[str | None],
    *,
    batch_size: int | None,
) -> SentenceTransformer:
    """The model centered as ``--center`` says; signatures name that.

    Args:
        model: An encoder.
        arguments: With ``center`` and ``center_text``.
        columns: Of the evaluated text; ``None``: it is too long to be encoded for its means too.
        languages: Of each column; ``None``: not known, or several.
        batch_size: Most texts of a batch for the means.
    Raises:
        ValueError: A language without a mean, or no text of the means.
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

    how, own = arguments.center, find_centering(model)
    if how is None or (how == "none" and own is None):
        return model
    if how == "none":
        return with_options(apply_centering(model, None), center="none")
    codes = [UNKNOWN if code is None else code for code in languages]
    if own is not None and not arguments.center_text and (how == "joint" or own.languages):
        result, where = apply_centering(model, own if how == "language" else Centering(own.joint, {})), "model"
    else:
        if arguments.center_text:
            read = load_data_specs(arguments.center_text, skip_bad_lines=getattr(arguments, "skip_bad_lines", False))
            sides = [(part, side) for part in read.values() for side in ("source", "target")]
            texts = [text for part, side in sides for text in part[side][:]]
            means = [code for part, side in sides for code in part[f"{side}_language"][:]]
            where = f"{','.join(read)}@{sha8([[part['source'][:], part['target'][:]] for part in read.values()])}"
        elif columns is None:
            raise ValueError(f"--center {how} needs text for its means: name some with --center-text xx-yy=PATH.")
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
