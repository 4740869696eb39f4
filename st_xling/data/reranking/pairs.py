"""The same query-passage pairs in several languages, which of them mean the same, and negatives among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.text_columns import find_sorted, text_hashes

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_COLUMNS = ("query", "passage", "label", "query_language", "passage_language")
"""The columns of every labeled dataset: strings, but for ``label``, a float of 0 or 1."""

KEY_COLUMNS = ("query_key", "passage_key")
"""Further columns where pairs are aligned: 64 bits that texts of one meaning share, in any language."""

_SHOWN = 5  # faulty rows that an error message lists; the rest are only counted
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
        if bad := [row for row, label in enumerate(labels) if label not in (0, 1)]:
            got = ", ".join(dict.fromkeys(repr(labels[row]) for row in bad[:_SHOWN]))
            raise ValueError(
                f"labels must be 0 or 1: got {got} in rows {listed_rows(bad)}; make graded labels binary first "
                "(relevant or not)."
            )
        object.__setattr__(self, "labels", np.asarray(labels, np.int64).tolist())
        if not self.queries or self.queries.keys() != self.passages.keys():
            raise ValueError("queries and passages must be in the same languages, one or more.")
        for code, column in [*self.queries.items(), *self.passages.items()]:
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
        """Return the rows of these numbers, in this order."""
        numbers = [int(row) for row in rows]
        labels = [self.labels[row] for row in numbers]
        return AlignedPairs(pick(self.queries, numbers), pick(self.passages, numbers), labels)

    def in_languages(self, rows: np.ndarray, query_codes: np.ndarray, passage_codes: np.ndarray) -> Dataset:
        """Return labeled rows, query and passage each in the language chosen for it.

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
    """Return the texts of these rows, in each language."""
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
    """Make a data set of one row a pair, in the order given; all arguments are row-aligned.

    Args:
        queries, passages, labels, query_languages, passage_languages: Columns. *Shape:* ``(pairs,)`` each
        keys: Keys of queries and of passages, see :attr:`AlignedPairs.keys`. *Shape:* ``(pairs,)`` each
    """
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
    """Return ``requested`` without repetitions; raise ``ValueError`` if one is not among those known, or for none."""
    languages = tuple(dict.fromkeys(requested))
    unknown = [language for language in languages if language not in known]
    if unknown or not languages:
        raise ValueError(f"expected languages out of {', '.join(known)}: got {', '.join(unknown) or 'none'}.")
    return languages


def listed_rows(rows: Sequence[int]) -> str:
    """Return the first few numbers, and how many more there are."""
    return ", ".join(map(str, rows[:_SHOWN])) + (f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else "")


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
    """Do the same with numbers: rows that share one in any column are of one class. *Shape:* ``(rows,)`` each"""
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
    """Return a key for each class of rows, which other data with the same texts have too. *Shape:* ``(rows,)``, uint64

    It is the hash of the leak key of the class's first text in the first language.
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


def draw_negatives(
    pairs: AlignedPairs, *, negatives_per_positive: int = 1, symmetric: bool = False, seed: int = 0
) -> np.ndarray:
    """Draw, for each positive pair, rows whose passages are not relevant to its query.

    A row never serves whose passage is, under the leak key and in *any* language, the positive's own, another relevant
    one of the same query (the same in any language), or the query itself. The negatives of a positive differ from each
    other in the same sense. Each distinct passage is as likely as any other, however often it occurs.

    Args:
        pairs: Pairs in any number of languages, labeled negatives among them or not.
        negatives_per_positive: Drawn for each row of label 1.
        symmetric: Query and passage are of one kind, as in paraphrase identification: whoever is a paraphrase of a
            paraphrase, as query or as passage, counts as the same.
        seed: Of the draw.
    Returns:
        Row numbers, in the order of the rows of label 1. *Shape:* ``(positives, negatives_per_positive)``
    Raises:
        ValueError: If some positive has too few other passages.
    """
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    queries, passages, forbidden = _classes(pairs, positives, symmetric)
    items, first_rows = np.unique(passages, return_index=True)
    places, known = find_sorted(items, forbidden[:, 1])
    met = np.stack([forbidden[known, 0], places[known]], axis=1)
    return first_rows[draw_apart(queries[positives], met, len(items), each=negatives_per_positive, seed=seed)]


def with_negatives(
    pairs: AlignedPairs, *, negatives_per_positive: int = 1, symmetric: bool = False, seed: int = 0
) -> AlignedPairs:
    """Return the pairs, then the negatives that :func:`draw_negatives` finds, positive by positive, with label 0.

    Args, Raises: as :func:`draw_negatives`.
    """
    drawn = draw_negatives(pairs, negatives_per_positive=negatives_per_positive, symmetric=symmetric, seed=seed)
    positives = np.flatnonzero(np.asarray(pairs.labels, bool))
    rows = range(len(pairs))
    return AlignedPairs(
        pick(pairs.queries, [*rows, *np.repeat(positives, drawn.shape[1]).tolist()]),
        pick(pairs.passages, [*rows, *drawn.ravel().tolist()]),
        [*pairs.labels, *[0] * drawn.size],
    )


def _classes(pairs: AlignedPairs, positives: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a class for each query and each passage, and which query must not meet which passage, in classes."""
    hashed: dict[int, np.ndarray] = {}  # by identity: queries and passages of parallel text are the same lists
    for column in (*pairs.queries.values(), *pairs.passages.values()):
        if id(column) not in hashed:
            hashed[id(column)] = text_hashes(column)
    hashes = [(hashed[id(pairs.queries[code])], hashed[id(pairs.passages[code])]) for code in pairs.languages]
    rows = len(pairs)
    if symmetric:
        # Queries above passages, and one more column that joins the two of each positive.
        partner = np.arange(2 * rows, dtype=np.uint64)
        partner[rows + positives] = positives
        both = joined_classes([*(np.concatenate(columns) for columns in hashes), partner])
        queries, passages = both[:rows], both[rows:]
        return queries, passages, np.stack([queries, queries], axis=1)
    queries = joined_classes([query for query, _ in hashes])
    passages = joined_classes([passage for _, passage in hashes])
    forbidden = [np.stack([queries[positives], passages[positives]], axis=1)]
    for query, passage in hashes:  # passages that repeat the query
        texts, first = np.unique(passage, return_index=True)
        places, known = find_sorted(texts, query)
        forbidden.append(np.stack([queries[known], passages[first[places[known]]]], axis=1))
    return queries, passages, np.concatenate(forbidden)


