"""XPI's mixed-language set: pairs of sentences, in one language or two, that mean the same or do not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from st_xling.data.reranking.negatives import with_negatives
from st_xling.data.reranking.pairs import AlignedPairs, same_text_classes
from st_xling.data.reranking.pools import CandidatePool, CandidatePools, candidate_pools
from st_xling.data.reranking.strategies import even_counts, require_languages, spread
from st_xling.data.text_columns import column_texts
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from datasets import Dataset

MonoPositives = Literal["identical", "word_dropout"]

# Chinese and Japanese, Thai and Lao, Burmese, Khmer: written without spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def xpi_pairs(pairs: AlignedPairs, *, negatives_per_positive: int = 1, seed: int = 0) -> Dataset:
    r"""The set :math:`S^{mix}` of the paper, from :math:`S^{en}, S^{zh}` or more languages.

    Negatives are drawn first; of the N pairs that there are then, each comes once: for two languages N/4 en-en, N/4
    zh-zh and N/2 with one text in each language, a coin deciding for each pair which. For L languages N/2 are
    mono-language, shared evenly by the L languages, and N/2 mix-language, shared evenly by the L(L-1)/2 pairs of
    languages. Where N or a share does not divide, the mix-language pairs take the odd one, then the first languages or
    language pairs, in the order of ``pairs``, the remainder. The shares hold for either label, within a pair or two.

    Args:
        pairs: Pairs of sentences in L >= 2 languages: 1 where they mean the same. Labeled negatives are kept.
        negatives_per_positive: Other rows' sentences, in the place of ``y``, for each pair of label 1; never one that
            is known to mean the same, see :func:`~st_xling.data.reranking.negatives.draw_negatives`, ``symmetric``.
        seed: Of negatives, forms, tosses and order.
    Returns:
        Rows of ``query``, ``passage``, ``label``, ``query_language``, ``passage_language``, shuffled.
    Raises:
        ValueError: Fewer than two languages; no pair; too few other sentences for the negatives.
    Source:
        Section IV-B-2 and table 1. The paper does not say how its negatives come about, nor how many there are.
    """
    require_languages(pairs, "cross-lingual paraphrase identification")
    full = with_negatives(pairs, negatives_per_positive=negatives_per_positive, symmetric=True, seed=seed)
    # A stream of its own, so that the number of negatives does not change what the forms are drawn from.
    rng = np.random.default_rng([seed, 1])
    first, second = _forms(full, rng)
    order = rng.permutation(len(full))
    return full.in_languages(order, first[order], second[order])


def xpi_pairs_from_parallel(
    data: Mapping[str, Dataset],
    *,
    size: int | None = None,
    negatives_per_positive: int = 1,
    mono_positives: MonoPositives = "identical",
    seed: int = 0,
) -> Dataset:
    """The same from parallel text, as the paper makes it from 100,000 rows of the UN corpus.

    A row of parallel text gives one pair that means the same, in two languages; each pair of languages gets the
    proportions of :func:`xpi_pairs` for itself. So a quarter of the pairs of de-en is German-German: of its positives
    the paper leaves open where the second German sentence comes from, since a row has only one. By its construction
    (both texts of a pair are translated, or one of them) it is the sentence itself, which is what ``"identical"`` does;
    it keeps labels and forms balanced, but teaches little. ``"word_dropout"``, ours, leaves out about a seventh of the
    words of the second copy. Real paraphrases in several languages are better than both: pass them to
    :func:`xpi_pairs`.

    Args:
        data: Name → parallel text with ``source``, ``target`` and their languages, of any number of language pairs.
        size: Rows of parallel text to draw from all; by default all.
        negatives_per_positive: Drawn among the rows of the same pair of languages.
        mono_positives: The second text of a pair in one language: ``"identical"`` or ``"word_dropout"``.
        seed: Of all draws.
    Returns:
        As :func:`xpi_pairs`; ``(1 + negatives_per_positive) x size`` rows.
    Raises:
        ValueError: A stream; a row whose two languages are the same or unknown; ``size`` beyond the rows that there
            are; too few rows of a language pair for the negatives.
    """
    import datasets

    check_choice("mono_positives", mono_positives, MonoPositives)
    parts = []
    for number, (codes, columns) in enumerate(by_language_pair(data, size=size, seed=seed).items()):
        texts = dict(zip(codes, columns))
        pairs = AlignedPairs(texts, texts, [1] * len(columns[0]))
        full = with_negatives(pairs, negatives_per_positive=negatives_per_positive, symmetric=True, seed=seed + number)
        rng = np.random.default_rng([seed, number, 2])
        first, second = _forms(full, rng)
        part = full.in_languages(np.arange(len(full)), first, second)
        if mono_positives == "word_dropout":
            changed = np.flatnonzero((first == second) & np.asarray(full.labels, bool)).tolist()
            passages = list(column_texts(part, "passage"))
            for row in changed:
                passages[row] = drop_words(passages[row], rng)
            names = part.column_names
            part = part.remove_columns("passage").add_column("passage", passages).select_columns(names)
        parts.append(part)
    joined = datasets.concatenate_datasets(parts)
    return joined.select(np.random.default_rng([seed, 3]).permutation(len(joined)))


def _forms(pairs: AlignedPairs, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Language of query and passage of each pair, as places in ``pairs.languages``. *Shape:* ``(pairs,)`` each"""
    languages = len(pairs.languages)
    crossed = list(combinations(range(languages), 2))
    mono = len(pairs) // 2
    counts = even_counts(mono, languages) + even_counts(len(pairs) - mono, len(crossed))
    form = spread(counts, np.asarray(pairs.labels), rng)
    codes = np.array([*((code, code) for code in range(languages)), *crossed])[form]
    heads = rng.random(len(pairs)) < 0.5
    return np.where(heads, codes[:, 0], codes[:, 1]), np.where(heads, codes[:, 1], codes[:, 0])


