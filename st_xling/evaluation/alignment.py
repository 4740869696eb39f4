"""Alignments against gold, of words: precision, recall, F1 and error rate; of documents: strict and lax F1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from st_xling._version import __version__
from st_xling.evaluation.results import EvaluationResult
from st_xling.models.align import AlignmentMethod, align_by_layers, split_words
from st_xling.models.backbones import backbone
from st_xling.models.view import model_options
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import Column, Row, format_table
from st_xling.utils.text import ParallelTextError, raw_lines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Links = Iterable[tuple[int, int]]
Texts = Sequence[str] | Sequence[Sequence[str]]

#: Lines of both sides, counted from 0; a side is empty for lines without a partner.
Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

_GROUP = re.compile(r"\s*\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\]\s*(?::.*)?")


class GoldLinks(NamedTuple):
    """Gold of one pair: links that must be found, and all that may be, the sure ones among them."""

    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]


def alignment_scores(found: Sequence[Links], gold: Sequence[GoldLinks | Links]) -> dict[str, float]:
    r"""Compare the links of all pairs together with gold.

    .. math:: precision = \frac{|A \cap P|}{|A|}, \; recall = \frac{|A \cap S|}{|S|},
        \; AER = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    Args:
        found: ``A``, the links of each pair.
        gold: Of each pair its :class:`GoldLinks` (``S`` and ``P``), or links that are all sure.

    Returns:
        ``precision``, ``recall``, ``f1`` and ``error_rate``, of which lower is better; fractions in [0, 1].

    Raises:
        ValueError: Unequal numbers of pairs, or gold without a sure link.

    Source:
        Och and Ney 2003, A systematic comparison of various statistical alignment models, section 6.1.

    Example:
        >>> alignment_scores([[(0, 0), (1, 2)]], [[(0, 0), (1, 1)]])["error_rate"]
        0.5
    """
    links = in_possible = in_sure = sure = 0
    for own, other in zip(map(set, found), map(_gold_links, gold), strict=True):
        links, sure = links + len(own), sure + len(other.sure)
        in_sure, in_possible = in_sure + len(own & other.sure), in_possible + len(own & other.possible)
    if not sure:
        raise ValueError("gold holds no sure link: nothing can be measured by it.")
    scores = _rates(in_possible / max(links, 1), in_sure / sure)
    return {**scores, "error_rate": 1 - (in_sure + in_possible) / (links + sure)}


def _gold_links(links: GoldLinks | Links) -> GoldLinks:
    return links if isinstance(links, GoldLinks) else GoldLinks({*links}, {*links})


@dataclass(frozen=True)
class AlignmentReport:
    """Scores of an encoder's alignments, by the layer whose token states were compared.

    Attributes:
        layers: Layer, counted from 1 → its :func:`alignment_scores`.
        links: Layer → the links of each pair.
        signature: What they depend on besides the model.
    """

    layers: dict[int, dict[str, float]]
    links: dict[int, list[list[tuple[int, int]]]]
    signature: str

    @property
    def best_layer(self) -> int:
        """The layer of the lowest error rate; of equal ones the first."""
        return min(self.layers, key=lambda layer: self.layers[layer]["error_rate"])

    def table(self) -> str:
        """One row a layer, percent."""
        rows = [[str(layer), *(100 * value for value in own.values())] for layer, own in self.layers.items()]
        return format_table(["layer", "precision", "recall", "F1", "error rate"], rows)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "alignment": {str(layer): scores for layer, scores in self.layers.items()},
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
    known = list(map(_gold_links, gold))
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
        links = GoldLinks(set(), set())
        for part in raw.decode("utf-8", "replace").split():
            match = re.fullmatch(r"(\d+)([-?p])(\d+)", part)
            if match is None or min(int(match[1]), int(match[3])) < first:
                raise ValueError(
                    f"{path}, line {number}: expected links such as 0-0 1-2 1?3, counted from {first}: got {part!r}."
                )
            link = (int(match[1]) - first, int(match[3]) - first)
            links.possible.add(link)
            if match[2] == "-":
                links.sure.add(link)
        gold.append(links)
    return gold


def read_groups(path: str | Path) -> list[Group]:
    """Read groups in Vecalign's format, such as ``[0]:[0, 1]:0.16``, a group a line; blank lines are skipped.

    Raises:
        ParallelTextError: For a line that is no group, or without any groups; names file and line.
    """
    groups: list[Group] = []
    for number, raw in enumerate(raw_lines(path), 1):
        line = raw.decode("utf-8", "replace")
        if not line.strip():
            continue
        if (match := _GROUP.fullmatch(line)) is None:
            raise ParallelTextError(
                f"{path}:{number}: expected lines of both sides, such as [0]:[0, 1], got {line[:60]!r}"
            )
        source, target = (tuple(int(word) for word in re.findall(r"\d+", side)) for side in match.groups())
        groups.append((source, target))
    if not groups:
        raise ParallelTextError(f"{path}: expected groups such as [0]:[0, 1], a group a line, got none.")
    return groups


def document_scores(found: Sequence[Iterable[Group]], gold: Sequence[Iterable[Group]]) -> dict[str, dict[str, float]]:
    """Compare the groups of some documents with gold.

    A line without a partner counts for precision, but not for recall, as in Vecalign's own evaluation.

    Args:
        found: Groups of each document.
        gold: Right groups of each document.
    Returns:
        ``strict`` and ``lax`` → ``precision``, ``recall`` and ``f1``, fractions in [0, 1]: of groups that are the same
        as in gold, and of groups that share a source and a target line with a gold group.
    Source:
        Thompson and Koehn 2019, Vecalign, section 4.1; strict and lax as by Sennrich and Volk 2010.
    Example:
        >>> document_scores([[((0,), (0,)), ((1,), (1,))]], [[((0,), (0,)), ((1,), (1, 2))]])["strict"]
        {'precision': 0.5, 'recall': 0.5, 'f1': 0.5}
    """
    hits, totals = Counter[tuple[str, str]](), Counter[str]()
    for own, right in zip(found, gold, strict=True):
        own, right = ({group for group in side if any(group)} for side in (own, right))
        paired = {group for group in right if all(group)}
        for measure, tested, truth in (("precision", own, right), ("recall", paired, own)):
            links = {(i, j) for source, target in truth for i in source for j in target}
            totals[measure] += len(tested)
            for group in tested:
                hits["strict", measure] += group in truth
                hits["lax", measure] += group in truth or any((i, j) in links for i in group[0] for j in group[1])
    shares = {key: count / max(totals[key[1]], 1) for key, count in hits.items()}
    return {
        kind: _rates(*(shares.get((kind, measure), 0.0) for measure in ("precision", "recall")))
        for kind in ("strict", "lax")
    }


def evaluate_groups(found: Sequence[str | Path], gold: Sequence[str | Path]) -> EvaluationResult:
    """Compare files of groups with gold files; the metrics of all documents together are :func:`document_scores`.

    Raises:
        ValueError: For different numbers of files.
        ParallelTextError: For gold with lines beyond the documents; names file and line.
    """
    if len(found) != len(gold):
        raise ValueError(f"expected a gold file for each file: got {len(found)} files and {len(gold)} gold files.")
    groups = [[read_groups(path) for path in files] for files in (found, gold)]
    for own, right, path in zip(*groups, gold):
        for side, kind in enumerate(("source", "target")):
            lines = max((line for group in own for line in group[side]), default=-1) + 1
            beyond = [group for group in right if any(line >= lines for line in group[side])]
            if beyond:
                raise ParallelTextError(
                    f"{path}: {list(beyond[0][0])}:{list(beyond[0][1])} names a {kind} line beyond the document, which "
                    f"has {lines:,}; lines are counted from 0."
                )
    names = ",".join(Path(path).name for path in found)
    signature = f"documents|groups:{names}@{sha8(groups[0])}|gold:{sha8(groups[1])}|st-xling:{__version__}"
    scores = document_scores(*groups)
    columns = [Column(name) for name in ("precision", "recall", "F1")]
    return EvaluationResult(scores, columns, [Row(kind, [*own.values()]) for kind, own in scores.items()], signature)


def _rates(precision: float, recall: float) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-300)}
