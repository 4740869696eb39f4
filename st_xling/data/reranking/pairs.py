"""The same query-passage pairs in several languages, which of them say the same, and their rows as a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.text_columns import text_hashes

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_COLUMNS = ("query", "passage", "label", "query_language", "passage_language")
"""The columns of every labeled dataset: strings, but for ``label``, a float of 0 or 1."""

KEY_COLUMNS = ("query_key", "passage_key")
"""Further columns where pairs are aligned: 64 bits that texts of one meaning share, in any language."""

_SHOWN = 5  # faulty rows that an error message lists; the rest are only counted


@dataclass(frozen=True)
class AlignedPairs:
    """M query-passage pairs, each in L languages: row ``i`` has the same meaning in every language.

    The sets :math:`D^{en}` and :math:`D^{zh}` of the paper side by side (or :math:`S^{en}` and :math:`S^{zh}`, where
    query and passage are two sentences), in any number of languages. A query with several passages is in as many
    rows.

    Args:
        queries: Language → queries. *Shape:* ``(pairs,)`` each
        passages: The same languages → passages. *Shape:* ``(pairs,)`` each
        labels: 1 where the passage is relevant to the query, else 0. *Shape:* ``(pairs,)``
    Raises:
        ValueError: For queries and passages in different languages, columns that are not as long as the labels, and
            labels outside {0, 1} (names the rows, counted from 0).
    Source:
        IEEE Access 2020, "Cross-Lingual Passage Re-Ranking With Alignment Augmented Multilingual BERT", IV-B-2, IV-C-2.
    Example:
        >>> pairs = AlignedPairs({"en": ["Who?"], "zh": ["谁？"]}, {"en": ["He did."], "zh": ["是他。"]}, [1])
        >>> pairs.languages, len(pairs)
        (('en', 'zh'), 1)
    """

    queries: Mapping[str, Sequence[str]]
    passages: Mapping[str, Sequence[str]]
    labels: Sequence[int]

    def __post_init__(self) -> None:
        # Lists, since the texts are picked one by one, which a column of a data set is slow at.
        for name in ("queries", "passages"):
            texts = {language: _as_list(column) for language, column in getattr(self, name).items()}
            object.__setattr__(self, name, texts)
        labels = _as_list(self.labels)
        if bad := [row for row, label in enumerate(labels) if isinstance(label, str) or label not in (0, 1)]:
            got = ", ".join(dict.fromkeys(repr(labels[row]) for row in bad[:_SHOWN]))
            raise ValueError(
                f"labels must be 0 or 1: got {got} in rows {listed_rows(bad)}; make graded labels binary first "
                "(relevant or not)."
            )
        object.__setattr__(self, "labels", np.asarray(labels, np.int64).tolist())
        columns = [(code, column) for each in (self.queries, self.passages) for code, column in each.items()]
        if not columns or self.queries.keys() != self.passages.keys():
            raise ValueError("queries and passages must be in the same languages, one or more.")
        for code, column in columns:
            if len(column) != len(labels):
                raise ValueError(f"{code} has {len(column)} texts for {len(labels)} labels; align them row by row.")

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes, in the order of ``queries``."""
        return tuple(self.queries)

    @cached_property
    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of queries and of passages, equal for those of the same meaning. *Shape:* ``(pairs,)`` each"""
        queries, passages = (_class_keys(list(columns.values())) for columns in (self.queries, self.passages))
        return queries, passages

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Iterable[int]) -> AlignedPairs:
        """The rows of these numbers, in this order."""
        numbers = [int(row) for row in rows]
        labels = [self.labels[row] for row in numbers]
        return AlignedPairs(pick(self.queries, numbers), pick(self.passages, numbers), labels)

    def in_languages(self, rows: np.ndarray, query_codes: np.ndarray, passage_codes: np.ndarray) -> Dataset:
        """Labeled rows, query and passage each in the language chosen for it.

        Args:
            rows: Row of each pair, in the order to give them; a row may come several times. *Shape:* ``(pairs,)``
            query_codes: Place of the query's language in ``languages``. *Shape:* ``(pairs,)``
            passage_codes: The same, of the passage. *Shape:* ``(pairs,)``
        """
        of_queries, of_passages = (
            [self.languages[code] for code in codes.tolist()] for codes in (query_codes, passage_codes)
        )
        numbers = rows.tolist()
        return labeled_dataset(
            [self.queries[language][row] for language, row in zip(of_queries, numbers)],
            [self.passages[language][row] for language, row in zip(of_passages, numbers)],
            np.asarray(self.labels)[rows],
            of_queries,
            of_passages,
            keys=[keys[rows] for keys in self.keys],
        )


def pick(columns: Mapping[str, Sequence[str]], rows: Sequence[int]) -> dict[str, list[str]]:
    """The texts of these rows, in each language."""
    return {language: [column[row] for row in rows] for language, column in columns.items()}


def labeled_dataset(
    queries: Sequence[str],
    passages: Sequence[str],
    labels: Sequence[int] | np.ndarray,
    query_languages: Sequence[str],
    passage_languages: Sequence[str],
    *,
    keys: Sequence[np.ndarray] = (),
) -> Dataset:
    """One row a pair, in the order given; ``keys`` are of queries and of passages. *Shape:* ``(pairs,)`` each"""
    import pyarrow as pa
    from datasets import Dataset

    numbers = np.asarray(labels, np.float32)  # ST's binary cross-entropy takes floats
    columns = dict(zip(PAIR_COLUMNS, [queries, passages, numbers, query_languages, passage_languages]))
    kinds = {name: pa.float32() if name == "label" else pa.string() for name in PAIR_COLUMNS}
    if keys:
        columns |= dict(zip(KEY_COLUMNS, keys))
        kinds |= dict.fromkeys(KEY_COLUMNS, pa.uint64())
    return Dataset(pa.table(columns, schema=pa.schema(list(kinds.items()))))


def known_languages(requested: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """``requested`` without repetitions; a ``ValueError`` if one is not among those known, or there is none."""
    languages = tuple(dict.fromkeys([requested] if isinstance(requested, str) else requested))
    unknown = [language for language in languages if language not in known]
    if unknown or not languages:
        raise ValueError(f"expected languages out of {', '.join(known)}: got {', '.join(unknown) or 'none'}.")
    return languages


def listed_rows(rows: Sequence[int]) -> str:
    """The first few numbers, and how many more there are."""
    return ", ".join(map(str, rows[:_SHOWN])) + (f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else "")


def same_text_classes(columns: Iterable[Sequence[str]]) -> np.ndarray:
    """A number for each row, shared by rows whose texts have the same leak key in any one column, and so on from these.

    Args:
        columns: One aligned column of texts for each language. *Shape:* ``(rows,)`` each
    Returns:
        Classes 0, 1, … in the order of their first rows. *Shape:* ``(rows,)``
    Example:
        >>> same_text_classes([["The cat.", "A dog", "the cat"], ["Die Katze", "Ein Hund", "Der Kater"]]).tolist()
        [0, 1, 0]
    """
    return joined_classes([text_hashes(column) for column in columns])


def joined_classes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The same of numbers: rows that share a number in any one column are of one class. *Shape:* ``(rows,)`` each"""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = len(columns[0])
    if not rows:
        return np.zeros(0, np.int64)
    # A graph of the rows: each is linked with the next one that has the same number in a column.
    links = []
    for column in columns:
        order = np.argsort(column, kind="stable")
        equal = column[order][1:] == column[order][:-1]
        links.append(np.stack([order[:-1][equal], order[1:][equal]]))
    ends = np.concatenate(links, axis=1)
    graph = coo_array((np.ones(ends.shape[1], np.int8), (ends[0], ends[1])), shape=(rows, rows))
    components = connected_components(graph, directed=False)[1]
    first_rows = np.unique(components, return_index=True)[1]
    return np.unique(first_rows[components], return_inverse=True)[1].reshape(rows)


def _class_keys(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """A key for each class of rows, which other data with the same texts give too: the hash of the leak key of the
    class's first text in the first language, uint64. *Shape:* ``(rows,)``
    """
    hashes = []
    for column in columns:
        known = dict(zip(distinct := dict.fromkeys(column), text_hashes(distinct).tolist()))  # negatives repeat texts
        hashes.append(np.fromiter((known[text] for text in column), np.uint64, len(column)))
    classes = joined_classes(hashes)
    first = np.unique(classes, return_index=True)[1]
    return hashes[0][first][classes]


def _as_list(column: Any) -> list[Any]:
    return column if isinstance(column, list) else list(column[:])
