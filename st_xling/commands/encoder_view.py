"""``--layer``, ``--pooling`` and ``--prompt``: the encoder that an evaluation judges, looked at otherwise."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.models.view import View

_OPTIONS = ("layer", "pooling", "prompt", "prompt_name", "passage_prompt")


def add_view(parser: argparse.ArgumentParser, *, passages: bool = False) -> None:
    """Add the options.

    Args:
        parser: Of a command that judges an encoder.
        passages: Queries and passages have prompts of their own: ``--prompt`` is the queries'.
    """
    before = "each query" if passages else "each text"
    group = parser.add_argument_group("the encoder otherwise than it was saved (named in the signature)")
    group.add_argument("--layer", type=int, default=None, metavar="N", help="end at this layer, counted from 1")
    group.add_argument("--pooling", choices=("mean", "cls", "max"), default=None, help="of token states")
    group.add_argument("--prompt", default=None, metavar="TEXT", help=f"before {before}, such as 'query: '")
    group.add_argument("--prompt-name", default=None, metavar="NAME", help="one of the model's own prompts, instead")
    if passages:
        group.add_argument("--passage-prompt", default=None, metavar="TEXT", help="before each passage")


def check_view(arguments: argparse.Namespace, *more: str, encoder: bool = True) -> None:
    """Raise ``ValueError`` where figures of something else than the model would be kept with it.

    Args:
        arguments: Of the command line.
        more: Further options that change the encoder.
        encoder: Whether there is one to change.
    """
    changed = [name for name in (*_OPTIONS, *more) if getattr(arguments, name, None) is not None]
    if changed and not encoder:
        raise ValueError(f"--{changed[0].replace('_', '-')} is for encoders: got {arguments.model}; leave it out.")
    if changed and arguments.keep:
        raise ValueError(
            f"--keep keeps figures of the model as it is: got --{changed[0].replace('_', '-')}; leave one of them out."
        )


def load_view(arguments: argparse.Namespace, **options: Any) -> View:
    """The model of the command line, as its options want it.

    Args:
        arguments: With ``model`` and what :func:`add_view` added.
        options: Of :func:`~st_xling.models.load_encoder`.
    Raises:
        ValueError: As :func:`~st_xling.models.load_encoder` and :func:`~st_xling.models.view.view`.
    """
    from st_xling.models import load_encoder
    from st_xling.models.view import view

    chosen = {name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)}
    return view(load_encoder(arguments.model, **options), **chosen)
