"""Models that keep what belongs to them, card, figures, thresholds, pictures, where they are saved or pushed."""

from __future__ import annotations

import html
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any, TypeVar

import sentence_transformers
from safetensors import safe_open
from sentence_transformers.base.model import BaseModel

logger = logging.getLogger(__name__)

_CARD = "README.md"
_WORK = re.compile(r"training/(?!run\.json$|log\.jsonl$)|\.")
# Settings that change embeddings or scores; others, and the files as a whole, differ by version of the host.
_SETTINGS = {
    "config_sentence_transformers.json": ("prompts", "default_prompt_name", "similarity_fn_name"),
    "sentence_bert_config.json": ("max_seq_length", "do_lower_case"),
    "tokenizer_config.json": ("model_max_length",),
}
M = TypeVar("M", bound=BaseModel)


class _Companions:
    """``save`` that also writes the companions; ``save_pretrained`` and ``push_to_hub`` of the host go through it."""

    _companions: Path | None = None

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        folder = self._companions
        card = None if folder is None or path is None else _read(folder / _CARD)
        super().save(path, *args, **kwargs)  # type: ignore[misc]
        if folder is not None and card is not None:
            _copy_companions(folder, card, Path(path))


# Named as the host's, since it writes the class's name into commit messages and cards.
class SentenceTransformer(_Companions, sentence_transformers.SentenceTransformer):
    """The host's, with companions."""


class CrossEncoder(_Companions, sentence_transformers.CrossEncoder):
    """The host's, with companions."""


_KINDS: dict[type, Any] = {
    SentenceTransformer: SentenceTransformer,
    CrossEncoder: CrossEncoder,
    sentence_transformers.SentenceTransformer: SentenceTransformer,
    sentence_transformers.CrossEncoder: CrossEncoder,
}


def keep_companions(model: M, folder: str | Path) -> M:
    """Let ``model`` take along what ``folder`` holds besides it, wherever it is saved or pushed.

    These are the card and the files that the card names: ``results.json``, ``mining.json``, pictures and so on. They
    stay behind when the model is not the one of ``folder`` any more, since figures are true of these weights alone.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``; changed in place, as to its class. Subclasses of the
            host's, which may save in ways of their own, are left alone.
        folder: Where it was loaded from or saved to.

    Returns:
        ``model``.
    """
    kind = _KINDS.get(type(model))
    if kind is not None:
        model.__class__ = kind
        model._companions = Path(folder).resolve()  # type: ignore[assignment]
    return model


def names(card: str, path: str) -> bool:
    """Whether the text of a card names ``path``, whole; Markdown's backslashes and entities do not count."""
    text = html.unescape(re.sub(r"\\([^\w\s]|_)", r"\1", card))
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", text) is not None


def _copy_companions(folder: Path, card: str, goal: Path) -> None:
    unlike = _unlike(goal, folder)
    if unlike is not None:
        logger.warning(
            "the model is another than that of %s (%s): its card, figures and pictures are left behind.", folder, unlike
        )
        return
    for source in sorted(folder.rglob("*")):
        path = source.relative_to(folder).as_posix()
        copy = goal / path
        if _WORK.match(path) or not source.is_file() or copy.exists() or not names(card, path):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    (goal / _CARD).write_text(card, encoding="utf-8")


def _unlike(saved: Path, folder: Path) -> str | None:
    """The first file in which the model in ``saved`` differs from that in ``folder``."""
    if saved.resolve() == folder:
        return None
    for path in sorted(saved.rglob("*")):
        name = path.relative_to(saved).as_posix()
        if path.suffix == ".safetensors":
            equal = (folder / name).is_file() and _same_tensors(path, folder / name)
        elif name == "modules.json" or (path.name == "config.json" and "_Transformer" not in name and "/" in name):
            equal = _read_json(path) == _read_json(folder / name)
        elif keys := _SETTINGS.get(path.name):
            ours, theirs = _read_json(path) or {}, _read_json(folder / name) or {}
            equal = all(ours.get(key) == theirs.get(key) for key in keys)
        else:
            continue
        if not equal:
            return name
    return None


def _same_tensors(left: Path, right: Path) -> bool:
    # Versions of safetensors and transformers may order and label equal tensors differently.
    with safe_open(str(left), framework="pt") as ours, safe_open(str(right), framework="pt") as theirs:
        if set(ours.keys()) != set(theirs.keys()):
            return False
        return all(_same(ours.get_tensor(key), theirs.get_tensor(key)) for key in ours.keys())  # noqa: SIM118


def _same(left: Any, right: Any) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _read_json(path: Path) -> Any:
    text = _read(path)
    return None if text is None else json.loads(text)
