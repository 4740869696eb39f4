"""Translation retrieval: Tatoeba's accuracy with English, P@N of any pairs of languages; and text with English.

Source:
    File list of facebookresearch/LASER, ``data/tatoeba/v1``; XTREME (Hu et al. 2020) for the 36; DAP (Li et al. 2023,
    section 4.4) for the 14 of XNLI and the 28 of the 36 that have 1000 pairs.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from st_xling.data import load_data_specs, load_pairs, read_tatoeba, sample_rows
from st_xling.data.read import labeled_pairs
from st_xling.data.spec import data_name, parse_spec, split_options
from st_xling.data.test_sets import hub_languages
from st_xling.evaluation.base import NO_MODEL, EvaluatorOptions, ModelUse, SignedEvaluator, sign_use
from st_xling.evaluation.results import EvaluationResult
from st_xling.utils.cosines import nearest, precision_at, weighted_f1
from st_xling.utils.languages import UNKNOWN, canonical_code, canonical_language, distinct_codes, pair_languages
from st_xling.utils.options import check_by_name
from st_xling.utils.signature import SignaturePart, sha8
from st_xling.utils.tables import Column, Row
from st_xling.utils.text import home_path

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

#: Language, or pair of languages, to texts that are aligned line by line.
AlignedTexts: TypeAlias = "Mapping[str, tuple[Sequence[str], Sequence[str]] | Dataset]"

_LASER112 = (
    "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp "
    "ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat "
    "kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron "
    "rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue zsm"
)
_FULL28 = (
    "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jpn kor mar nld pes por rus spa tgl tur urd vie"
)

#: Group name to its languages, in alphabetical order: three-letter codes, as in the files' names.
TATOEBA_GROUPS: dict[str, tuple[str, ...]] = {
    "xnli14": tuple(["ara", "bul", "cmn", "deu", "ell", "fra", "hin", "rus", "spa", "swh", "tha", "tur", "urd", "vie"]),
    "full28": tuple(_FULL28.split()),
    "xtreme36": tuple(sorted(f"{_FULL28} jav kat kaz mal swh tam tel tha".split())),
    "laser112": tuple(_LASER112.split()),
}


DIRECTIONS = ("source_to_target", "target_to_source", "mean")


def resolve_languages(names_or_group: str | Iterable[str]) -> tuple[str, ...]:
    """Return the three-letter codes for a group, a language, a comma-separated list of them, or an iterable of them.

    Args:
        names_or_group: ``"xtreme36"``, ``"de"``, ``"de,fra"``, ``["xnli14", "et"]``.

    Returns:
        Codes in the order given, each once.

    Raises:
        ValueError: On an empty list, English (the other side of every pair) or unknown names.

    Example:
        >>> resolve_languages("de,sw,deu")
        ('deu', 'swh')
    """
    parts = names_or_group.split(",") if isinstance(names_or_group, str) else list(names_or_group)
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise ValueError("languages must name at least one language or group: got none; pass e.g. 'de' or 'xtreme36'.")
    codes: dict[str, None] = {}
    for name in names:
        members = TATOEBA_GROUPS.get(name.lower(), (canonical_language(name),))
        if members == ("eng",):
            raise ValueError(f"languages must be those that English is paired with: got {name!r}; leave it out.")
        if not {*members} <= {*TATOEBA_GROUPS["laser112"]}:
            close = difflib.get_close_matches(name, [*TATOEBA_GROUPS, *TATOEBA_GROUPS["laser112"]], n=2)
            meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
            raise ValueError(
                f"languages must be among the 112 of Tatoeba's test sets, such as de or deu, or a group of them "
                f"({', '.join(TATOEBA_GROUPS)}): got {name!r}{meant}"
            )
        codes.update(dict.fromkeys(members))
    return tuple(codes)


def aligned_pairs(pairs: AlignedTexts) -> dict[str, tuple[list[str], list[str]]]:
    """Return canonical code → two lists of equal length, in alphabetical order; all faults in one error."""
    check_by_name("pairs", pairs, "pairs={'de': dataset}, or the two lists of texts in place of the data set")
    aligned: dict[str, tuple[list[str], list[str]]] = {}
    languages = distinct_codes(pairs)
    faults: list[str] = []
    for code, sides in pairs.items():
        if languages[code] in aligned:
            faults.append(f"{code} and another code both mean {languages[code]}; keep one.")
        if not isinstance(sides, (tuple, list)):
            dataset = labeled_pairs({f"{code}-en": sides})[f"{code}-en"]
            sides = (dataset["source"], dataset["target"])
        if len(sides) != 2 or any(isinstance(side, str) for side in sides):
            raise ValueError(
                f"pairs must hold two lists of texts for {code}, aligned line by line: got a {type(sides).__name__} of "
                f"{len(sides)}."
            )
        source, target = sides
        aligned[languages[code]] = (list(source), list(target))
        if not len(source) == len(target) > 0:
            faults.append(f"{code} has {len(source)} and {len(target)} texts; align them line by line.")
    if faults or not pairs:
        raise ValueError(f"pairs must hold aligned texts of at least one language: {' '.join(faults) or 'got none.'}")
    return dict(sorted(aligned.items()))


def count_repeats(pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]], name: str) -> dict[str, int]:
    """Count the sentences of each language, of both sides, that repeat an earlier one; a warning names them.

    A search finds only one of equal sentences, so no encoder is right for the others.

    Args:
        pairs: Language to aligned texts.
        name: Name of the data, for the warning.

    Returns:
        Language → repeated sentences, only where there are any.

    Example:
        >>> count_repeats({"deu": (["Ja.", "Nein.", "Ja."], ["Yes.", "No.", "Yes."]), "fra": (["Oui."], ["Yes."])}, "x")
        {'deu': 2}
    """
    repeats: dict[str, int] = {}
    for code, sides in pairs.items():
        count = sum(len(side) - len(set(side)) for side in sides)
        if count:
            repeats[code] = count
    if repeats:
        listed = ", ".join(f"{code} {count:,}" for code, count in repeats.items())
        logger.warning("%s: repeated sentences, of which a search finds only one: %s", name, listed)
    return repeats


class _PairsEvaluator(SignedEvaluator):
    """An evaluator of aligned texts.

    Attributes:
        pairs: Language or pair of languages → both sides.
        languages: The same → languages of both sides; ``None``: not known, or several.
        repeats: The same → sentences that repeat an earlier one of their side, which no search can find.
    """

    languages: dict[str, tuple[str | None, str | None]]

    def __init__(self, pairs: AlignedTexts, primary: str, **options: Unpack[EvaluatorOptions]) -> None:
        super().__init__(primary, **options)
        self.pairs = aligned_pairs(pairs)
        self.repeats = count_repeats(self.pairs, self.data_name)

    def sign_pairs(self, use: ModelUse, **parts: SignaturePart) -> str:
        """Return the signature; ``parts`` come first."""
        return sign_use(
            self.task,
            **parts,
            direction="both",
            ties="index",
            repeats=sum(self.repeats.values()) or None,
            data=f"{self.data_name}@{sha8(self.pairs)}",
            use=use,
        )

    def columns(self) -> tuple[list[list[str]], list[str | None]]:
        """Return the source and the target texts of each pair, one after the other, and their languages."""
        texts: list[list[str]] = []
        languages: list[str | None] = []
        for pair, sides in self.pairs.items():
            texts += sides
            languages += self.languages[pair]
        return texts, languages

    def measure(self, model: SentenceTransformer) -> EvaluationResult:
        """Encode, match both ways and average."""
        texts, languages = self.columns()
        columns = self.encode_columns(model, texts, languages)
        sides = zip(columns[::2], columns[1::2])
        vectors = dict(zip(self.pairs, sides))
        return self.measure_vectors(vectors, use=ModelUse.of(model, languages))

    def measure_vectors(
        self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]], *, use: ModelUse = NO_MODEL
    ) -> EvaluationResult:
        """Match vectors and average.

        Args:
            vectors: Embeddings of both sides of each of ``pairs``. *Shape of each:* ``(pairs, dim)``
            use: How the model made them, for the signature; by default nothing is known of it.
        """
        raise NotImplementedError

    def matched(
        self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]], directions: Sequence[str]
    ) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], dict[str, float]]:
        """Return the nearest sentences of each language, both ways; and the metrics that both evaluators have."""
        matches: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        metrics: dict[str, float] = {f"{name}_repeats": count for name, count in self.repeats.items()}
        for name, (source, target) in vectors.items():
            try:
                matches[name] = nearest(source, target), nearest(target, source)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            for direction, indices in zip(directions, matches[name]):
                metrics[f"{name}_{direction}_weighted_f1"] = weighted_f1(indices)
        return matches, metrics

    def row(self, name: str, values: Sequence[float]) -> Row:
        """Return the row of a language or a pair of languages, with the number of its sentences."""
        arguments = {"sentences": len(self.pairs[name][0])}
        if name in self.repeats:
            arguments["repeats"] = self.repeats[name]
        return Row(name, [*values], arguments=arguments)


class TatoebaEvaluator(_PairsEvaluator):
    """Translation retrieval accuracy (P@1) per language, in both directions, with macro averages.

    A hit is sentence ``i`` retrieving sentence ``i`` by cosine among all sentences of its language pair; equal cosines
    go to the lowest index. Each distinct text is encoded once for all languages, so equal texts have equal vectors.

    Args:
        pairs: Language code to aligned texts, the language first and English second: two lists, or a ``Dataset`` with
            columns ``source`` and ``target``. Known two-letter codes become three-letter ones.
        options: Options of every evaluator, such as ``batch_size``: see
            :class:`~st_xling.evaluation.base.SignedEvaluator`.

    Returns:
        From a call, fractions in [0, 1]: ``{name}_{language}_to_en_accuracy`` and ``..._from_en_accuracy``; for each
        of :data:`~st_xling.evaluation.TATOEBA_GROUPS` whose languages are all present and, without a label, for all
        languages also ``..._mean_accuracy``. ``{name}_mean_accuracy`` is the primary metric.
        ``{name}_{language}_to_en_weighted_f1`` and ``..._from_en_weighted_f1`` are mteb's measure, see
        :func:`~st_xling.evaluation.weighted_f1` and :func:`~st_xling.evaluation.to_mteb`. Where sentences repeat
        others of their side, ``{name}_{language}_repeats`` counts them.

    Raises:
        ValueError: On empty or misaligned pairs (all faults at once), or embeddings that are zero or
            not finite.
    Source:
        Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings"; groups: see
        :mod:`st_xling.evaluation.tatoeba`.

    Example:
        >>> evaluator = TatoebaEvaluator({"de": (["Hallo!", "Danke."], ["Hello!", "Thanks."])})
        >>> evaluator.primary_metric
        'tatoeba_mean_accuracy'
    """

    task = "tatoeba"
    title = "Translation Retrieval"

    def __init__(self, pairs: AlignedTexts, **options: Unpack[EvaluatorOptions]) -> None:
        super().__init__(pairs, "mean_accuracy", **options)
        self.groups = {name: members for name, members in TATOEBA_GROUPS.items() if {*members} <= {*self.pairs}}
        self.languages = {code: (code, "eng") for code in self.pairs}

    def sign(self, use: ModelUse) -> str:
        """Return the signature; its eight hex digits identify languages, texts and order."""
        group = next((name for name, members in TATOEBA_GROUPS.items() if members == (*self.pairs,)), None)
        return self.sign_pairs(use, languages=group or self.pairs)

    def measure_vectors(
        self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]], *, use: ModelUse = NO_MODEL
    ) -> EvaluationResult:
        matches, metrics = self.matched(vectors, ("to_en", "from_en"))
        accuracies: dict[str, tuple[float, float]] = {}
        rows: list[Row] = []
        for language, (to_indices, from_indices) in matches.items():
            to_en = _accuracy(to_indices)
            from_en = _accuracy(from_indices)
            accuracies[language] = (to_en, from_en)
            metrics[f"{language}_to_en_accuracy"] = to_en
            metrics[f"{language}_from_en_accuracy"] = from_en
            rows.append(self.row(language, [to_en, from_en, (to_en + from_en) / 2]))

        # The group of all languages has no name.
        for group, members in {**self.groups, "": [*self.pairs]}.items():
            to_en = sum(accuracies[member][0] for member in members) / len(members)
            from_en = sum(accuracies[member][1] for member in members) / len(members)
            averages = {"to_en": to_en, "from_en": from_en, "mean": (to_en + from_en) / 2}
            for direction, value in averages.items():
                metrics[f"{group}_{direction}_accuracy".lstrip("_")] = value
            rows.append(Row(group or "all", [*averages.values()], average=True))
        columns = [
            Column("to English", "accuracy", picture=True),
            Column("from English", "accuracy", picture=True),
            Column("mean"),
        ]
        return EvaluationResult(metrics, columns, rows, self.sign(use))


def _accuracy(indices: np.ndarray) -> float:
    """Return the share of sentences whose nearest sentence is the one of the same index."""
    return float(np.mean(indices == np.arange(len(indices))))


class PrecisionEvaluator(_PairsEvaluator):
    """P@N: the share of translations among the N nearest sentences by cosine, both ways, with macro averages.

    Args:
        pairs: Name, such as ``"zh-vi"``, to aligned texts: two lists, or a ``Dataset`` with columns ``source`` and
            ``target``. Its columns of languages, else the name, say what languages they are: a model centered by
            language (:class:`~st_xling.models.normalization.Centering`) encodes each side by the route of its language.
        at: Values of N.
        options: Options of every evaluator, such as ``batch_size``: see
            :class:`~st_xling.evaluation.base.SignedEvaluator`.

    Returns:
        From a call, fractions in [0, 1]: ``{name}_{pair}_source_to_target_p@1``, ``..._target_to_source_p@1`` and
        ``..._mean_p@1``; the same without a pair, averaged over pairs. ``{name}_mean_p@{first N}`` is the primary one.
        ``{name}_{pair}_source_to_target_weighted_f1`` and the reverse are what mteb reports of bitext, see
        :func:`~st_xling.evaluation.weighted_f1` and :func:`~st_xling.evaluation.to_mteb`.

    Raises:
        ValueError: On empty or misaligned pairs (all faults at once), an N below 1, or embeddings that are zero or not
            finite.
    Source:
        Huang et al. 2023 (mBERT-SF), section 4.3.

    Example:
        >>> PrecisionEvaluator({"zh-vi": (["你好。"], ["Xin chào."])}).primary_metric
        'precision_mean_p@1'
    """

    task = "precision"
    title = "Translation Matching"

    def __init__(self, pairs: AlignedTexts, *, at: Sequence[int] = (1, 5), **options: Unpack[EvaluatorOptions]) -> None:
        if not at or min(at) < 1:
            raise ValueError(f"at must hold numbers of candidates, 1 or more: got {tuple(at)}.")
        self.at = tuple(at)
        self.primary_measure = f"mean_p@{self.at[0]}"
        super().__init__(pairs, self.primary_measure, **options)
        self.languages = {name: _side_languages(code, pairs[code]) for code, name in distinct_codes(pairs).items()}

    def sign(self, use: ModelUse) -> str:
        """Return the signature; its eight hex digits identify pairs, texts and order."""
        return self.sign_pairs(use, at=self.at, pairs=self.pairs)

    def measure_vectors(
        self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]], *, use: ModelUse = NO_MODEL
    ) -> EvaluationResult:
        _, metrics = self.matched(vectors, DIRECTIONS[:2])
        # Pair → P@N forward and backward of the first N, of the second, and so on: a value for each column.
        values: dict[str, list[float]] = {}
        for pair, (source, target) in vectors.items():
            forward, backward = precision_at(source, target, at=self.at)
            values[pair] = []
            for n in self.at:
                values[pair] += [forward[n], backward[n]]
        means = [sum(column) / len(column) for column in zip(*values.values())]

        for pair, row in values.items():
            metrics |= self._name_precisions(f"{pair}_", row)
        metrics |= self._name_precisions("", means)
        columns: list[Column] = []
        for n in self.at:
            columns += [Column(f"P@{n} {arrow}", f"precision_at_{n}", picture=n == self.at[0]) for arrow in "→←"]
        rows = [self.row(pair, row) for pair, row in values.items()]
        if len(rows) > 1:
            rows.append(Row("all", [*means], average=True))
        return EvaluationResult(metrics, columns, rows, self.sign(use))

    def _name_precisions(self, prefix: str, row: Sequence[float]) -> dict[str, float]:
        """Return the metrics of a row of the table, with the mean of both directions."""
        metrics: dict[str, float] = {}
        for n, forward, backward in zip(self.at, row[::2], row[1::2]):
            both_ways = (forward, backward, (forward + backward) / 2)
            for direction, value in zip(DIRECTIONS, both_ways):
                metrics[f"{prefix}{direction}_p@{n}"] = value
        return metrics


def _side_languages(name: str, pairs: Any) -> tuple[str | None, str | None]:
    """Return the languages of both sides; ``None``: not known, or several."""
    # Lists have no columns of languages: then the name, such as zh-vi, names them.
    if not {"source_language", "target_language"} <= set(getattr(pairs, "column_names", None) or ()):
        return pair_languages(name)
    source_codes = pairs.unique("source_language")
    target_codes = pairs.unique("target_language")
    source = source_codes[0] if len(source_codes) == 1 else None
    target = target_codes[0] if len(target_codes) == 1 else None
    return source, target


def load_english_pairs(
    specs: Iterable[str | Path], languages: str | Iterable[str] | None = None, *, skip_bad_lines: bool = False
) -> tuple[dict[str, tuple[list[str], list[str]]], str]:
    """Read test text.

    Args:
        specs: Each a folder of ``tatoeba.xxx-eng.xxx`` files, or ``tatoeba``, which reads them from the Hub, either
            also with ``?size=500&seed=0``, a seeded sample of each language; or what
            :func:`~st_xling.data.load_data_specs` takes, such as ``de-en=test.tsv`` or ``phrasebook:de,fr``, of which
            the test split is read where it names none.
        languages: Group, code or several, as :func:`~st_xling.evaluation.resolve_languages`; all by default.
        skip_bad_lines: Drop faulty lines of pair files, with a warning; never those of a Tatoeba set.

    Returns:
        Three-letter code → texts in that language, and their English; and the name of the data, for a signature:
        ``tatoeba`` (``tatoeba-500-seed0`` for a sample), ``phrasebook-test``, or the files' names.

    Raises:
        ValueError: Text of two languages of which neither is English, or without known languages; a language that
            comes twice, or that is in ``languages`` and not in the text.
        FileNotFoundError, ValueError: As ``read_tatoeba`` and ``load_data_specs``.
    """
    names = [str(spec) for spec in specs]
    wanted = None if languages is None else resolve_languages(languages)
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    for spec in names:
        if _is_tatoeba(spec):
            # One folder: its own reader selects the languages, and names those it lacks.
            languages_to_read = wanted if len(names) == 1 else None
            sets = _read_tatoeba_spec(spec, languages_to_read)
        else:
            datasets = load_data_specs([spec], split="test", skip_bad_lines=skip_bad_lines, identify=True)
            sets = dict(_put_english_second(name, rows) for name, rows in datasets.items())
        earlier_codes = set(map(canonical_code, pairs))
        twice = [code for code in map(canonical_code, sets) if code in earlier_codes]
        if twice:
            raise ValueError(f"expected one test set a language: got another for {', '.join(twice)} in {spec!r}.")
        pairs |= sets

    pairs = {name: pairs[code] for code, name in distinct_codes(pairs).items()}
    if wanted is not None:
        pairs = _select_languages(pairs, wanted)
    if not all(map(_is_benchmark, names)):
        return pairs, data_name(names, split="test")
    # A sample is not the benchmark, and must not be published under its name.
    samples = {parse_spec(spec, {}).sample for spec in names}
    sample_names = [f"tatoeba-{size}-seed{seed}" for size, seed in samples if size is not None]
    return pairs, "+".join(sorted(sample_names)) or "tatoeba"


def _read_tatoeba_spec(spec: str, languages: Sequence[str] | None) -> dict[str, tuple[list[str], list[str]]]:
    """Read Tatoeba's files, or those on the Hub, or a sample of each language."""
    parsed = parse_spec(spec, {}, forms="FOLDER or FOLDER?size=500&seed=0")
    if parsed.path.is_dir():
        datasets = read_tatoeba(parsed.path, languages)
    else:
        codes = languages or hub_languages("tatoeba")
        datasets = {code: load_pairs("tatoeba", source_language=code, target_language="eng") for code in codes}
    size, seed = parsed.sample
    sets: dict[str, tuple[list[str], list[str]]] = {}
    for code, dataset in datasets.items():
        rows = sample_rows(dataset, size, seed=seed, where=f"{spec} ({code})")
        sets[code] = (rows["source"][:], rows["target"][:])
    return sets