def parallel_pools(
    data: Mapping[str, Dataset], *, queries: int = 500, candidates: int = 100, seed: int = 0
) -> CandidatePools:
    """A development set for XPI, so that its best checkpoint can be chosen by acc@1 too.

    A sentence, in a language that a coin decides, is asked for its translation among sentences of the *other*
    language: itself is never a candidate. Rows that share a text in either language count as one meaning. This is
    ours; the paper does not say what it tests XPI on.

    Args:
        data: Name → parallel text, as :func:`by_language_pair` takes it.
        queries: At most so many, in even shares for each pair of languages.
        candidates: Sentences to choose from, at most; drawn for each query, with the translation.
        seed: Of all draws.
    Raises:
        ValueError: As :func:`by_language_pair`; no query or no candidates.
    """
    if queries < 1 or candidates < 1:
        raise ValueError(f"queries and candidates must be 1 or more: got {queries} and {candidates}.")
    groups = by_language_pair(data)
    pools: list[CandidatePool] = []
    for number, (codes, columns) in enumerate(groups.items()):
        rng = np.random.default_rng([seed, number])
        rows = np.unique(same_text_classes(columns), return_index=True)[1]
        chosen = rng.permutation(len(rows))[: max(1, queries // len(groups))]
        heads = rng.random(len(chosen)) < 0.5
        texts = {code: [column[row] for row in rows.tolist()] for code, column in zip(codes, columns)}
        for (source, target), queried in ((codes, chosen[heads]), (codes[::-1], chosen[~heads])):
            pools += candidate_pools(
                {source: [texts[source][row] for row in queried.tolist()]},
                {target: texts[target]},
                [[row] for row in queried.tolist()],
                query_ids=[f"{source}-{target}/{row}" for row in rows[queried].tolist()],
                passage_ids=list(map(str, rows.tolist())),
                max_candidates=candidates,
                seed=seed,
            )
    names = ",".join("-".join(codes) for codes in groups)
    return CandidatePools(
        tuple(pools), signature=f"translations:{names}|queries:{len(pools)}|candidates:{candidates}|seed:{seed}"
    )


def by_language_pair(
    data: Mapping[str, Dataset], *, size: int | None = None, seed: int = 0
) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    """The two texts of all rows, for each pair of languages, whichever of the two was the source.

    Args:
        data: Name → parallel text with ``source``, ``target``, ``source_language`` and ``target_language``.
        size: Rows to draw from all data sets together; by default all.
        seed: Of this draw.
    Returns:
        Languages, in the order of the first row that has them, → their texts, aligned.
    Raises:
        ValueError: There is no row; a stream; a row has the same language twice, or an unknown one; ``size`` is below 1
            or beyond the rows that there are.
    """
    streams = [name for name, dataset in data.items() if not hasattr(dataset, "__len__")]
    if streams:
        raise ValueError(
            f"negatives are drawn from all rows, so {', '.join(streams)} cannot be streamed; read it whole."
        )
    rows = sum(map(len, data.values()))
    if not rows or (size is not None and not 1 <= size <= rows):
        expected = "at least 1" if size is None else f"size={size:,}, 1 or more,"
        raise ValueError(f"expected parallel text of {expected} rows: got {rows:,}; lower size, or add text.")
    chosen = np.arange(rows)
    if size is not None:
        chosen = np.sort(np.random.default_rng([seed, 4]).choice(rows, size=size, replace=False))
    by_pair: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    start = 0
    for name, dataset in data.items():
        here = chosen[(chosen >= start) & (chosen < start + len(dataset))] - start
        start += len(dataset)
        part = dataset if len(here) == len(dataset) else dataset.select(here)
        columns = [column_texts(part, name) for name in ("source_language", "target_language", "source", "target")]
        for first, second, source, target in zip(*columns):
            if (second, first) in by_pair:
                first, second, source, target = second, first, target, source
            elif first == second or UNKNOWN in (first, second):
                raise ValueError(
                    f"{name}: expected parallel text of two known languages, got {first} and {second}; "
                    "say which they are: xx-yy=PATH."
                )
            sources, targets = by_pair.setdefault((first, second), ([], []))
            sources.append(source)
            targets.append(target)
    return by_pair


def drop_words(text: str, rng: np.random.Generator, *, share: float = 1 / 7) -> str:
    """The text without about ``share`` of its words, at least one; in scripts without spaces, of its characters.

    A mark stays with its character. A text of one word, or character, stays as it is.

    Args:
        text: A sentence.
        rng: What draws the words.
        share: In (0, 1).
    Example:
        >>> len(drop_words("one two three four", np.random.default_rng(0)).split())
        3
    """
    unspaced = _UNSPACED.search(text) is not None
    units = text.split()
    if unspaced:
        units = []
        for character in text:
            if units and unicodedata.category(character)[0] == "M":
                units[-1] += character
            else:
                units.append(character)
    if len(units) < 2:
        return text
    dropped = set(rng.choice(len(units), size=max(1, round(share * len(units))), replace=False).tolist())
    rest = ("" if unspaced else " ").join(unit for place, unit in enumerate(units) if place not in dropped)
    return rest if rest.strip() else text
