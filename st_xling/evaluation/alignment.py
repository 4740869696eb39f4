"""Evaluate alignments of words (precision, recall, F1, error rate) and of documents (strict and lax F1)."""

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

#: Links of one sentence pair: positions ``(source word, target word)``, counted from 0.
PairLinks: TypeAlias = Iterable[tuple[int, int]]
#: Source lines and the target lines that translate them, counted from 0; a side is empty for lines without a partner.
LineGroup: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

# Source lines, target lines and perhaps a cost: ``[0]:[0, 1]:0.16``, or ``([0], [0, 1])``.
_GROUP = re.compile(r"\s*\(?\[([\d,\s]*)\]\s*[:,]\s*\[([\d,\s]*)\]\)?\s*(?::.*)?")
# Numbers of source and target lines before a place where both can be divided, and a score: hunalign's ladder.
_RUNG = re.compile(r"(\d+)\t(\d+)\t\S+\s*")


class GoldLinks(NamedTuple):
    """Gold links of one sentence pair.

    Attributes:
        sure: Links that must be found.
        possible: Links that may be found, including the sure ones.
    """

    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]


def alignment_scores(found: Sequence[PairLinks], gold: Sequence[GoldLinks | PairLinks]) -> dict[str, float]:
    r"""Compare word links with gold links, counted over all sentence pairs.

    .. math:: precision = \frac{|A \cap P|}{|A|}, \; recall = \frac{|A \cap S|}{|S|},
        \; AER = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    Args:
        found: Links of each pair (``A``).
        gold: :class:`GoldLinks` of each pair (``S`` and ``P``), or plain links, which all count as sure.

    Returns:
        ``precision``, ``recall``, ``f1`` and ``error_rate`` (lower is better), as fractions in [0, 1].

    Raises:
        ValueError: If the numbers of pairs differ, or gold has no sure link.

    Source:
        Och and Ney 2003, A systematic comparison of various statistical alignment models, section 6.1.

    Example:
        >>> alignment_scores([[(0, 0), (1, 2)]], [[(0, 0), (1, 1)]])["error_rate"]
        0.5
    """
    n_found = n_sure = n_found_sure = n_found_possible = 0
    for links, gold_of_pair in zip(found, gold, strict=True):
        links = set(links)
        gold_links = _as_gold_links(gold_of_pair)
        n_found += len(links)
        n_sure += len(gold_links.sure)
        n_found_sure += len(links & gold_links.sure)
        n_found_possible += len(links & gold_links.possible)
    if not n_sure:
        raise ValueError("gold holds no sure link: nothing can be measured by it.")
    scores = _with_f1(precision=n_found_possible / max(n_found, 1), recall=n_found_sure / n_sure)
    return {**scores, "error_rate": 1 - (n_found_sure + n_found_possible) / (n_found + n_sure)}


def _as_gold_links(links: GoldLinks | PairLinks) -> GoldLinks:
    """Return plain links as gold links that are all sure."""
    return links if isinstance(links, GoldLinks) else GoldLinks({*links}, {*links})


