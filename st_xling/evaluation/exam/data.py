"""What encoders are examined on: pairs with English, corpora to mine, a mixed pool of passages; samples of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from st_xling.data.phrasebook_spec import paired_languages
from st_xling.data.retrieval import Passages, RetrievalSet, load_retrieval_specs
from st_xling.data.sample import Sample
from st_xling.data.spec import is_phrasebook, parse_spec, split_spec
from st_xling.data.test_sets import BuccCorpus, read_bucc, sample_bucc
from st_xling.evaluation.tatoeba_data import ENGLISH, load_english_pairs, resolve_languages
from st_xling.utils.languages import canonical_language, is_code, pair_languages
from st_xling.utils.signature import sha8
from st_xling.utils.text import unpacked_name

#: Folders of a data folder that are read, each where it is there.
LAYOUT = ("tatoeba", "mining", "xquad_r", "retrieval")

PARTS = ("pairs", "mining", "pool")

#: Of the phrasebook: pairs, corpora and passages of each language.
PHRASES = {"pairs": 300, "mining": 400, "gold": 60, "passages": 60}

#: A sample has at least so many of each language: pairs, sentences to mine, queries.
LEAST = {"pairs": 50, "mining": 400, "queries": 25}

#: Pairs of each language whose English gets near-translations; sentences of each that are disturbed.
HARD_PAIRS, DISTURBED = 300, 200


@dataclass(frozen=True)
class ExamData:
    """The texts of an exam; each part may be empty.

    Attributes:
        pairs: Three-letter code → texts of the language, and their English.
        mining: Language pair → the corpora that are evaluated, and those that give the threshold.
        pool: Sets whose passages are searched as one.
        name: Of the data, for signatures.
        missing: ``(part, what is not examined, why)``.
        seed: Of samples and of what is generated.
        share: Of all items, those that are examined: about, for each language has at least :data:`LEAST`.
    """

    pairs: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    mining: Mapping[str, tuple[BuccCorpus, BuccCorpus]] = field(default_factory=dict)
    pool: Sequence[RetrievalSet] = ()
    name: str = "data"
    missing: Sequence[tuple[str, str, str]] = ()
    seed: int = 0
    share: float = 1.0

    @cached_property
    def sha8(self) -> dict[str, str]:
        """Of each part, eight hex digits that change with any text of it."""
        corpora = [[one.source, one.target, one.gold] for both in self.mining.values() for one in both]
        return {
            "pairs": sha8(self.pairs),
            "mining": sha8([list(self.mining), corpora]),
            "pool": sha8([part.sha256 for part in self.pool]),
        }

    def texts(self) -> Iterator[str]:
        """All that is embedded as it stands."""
        for columns in self.pairs.values():
            for column in columns:
                yield from column
        for both in self.mining.values():
            for corpus in both:
                yield from corpus.source
                yield from corpus.target
        for part in self.pool:
            yield from part.passages
            for queries in part.queries.values():
                yield from queries.values()

    @property
    def counts(self) -> dict[str, int]:
        """How many items of each kind there are."""
        return {
            "pairs": sum(len(source) for source, _ in self.pairs.values()),
            "sentences to mine": sum(len(one.source) for both in self.mining.values() for one in both),
            "questions": len({name for part in self.pool for name in part.relevant}),
            "passages": sum(len(part.passages) for part in self.pool),
        }

    def work(self) -> float:
        """What embedding all texts costs, in the unit of :func:`work`; those made of others by a rule of thumb."""
        generated = sum(
            work(column[:most])
            for columns in self.pairs.values()
            for column, most in zip(columns, (DISTURBED, HARD_PAIRS))
        )
        return work({*self.texts()}) + 2 * generated

    def only(self, parts: Collection[str]) -> ExamData:
        """Without the other parts, and without what is missing there."""
        empty: dict[str, Any] = {part: {} for part in PARTS if part not in parts}
        return replace(self, **empty, missing=[each for each in self.missing if each[0] in parts])

    def sampled(self, share: float) -> ExamData:
        """A seeded sample of all items, with at least :data:`LEAST` of each language where there are so many."""
        if share >= 1:
            return self

        def size(total: int, kind: str) -> int:
            return min(total, max(LEAST[kind], round(share * total)))

        pairs = {}
        for code, (source, target) in self.pairs.items():
            rows = Sample(size(len(source), "pairs"), self.seed).places(len(source), code)
            pairs[code] = ([source[row] for row in rows], [target[row] for row in rows])
        mining = {
            pair: (_fewer(one, size, self.seed), _fewer(other, size, self.seed))
            for pair, (one, other) in self.mining.items()
        }
        names = sorted({name for part in self.pool for name in part.relevant})
        chosen = {names[row] for row in Sample(size(len(names), "queries"), self.seed).places(len(names), "queries")}
        pool = [_smaller(part, chosen, share, self.seed) for part in self.pool]
        sample = replace(self, pairs=pairs, mining=mining, pool=pool, share=share)
        return self if sample.counts == self.counts else sample  # the least sample may be all there is


def work(texts: Iterable[str]) -> float:
    """What embedding texts costs: bytes of UTF-8, of which a token has about as many in any script, and some a text."""
    return float(sum(len(text.encode("utf-8", "surrogatepass")) + 20 for text in texts))


def _fewer(corpus: BuccCorpus, size: Callable[[int, str], int], seed: int) -> BuccCorpus:
    """A sample of a corpus, or all of it where so few sentences hold no translation."""
    try:
        return sample_bucc(corpus, size(len(corpus.source), "mining"), seed=seed)
    except ValueError:
        return corpus


def _smaller(part: RetrievalSet, names: set[str], share: float, seed: int) -> RetrievalSet:
    """These queries of a set, the passages that are relevant to them, and a share of the others."""
    queries = {code: {name: text for name, text in own.items() if name in names} for code, own in part.queries.items()}
    relevant = {name: grades for name, grades in part.relevant.items() if name in names}
    answers = {passage for grades in relevant.values() for passage in grades}
    others = [name for name in part.passages.ids if name not in answers]
    chosen = answers | {others[row] for row in Sample(round(share * len(others)), seed).places(len(others), "passages")}
    passages = Passages.in_memory([record for record in part.passages.records() if record[0] in chosen])
    return replace(part, passages=passages, queries=queries, relevant=relevant)


def load_exam_data(specs: Iterable[str] = (), languages: Iterable[str] | None = None, *, seed: int = 0) -> ExamData:
    """Reads what ``--data`` names.

    Args:
        specs: Each a folder that holds some of :data:`LAYOUT`; one of Tatoeba's, BUCC's or XQuAD-R's files;
            ``xx-en=PATH``; ``xx=DIR`` or ``xx=FILE.json``, passages as ``evaluate retrieval`` takes them;
            ``phrasebook:…``. Without any: the test sentences of the phrasebook.
        languages: Codes or groups, as :func:`~st_xling.evaluation.resolve_languages`; all by default.
        seed: Of samples and of what is generated.
    Raises:
        ValueError: Nothing to examine by, a spec of another form, a language pair twice, a negative seed; as the
            readers.
        FileNotFoundError: Nothing is there.
    """
    if seed < 0:
        raise ValueError(f"seed must be a whole number of 0 or more: got {seed}.")
    wanted = None if languages is None else {*resolve_languages(languages)}
    listed = list(specs) or ["phrasebook"]
    pair_specs: list[str] = []
    pool_specs: list[str] = []
    mining: dict[str, tuple[BuccCorpus, BuccCorpus]] = {}
    missing: list[tuple[str, str, str]] = []
    for spec in listed:
        path = Path(spec).expanduser()
        if is_phrasebook(spec):
            pairs, passages, corpora = _phrasebook(spec)
            pair_specs.append(pairs)
            pool_specs += passages
        elif path.is_dir() and (parts := [path / part for part in LAYOUT if (path / part).is_dir()]):
            pair_specs += [str(part) for part in parts if part.name == "tatoeba"]
            pool_specs += _pool_specs(path, missing)
            corpora = _corpora(path / "mining", missing)
        elif path.is_dir() and any(path.rglob("*-*.gold*")):
            corpora = _corpora(path, missing)
        elif path.is_dir() and (files := _passage_files(path)):
            corpora, pool_specs = {}, [*pool_specs, *files]
        else:
            corpora = {}
            (pool_specs if len(split_spec(spec).languages) == 1 else pair_specs).append(spec)
        if twice := sorted(mining.keys() & corpora.keys()):
            raise ValueError(f"expected each pair to mine once: got {', '.join(twice)} again in {spec!r}.")
        mining |= corpora
    pairs_read = load_english_pairs(pair_specs).pairs if pair_specs else {}
    pool = load_retrieval_specs(pool_specs) if pool_specs else []
    # What each part knows by language; English is in all of them.
    known = {
        ("pairs", "translation pairs"): set(pairs_read),
        ("mining", "corpora to mine"): {code for pair in mining for code in _codes(pair)},
        ("pool", "passages"): {canonical_language(part.language) for part in pool} - {*ENGLISH},
    }
    every = wanted or set().union(*known.values())
    for (part, what), codes in known.items():
        if lacking := sorted(every - codes):
            missing.append((part, f"{what}: {', '.join(lacking)}", "no data" if codes else "no data of any language"))
    if wanted is not None:
        pairs_read = {code: texts for code, texts in pairs_read.items() if code in wanted}
        mining = {pair: both for pair, both in mining.items() if {*_codes(pair)} <= wanted}
        pool = [part for part in pool if canonical_language(part.language) in {*wanted, "eng"}]
        requested = {*wanted, "eng"}
        pool = [
            replace(
                part, queries={code: own for code, own in part.queries.items() if canonical_language(code) in requested}
            )
            for part in pool
        ]
    if len(pool) == 1:
        missing.append(("pool", "the mixed pool", f"passages of {pool[0].language} alone; it takes two languages"))
        pool = []
    if not (pairs_read or mining or pool):
        raise ValueError(
            f"expected data to examine by: got none in {', '.join(listed)}"
            f"{'' if wanted is None else ' of ' + ', '.join(sorted(wanted))}; a folder has some of {', '.join(LAYOUT)}."
        )
    name = "+".join(dict.fromkeys(Path(split_spec(spec).location).name for spec in listed))
    return ExamData(pairs_read, mining, pool, name, missing, seed)


def _codes(pair: str) -> list[str]:
    """The languages of a pair, but for English."""
    return [code for code in map(canonical_language, filter(None, pair_languages(pair))) if code not in ENGLISH]


def english_free(pair: str) -> str:
    """A language pair by the languages that are not English.

    Example:
        >>> english_free("de-en"), english_free("zh-vi")
        ('deu', 'cmn-vie')
    """
    return "-".join(_codes(pair))


def _phrasebook(spec: str) -> tuple[str, list[str], dict[str, tuple[BuccCorpus, BuccCorpus]]]:
    """Specs of pairs and passages, and corpora to mine; ``?size=`` is of the pairs."""
    from st_xling.data.phrasebook import mining_phrases

    book = parse_spec(spec, {})
    size, seed = book.options.get("size", PHRASES["pairs"]), book.options.get("seed", 0)
    codes = [code for code in paired_languages(book) if code != "en"]
    share = min(1.0, size / PHRASES["pairs"])
    sizes = {name: max(10, round(share * number)) for name, number in PHRASES.items()}

    def corpus(code: str, split: str) -> BuccCorpus:
        texts = mining_phrases(code, "en", split=split, size=sizes["mining"], gold=sizes["gold"], seed=seed)
        ids = [[str(row) for row in range(len(side))] for side in (texts.source, texts.target)]
        gold = [(str(one), str(other)) for one, other in texts.gold]
        return BuccCorpus(ids[0], list(texts.source), ids[1], list(texts.target), gold, code, "en", split)

    languages = ",".join([*codes, "en"])
    passages = [
        f"{code}=phrasebook?size={sizes['passages']}&seed={seed}&queries={languages}" for code in [*codes, "en"]
    ]
    mining = {f"{code}-en": (corpus(code, "test"), corpus(code, "dev")) for code in codes}
    return f"phrasebook:{','.join(codes)}?size={size}&seed={seed}", passages, mining


def _corpora(folder: Path, missing: list[tuple[str, str, str]]) -> dict[str, tuple[BuccCorpus, BuccCorpus]]:
    """Test and training split of each pair, in BUCC's layout."""
    corpora: dict[str, tuple[BuccCorpus, BuccCorpus]] = {}
    for gold in sorted(folder.rglob("*-*.test.gold*")) if folder.is_dir() else ():
        pair, split, _ = unpacked_name(gold).split(".", 2)
        try:
            corpora[pair] = (
                read_bucc(gold.with_name(f"{pair}.{split}")),
                read_bucc(gold.with_name(f"{pair}.training")),
            )
        except FileNotFoundError:
            missing.append(("mining", f"mining {pair}", "no training split, which gives the threshold"))
    return corpora


def _passage_files(folder: Path) -> list[str]:
    """Specs of a folder's files that are named by languages, as XQuAD-R's are."""
    paths = sorted(folder.glob("*.json*"))
    return [f"{path.name.partition('.')[0]}={path}" for path in paths if is_code(path.name.partition(".")[0])]


def _pool_specs(folder: Path, missing: list[tuple[str, str, str]]) -> list[str]:
    """XQuAD-R's files; else of the retrieval sets those ``NAME-xx`` of one name that have most languages."""
    groups: dict[str, list[str]] = {}
    for path in sorted((folder / "retrieval").glob("*-*")):
        name, _, code = path.name.rpartition("-")
        groups.setdefault(name, []).append(f"{code}={path}")
    if files := _passage_files(folder / "xquad_r"):
        chosen, why = files, "the mixed pool is xquad_r's; name sets as xx=DIR to search those"
    else:
        most = max(groups, key=lambda name: len(groups[name]), default="")
        chosen, why = groups.pop(most, []), f"the mixed pool is {most}'s; name sets as xx=DIR to search those"
    missing += [("pool", f"passages of retrieval/{name}", why) for name in groups]
    return chosen
