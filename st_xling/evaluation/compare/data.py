"""The texts that encoders are compared by: translation pairs, corpora to mine, a mixed pool of passages."""

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

#: Sizes of the phrasebook's sets: pairs, sentences to mine, gold pairs and passages per language.
PHRASES = {"pairs": 300, "mining": 400, "gold": 60, "passages": 60}


class SplitCorpora(NamedTuple):
    """Corpora of a language pair.

    Attributes:
        test: Corpora that are evaluated.
        train: Corpora that give the threshold.
    """

    test: IndexedCorpus
    train: IndexedCorpus


@dataclass(frozen=True)
class ComparisonData:
    """The texts of a comparison; each part may be empty.

    Attributes:
        pairs: Three-letter code → texts of the language, and their English.
        mining: Language pair → the corpora that are evaluated, and those that give the threshold.
        pool: Sets whose passages are searched as one.
        name: Name of the data, for signatures.
        missing: Tasks and languages that cannot be compared, with the reasons.
        seed: Seed of samples and of generated text.
    """

    pairs: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    mining: Mapping[str, SplitCorpora] = field(default_factory=dict)
    pool: Sequence[RetrievalSet] = ()
    name: str = "data"
    missing: Sequence[str] = ()
    seed: int = 0

    @cached_property
    def sha8(self) -> dict[str, str]:
        """Eight hex digits for each part, which change with any text of it."""
        corpora: list[list[Any]] = []
        for corpus in chain.from_iterable(self.mining.values()):
            gold = [(str(source), str(target)) for source, target in corpus.gold]
            corpora.append([corpus.source, corpus.target, gold])
        return {
            "pairs": sha8(self.pairs),
            "mining": sha8([list(self.mining), corpora]),
            "pool": sha8([retrieval_set.sha256 for retrieval_set in self.pool]),
        }

    @cached_property
    def repeats(self) -> int | None:
        """Number of sentences of the pairs that repeat an earlier one, which no search can find; ``None`` for none."""
        return sum(count_repeats(self.pairs, self.name).values()) or None

    def texts(self) -> Iterator[str]:
        """Iterate over all texts that are embedded, except generated ones."""
        columns: list[Iterable[str]] = [*chain.from_iterable(self.pairs.values())]
        for corpus in chain.from_iterable(self.mining.values()):
            columns += [corpus.source, corpus.target]
        for retrieval_set in self.pool:
            columns.append(retrieval_set.passages)
            columns += [queries.values() for queries in retrieval_set.queries.values()]
        return chain.from_iterable(columns)


def load_comparison_data(
    specs: Iterable[str] = (), languages: Sequence[str] | None = None, *, seed: int = 0
) -> ComparisonData:
    """Read the texts that ``--data`` names.

    Args:
        specs: Each a folder of Tatoeba's, BUCC's or XQuAD-R's files; ``xx-en=PATH``; ``xx=DIR`` or ``xx=FILE.json``,
            passages as ``evaluate retrieval`` takes them; or ``phrasebook:…``. Without any: the test sentences of the
            phrasebook.
        languages: Codes or groups, as :func:`~st_xling.evaluation.resolve_languages` takes them; all by default.
        seed: Seed of samples and of generated text.
    Raises:
        ValueError: No data, a spec of another form; as the readers.
        FileNotFoundError: Nothing is at a path.
    """
    all_specs = list(specs) or ["phrasebook"]
    pair_specs: list[str] = []
    pool_specs: list[str] = []
    mining: dict[str, SplitCorpora] = {}
    missing: list[str] = []
    for spec in all_specs:
        path = home_path(spec)
        if is_phrasebook(spec):
            phrase_pairs, passages, corpora = _read_phrasebook(spec)
            pair_specs.append(phrase_pairs)
            pool_specs += passages
            mining |= corpora
        elif path.is_dir() and any(path.rglob("*-*.gold*")):
            for pair in find_bucc(path):
                if pair in mining:
                    raise ValueError(f"expected one corpus to mine a pair: got another for {pair} in {spec!r}.")
                try:
                    mining |= _read_corpora(path, [pair])
                except FileNotFoundError:
                    missing.append(f"mining {pair}: no training split, which gives the threshold")
        elif files := _find_passage_files(path):
            pool_specs += [f"{code}={file}" for code, file in files]
        elif len(split_spec(spec).languages) == 1:
            pool_specs.append(spec)
        else:
            pair_specs.append(spec)

    pairs = load_english_pairs(pair_specs)[0] if pair_specs else {}
    pool = load_retrieval_specs(pool_specs) if pool_specs else []
    if languages is not None:
        wanted = {*resolve_languages(languages), "eng"}
        pairs = {code: texts for code, texts in pairs.items() if code in wanted}
        mining = {pair: corpora for pair, corpora in mining.items() if {*_codes_except_english(pair)} <= wanted}
        pool = _select_pool_languages(pool, wanted)
    if len(pool) == 1:
        missing.append(f"the mixed pool: passages of {pool[0].language} alone; it takes two languages")
        pool = []
    if not (pairs or mining or pool):
        chosen = "" if languages is None else f" of {', '.join(languages)}"
        raise ValueError(f"expected data to compare by: got none in {', '.join(all_specs)}{chosen}.")
    name = data_name(all_specs, split="test")
    return ComparisonData(pairs, mining, pool, name, missing, seed)


