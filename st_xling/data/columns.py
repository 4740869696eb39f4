"""Find the columns of the sentences: by the names of a header, of keys or of a schema, and by languages."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.check import FaultLog
from st_xling.data.pairs import LANGUAGE_COLUMNS
from st_xling.utils.languages import (
    UNKNOWN,
    canonical_language,
    hub_language,
    is_code,
    is_evident_code,
    match_language,
    named_language,
    resolve_pair,
)
from st_xling.utils.text import ParallelTextError, is_scored_header

logger = logging.getLogger(__name__)

Columns = Sequence[int] | Sequence[str]
"""A choice of columns: source, target and perhaps hard negatives; positions counted from 0, or names."""

LanguagePair = tuple["str | None", "str | None"]
"""Languages of source and target, or ``None`` where unknown."""

NumberedRow = tuple[int, "list[str] | Mapping[str, Any]"]
"""Number of a line or row, counted from 1, and its cells."""

PARALLEL_NAMES = (
    *(("source", "target"), ("src", "tgt"), ("sentence1", "sentence2"), ("anchor", "positive")),
    *(("source text", "target text"), ("source sentence", "target sentence"), ("src text", "tgt text")),
)
"""Names of columns taken as source and target, in this order of preference; underscores count as spaces."""

QUERY_NAMES = (*product(("query", "question", "anchor"), ("passage", "positive", "answer")), *PARALLEL_NAMES)
"""The same of queries and the passages that answer them."""


def _read_local_names() -> tuple[tuple[str, str], ...]:
    """Read ``header_words.tsv``: a line for each language, with its code and pairs of names ``source/target``."""
    text = Path(__file__).with_name("header_words.tsv").read_text(encoding="utf-8")
    names = []
    for line in text.splitlines()[1:]:
        _, *pairs = line.split("\t")
        for pair in pairs:
            source, target = pair.split("/")
            names.append((source, target))
    return tuple(names)


LOCAL_NAMES = _read_local_names()
"""Names of source and target in other languages, such as Quelle and Ziel, and names that are less usual."""

QUESTION_NAMES = (
    *(("frage", "antwort"), ("question", "réponse"), ("pregunta", "respuesta"), ("domanda", "risposta")),
    *(("pergunta", "resposta"), ("vraag", "antwoord"), ("pytanie", "odpowiedź"), ("вопрос", "ответ")),
    *(("питання", "відповідь"), ("soru", "cevap"), ("fråga", "svar"), ("kysymys", "vastaus"), ("سؤال", "جواب")),
    *(("السؤال", "الجواب"), ("السؤال", "الإجابة"), ("प्रश्न", "उत्तर"), ("คำถาม", "คำตอบ"), ("câu hỏi", "câu trả lời")),
    *(
        ("pertanyaan", "jawaban"),
        ("问题", "答案"),
        ("问题", "回答"),
        ("問題", "答案"),
        ("質問", "回答"),
        ("질문", "답변"),
    ),
)
"""Names of queries and answers in other languages."""

LABEL_NAMES = (
    *("label", "labels", "gold label", "is duplicate", "is paraphrase", "is translation", "is relevant", "is positive"),
    *("is match", "match", "relevant", "relevance", "rel", "grade"),
)
"""Names of columns that say whether the two texts of a row belong together; underscores count as spaces."""

_NEGATIVE = re.compile(r"negative(?:_(\d+))?", re.IGNORECASE)
# Words next to a language in a name: "German text", "Quelle (de)".
_NO_LANGUAGES = {"text", "texts", "sentence", "sentences", "segment", "src", "tgt", "texte", "texto", "testo", "tekst"}
_WORDS_OF_NAMES = " ".join(chain(*PARALLEL_NAMES, *LOCAL_NAMES)).split()
_NO_LANGUAGES |= {word for word in _WORDS_OF_NAMES if not is_code(word)}
_COLUMN_WORDS = re.compile(r"[\"'(\[]*[^\W_]+(?:[\W_]+[^\W_]+){0,2}[\"'):\]]*")  # up to three, that may name a column


class Layout(NamedTuple):
    """Columns of the sentences of a table.

    Attributes:
        keys: Names or positions of the columns of source and target, then of hard negatives.
        languages: Languages of source and target in rows that do not name theirs.
        language_keys: Columns in which rows name them; ``None`` where there is none, or the caller chose the language.
        nested: Whether source and target are keys of a column ``translation`` of ``{"de": ..., "en": ...}``.
        header: First row of a delimited file, if it names the columns.
        width: Number of cells in each row of a delimited file; ``None``: at least as many as ``keys`` reach.
        escaped: Whether cells are escaped, as in files of scored pairs.
        label_key: Column that says whether the two texts belong together; ``None`` where there is none, or the caller
            chose the columns.
    """

    keys: tuple[Any, ...] = ("source", "target")
    languages: tuple[str, ...] = (UNKNOWN, UNKNOWN)
    language_keys: tuple[Any, ...] = (None, None)
    nested: bool = False
    header: list[str] | None = None
    width: int | None = None
    escaped: bool = False
    label_key: Any = None

    @property
    def negatives(self) -> int:
        """Number of hard negatives of each row."""
        return len(self.keys) - 2

    @property
    def least(self) -> int:
        """Number of cells that a row must have."""
        return max(self.keys) + 1 if isinstance(self.keys[0], int) else 0

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that are read."""
        keys = ("translation", *self.keys[2:]) if self.nested else self.keys
        return [*keys, *filter(None, (*self.language_keys, self.label_key))]