@dataclass(frozen=True)
class AlignmentReport:
    """Scores of an encoder's word alignments, for each layer whose token states were compared.

    Attributes:
        layers: Layer (counted from 1) → :func:`alignment_scores`.
        links: Layer → links of each sentence pair.
        signature: Everything that the scores depend on besides the model.
    """

    layers: dict[int, dict[str, float]]
    links: dict[int, list[list[tuple[int, int]]]]
    signature: str

    @property
    def best_layer(self) -> int:
        """The layer with the lowest error rate; the first one on a tie."""
        return min(self.layers, key=lambda layer: self.layers[layer]["error_rate"])

    def table(self) -> str:
        """Format the scores in percent, with one row per layer."""
        rows: list[list[Any]] = []
        for layer, scores in self.layers.items():
            percents = [100 * score for score in scores.values()]
            rows.append([str(layer), *percents])
        return format_table(["layer", "precision", "recall", "F1", "error rate"], rows)

    def as_dict(self) -> dict[str, Any]:
        """Return scores, best layer and signature as a dictionary for JSON."""
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
    """Align the words of translations by one or more layers of an encoder, and compare the links with gold.

    Args:
        model: An encoder.
        sources: Sentences, or lists of their words, see :func:`~st_xling.models.align_words`.
        targets: Translation of each source, in the same form.
        gold: Gold of each pair, see :func:`alignment_scores`.
        layers: Layers to compare, counted from 1. Defaults to all.
        method: Alignment method, see :func:`~st_xling.models.align_words`.
        name: Name of the data, for the signature.
        batch_size: Maximum number of pairs that are encoded together.
        show_progress_bar: Whether to show a progress bar on stderr.

    Raises:
        ValueError: If gold links words that do not exist; also as in :func:`~st_xling.models.align_words` and
            :func:`alignment_scores`.
    """
    if len(gold) != len(sources):
        raise ValueError(f"gold must be of the same pairs: got {len(sources)} and {len(gold)} pairs.")
    layers = range(1, len(backbone(model).layers) + 1) if layers is None else list(layers)
    gold_links = list(map(_as_gold_links, gold))
    for number, (links, source, target) in enumerate(zip(gold_links, sources, targets), 1):
        n_source = _count_words(source)
        n_target = _count_words(target)
        out_of_range = sorted((i, j) for i, j in links.possible if i >= n_source or j >= n_target)
        if out_of_range:
            raise ValueError(
                f"gold must link words that are there, counted from 0: pair {number} has {n_source} and {n_target}, "
                f"and gold links {out_of_range[0]}; does it count from 1 (--gold-from-1), or of other words "
                "(--tokenized)?"
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
    """Return the signature of word links: everything that they depend on besides the model."""
    return sign("alignment", method=method, layers=layers, data=data, model=model_options(model))


def format_links(links: PairLinks) -> str:
    """Format links as a line of the Pharaoh format: ``0-0 1-2``."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def read_links(path: str | Path, *, first: int = 0) -> list[GoldLinks]:
    """Read gold links in the Pharaoh format, one sentence pair per line.

    ``0-0 1-2`` are sure links, ``1?2`` or ``1p2`` a possible one.

    Args:
        path: The file, plain or compressed.
        first: Number of the first word of a sentence in the file, 0 or 1.

    Raises:
        ValueError: If a line has anything else; the message gives its number.
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
    """Read groups of lines as aligners write them; blank lines are skipped.

    =========  ===================  ==========================================================
    aligner    line                 content
    =========  ===================  ==========================================================
    Vecalign   ``[0]:[0, 1]:0.16``  source lines, target lines, cost
    Bertalign  ``([0], [0, 1])``    source lines, target lines, as Python prints them
    hunalign   ``1 TAB 2 TAB 0.4``  numbers of lines before the end of a group, score (ladder)
    =========  ===================  ==========================================================

    Raises:
        ParallelTextError: If a line is not a group, or the file has no groups; the message names file and line.
    """
    groups: list[LineGroup] = []
    source_end = target_end = 0  # of the last group of a ladder
    for number, raw in enumerate(raw_lines(path), 1):
        line = raw.decode("utf-8", "replace")
        if not line.strip():
            continue
        rung = _RUNG.fullmatch(line)
        if rung is not None and int(rung[1]) >= source_end and int(rung[2]) >= target_end:
            group = (tuple(range(source_end, int(rung[1]))), tuple(range(target_end, int(rung[2]))))
            source_end, target_end = int(rung[1]), int(rung[2])
            if any(group):
                groups.append(group)
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
    """Compare groups of lines with gold groups, counted over all documents.

    Lines without a partner count for precision, but not for recall, as in Vecalign's own evaluation.

    Args:
        found: Groups of each document.
        gold: Gold groups of each document.

    Returns:
        ``precision``, ``recall`` and ``f1`` as fractions in [0, 1]: under ``strict`` for groups that equal a gold
        group, under ``lax`` for groups that share a source line and a target line with one.

    Source:
        Thompson and Koehn 2019, Vecalign, section 4.1; strict and lax follow Sennrich and Volk 2010.

    Example:
        >>> document_scores([[((0,), (0,)), ((1,), (1,))]], [[((0,), (0,)), ((1,), (1, 2))]])["strict"]
        {'precision': 0.5, 'recall': 0.5, 'f1': 0.5}
    """
    counters = {"strict": _count_equal, "lax": _count_overlapping}
    n_found = n_gold = 0
    n_found_in_gold = dict.fromkeys(counters, 0)
    n_gold_in_found = dict.fromkeys(counters, 0)
    for found_groups, gold_groups in zip(found, gold, strict=True):
        found_set = {group for group in found_groups if any(group)}
        gold_set = {group for group in gold_groups if any(group)}
        gold_with_partner = {group for group in gold_set if all(group)}
        n_found += len(found_set)
        n_gold += len(gold_with_partner)
        for kind, count in counters.items():
            n_found_in_gold[kind] += count(found_set, gold_set)
            n_gold_in_found[kind] += count(gold_with_partner, found_set)
    scores: dict[str, dict[str, float]] = {}
    for kind in counters:
        precision = n_found_in_gold[kind] / max(n_found, 1)
        recall = n_gold_in_found[kind] / max(n_gold, 1)
        scores[kind] = _with_f1(precision, recall)
    return scores


def _count_equal(groups: set[LineGroup], others: set[LineGroup]) -> int:
    """Count the groups that are among the others."""
    return len(groups & others)


def _count_overlapping(groups: set[LineGroup], others: set[LineGroup]) -> int:
    """Count the groups that are among the others, or share a source line and a target line with one of them."""
    line_pairs = set(chain.from_iterable(product(*group) for group in others))
    return sum(group in others or not line_pairs.isdisjoint(product(*group)) for group in groups)


def evaluate_groups(found: Sequence[str | Path], gold: Sequence[str | Path]) -> EvaluationResult:
    """Compare files of :func:`read_groups` with gold files, by the :func:`document_scores` of all documents.

    Raises:
        ValueError: If the numbers of files differ.
        ParallelTextError: If gold has lines beyond the document; also as in :func:`read_groups`.
    """
    if len(found) != len(gold):
        raise ValueError(f"expected a gold file for each file: got {len(found)} files and {len(gold)} gold files.")
    found_groups = [read_groups(path) for path in found]
    gold_groups = [read_groups(path) for path in gold]
    for groups_of_document, gold_of_document, gold_path in zip(found_groups, gold_groups, gold):
        _check_lines(groups_of_document, gold_of_document, gold_path)
    names = ",".join(Path(path).name for path in found)
    signature = f"documents|groups:{names}@{sha8(found_groups)}|gold:{sha8(gold_groups)}|st-xling:{__version__}"
    scores = document_scores(found_groups, gold_groups)
    columns = [Column(name) for name in ("precision", "recall", "F1")]
    rows = [Row(kind, list(rates.values())) for kind, rates in scores.items()]
    return EvaluationResult(scores, columns, rows, signature)


def _check_lines(found: Sequence[LineGroup], gold: Sequence[LineGroup], gold_path: str | Path) -> None:
    """Raise ``ParallelTextError`` if gold names a line after the last one of the found groups."""
    for side, kind in enumerate(("source", "target")):
        n_lines = max(chain.from_iterable(group[side] for group in found), default=-1) + 1
        for group in gold:
            if any(line >= n_lines for line in group[side]):
                raise ParallelTextError(
                    f"{gold_path}: {list(group[0])}:{list(group[1])} names a {kind} line beyond the document, which "
                    f"has {n_lines:,}; lines are counted from 0."
                )


def _with_f1(precision: float, recall: float) -> dict[str, float]:
    f1 = 2 * precision * recall / max(precision + recall, 1e-300)
    return {"precision": precision, "recall": recall, "f1": f1}
