"""Training data of XPR (merged, cascade, mixed sets of translated pairs) and of XPI (mixed-language sentence pairs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.batches import apportion
from st_xling.data.pairs import COLUMNS
from st_xling.data.reranking.pairs import AlignedPairs, draw_apart, pick, same_text_classes
from st_xling.data.reranking.pools import AlignedQuestions, CandidatePool, CandidatePools, candidate_pools
from st_xling.data.text_cells import column_texts
from st_xling.utils.languages import UNKNOWN

if TYPE_CHECKING:
    from datasets import Dataset


def merged(pairs: AlignedPairs, *, seed: int = 0) -> list[Dataset]:
    r"""One stage: every pair in every language, :math:`D^{en} \cup D^{zh}`, shuffled; L x M rows, all mono-language.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included.
        seed: Seed of the order.

    Raises:
        ValueError: Fewer than two languages, or no pairs.
    """
    codes, rows = _all_languages(pairs)
    order = np.random.default_rng(seed).permutation(len(rows))
    return [pairs.in_languages(rows[order], codes[order], codes[order])]


def cascade(pairs: AlignedPairs, *, seed: int = 0) -> list[Dataset]:
    """One stage a language, M rows each: first :math:`D^{en}`, then :math:`D^{zh}` from the model of the first.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included; the first language is trained on first.
        seed: Seed of the order of the rows in each stage.

    Raises:
        ValueError: If there are fewer than two languages, or no pairs.
    """
    codes, _ = _all_languages(pairs)
    rng = np.random.default_rng(seed)
    stages = []
    for stage_codes in np.split(codes, len(pairs.languages)):
        stages.append(pairs.in_languages(rng.permutation(len(pairs)), stage_codes, stage_codes))
    return stages


def mixed(pairs: AlignedPairs, *, seed: int = 0) -> list[Dataset]:
    r"""One stage: the queries of an aligned pair, in every language, all with its passage in one language, drawn.

    For two languages these are, of 2M rows, M mono-language and M mix-language: the two samples of pair ``i`` are
    either :math:`(q^{en}, p^{zh}), (q^{zh}, p^{zh})` or :math:`(q^{en}, p^{en}), (q^{zh}, p^{en})`, each for M/2 of the
    pairs (figure 3). For L languages it is the passage language that is shared still: L x M rows, M of them
    mono-language, and each language shows M/L of the passages. The languages share M evenly, the first in ``pairs``
    take the remainder; so they do, within one or two pairs, among the relevant pairs and among the others.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included.
        seed: Seed of the passage languages and the order.

    Raises:
        ValueError: Fewer than two languages, or no pairs.
    """
    codes, rows = _all_languages(pairs)
    rng = np.random.default_rng(seed)
    # One passage language for all samples of a pair, in even shares.
    languages = len(pairs.languages)
    counts = apportion(len(pairs), [1 / languages] * languages)
    passage_codes = spread(counts, np.asarray(pairs.labels), rng)
    order = rng.permutation(len(rows))
    return [pairs.in_languages(rows[order], codes[order], passage_codes[rows[order]])]


STRATEGIES: dict[str, Callable[..., list[Dataset]]] = {"merged": merged, "cascade": cascade, "mixed": mixed}
"""By the names that recipes use; all three give L x M rows over their stages."""


def _all_languages(pairs: AlignedPairs) -> tuple[np.ndarray, np.ndarray]:
    """Return language and row of every pair in every language; raise ``ValueError`` if there is nothing to mix."""
    count = len(pairs.languages)
    if count < 2 or not len(pairs):
        raise ValueError(f"expected pairs in 2 languages or more: got {len(pairs)} in {', '.join(pairs.languages)}.")
    return np.repeat(np.arange(count), len(pairs)), np.tile(np.arange(len(pairs)), count)


def spread(counts: Sequence[int], labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose a form for each row: form ``f`` exactly ``counts[f]`` times, in like proportion for either label.

    Rows are shuffled within their label and meet a sequence in which every form recurs at even distances; so among the
    rows of one label the share of a form is its share overall, but for a row or two where forms are few.

    Args:
        counts: Rows of each form; they sum to the number of rows.
        labels: 0 or 1. *Shape:* ``(rows,)``
        rng: Generator that shuffles.

    Returns:
        Numbers of forms. *Shape:* ``(rows,)``
    """
    forms = np.repeat(np.arange(len(counts)), counts)
    # Occurrence i of a form is due at (i + 0.5) / count of the sequence.
    due_by_form = [(np.arange(count) + 0.5) / count for count in counts if count]
    due = np.concatenate([np.zeros(0), *due_by_form])
    # Relevant rows first, in a random order within the label; they meet forms that recur at even distances.
    shuffled = rng.permutation(len(labels))
    rows = shuffled[np.argsort(-np.asarray(labels)[shuffled], kind="stable")]
    chosen = np.empty(len(labels), np.int64)
    chosen[rows] = forms[np.argsort(due, kind="stable")]
    return chosen