def negative_columns(names: Iterable[str]) -> list[str]:
    """Return those of the names that are hard negatives', in order: ``negative``, ``negative_1``, ``negative_2``, …

    Example:
        >>> negative_columns(["negative_10", "passage", "negative_2"])
        ['negative_2', 'negative_10']
    """
    number_of: dict[str, int] = {}
    for name in names:
        match = _NEGATIVE.fullmatch(name.strip())
        if match is not None:
            number_of[name] = int(match[1] or 0)
    return sorted(number_of, key=lambda name: number_of[name])


def _spelled(name: str) -> str:
    """Return the name of a column as names are compared: in lower case, with spaces for underscores."""
    return name.strip().lower().replace("_", " ")


@dataclass(frozen=True)
class ColumnChoice:
    """How the columns of source and target are chosen.

    Attributes:
        languages: The languages that the caller chose; they come before those of any name.
        columns: The columns to read, perhaps with those of negatives behind them; ``None``: see
            :func:`choose_columns`.
        paired_names: Pairs of names, in order of preference.
    """

    languages: LanguagePair = (None, None)
    columns: Columns | None = None
    paired_names: Sequence[tuple[str, str]] = PARALLEL_NAMES


def choose_columns(
    names: Sequence[str],
    where: str,
    choice: ColumnChoice,
    *,
    named: LanguagePair = (None, None),
    translation_keys: Sequence[str] = (),
) -> Layout | None:
    """Choose the columns to read, the first that fit; ``None`` if none do.

    These are the ``columns`` that are chosen; a pair of ``paired_names``; ``english`` and ``non_english``, as the
    parallel sets of sentence-transformers have them; columns that are called by the two languages; the only two
    columns, if both are languages; then the languages as keys of a column ``translation``; last, source and target in
    other languages (``Quelle`` and ``Ziel``). Languages may be named in any language (``Deutsch``, ``alemán``). Upper
    and lower case are the same.

    Args:
        names: The names of all columns.
        where: What is read; a warning names columns that are not.
        choice: How they are chosen; its columns are names.
        named: The languages that the caller chose, or else those in the name of the file.
        translation_keys: The keys of a ``translation`` column, if there is one.
    """
    columns = choice.columns
    if columns is None:
        pair = _find_pair(names, choice, named, translation_keys)
    else:
        pair = _chosen_pair(columns, names, translation_keys)
    if pair is None:
        return None

    keys = pair.keys
    if columns is None and not pair.nested:
        keys = (*keys, *negative_columns(names))
    stated = pair.languages
    if pair.nested or all(map(_column_language, keys[:2])):
        stated = (_column_language(keys[0]) or keys[0], _column_language(keys[1]) or keys[1])
    # A column chosen by name states its language better than the name of the file.
    by_preference = [choice.languages, named, stated] if columns is None else [choice.languages, stated, named]
    languages = tuple(next(filter(None, codes), UNKNOWN) for codes in zip(*by_preference))
    language_keys = tuple(
        name if code is None and name in names else None for name, code in zip(LANGUAGE_COLUMNS, choice.languages)
    )
    # The texts of a row with the label 0 do not belong together; columns that are chosen are read as they are.
    is_chosen_or_scored = columns is not None or is_scored_header(names)
    label = None if is_chosen_or_scored else find_label(names)
    layout = Layout(keys, languages, language_keys, pair.nested, label_key=label)

    ignored = [name for name in names if name not in (*layout.column_names, *LANGUAGE_COLUMNS)]
    if ignored and not is_chosen_or_scored:
        read = ", ".join(layout.keys)
        logger.warning("%s: columns read: %s; no objective sees the others: %s", where, read, ", ".join(ignored))
    return layout