def draw_apart(askers: np.ndarray, forbidden: np.ndarray, items: int, *, each: int, seed: int = 0) -> np.ndarray:
    """Draw ``each`` different items for every row, uniformly among those that its asker does not forbid.

    Work and memory grow with rows x each: faulty draws alone are drawn again.

    Args:
        askers: Who asks in each row, a number from 0. *Shape:* ``(rows,)``
        forbidden: Asker and item that must not meet. *Shape:* ``(forbidden, 2)``
        items: How many there are; they are 0, 1, …
        each: Items a row.
        seed: Seed of the draw.
    Returns:
        Items. *Shape:* ``(rows, each)``
    Raises:
        ValueError: If some row has fewer than ``each`` items left.
    """
    rng = np.random.default_rng(seed)
    # An asker and an item as one number; sorted, so that pairs can be looked up.
    met = np.unique(forbidden[:, 0] * items + forbidden[:, 1])
    allowed = items - np.bincount(met // items if items else met, minlength=int(askers.max(initial=-1)) + 1)[askers]
    short = np.flatnonzero(allowed < each)
    if len(short):
        raise ValueError(
            f"cannot draw {each} negatives for each positive: {len(short)} of {len(askers)} have fewer passages that "
            f"are neither relevant nor a translation or duplicate of a relevant one, the fewest {allowed.min()}; "
            "lower negatives_per_positive, or add pairs."
        )
    drawn = np.full((len(askers), each), -1, np.int64)
    rows = np.arange(len(askers) if each else 0)
    for _ in range(_ROUNDS):
        if not len(rows):
            return drawn
        blank = drawn[rows] < 0
        tried = np.where(blank, rng.integers(items, size=blank.shape), drawn[rows])
        refused = blank & (find_sorted(met, askers[rows, None] * items + tried)[1] | _repeated(tried, blank))
        drawn[rows] = np.where(refused, -1, tried)
        rows = rows[refused.any(1)]
    # Rows that forbid nearly everything: what is left is listed.
    for row in rows.tolist():
        free = ~find_sorted(met, askers[row] * items + np.arange(items))[1] & ~np.isin(np.arange(items), drawn[row])
        blanks = drawn[row] < 0
        drawn[row, blanks] = rng.permutation(np.flatnonzero(free))[: blanks.sum()]
    return drawn


def _repeated(values: np.ndarray, blank: np.ndarray) -> np.ndarray:
    """Return true where a new value is one that the row has already, or has twice now. *Shape:* ``(rows, each)``"""
    order = np.argsort(values * 2 + blank, axis=1, kind="stable")  # what was drawn before comes before what is new
    ordered = np.take_along_axis(values, order, 1)
    again = np.zeros(values.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
    return again
