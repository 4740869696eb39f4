"""The same query-passage pairs in several languages, which of them mean the same, and negatives among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.pairs import dataset_in_memory
from st_xling.data.text_cells import find_sorted, text_hashes

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_COLUMNS = ("query", "passage", "label", "query_language", "passage_language")
"""The columns of every labeled dataset: strings, but for ``label``, a float of 0 or 1."""

_ROUNDS = 50  # of draws, before the rows that still lack items are filled one by one


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
            labels outside {0, 1}.
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
            texts = {language: list(column) for language, column in getattr(self, name).items()}
            object.__setattr__(self, name, texts)
        if other := set(self.labels) - {0, 1}:
            raise ValueError(f"labels must be 0 or 1: got {other.pop()!r}; make graded labels binary first.")
        object.__setattr__(self, "labels", [int(label) for label in self.labels])
        if not self.queries or self.queries.keys() != self.passages.keys():
            raise ValueError("queries and passages must be in the same languages, one or more.")
        for code, column in [*self.queries.items(), *self.passages.items()]:
            if len(column) != len(self):
                raise ValueError(f"{code} has {len(column)} texts for {len(self)} labels; align them row by row.")

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes, in the order of ``queries``."""
        return tuple(self.queries)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Iterable[int]) -> AlignedPairs:
        """Return the rows of these numbers, in this order."""
        numbers = list(rows)
        labels = [self.labels[row] for row in numbers]
        return AlignedPairs(pick(self.queries, numbers), pick(self.passages, numbers), labels)

    def in_languages(self, rows: np.ndarray, query_codes: np.ndarray, passage_codes: np.ndarray) -> Dataset:
        """Return labeled rows, query and passage each in the language chosen for it.

        Args:
            rows: Row of each pair, in the order to give them; a row may come several times. *Shape:* ``(pairs,)``
            query_codes: Index of the query's language in ``languages``. *Shape:* ``(pairs,)``
            passage_codes: The same, of the passage. *Shape:* ``(pairs,)``
        """
        query_languages = [self.languages[code] for code in query_codes.tolist()]
        passage_languages = [self.languages[code] for code in passage_codes.tolist()]
        queries = [self.queries[language][row] for language, row in zip(query_languages, rows.tolist())]
        passages = [self.passages[language][row] for language, row in zip(passage_languages, rows.tolist())]
        labels = np.asarray(self.labels, np.float32)[rows]
        return labeled_dataset(queries, passages, labels, query_languages, passage_languages)


def pick(columns: Mapping[str, Sequence[str]], rows: Sequence[int]) -> dict[str, list[str]]:
    """Return the texts of these rows, in each language."""
    picked = {}
    for language, column in columns.items():
        picked[language] = [column[row] for row in rows]
    return picked


def labeled_dataset(*columns: Sequence[Any]) -> Dataset:
    """Make a data set of one row a pair from :data:`PAIR_COLUMNS`, in this order. *Shape:* ``(pairs,)`` each"""
    import pyarrow as pa

    # ST's binary cross-entropy takes floats.
    types = {name: pa.string() for name in PAIR_COLUMNS} | {"label": pa.float32()}
    return dataset_in_memory(pa.table(list(columns), schema=pa.schema(types.items())))