class _ColumnPair(NamedTuple):
    """Columns of source and target, or keys of ``translation``.

    Attributes:
        keys: Their names; of chosen columns, those of hard negatives behind them.
        nested: Whether they are keys of a column ``translation``.
        languages: Languages that they are known to have, where their names are no languages.
    """

    keys: tuple[Any, ...]
    nested: bool = False
    languages: LanguagePair = (None, None)


def _chosen_pair(columns: Columns, names: Sequence[str], translation_keys: Sequence[str]) -> _ColumnPair | None:
    """Return the columns that the caller chose by name; ``None`` if one of them is not there."""
    if set(columns) <= set(names):
        return _ColumnPair(tuple(columns))
    if set(columns) <= set(translation_keys):
        return _ColumnPair(tuple(columns), nested=True)
    return None


def _find_pair(
    names: Sequence[str], choice: ColumnChoice, named: LanguagePair, translation_keys: Sequence[str]
) -> _ColumnPair | None:
    """Return the first columns of source and target that fit, see :func:`choose_columns`; ``None`` if none do."""
    by_spelling = {_spelled(name).removesuffix(":"): name for name in reversed(names)}
    for source, target in choice.paired_names:
        if {source, target} <= by_spelling.keys():
            return _ColumnPair((by_spelling[source], by_spelling[target]))
    if {"english", "non english"} <= by_spelling.keys():
        return _english_pair(by_spelling, named)
    columns = _language_pair(names, named)
    if columns is not None:
        return _ColumnPair(columns)
    keys = _language_pair(translation_keys, named, nested=True)
    if keys is not None:
        return _ColumnPair(keys, nested=True)
    columns = _local_pair(by_spelling, choice.paired_names)
    return None if columns is None else _ColumnPair(columns)


def check_unique(read: Iterable[str], names: Sequence[str], where: str) -> None:
    """Raise ``ParallelTextError`` if a column that is read is there twice, as it is unknown which one is meant."""
    for name in read:
        if names.count(name) > 1:
            raise ParallelTextError(
                f"{where}: {names.count(name)} columns are called {name!r}, and which one is meant is unknown; "
                "rename or remove one, or choose the columns of CSV and TSV by number: ?columns=0,1"
            )


