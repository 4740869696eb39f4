"""The texts that encoders are compared by: translation pairs, corpora to mine, a mixed pool of passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from st_xling.data.retrieval import RetrievalSet, load_retrieval_specs
from st_xling.data.spec import data_name, is_phrasebook, paired_languages, parse_spec, split_spec
from st_xling.data.test_sets import find_bucc
from st_xling.evaluation.bucc import BuccEvaluator, IndexedCorpus
from st_xling.evaluation.tatoeba import count_repeats, load_english_pairs, resolve_languages
from st_xling.utils.languages import canonical_language, is_code, pair_languages
from st_xling.utils.signature import sha8
from st_xling.utils.text import home_path

#: Corpora of a language pair that are evaluated, and those that give the threshold.
Corpora: TypeAlias = tuple[IndexedCorpus, IndexedCorpus]

#: Sizes of the phrasebook's sets: pairs, sentences to mine, gold pairs and passages per language.
PHRASES = {"pairs": 300, "mining": 400, "gold": 60, "passages": 60}


@dataclass(frozen=True)
class ComparisonData:
    """The texts of a comparison; each part may be empty.

    Attributes:
        pairs: Three-letter code → texts of the language, and their English.
        mining: Language pair → the corpora that are evaluated, and those that give the threshold.
        pool: Sets whose passages are searched as one.
        name: Name of the data, for signatures.
        missing: What cannot be compared, and why.
        seed: Seed of samples and of generated text.
    """

    pairs: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    mining: Mapping[str, Corpora] = field(default_factory=dict)
    pool: Sequence[RetrievalSet] = ()
    name: str = "data"
    missing: Sequence[str] = ()
    seed: int = 0

    @cached_property
    def sha8(self) -> dict[str, str]:
        """Eight hex digits for each part, which change with any text of it."""
        corpora = [
            [one.source, one.target, [(str(row), str(other)) for row, other in one.gold]]
            for both in self.mining.values()
            for one in both
        ]
        return {
            "pairs": sha8(self.pairs),
            "mining": sha8([list(self.mining), corpora]),
            "pool": sha8([part.sha256 for part in self.pool]),
        }

    @cached_property
    def repeats(self) -> int | None:
        """Number of sentences of the pairs that repeat an earlier one, which no search can find; ``None`` for none."""
        return sum(count_repeats(self.pairs, self.name).values()) or None

    def texts(self) -> Iterator[str]:
        """Iterate over all texts that are embedded, except generated ones."""
        columns: list[Iterable[str]] = [column for both in self.pairs.values() for column in both]
        columns += [side for both in self.mining.values() for corpus in both for side in corpus[:2]]
        for part in self.pool:
            columns += [part.passages, *(queries.values() for queries in part.queries.values())]
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
    listed = list(specs) or ["phrasebook"]
    pair_specs: list[str] = []
    pool_specs: list[str] = []
    mining: dict[str, Corpora] = {}
    missing: list[str] = []
    for spec in listed:
        path = home_path(spec)
        if is_phrasebook(spec):
            pairs, passages, corpora = _phrasebook(spec)
            pair_specs.append(pairs)
            pool_specs += passages
            mining |= corpora
        elif path.is_dir() and any(path.rglob("*-*.gold*")):
            for pair in find_bucc(path):
                if pair in mining:
                    raise ValueError(f"expected one corpus to mine a pair: got another for {pair} in {spec!r}.")
                try:
                    mining |= _corpora(path, [pair])
                except FileNotFoundError:
                    missing.append(f"mining {pair}: no training split, which gives the threshold")
        elif path.is_dir() and (
            files := [each for each in path.glob("*.json*") if is_code(each.name.partition(".")[0])]
        ):
            # Named by languages, as XQuAD-R's are.
            pool_specs += [f"{each.name.partition('.')[0]}={each}" for each in sorted(files)]
        else:
            (pool_specs if len(split_spec(spec).languages) == 1 else pair_specs).append(spec)
    pairs_read = load_english_pairs(pair_specs)[0] if pair_specs else {}
    pool = load_retrieval_specs(pool_specs) if pool_specs else []
    if languages is not None:
        wanted = {*resolve_languages(languages), "eng"}
        pairs_read = {code: texts for code, texts in pairs_read.items() if code in wanted}
        mining = {pair: both for pair, both in mining.items() if {*_codes(pair)} <= wanted}
        pool = [part for part in pool if canonical_language(part.language) in wanted]
        for place, part in enumerate(pool):
            asked = {code: own for code, own in part.queries.items() if canonical_language(code) in wanted}
            pool[place] = replace(part, queries=asked)
    if len(pool) == 1:
        missing.append(f"the mixed pool: passages of {pool[0].language} alone; it takes two languages")
        pool = []
    if not (pairs_read or mining or pool):
        chosen = "" if languages is None else f" of {', '.join(languages)}"
        raise ValueError(f"expected data to compare by: got none in {', '.join(listed)}{chosen}.")
    name = data_name(listed, split="test")
    return ComparisonData(pairs_read, mining, pool, name, missing, seed)


def _codes(pair: str) -> list[str]:
    """Return the languages of a pair, without English."""
    return [code for code in map(canonical_language, filter(None, pair_languages(pair))) if code != "eng"]


def english_free(pair: str) -> str:
    """Name a language pair by its languages that are not English.

    Example:
        >>> english_free("de-en"), english_free("zh-vi")
        ('deu', 'cmn-vie')
    """
    return "-".join(_codes(pair))


def _phrasebook(spec: str) -> tuple[str, list[str], dict[str, Corpora]]:
    """Return specs of pairs and passages, and corpora to mine; ``?size=`` counts pairs, and scales the others."""
    book = parse_spec(spec, {})
    size, seed = book.options.get("size", PHRASES["pairs"]), book.options.get("seed", 0)
    codes = [code for code in paired_languages(book) if code != "en"]
    share = min(1.0, size / PHRASES["pairs"])
    sizes = {name: max(10, round(share * number)) for name, number in PHRASES.items()}
    languages = ",".join([*codes, "en"])
    passages = [
        f"{code}=phrasebook?size={sizes['passages']}&seed={seed}&queries={languages}" for code in [*codes, "en"]
    ]
    named = f"phrasebook:{','.join(codes)}"
    mining = _corpora(f"{named}?size={sizes['mining']}&gold={sizes['gold']}&seed={seed}")
    return f"{named}?size={size}&seed={seed}", passages, mining


def _corpora(spec: str | Path, pairs: Sequence[str] | None = None) -> dict[str, Corpora]:
    """Read the corpora that are evaluated, and those that give the threshold."""
    evaluator = BuccEvaluator.from_spec(spec, pairs)
    assert evaluator.train is not None
    return {pair: (test, evaluator.train[pair]) for pair, test in evaluator.corpora.items()}
