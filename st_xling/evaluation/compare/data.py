"""Data of a comparison of encoders: translation pairs, corpora to mine, and a mixed pool of passages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.retrieval import RetrievalSet, load_retrieval_specs
from st_xling.data.spec import data_name, is_phrasebook, paired_languages, parse_spec, split_spec
from st_xling.data.test_sets import find_bucc
from st_xling.evaluation.bucc import BuccEvaluator, IndexedCorpus
from st_xling.evaluation.tatoeba import count_repeats, load_english_pairs, resolve_languages
from st_xling.utils.languages import canonical_language, is_code, pair_languages
from st_xling.utils.signature import sha8
from st_xling.utils.text import home_path

#: Sizes of the phrasebook's data for each language: pairs, sentences to mine, gold pairs among them, and passages.
PHRASES = {"pairs": 300, "mining": 400, "gold": 60, "passages": 60}


class SplitCorpora(NamedTuple):
    """Source and target corpus of a language pair, by split.

    Attributes:
        test: Corpora on which mining is evaluated.
        train: Corpora on which the threshold is chosen.
    """

    test: IndexedCorpus
    train: IndexedCorpus


@dataclass(frozen=True)
class ComparisonData:
    """Data of a comparison; each part may be empty.

    Attributes:
        pairs: Three-letter language code → texts in the language, and their English translations.
        mining: Language pair → its corpora.
        pool: Retrieval sets whose passages are searched together.
        name: Name of the data, for signatures.
        missing: Tasks and languages that cannot be compared, each with the reason.
        seed: Seed for samples and generated text.
        sets: Retrieval sets, each of which is searched alone.
    """

    pairs: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    mining: Mapping[str, SplitCorpora] = field(default_factory=dict)
    pool: Sequence[RetrievalSet] = ()
    name: str = "data"
    missing: Sequence[str] = ()
    seed: int = 0
    sets: Sequence[RetrievalSet] = ()

    @cached_property
    def sha8(self) -> dict[str, str]:
        """Short hash of each part."""
        corpora: list[list[Any]] = []
        for corpus in chain.from_iterable(self.mining.values()):
            gold = [(str(source), str(target)) for source, target in corpus.gold]
            corpora.append([corpus.source, corpus.target, gold])
        return {
            "pairs": sha8(self.pairs),
            "mining": sha8([list(self.mining), corpora]),
            "pool": sha8([retrieval_set.sha256 for retrieval_set in self.pool]),
            "sets": sha8([retrieval_set.sha256 for retrieval_set in self.sets]),
        }

    @cached_property
    def repeats(self) -> int | None:
        """Number of sentences that equal an earlier one, so that no search can tell them apart; ``None`` for 0."""
        return sum(count_repeats(self.pairs, self.name).values()) or None

    def texts(self) -> Iterator[str]:
        """Iterate over all texts that are embedded, except those that a task generates."""
        columns: list[Iterable[str]] = [*chain.from_iterable(self.pairs.values())]
        for corpus in chain.from_iterable(self.mining.values()):
            columns += [corpus.source, corpus.target]
        for retrieval_set in self.sets or self.pool:
            columns.append(retrieval_set.passages)
            columns += [queries.values() for queries in retrieval_set.queries.values()]
        return chain.from_iterable(columns)


def load_comparison_data(
    specs: Iterable[str] = (), languages: Sequence[str] | None = None, *, seed: int = 0
) -> ComparisonData:
    """Load the data of a comparison, as ``--data`` names it.

    Args:
        specs: One or more of the following. Defaults to the test sentences of the phrasebook.

            - a folder with the files of Tatoeba, BUCC or XQuAD-R;
            - ``xx-en=PATH``: translation pairs;
            - ``xx=DIR`` or ``xx=FILE.json``: passages and queries, as for ``evaluate retrieval``;
            - ``phrasebook:…``: generated data.
        languages: Codes or groups, see :func:`~st_xling.evaluation.resolve_languages`. Defaults to all.
        seed: Seed for samples and generated text.

    Raises:
        ValueError: If there is no data, or a spec or its content is not valid.
        FileNotFoundError: If a path does not exist.
    """
    # Pairs and passages are only collected here, to be loaded together below.
    all_specs = list(specs) or ["phrasebook"]
    pair_specs: list[str] = []
    pool_specs: list[str] = []
    mining: dict[str, SplitCorpora] = {}
    missing: list[str] = []
    for spec in all_specs:
        path = home_path(spec)
        if is_phrasebook(spec):
            pair_spec, passage_specs, corpora = _read_phrasebook(spec)
            pair_specs.append(pair_spec)
            pool_specs += passage_specs
            mining |= corpora
        elif path.is_dir() and any(path.rglob("*-*.gold*")):  # BUCC
            for pair in find_bucc(path):
                if pair in mining:
                    raise ValueError(f"expected one corpus to mine a pair: got another for {pair} in {spec!r}.")
                try:
                    mining |= _read_corpora(path, [pair])
                except FileNotFoundError:
                    missing.append(f"mining {pair}: no training split, which gives the threshold")
        elif files := _find_passage_files(path):
            pool_specs += [f"{code}={file}" for code, file in files]
        elif len(split_spec(spec).languages) == 1:  # xx=PATH
            pool_specs.append(spec)
        else:
            pair_specs.append(spec)

    pairs: dict[str, tuple[list[str], list[str]]] = {}
    if pair_specs:
        pairs, _ = load_english_pairs(pair_specs)
    pool = load_retrieval_specs(pool_specs) if pool_specs else []
    if languages is not None:
        wanted = {*resolve_languages(languages), "eng"}
        pairs = {code: texts for code, texts in pairs.items() if code in wanted}
        mining = {pair: corpora for pair, corpora in mining.items() if wanted.issuperset(_codes_except_english(pair))}
        pool = _select_pool_languages(pool, wanted)
    codes = [canonical_language(retrieval_set.language) for retrieval_set in pool]
    if repeated := sorted({code for code in codes if codes.count(code) > 1}):
        raise ValueError(
            f"expected one set of passages a language: got more in {', '.join(repeated)}; compare by one at a time."
        )
    sets = pool
    if len(pool) == 1:
        missing.append(f"the mixed pool: passages of {pool[0].language} alone; it takes two languages")
        pool = []
    if not (pairs or mining or sets):
        chosen = "" if languages is None else f" of {', '.join(languages)}"
        raise ValueError(f"expected data to compare by: got none in {', '.join(all_specs)}{chosen}.")
    name = data_name(all_specs, split="test")
    return ComparisonData(pairs, mining, pool, name, missing, seed, sets)


def _find_passage_files(path: Path) -> list[tuple[str, Path]]:
    """Return language code and path of the JSON files in a folder that are named by a language, as in XQuAD-R."""
    if not path.is_dir():
        return []
    files = [(file.name.partition(".")[0], file) for file in sorted(path.glob("*.json*"))]
    return [(code, file) for code, file in files if is_code(code)]


def _select_pool_languages(pool: Sequence[RetrievalSet], wanted: Collection[str]) -> list[RetrievalSet]:
    """Return the sets with passages in a wanted language, each without its queries in other languages."""
    selected: list[RetrievalSet] = []
    for retrieval_set in pool:
        if canonical_language(retrieval_set.language) in wanted:
            queries = {
                code: texts for code, texts in retrieval_set.queries.items() if canonical_language(code) in wanted
            }
            selected.append(replace(retrieval_set, queries=queries))
    return selected


def _codes_except_english(pair: str) -> list[str]:
    """Return the three-letter codes of the languages of a pair, without English."""
    codes = [canonical_language(code) for code in pair_languages(pair) if code]
    return [code for code in codes if code != "eng"]


def english_free(pair: str) -> str:
    """Return the name of a language pair without English.

    Example:
        >>> english_free("de-en"), english_free("zh-vi")
        ('deu', 'cmn-vie')
    """
    return "-".join(_codes_except_english(pair))


def _read_phrasebook(spec: str) -> tuple[str, list[str], dict[str, SplitCorpora]]:
    """Return the spec of the pairs, specs of passages, and corpora; ``?size=`` is that of the pairs and scales all."""
    book = parse_spec(spec, {})
    size = book.options.get("size", PHRASES["pairs"])
    seed = book.options.get("seed", 0)
    codes = [code for code in paired_languages(book) if code != "en"]
    scale = min(1.0, size / PHRASES["pairs"])
    sizes = {name: max(10, round(scale * number)) for name, number in PHRASES.items()}
    phrasebook = f"phrasebook:{','.join(codes)}"
    pair_spec = f"{phrasebook}?size={size}&seed={seed}"
    codes_with_english = [*codes, "en"]
    passage_options = f"size={sizes['passages']}&seed={seed}&queries={','.join(codes_with_english)}"
    passage_specs = [f"{code}=phrasebook?{passage_options}" for code in codes_with_english]
    mining = _read_corpora(f"{phrasebook}?size={sizes['mining']}&gold={sizes['gold']}&seed={seed}")
    return pair_spec, passage_specs, mining


def _read_corpora(spec: str | Path, pairs: Sequence[str] | None = None) -> dict[str, SplitCorpora]:
    """Read the corpora of both splits for each pair; all pairs by default."""
    evaluator = BuccEvaluator.from_spec(spec, pairs)
    assert evaluator.train is not None  # None only if a threshold is given
    return {pair: SplitCorpora(test, evaluator.train[pair]) for pair, test in evaluator.corpora.items()}