def same_text_classes(columns: Iterable[Sequence[str]]) -> np.ndarray:
    """Number the rows; those share a number whose texts have the same leak key in any one column, and so on from these.

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
    """Number rows as :func:`same_text_classes` does, by numbers that they share. *Shape:* ``(rows,)`` each"""
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


def with_negatives(pairs: AlignedPairs, *, negatives_per_positive: int = 1, seed: int = 0) -> AlignedPairs:
    """Return the pairs, then passages of other rows as negatives of each positive in turn, with label 0.

    A row never serves whose passage is, under the leak key and in *any* language, the positive's own, another relevant
    one of the same query (the same in any language), or the query itself. The negatives of a positive differ from each
    other in the same sense. Each distinct passage is as likely as any other, however often it occurs.

    Args:
        pairs: Pairs in any number of languages, labeled negatives among them or not.
        negatives_per_positive: Drawn for each row of label 1.
        seed: Seed of the draw.

    Raises:
        ValueError: If some positive has too few other passages.
    """
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    query_hashes = [text_hashes(pairs.queries[code]) for code in pairs.languages]
    passage_hashes = [text_hashes(pairs.passages[code]) for code in pairs.languages]
    queries = joined_classes(query_hashes)
    passages = joined_classes(passage_hashes)

    # Classes of queries and of passages that must not meet: relevant ones, and those that repeat the query.
    forbidden = [np.stack([queries[positives], passages[positives]], axis=1)]
    for hashes_of_queries, hashes_of_passages in zip(query_hashes, passage_hashes):
        distinct, first_rows = np.unique(hashes_of_passages, return_index=True)
        indices, is_passage = find_sorted(distinct, hashes_of_queries)
        repeated = passages[first_rows[indices[is_passage]]]
        forbidden.append(np.stack([queries[is_passage], repeated], axis=1))

    passage_rows = np.unique(passages, return_index=True)[1]
    drawn = draw_apart(
        queries[positives], np.concatenate(forbidden), len(passage_rows), count=negatives_per_positive, seed=seed
    )
    rows = list(range(len(pairs)))
    negative_queries = np.repeat(positives, negatives_per_positive).tolist()
    negative_passages = passage_rows[drawn.ravel()].tolist()
    return AlignedPairs(
        pick(pairs.queries, rows + negative_queries),
        pick(pairs.passages, rows + negative_passages),
        [*pairs.labels, *[0] * drawn.size],
    )


def draw_apart(askers: np.ndarray, forbidden: np.ndarray, items: int, *, count: int, seed: int = 0) -> np.ndarray:
    """Draw ``count`` different items for every row, uniformly among those that its asker does not forbid.

    Args:
        askers: Asker of each row, a number from 0; rows of one asker forbid the same. *Shape:* ``(rows,)``
        forbidden: Asker and item that must not meet. *Shape:* ``(forbidden, 2)``
        items: Number of items; they are 0, 1, …
        count: Items a row.
        seed: Seed of the draw.

    Returns:
        Items. *Shape:* ``(rows, count)``
    Raises:
        ValueError: If some row has fewer than ``count`` items left.
    """
    rng = np.random.default_rng(seed)
    asker_of_row = askers.tolist()
    forbidden_items: dict[int, set[int]] = {asker: set() for asker in asker_of_row}
    for asker, item in forbidden.tolist():
        if asker in forbidden_items:
            forbidden_items[asker].add(item)
    allowed = [items - len(forbidden_items[asker]) for asker in asker_of_row]
    if too_few := sum(number < count for number in allowed):
        raise ValueError(
            f"cannot draw {count} negatives for each positive: {too_few} of {len(allowed)} have fewer passages of "
            f"other meanings, the fewest {min(allowed)}; lower negatives_per_positive, or add pairs."
        )

    drawn = [[-1] * count for _ in asker_of_row]  # -1: not drawn yet

    def is_free(row: int, item: int) -> bool:
        return item not in forbidden_items[asker_of_row[row]] and item not in drawn[row]

    open_rows = list(range(len(drawn))) if count else []
    for _ in range(_ROUNDS):
        if not open_rows:
            break
        # All rows at once, of which those that met a faulty draw try again.
        candidates = rng.integers(items, size=(len(open_rows), count)).tolist()
        for row, row_candidates in zip(open_rows, candidates):
            for index, item in enumerate(row_candidates):
                if drawn[row][index] < 0 and is_free(row, item):
                    drawn[row][index] = item
        open_rows = [row for row in open_rows if -1 in drawn[row]]
    # Rows that forbid nearly everything: the items that remain are listed.
    for row in open_rows:
        free_items = [item for item in range(items) if is_free(row, item)]
        shuffled = iter(rng.permutation(free_items).tolist())
        drawn[row] = [next(shuffled) if item < 0 else item for item in drawn[row]]
    return np.array(drawn, np.int64).reshape(len(drawn), count)
