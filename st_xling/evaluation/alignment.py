"""Alignments against gold, of words: precision, recall, F1 and error rate; of documents: strict and lax F1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from st_xling._version import __version__
from st_xling.evaluation.results import EvaluationResult
from st_xling.models.align import AlignmentMethod, Sentences, align_by_layers, split_words
from st_xling.models.backbones import backbone
from st_xling.models.view import model_options
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import Column, Row, format_table
from st_xling.utils.text import ParallelTextError, raw_lines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Links of a pair of sentences, each of a word of the source and one of the target, counted from 0.
PairLinks: TypeAlias = Iterable[tuple[int, int]]
#: Lines of both sides, counted from 0; a side is empty for lines without a partner.
LineGroup: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

_GROUP = re.compile(r"\s*\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\]\s*(?::.*)?")


class GoldLinks(NamedTuple):
    """Gold of one pair: links that must be found, and all that may be found, which include the sure ones."""

    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]


def alignment_scores(found: Sequence[PairLinks], gold: Sequence[GoldLinks | PairLinks]) -> dict[str, float]:
    r"""Compare the links of all pairs together with gold.

    .. math:: precision = \frac{|A \cap P|}{|A|}, \; recall = \frac{|A \cap S|}{|S|},
        \; AER = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    Args:
        found: ``A``, the links of each pair.
        gold: The :class:`GoldLinks` (``S`` and ``P``) of each pair, or links that are all sure.

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
    n_links = n_sure = n_in_sure = n_in_possible = 0
    for links, gold_of_pair in zip(map(set, found), map(_as_gold_links, gold), strict=True):
        n_links += len(links)
        n_sure += len(gold_of_pair.sure)
        n_in_sure += len(links & gold_of_pair.sure)
        n_in_possible += len(links & gold_of_pair.possible)
    if not n_sure:
        raise ValueError("gold holds no sure link: nothing can be measured by it.")
    scores = _rates(n_in_possible / max(n_links, 1), n_in_sure / n_sure)
    return {**scores, "error_rate": 1 - (n_in_sure + n_in_possible) / (n_links + n_sure)}


def _as_gold_links(links: GoldLinks | PairLinks) -> GoldLinks:
    """Return links without a mark as links that are all sure."""
    return links if isinstance(links, GoldLinks) else GoldLinks({*links}, {*links})


@dataclass(frozen=True)
class AlignmentReport:
    """Scores of an encoder's alignments, by the layer whose token states were compared.

    Attributes:
        layers: Layer, counted from 1 → its :func:`alignment_scores`.
        links: Layer → the links of each pair.
        signature: Everything that they depend on besides the model.
    """

    layers: dict[int, dict[str, float]]
    links: dict[int, list[list[tuple[int, int]]]]
    signature: str

    @property
    def best_layer(self) -> int:
        """The layer of the lowest error rate; of equal ones the first."""
        return min(self.layers, key=lambda layer: self.layers[layer]["error_rate"])

    def table(self) -> str:
        """Format the scores in percent, a row for each layer."""
        rows: list[list[Any]] = []
        for layer, scores in self.layers.items():
            percents = [100 * score for score in scores.values()]
            rows.append([str(layer), *percents])
        return format_table(["layer", "precision", "recall", "F1", "error rate"], rows)

    def as_dict(self) -> dict[str, Any]:
        """Return scores, best layer and signature, for JSON."""
        return {
            "alignment": {str(layer): scores for layer, scores in self.layers.items()},
            "best_layer": self.best_layer,
            "signature": self.signature,
        }


