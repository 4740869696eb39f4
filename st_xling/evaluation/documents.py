"""Aligned documents against gold: strict and lax precision, recall and F1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from st_xling._version import __version__
from st_xling.utils.signature import sha8
from st_xling.utils.tables import format_table
from st_xling.utils.text import ParallelTextError, decode_line, raw_lines

#: Lines of both sides, counted from 0; a side is empty for lines without a partner.
Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

_GROUP = re.compile(r"\s*\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\]\s*(?::.*)?")


@dataclass(frozen=True)
class DocumentScores:
    """Fractions in [0, 1].

    Attributes:
        strict: Precision, recall and F1 of groups that are the same as in gold.
        lax: The same of groups that share a source and a target line with a gold group.
    """

    strict: tuple[float, float, float]
    lax: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        names = ("precision", "recall", "f1")
        return {kind: dict(zip(names, scores)) for kind, scores in asdict(self).items()}

    def table(self) -> str:
        """Format the scores as percentages."""
        rows = [[kind, *(100 * score for score in scores)] for kind, scores in asdict(self).items()]
        return format_table(["groups", "precision", "recall", "F1"], rows)


def read_groups(path: str | Path) -> list[Group]:
    """Read groups in Vecalign's format, such as ``[0]:[0, 1]:0.16``, a group a line; blank lines are skipped.

    Raises:
        ParallelTextError: For a line that is no group, or without any groups; names file and line.
    """
    groups: list[Group] = []
    for number, raw in enumerate(raw_lines(path), 1):
        line, _ = decode_line(raw, errors="replace")
        if line is None or not line.strip():
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


def document_scores(found: Sequence[Iterable[Group]], gold: Sequence[Iterable[Group]]) -> DocumentScores:
    """Compare the groups of some documents with gold.

    A line without a partner counts for precision, but not for recall, as in Vecalign's own evaluation.

    Args:
        found: Groups of each document.
        gold: Right groups of each document.
    Source:
        Thompson and Koehn 2019, Vecalign, section 4.1; strict and lax as by Sennrich and Volk 2010.
    Example:
        >>> document_scores([[((0,), (0,)), ((1,), (1,))]], [[((0,), (0,)), ((1,), (1, 2))]]).strict
        (0.5, 0.5, 0.5)
    """
    hits, totals = [[0, 0], [0, 0]], [0, 0]
    for own, right in zip(found, gold, strict=True):
        groups = [{group for group in side if group[0] or group[1]} for side in (own, right)]
        paired = [{group for group in side if group[0] and group[1]} for side in groups]
        for number, (tested, truth) in enumerate(((groups[0], groups[1]), (paired[1], paired[0]))):
            links = {(i, j) for source, target in truth for i in source for j in target}
            totals[number] += len(tested)
            hits[0][number] += len(tested & truth)
            hits[1][number] += sum(
                group in truth or any((i, j) in links for i in group[0] for j in group[1]) for group in tested
            )
    strict, lax = (_precision_recall_f1(*(part / max(total, 1) for part, total in zip(kind, totals))) for kind in hits)
    return DocumentScores(strict, lax)


def evaluate_groups(found: Sequence[str | Path], gold: Sequence[str | Path]) -> tuple[DocumentScores, str]:
    """Compare files of groups with gold files.

    Returns:
        Scores of all documents together, and their signature.
    Raises:
        ValueError: For different numbers of files.
        ParallelTextError: For gold with lines beyond the documents; names file and line.
    """
    if len(found) != len(gold):
        raise ValueError(f"expected a gold file for each file: got {len(found)} files and {len(gold)} gold files.")
    groups = [[read_groups(path) for path in files] for files in (found, gold)]
    for own, right, path in zip(*groups, gold):
        for side in (0, 1):
            lines = max((line for group in own for line in group[side]), default=-1) + 1
            beyond = [group for group in right if any(line >= lines for line in group[side])]
            if beyond:
                kind = ("source", "target")[side]
                raise ParallelTextError(
                    f"{path}: {list(beyond[0][0])}:{list(beyond[0][1])} names a {kind} line beyond the document, which "
                    f"has {lines:,}; lines are counted from 0."
                )
    names = ",".join(Path(path).name for path in found)
    signature = f"documents|groups:{names}@{sha8(groups[0])}|gold:{sha8(groups[1])}|st-xling:{__version__}"
    return document_scores(*groups), signature


def _precision_recall_f1(precision: float, recall: float) -> tuple[float, float, float]:
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-300)