def _select_languages(
    pairs: Mapping[str, tuple[list[str], list[str]]], wanted: Sequence[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the texts of the wanted languages, in their order; one language may have several scripts."""
    absent = [code for code in wanted if code not in map(canonical_language, pairs)]
    if absent:
        raise ValueError(f"expected languages out of {', '.join(pairs)}: got {', '.join(absent)}; leave these out.")
    selected: dict[str, tuple[list[str], list[str]]] = {}
    for language in wanted:
        selected |= {code: sides for code, sides in pairs.items() if canonical_language(code) == language}
    return selected


def _is_benchmark(spec: str) -> bool:
    """Return whether a spec names Tatoeba itself: the one on the Hub, or files in a folder of its name.

    Text of one's own may be in files like LASER's, and must not be published as the benchmark.
    """
    if not _is_tatoeba(spec):
        return False
    path = parse_spec(spec, {}).path
    return not path.is_dir() or "tatoeba" in map(str.lower, path.resolve().parts)


def _is_tatoeba(spec: str) -> bool:
    """Return whether a spec, with options or without, names a folder of Tatoeba's files, or those on the Hub."""
    location, _ = split_options(spec)
    path = home_path(location)
    return any(path.glob("tatoeba.*-eng.*")) if path.is_dir() else location == "tatoeba"


def _put_english_second(name: str, rows: Dataset) -> tuple[str, tuple[list[str], list[str]]]:
    """Return the code of the language that is paired with English, its texts and the English ones."""
    codes_of_sides = [rows.unique(f"{side}_language") for side in ("source", "target")]
    shown = "-".join("/".join(codes) for codes in codes_of_sides)
    codes = [codes[0] for codes in codes_of_sides if len(codes) == 1]
    english = [canonical_language(code) == "eng" for code in codes]
    if len(codes) != 2 or UNKNOWN in codes or sum(english) != 1:
        raise ValueError(
            f"expected one language with English, named as in de-en=PATH: {name} is {shown}; other pairs are for "
            "st-xling evaluate precision."
        )
    source = rows["source"][:]
    target = rows["target"][:]
    return (codes[1], (target, source)) if english[0] else (codes[0], (source, target))