def evaluate_alignment(
    model: SentenceTransformer,
    sources: Sentences,
    targets: Sentences,
    gold: Sequence[GoldLinks | PairLinks],
    *,
    layers: Iterable[int] | None = None,
    method: AlignmentMethod = "itermax",
    name: str = "pairs",
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> AlignmentReport:
    """Align the words of translations by each of some layers, and compare the links with gold.

    Args:
        model: An encoder.
        sources: Sentences or lists of their words, as :func:`~st_xling.models.align_words` takes them.
        targets: Their translations.
        gold: Gold of each pair, see :func:`alignment_scores`.
        layers: Layers, counted from 1; all by default.
        method: Method of :func:`~st_xling.models.align_words`.
        name: Name of the data, for the signature.
        batch_size: Maximum number of pairs that are encoded together.
        show_progress_bar: Whether to show a progress bar on stderr.

    Raises:
        ValueError: As :func:`~st_xling.models.align_words` and :func:`alignment_scores`; gold for words that are not
            there.
    """
    if len(gold) != len(sources):
        raise ValueError(f"gold must be of the same pairs: got {len(sources)} and {len(gold)} pairs.")
    layers = range(1, len(backbone(model).layers) + 1) if layers is None else list(layers)
    gold_links = list(map(_as_gold_links, gold))
    for number, (links, source, target) in enumerate(zip(gold_links, sources, targets), 1):
        n_source = _count_words(source)
        n_target = _count_words(target)
        beyond = sorted(link for link in links.possible if link[0] >= n_source or link[1] >= n_target)
        if beyond:
            raise ValueError(
                f"gold must link words that are there, counted from 0: pair {number} has {n_source} and {n_target}, "
                f"and gold links {beyond[0]}; does it count from 1 (--gold-from-1), or of other words (--tokenized)?"
            )
    links_by_layer = align_by_layers(
        model, sources, targets, layers, method=method, batch_size=batch_size, show_progress_bar=show_progress_bar
    )
    scores = {layer: alignment_scores(links, gold_links) for layer, links in links_by_layer.items()}
    gold_content = [[sorted(links.sure), sorted(links.possible)] for links in gold_links]
    digest = sha8([list(sources), list(targets), gold_content])
    return AlignmentReport(scores, links_by_layer, sign_alignment(model, layers, method, f"{name}@{digest}"))


def _count_words(sentence: str | Sequence[str]) -> int:
    return len(split_words(sentence)) if isinstance(sentence, str) else len(sentence)


def sign_alignment(model: SentenceTransformer, layers: Iterable[int], method: str, data: str) -> str:
    """Return the signature of links: everything that they depend on besides the model."""
    return sign("alignment", method=method, layers=layers, data=data, model=model_options(model))


def format_links(links: PairLinks) -> str:
    """Format links as a line of the Pharaoh format: ``0-0 1-2``."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def read_links(path: str | Path, *, first: int = 0) -> list[GoldLinks]:
    """Read gold in the Pharaoh format: a line a pair, ``0-0 1-2`` for sure links, ``1?2`` or ``1p2`` for possible ones.

    Args:
        path: The file, plain or packed.
        first: Number of the first word in the file: 0 or 1.

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


def read_groups(path: str | Path) -> list[LineGroup]:
    """Read groups in Vecalign's format, such as ``[0]:[0, 1]:0.16``, a group a line; blank lines are skipped.

    Raises:
        ParallelTextError: For a line that is no group, or without any groups; names file and line.
    """
    groups: list[LineGroup] = []
    for number, raw in enumerate(raw_lines(path), 1):
        line = raw.decode("utf-8", "replace")
        if not line.strip():
            continue
        match = _GROUP.fullmatch(line)
        if match is None:
            raise ParallelTextError(
                f"{path}:{number}: expected lines of both sides, such as [0]:[0, 1], got {line[:60]!r}"
            )
        source, target = match.groups()
        groups.append((_read_numbers(source), _read_numbers(target)))
    if not groups:
        raise ParallelTextError(f"{path}: expected groups such as [0]:[0, 1], a group a line, got none.")
    return groups


def _read_numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def document_scores(
    found: Sequence[Iterable[LineGroup]], gold: Sequence[Iterable[LineGroup]]
) -> dict[str, dict[str, float]]:
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
    n_strict = {"precision": 0, "recall": 0}
    n_lax = {"precision": 0, "recall": 0}
    n_tested = {"precision": 0, "recall": 0}
    for found_groups, gold_groups in zip(found, gold, strict=True):
        aligned = {group for group in found_groups if any(group)}
        right = {group for group in gold_groups if any(group)}
        right_with_partner = {group for group in right if all(group)}
        for measure, tested, truth in (("precision", aligned, right), ("recall", right_with_partner, aligned)):
            # A group is strictly right if the other side has it, and laxly if it shares one of its pairs of lines.
            line_pairs = set(chain.from_iterable(product(*group) for group in truth))
            n_tested[measure] += len(tested)
            n_strict[measure] += len(tested & truth)
            n_lax[measure] += sum(group in truth or not line_pairs.isdisjoint(product(*group)) for group in tested)
    scores: dict[str, dict[str, float]] = {}
    for kind, n_right in (("strict", n_strict), ("lax", n_lax)):
        precision = n_right["precision"] / max(n_tested["precision"], 1)
        recall = n_right["recall"] / max(n_tested["recall"], 1)
        scores[kind] = _rates(precision, recall)
    return scores


def evaluate_groups(found: Sequence[str | Path], gold: Sequence[str | Path]) -> EvaluationResult:
    """Compare files of groups with gold files; the metrics of all documents together are :func:`document_scores`.

    Raises:
        ValueError: For different numbers of files.
        ParallelTextError: For gold with lines beyond the documents; names file and line.
    """
    if len(found) != len(gold):
        raise ValueError(f"expected a gold file for each file: got {len(found)} files and {len(gold)} gold files.")
    found_groups = [read_groups(path) for path in found]
    gold_groups = [read_groups(path) for path in gold]
    for aligned, right, gold_path in zip(found_groups, gold_groups, gold):
        _check_lines(aligned, right, gold_path)
    names = ",".join(Path(path).name for path in found)
    signature = f"documents|groups:{names}@{sha8(found_groups)}|gold:{sha8(gold_groups)}|st-xling:{__version__}"
    scores = document_scores(found_groups, gold_groups)
    columns = [Column(name) for name in ("precision", "recall", "F1")]
    rows = [Row(kind, list(rates.values())) for kind, rates in scores.items()]
    return EvaluationResult(scores, columns, rows, signature)


def _check_lines(aligned: Sequence[LineGroup], right: Sequence[LineGroup], gold_path: str | Path) -> None:
    """Raise ``ParallelTextError`` if gold names a line that the aligned document does not have."""
    for side, kind in enumerate(("source", "target")):
        n_lines = max(chain.from_iterable(group[side] for group in aligned), default=-1) + 1
        for group in right:
            if any(line >= n_lines for line in group[side]):
                raise ParallelTextError(
                    f"{gold_path}: {list(group[0])}:{list(group[1])} names a {kind} line beyond the document, which "
                    f"has {n_lines:,}; lines are counted from 0."
                )


def _rates(precision: float, recall: float) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-300)}