def xpi_pairs_from_parallel(
    data: Mapping[str, Dataset], *, size: int | None = None, negatives_per_positive: int = 1, seed: int = 0
) -> Dataset:
    r"""Make the set :math:`S^{mix}` of the paper from parallel text, of which the paper takes 100,000 rows.

    A row of parallel text gives one pair that means the same, in two languages. Negatives are drawn first: sentences of
    other rows, never of one that shares a text with the row in either language. Each of the N pairs that there are then
    comes once: N/4 in the one language, N/4 in the other, and N/2 with one text in each, a coin deciding for each pair
    which. Where N does not divide, the mix-language pairs take the odd one, then the first language. The shares hold
    for either label, within a pair or two. Several pairs of languages have these proportions each for itself.

    So a quarter of the pairs of de-en is German-German: of its positives the paper leaves open where the second German
    sentence comes from, since a row has only one. By its construction (both texts of a pair are translated, or one of
    them) it is the sentence itself, and so it is here; it keeps labels and forms balanced, but teaches little.

    Args:
        data: Name → parallel text with ``source``, ``target`` and their languages, of any number of language pairs.
        size: Rows of parallel text to draw from all; by default all.
        negatives_per_positive: Drawn among the rows of the same pair of languages.
        seed: Seed of all draws.

    Returns:
        ``(1 + negatives_per_positive) x size`` rows of ``query``, ``passage``, ``label``, ``query_language`` and
        ``passage_language``, shuffled.

    Raises:
        ValueError: If a row's two languages are the same or unknown, ``size`` is beyond the rows that there are, or a
            language pair has too few rows for the negatives.
    Source:
        Section IV-B-2 and table 1. The paper does not say how its negatives come about, nor how many there are.
    """
    import datasets

    datasets_by_pair = []
    for number, (codes, columns) in enumerate(by_language_pair(data, size=size, seed=seed).items()):
        pairs = _parallel_pairs(codes, columns, negatives_per_positive, seed=seed + number)
        # A separate stream, so that the number of negatives does not change what the forms are drawn from.
        rng = np.random.default_rng([seed, number, 2])
        # Forms are the languages of query and passage, as indices of ``pairs.languages``; the third is mix-language.
        mono = apportion(len(pairs) // 2, [0.5, 0.5])
        counts = [*mono, len(pairs) - sum(mono)]
        forms = np.array([(0, 0), (1, 1), (0, 1)])
        first, second = forms[spread(counts, np.asarray(pairs.labels), rng)].T
        # A coin decides which text of a mix-language pair is the query.
        heads = rng.random(len(pairs)) < 0.5
        query_codes = np.where(heads, first, second)
        passage_codes = np.where(heads, second, first)
        datasets_by_pair.append(pairs.in_languages(np.arange(len(pairs)), query_codes, passage_codes))
    joined = datasets.concatenate_datasets(datasets_by_pair)
    return joined.select(np.random.default_rng([seed, 3]).permutation(len(joined)))


def _parallel_pairs(
    codes: tuple[str, str], columns: tuple[list[str], list[str]], negatives_per_positive: int, *, seed: int
) -> AlignedPairs:
    """Return each row of parallel text as a pair with itself, then with sentences of other rows, label 0."""
    rows = np.arange(len(columns[0]))
    classes = same_text_classes(columns)
    first_rows = np.unique(classes, return_index=True)[1]
    same_class = np.stack([classes, classes], axis=1)
    drawn = draw_apart(classes, same_class, len(first_rows), count=negatives_per_positive, seed=seed)
    queries = np.concatenate([rows, np.repeat(rows, negatives_per_positive)]).tolist()
    passages = np.concatenate([rows, first_rows[drawn.ravel()]]).tolist()
    texts = dict(zip(codes, columns))
    labels = [1] * len(rows) + [0] * drawn.size
    return AlignedPairs(pick(texts, queries), pick(texts, passages), labels)


def parallel_pools(
    data: Mapping[str, Dataset], *, queries: int = 500, candidates: int = 100, seed: int = 0
) -> CandidatePools:
    """Make a development set for XPI, so that its best checkpoint can be chosen by acc@1 too.

    A sentence, in a language that a coin decides, is asked for its translation among sentences of the *other*
    language: itself is never a candidate. Rows that share a text in either language count as one meaning. This is
    ours; the paper does not say what it tests XPI on.

    Args:
        data: Name → parallel text, as :func:`by_language_pair` takes it.
        queries: At most so many, in even shares for each pair of languages.
        candidates: Sentences to choose from, at most; drawn for each query, with the translation.
        seed: Seed of all draws.

    Raises:
        ValueError: As :func:`by_language_pair`.
    """
    groups = by_language_pair(data)
    pools: list[CandidatePool] = []
    for number, (codes, columns) in enumerate(groups.items()):
        rng = np.random.default_rng([seed, number])
        rows = np.unique(same_text_classes(columns), return_index=True)[1]
        chosen = rng.permutation(len(rows))[: max(1, queries // len(groups))]
        heads = rng.random(len(chosen)) < 0.5
        texts = pick(dict(zip(codes, columns)), rows.tolist())
        for (source, target), query_rows in ((codes, chosen[heads]), (codes[::-1], chosen[~heads])):
            queries_by_language = pick({source: texts[source]}, query_rows.tolist())
            relevant = [[row] for row in query_rows.tolist()]
            questions = AlignedQuestions(queries_by_language, {target: texts[target]}, relevant)
            pools += candidate_pools(questions, max_candidates=candidates, seed=seed)
    names = ",".join("-".join(codes) for codes in groups)
    signature = f"translations:{names}|queries:{len(pools)}|candidates:{candidates}|seed:{seed}"
    return CandidatePools(tuple(pools), signature=signature)


def by_language_pair(
    data: Mapping[str, Dataset], *, size: int | None = None, seed: int = 0
) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    """Read the two texts of all rows, for each pair of languages, whichever of the two was the source.

    Args:
        data: Name → parallel text with ``source``, ``target``, ``source_language`` and ``target_language``.
        size: Rows to draw from all data sets together; by default all.
        seed: Seed of this draw.

    Returns:
        Languages, in the order of the first row that has them, → their texts, aligned.

    Raises:
        ValueError: If a row has the same language twice, or an unknown one, or ``size`` is beyond the rows that there
            are.
    """
    import datasets

    text = datasets.concatenate_datasets([dataset.select_columns(list(COLUMNS)) for dataset in data.values()])
    if size is not None:
        if size > len(text):
            raise ValueError(f"expected size={size:,} rows or more: got {len(text):,}; lower size, or add text.")
        chosen = np.random.default_rng([seed, 4]).choice(len(text), size=size, replace=False)
        text = text.select(np.sort(chosen))
    by_pair: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    columns = [column_texts(text, name) for name in ("source_language", "target_language", "source", "target")]
    for first, second, source, target in zip(*columns):
        if (second, first) in by_pair:
            first, second = second, first
            source, target = target, source
        elif first == second or UNKNOWN in (first, second):
            raise ValueError(f"expected two known languages, got {first} and {second}; say which: xx-yy=PATH.")
        sources, targets = by_pair.setdefault((first, second), ([], []))
        sources.append(source)
        targets.append(target)
    return by_pair