def _local_pair(by_spelling: Mapping[str, str], paired_names: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Return source and target, or query and passage, by their names in other languages."""
    local_names = LOCAL_NAMES
    if paired_names is QUERY_NAMES:
        local_names = (*QUESTION_NAMES, *LOCAL_NAMES)
    for source, target in local_names:
        # A table of sentences has columns that name their languages, too.
        is_only_pair = len(by_spelling) == 2
        if {source, target} <= by_spelling.keys() and (is_only_pair or source != "source language"):
            return by_spelling[source], by_spelling[target]
    return None


def find_label(names: Iterable[str]) -> str | None:
    """Return the column that says whether the texts of a row belong together; ``None`` where there is none."""
    by_spelling = {_spelled(name): name for name in names}
    return next((by_spelling[name] for name in LABEL_NAMES if name in by_spelling), None)


def _english_pair(by_spelling: Mapping[str, str], named: LanguagePair) -> _ColumnPair:
    """Return ``english`` and ``non_english``, English second, unless the known languages say otherwise."""
    source, target = named
    source_is_english = source is not None and canonical_language(source) == "eng"
    target_is_english = target is not None and canonical_language(target) == "eng"
    other = None
    if target is not None and not target_is_english:
        other = target
    if source is not None and not source_is_english:
        other = source
    is_english_first = source_is_english or (target is not None and not target_is_english)
    if is_english_first:
        return _ColumnPair((by_spelling["english"], by_spelling["non english"]), languages=("en", other))
    return _ColumnPair((by_spelling["non english"], by_spelling["english"]), languages=(other, "en"))


def _language_pair(names: Sequence[str], languages: LanguagePair, nested: bool = False) -> tuple[str, str] | None:
    """Return the columns of source and target whose names are languages; ``None`` where they leave a choice.

    Args:
        names: Names of columns, or keys of ``translation``.
        languages: Languages of source and target.
        nested: Whether the names are keys of ``translation``, each of which is a language.
    """
    by_language = {_column_language(name) or name.strip(): name for name in reversed(names)}
    source = _find_language(languages[0], by_language)
    target = _find_language(languages[1], by_language)
    if source and target and source != target:
        return source, target

    # Codes only where there are no other columns: "id" may be a row number, "is" a flag.
    if len(names) > 2 and not nested:
        names = [name for name in names if _column_language(name) and not is_evident_code(name.strip())]
    if len(names) != 2 or not (nested or all(map(_column_language, names))):
        return None
    first, second = names
    # A dictionary may begin with the two names of a language: Deutsch, German.
    if not nested and _same_language(first, second):
        return None
    if source == second or target == first:
        first, second = second, first
    # A chosen language that is neither column's leaves no choice.
    fits_source = languages[0] is None or source == first
    fits_target = languages[1] is None or target == second
    return (first, second) if fits_source and fits_target else None


def _find_language(language: str | None, by_language: Mapping[str, str]) -> str | None:
    """Return the column of a language; ``None`` if there is none."""
    if language is None:
        return None
    code = match_language(language, by_language)
    return None if code is None else by_language.get(code)


def _same_language(first: str, second: str) -> bool:
    """Return whether two names of columns name one language."""
    languages = [_column_language(name) or name for name in (first, second)]
    return canonical_language(languages[0]) == canonical_language(languages[1])


def _column_language(name: str) -> str | None:
    """Return the language that a column is called by: ``de``, ``German``, ``Chinese (Simplified)``, ``de_text``."""
    if is_evident_code(name):
        return name
    text = _spelled(name)
    without_note = re.sub(r"\s*\(.*\)$|:$", "", text)
    code = named_language(without_note)
    if code:
        return hub_language(code)
    words = [word for word in re.findall(r"\w+", text) if word not in _NO_LANGUAGES]
    if len(words) != 1 or words[0] == text:
        return None
    code = words[0] if is_evident_code(words[0]) else named_language(words[0])
    return hub_language(code) if code else None


def column_order_warning(names: Sequence[str]) -> str:
    """Return a warning if other columns come before the two that are called source and target, else ``""``.

    Losses read the columns of a data set in their order, whatever they are called.

    Args:
        names: Columns of a data set for training.

    Example:
        >>> column_order_warning(["sent_id", "source", "target"]).partition(";")[0]
        'losses read columns in their order: sent_id first, then source'
    """
    by_spelling = {_spelled(name): name for name in names}
    texts = [name for name in names if not name.endswith("_language") and name not in ("label", "labels", "score")]
    for source_name, target_name in QUERY_NAMES:
        if not {source_name, target_name} <= by_spelling.keys():
            continue
        source = by_spelling[source_name]
        target = by_spelling[target_name]
        if set(texts[:2]) == {source, target}:
            return ""
        return (
            f"losses read columns in their order: {texts[0]} first, then {texts[1]}; put {source} and {target} first: "
            f"dataset.select_columns([{source!r}, {target!r}, …])"
        )
    return ""


def find_layout(rows: Iterator[NumberedRow], where: str, choice: ColumnChoice) -> Layout:
    """Find the columns of a file in its header or the keys of its first row.

    Args:
        rows: The rows of the file, lists of cells or mappings.
        where: The path of the file.
        choice: How they are chosen. With :data:`QUERY_NAMES`, lines without a header may have negatives behind a pair.

    Raises:
        ParallelTextError, ValueError: If no columns fit, or the languages are those of the file's name in reverse.
    """
    columns = choice.columns
    named = resolve_pair(where, *choice.languages, swapped_on_purpose=columns is not None)
    _, first = next(rows, (0, list[str]()))
    following = [row for _, row in islice(rows, 3)]
    if isinstance(first, Mapping):
        return layout_of_names(list(first), first.get("translation"), where, choice, named=named)

    by_name = columns is not None and isinstance(columns[0], str)
    layout = None
    if len(first) > 1:
        header_choice = choice if by_name else replace(choice, columns=None)
        layout = choose_columns(first, where, header_choice, named=named)
    is_doubtful = layout is None and _may_be_header(first, following)
    if layout is not None and not by_name and not any(named) and _are_short_codes(layout.keys[:2]):
        layout = None  # "no,si" may well be a pair
        is_doubtful = True
    if is_doubtful and columns is None:
        message = "%s: the first line is read as a pair; if it is a header, name its columns: ?columns=%s"
        logger.warning(message, where, ",".join(first))

    if layout is not None:
        if columns is None or by_name:
            check_unique(layout.column_names, first, where)
        chosen_positions = None if by_name else columns
        return _header_layout(layout, first, chosen_positions)
    if by_name:
        raise ValueError(f"{where}: expected the columns {columns!r} in the header, got {first}; pass names it has")
    languages = tuple(code or UNKNOWN for code in named)
    if columns is not None:
        return Layout(tuple(columns), languages)
    width = max(2, len(first)) if choice.paired_names is QUERY_NAMES else 2
    return Layout(tuple(range(width)), languages, width=width)


def _may_be_header(first: Sequence[str], following: Iterable[Any]) -> bool:
    """Return whether a first line may name columns in words that are unknown: few words, above sentences.

    Args:
        first: Cells of the first line.
        following: Cells of the lines that follow.
    """
    if len(first) < 2 or not all(map(_COLUMN_WORDS.fullmatch, first)):
        return False
    return any(len(cell.split()) > 3 for cell in chain(*following))


def _are_short_codes(keys: Sequence[str]) -> bool:
    """Return whether names of columns are codes of two letters, which may also be words."""
    return all(len(key) == 2 and key.isascii() and key.isalpha() for key in keys)


def _header_layout(layout: Layout, header: list[str], columns: Columns | None) -> Layout:
    """Return the layout of a delimited file: positions in its header, or those that are chosen, in place of names."""
    keys = tuple(columns) if columns else tuple(map(header.index, layout.keys))
    return Layout(
        keys,
        layout.languages,
        tuple(None if name is None else header.index(name) for name in layout.language_keys),
        header=header,
        width=len(header),
        escaped=is_scored_header(header),
        label_key=None if layout.label_key is None else header.index(layout.label_key),
    )


def layout_of_names(
    names: Sequence[str], translation: Any, where: str, choice: ColumnChoice, *, named: LanguagePair
) -> Layout:
    """Return the columns of a table with names.

    Args:
        names: Names of the columns.
        translation: Keys of the column ``translation``, as a mapping or a list, if there is one.
        where: What is read, for messages.
        choice: How they are chosen.
        named: As :func:`choose_columns`.

    Raises:
        ParallelTextError: If none fit.
    """
    keys = list(translation) if isinstance(translation, (Mapping, list, tuple)) else []
    columns = choice.columns
    layout = choose_columns(names, where, choice, named=named, translation_keys=keys)
    if layout is None:
        faults = FaultLog()
        languages = keys or [name for name in names if _column_language(name)]
        expected = "source/target, src/tgt, sentence1/sentence2, anchor/positive, english/non_english or languages"
        if columns:
            expected = " and ".join(map(repr, columns))
        fault = f"expected {expected}, got {', '.join(names) or 'none'}"
        if columns is None and len(languages) > 1:
            codes = [_column_language(name) or name for name in languages]
            fault = f"expected two languages out of {', '.join(languages)}"
            if any(choice.languages):
                chosen = "-".join(code or "?" for code in choice.languages)
                fault += f"; {chosen} was asked for"
            else:
                fault += f"; name two, as in {codes[0]}-{codes[1]}={where}"
        faults.add_beyond_repair(where, "missing key", fault)
        faults.finalize()
    assert layout is not None
    return layout
