"""Alignments of words against gold: precision, recall, F1 and error rate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.models.align import AlignmentMethod, align_by_layers, split_words
from st_xling.models.backbone import backbone
from st_xling.models.view import model_options
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table
from st_xling.utils.text import decode_line, raw_lines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Links = Iterable[tuple[int, int]]
Texts = Sequence[str] | Sequence[Sequence[str]]


class GoldLinks(NamedTuple):
    """Gold of one pair: links that must be found, and all that may be, the sure ones among them."""

    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]

    @classmethod
    def of(cls, links: GoldLinks | Links) -> GoldLinks:
        """Return links that are all sure as gold; gold as it is."""
        return links if isinstance(links, GoldLinks) else cls(set(links), set(links))


class AlignmentScores(NamedTuple):
    """Fractions in [0, 1]; of the error rate lower is better."""

    precision: float
    recall: float
    f1: float
    error_rate: float


def alignment_scores(found: Sequence[Links], gold: Sequence[GoldLinks | Links]) -> AlignmentScores:
    r"""Links of all pairs together against gold.

    .. math:: precision = \frac{|A \cap P|}{|A|}, \; recall = \frac{|A \cap S|}{|S|},
        \; AER = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    Args:
        found: ``A``, the links of each pair.
        gold: Of each pair its :class:`GoldLinks` (``S`` and ``P``), or links that are all sure.

    Raises:
        ValueError: Unequal numbers of pairs, or gold without a sure link.

    Source:
        Och and Ney 2003, A systematic comparison of various statistical alignment models, section 6.1.

    Example:
        >>> alignment_scores([[(0, 0), (1, 2)]], [[(0, 0), (1, 1)]]).error_rate
        0.5
    """
    if len(found) != len(gold):
        raise ValueError(f"found links and gold must be of the same pairs: got {len(found)} and {len(gold)} pairs.")
    links = in_possible = in_sure = sure = 0
    for own, other in zip(found, gold):
        own = set(own)
        known = GoldLinks.of(other)
        links, sure = links + len(own), sure + len(known.sure)
        in_sure, in_possible = in_sure + len(own & known.sure), in_possible + len(own & known.possible)
    if not sure:
        raise ValueError("gold holds no sure link: nothing can be measured by it.")
    precision, recall = in_possible / max(links, 1), in_sure / sure
    return AlignmentScores(precision, recall, _f1(precision, recall), 1 - (in_sure + in_possible) / (links + sure))


@dataclass(frozen=True)
class AlignmentReport:
    """Scores of an encoder's alignments, by the layer whose token states were compared.

    Attributes:
        layers: Layer, counted from 1 → its scores.
        links: Layer → the links of each pair.
        signature: What they depend on besides the model.
    """

    layers: dict[int, AlignmentScores]
    links: dict[int, list[list[tuple[int, int]]]]
    signature: str

    @property
    def best_layer(self) -> int:
        """The layer of the lowest error rate; of equal ones the first."""
        return min(self.layers, key=lambda layer: self.layers[layer].error_rate)

    def table(self) -> str:
        """One row a layer, percent."""
        rows = [[str(layer), *(100 * value for value in scores)] for layer, scores in self.layers.items()]
        return format_table(["layer", "precision", "recall", "F1", "error rate"], rows)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "alignment": {str(layer): scores._asdict() for layer, scores in self.layers.items()},
            "best_layer": self.best_layer,
            "signature": self.signature,
        }


def evaluate_alignment(
    model: SentenceTransformer,
    sources: Texts,
    targets: Texts,
    gold: Sequence[GoldLinks | Links],
    *,
    layers: Iterable[int] | None = None,
    method: AlignmentMethod = "itermax",
    name: str = "pairs",
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> AlignmentReport:
    """Align translations by each of some layers and compare with gold.

    Args:
        model: An encoder.
        sources: Sentences or lists of their words, as :func:`~st_xling.models.align_words` takes them.
        targets: Their translations.
        gold: Of each pair, see :func:`alignment_scores`.
        layers: Counted from 1; default: all.
        method: Of :func:`~st_xling.models.align_words`.
        name: Of the data, for the signature.
        batch_size: Most pairs that are encoded together.
        show_progress_bar: Show one on stderr.

    Raises:
        ValueError: As :func:`~st_xling.models.align_words` and :func:`alignment_scores`; gold for words that are not
            there.
    """
    if len(gold) != len(sources):
        raise ValueError(f"gold must be of the same pairs: got {len(sources)} and {len(gold)} pairs.")
    layers = range(1, len(backbone(model).layers) + 1) if layers is None else list(layers)
    known = [GoldLinks.of(links) for links in gold]
    for number, (links, *pair) in enumerate(zip(known, sources, targets), 1):
        words = [len(split_words(text)) if isinstance(text, str) else len(text) for text in pair]
        if beyond := sorted(link for link in links.possible if link[0] >= words[0] or link[1] >= words[1]):
            raise ValueError(
                f"gold must link words that are there, counted from 0: pair {number} has {words[0]} and {words[1]}, "
                f"and gold links {beyond[0]}; does it count from 1 (--gold-from-1), or of other words (--tokenized)?"
            )
    found = align_by_layers(
        model, sources, targets, layers, method=method, batch_size=batch_size, show_progress_bar=show_progress_bar
    )
    scores = {layer: alignment_scores(links, known) for layer, links in found.items()}
    digest = sha8([list(sources), list(targets), [[sorted(links.sure), sorted(links.possible)] for links in known]])
    return AlignmentReport(scores, found, sign_alignment(model, layers, method, f"{name}@{digest}"))


def sign_alignment(model: SentenceTransformer, layers: Iterable[int], method: str, data: str) -> str:
    """Return what links depend on besides the model."""
    return sign("alignment", method=method, layers=layers, data=data, model=model_options(model))


def format_links(links: Links) -> str:
    """A line of the Pharaoh format: ``0-0 1-2``."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def read_links(path: str | Path, *, first: int = 0) -> list[GoldLinks]:
    """Read gold in the Pharaoh format: a line a pair, ``0-0 1-2`` for sure links, ``1?2`` or ``1p2`` for possible ones.

    Args:
        path: The file, plain or packed.
        first: How the file counts: from 0, or from 1.

    Raises:
        ValueError: Anything else in a line, with its number.
    """
    gold = []
    for number, raw in enumerate(raw_lines(path), 1):
        line, fault = decode_line(raw)
        sure: set[tuple[int, int]] = set()
        possible: set[tuple[int, int]] = set()
        for part in (line or "").split():
            match = re.fullmatch(r"(\d+)([-?p])(\d+)", part)
            if line is None or match is None or min(int(match[1]), int(match[3])) < first:
                raise ValueError(
                    f"{path}, line {number}: expected links such as 0-0 1-2 1?3, counted from {first}: got {part!r}."
                )
            link = (int(match[1]) - first, int(match[3]) - first)
            possible.add(link)
            if match[2] == "-":
                sure.add(link)
        if line is None:
            raise ValueError(f"{path}, line {number}: {fault}")
        gold.append(GoldLinks(sure, possible))
    return gold


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / max(precision + recall, 1e-300)