def _find_passage_files(path: Path) -> list[tuple[str, Path]]:
    """Return the language and the path of each file of a folder that is named by a language, as XQuAD-R's are."""
    if not path.is_dir():
        return []
    files = [(file.name.partition(".")[0], file) for file in sorted(path.glob("*.json*"))]
    return [(code, file) for code, file in files if is_code(code)]


def _select_pool_languages(pool: Sequence[RetrievalSet], wanted: Collection[str]) -> list[RetrievalSet]:
    """Return the sets whose passages are in wanted languages, with their queries in wanted languages."""
    selected: list[RetrievalSet] = []
    for retrieval_set in pool:
        if canonical_language(retrieval_set.language) in wanted:
            queries = {
                code: texts for code, texts in retrieval_set.queries.items() if canonical_language(code) in wanted
            }
            selected.append(replace(retrieval_set, queries=queries))
    return selected


def _codes_except_english(pair: str) -> list[str]:
    """Return the languages of a pair, without English."""
    return [code for code in map(canonical_language, filter(None, pair_languages(pair))) if code != "eng"]


def english_free(pair: str) -> str:
    """Name a language pair by its languages that are not English.

    Example:
        >>> english_free("de-en"), english_free("zh-vi")
        ('deu', 'cmn-vie')
    """
    return "-".join(_codes_except_english(pair))


def _read_phrasebook(spec: str) -> tuple[str, list[str], dict[str, SplitCorpora]]:
    """Return specs of pairs and passages, and corpora to mine; ``?size=`` counts pairs, and scales the others."""
    book = parse_spec(spec, {})
    size = book.options.get("size", PHRASES["pairs"])
    seed = book.options.get("seed", 0)
    codes = [code for code in paired_languages(book) if code != "en"]
    share = min(1.0, size / PHRASES["pairs"])
    sizes = {name: max(10, round(share * number)) for name, number in PHRASES.items()}
    languages = ",".join([*codes, "en"])
    passages = [
        f"{code}=phrasebook?size={sizes['passages']}&seed={seed}&queries={languages}" for code in [*codes, "en"]
    ]
    named = f"phrasebook:{','.join(codes)}"
    mining = _read_corpora(f"{named}?size={sizes['mining']}&gold={sizes['gold']}&seed={seed}")
    return f"{named}?size={size}&seed={seed}", passages, mining


def _read_corpora(spec: str | Path, pairs: Sequence[str] | None = None) -> dict[str, SplitCorpora]:
    """Read the corpora that are evaluated, and those that give the threshold."""
    evaluator = BuccEvaluator.from_spec(spec, pairs)
    assert evaluator.train is not None
    return {pair: SplitCorpora(test, evaluator.train[pair]) for pair, test in evaluator.corpora.items()}
