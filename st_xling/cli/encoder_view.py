"""``--layer``, ``--pooling``, ``--prompt`` and ``--centre``: the encoder evaluated otherwise than it was saved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from st_xling.cli.options import Options
from st_xling.utils.languages import UNKNOWN, canonical_language

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.models.view import Centre, View

_CENTRES: dict[str, Centre] = {"none": "none", "joint": "joint", "language": "per_language"}

_TITLE = "the encoder otherwise than it was saved (named in the signature):"
_MODEL = """
--layer N                 end at this layer, counted from 1
--pooling {mean,cls,max}  of token states
--prompt TEXT             before each text (of retrieval: each query), such as 'query: '
--prompt-name NAME        one of the model's own prompts, instead
"""
_CENTRING = """
--centre {none,joint,language}
          unit length, less a mean, unit length: less one mean of all languages, or each language its own; those saved
          with the model, or of --centre-text, or else of the evaluated text (default: as the model was saved)
--centre-text SPEC        parallel text of the means, such as xx-yy=PATH or phrasebook (repeatable)
"""
_NAMES = ("layer", "pooling", "prompt", "prompt_name", "passage_prompt")
VIEW = Options(_TITLE + _MODEL + _CENTRING.lstrip())
VIEW_OF_PASSAGES = Options(_TITLE + _MODEL + "--passage-prompt TEXT  before each passage" + _CENTRING)


def check_view(arguments: argparse.Namespace, *, encoder: bool = True) -> None:
    """Raise ``ValueError`` for options that exclude each other, before anything is read.

    Args:
        arguments: Of the command line.
        encoder: Whether there is an encoder to change.
    """
    changed = [name for name in (*_NAMES, "centre") if getattr(arguments, name, None) is not None]
    if changed and not encoder:
        raise ValueError(f"--{changed[0].replace('_', '-')} is for encoders: got {arguments.model}; leave it out.")
    if changed and arguments.keep:
        raise ValueError(
            f"--keep saves results of the model as it is: got --{changed[0].replace('_', '-')}; leave one of them out."
        )
    if arguments.centre_text and arguments.centre not in ("joint", "language"):
        raise ValueError("--centre-text is the text of the means: say which, --centre language or --centre joint.")


def load_view(
    arguments: argparse.Namespace,
    texts: Sequence[Sequence[str]] | None,
    languages: Sequence[str | None],
    *,
    batch_size: int,
    **options: Any,
) -> View:
    """The model of the command line as its options want it, and what a signature says of that.

    Args:
        arguments: With ``model`` and :data:`VIEW`.
        texts: Columns of the evaluated text; ``None``: it is too long to be encoded for its means too.
        languages: Of each column; ``None``: not known, or several.
        batch_size: Texts encoded at a time for the means.
        options: Of :func:`~st_xling.models.load_encoder`.
    Raises:
        ValueError: As :func:`~st_xling.models.load_encoder` and :func:`~st_xling.models.view.view`; a language without
            a mean, or no text of the means.
    """
    from st_xling.models import load_encoder
    from st_xling.models.view import View, view

    chosen = {name: getattr(arguments, name) for name in _NAMES if hasattr(arguments, name)}
    changed = view(load_encoder(arguments.model, **options), **chosen)
    if arguments.centre is None:
        return changed
    codes = [UNKNOWN if code is None else code for code in languages]
    model, parts = _centred(changed.model, texts, codes, arguments, batch_size)
    return View(model, (*changed.parts, *parts))


def _centred(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]] | None,
    codes: Sequence[str],
    arguments: argparse.Namespace,
    batch_size: int,
) -> tuple[SentenceTransformer, tuple[str, ...]]:
    """The model centred as ``--centre`` says, and what the signature says of it."""
    from st_xling.data import load_data_specs
    from st_xling.models.view import Centring, centred_by_text, centred_model, language_routes, saved_centring
    from st_xling.utils.signature import sha8

    how, own = arguments.centre, saved_centring(model)
    if how == "none":
        return centred_model(model, None), () if own is None else ("centre:none",)
    if own is not None and not arguments.centre_text and (how == "joint" or own.languages):
        result, where = centred_model(model, own if how == "language" else Centring(own.joint, {})), "model"
    else:
        if arguments.centre_text:
            read = load_data_specs(arguments.centre_text, skip_bad_lines=getattr(arguments, "skip_bad_lines", False))
            sides = [(part, side) for part in read.values() for side in ("source", "target")]
            texts = [text for part, side in sides for text in part[side][:]]
            languages = [code for part, side in sides for code in part[f"{side}_language"][:]]
            where = f"{','.join(read)}@{sha8([[part['source'][:], part['target'][:]] for part in read.values()])}"
        elif columns is None:
            raise ValueError(f"--centre {how} needs text for its means: name some with --centre-text xx-yy=PATH.")
        else:
            texts = [text for column in columns for text in column]
            languages = [code for column, code in zip(columns, codes) for _ in column]
            where = "evaluated text"
        result = centred_by_text(model, texts, languages, _CENTRES[how], batch_size=batch_size, show_progress_bar=True)
    # A language without a mean of its own would silently be centred by the joint one.
    lacking = {canonical_language(code) for code in codes} - language_routes(result).keys()
    if lacking and how == "language":
        raise ValueError(
            f"--centre language needs a mean for each language: {where} has none for {', '.join(sorted(lacking))}."
        )
    return result, (f"centre:{how}@{where}",)
