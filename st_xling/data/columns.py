"""Find the columns of the sentences: by the names of a header, of keys or of a schema, and by languages."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
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

Languages = tuple["str | None", "str | None"]
"""Languages of source and target, or ``None`` where unknown."""

Row = tuple[int, "list[str] | Mapping[str, Any]"]
"""Number of a line or row, counted from 1, and its cells."""

PARALLEL_NAMES = (
    *(("source", "target"), ("src", "tgt"), ("sentence1", "sentence2"), ("anchor", "positive")),
    *(("source text", "target text"), ("source sentence", "target sentence"), ("src text", "tgt text")),
)
"""Names of columns taken as source and target, in this order of preference; underscores count as spaces."""

QUERY_NAMES = (*product(("query", "question", "anchor"), ("passage", "positive", "answer")), *PARALLEL_NAMES)
"""The same of queries and the passages that answer them."""

LOCAL_NAMES = tuple(
    (source, target)
    for line in Path(__file__).with_name("header_words.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for source, target in (pair.split("/") for pair in line.split("\t")[1:])
)
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
_NO_LANGUAGES |= {
    word for pair in (*PARALLEL_NAMES, *LOCAL_NAMES) for name in pair for word in name.split() if not is_code(word)
}
_WORDS = re.compile(r"[\"'(\[]*[^\W_]+(?:[\W_]+[^\W_]+){0,2}[\"'):\]]*")  # up to three, that may name a column


class Layout(NamedTuple):
    """Columns of the sentences of a table.

    Attributes:
        keys: Names or positions of the columns of source and target, then of hard negatives.
        languages: Languages of source and target in rows that do not name their own.
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
    matches = {name: match for name in names if (match := _NEGATIVE.fullmatch(name.strip()))}
    return sorted(matches, key=lambda name: int(matches[name][1] or 0))


@dataclass(frozen=True)
class ColumnChoice:
    """How the columns of source and target are chosen.

    Attributes:
        languages: The languages asked for; they come before those of any name.
        columns: The columns to read, perhaps with those of negatives behind them; ``None``: see
            :func:`choose_columns`.
        known: Pairs of names, in order of preference.
    """

    languages: Languages = (None, None)
    columns: Columns | None = None
    known: Sequence[tuple[str, str]] = PARALLEL_NAMES


def choose_columns(
    names: Sequence[str],
    where: str,
    choice: ColumnChoice,
    *,
    named: Languages = (None, None),
    translation_keys: Sequence[str] = (),
) -> Layout | None:
    """Choose the columns to read, the first that fit; ``None`` if none do.

    These are the ``columns`` named; a pair that is ``known``; ``english`` and ``non_english``, as the parallel sets of
    sentence-transformers have them; columns that are called by the two languages; the only two columns, if both are
    languages; then the languages as keys of a column ``translation``; last, source and target in other languages
    (``Quelle`` and ``Ziel``). Languages may be named in any language (``Deutsch``, ``alemán``). Upper and lower case
    are the same.

    Args:
        names: The names of all columns.
        where: What is read; a warning names columns that are not.
        choice: How they are chosen; its columns are names.
        named: The languages asked for or else in the name of the file.
        translation_keys: The keys of a ``translation`` column, if there is one.
    """
    columns = choice.columns
    spelled = {name.strip().lower().replace("_", " ").removesuffix(":"): name for name in reversed(names)}
    found: tuple[Any, ...] | None
    nested = False
    stated: tuple[str | None, ...] = (None, None)
    if columns is not None:
        nested = not set(columns) <= set(names)
        found = tuple(columns) if not nested or set(columns) <= set(translation_keys) else None
    elif pair := next((pair for pair in choice.known if spelled.keys() >= set(pair)), None):
        found = (spelled[pair[0]], spelled[pair[1]])
    elif spelled.keys() >= {"english", "non english"}:
        found, stated = _english_pair(spelled, named)
    elif (found := _language_pair(names, named)) is None:
        found, nested = _language_pair(translation_keys, named, nested=True), True
    if found is None and columns is None:
        found = _local_pair(spelled, choice.known)
        nested = False
    if found is None:
        return None
    if columns is None and not nested:
        found = (*found, *negative_columns(names))
    if nested or all(map(_language, found[:2])):
        stated = tuple(_language(name) or name for name in found[:2])
    # A column chosen by name states its language better than the name of the file.
    by_file, by_column = (choice.languages, named, stated), (choice.languages, stated, named)
    order = by_file if columns is None else by_column
    languages = tuple(next(filter(None, codes), UNKNOWN) for codes in zip(*order))
    language_keys = tuple(
        name if code is None and name in names else None for name, code in zip(LANGUAGE_COLUMNS, choice.languages)
    )
    # Of a row with the label 0 the texts do not belong together; columns that are chosen are read as they are.
    label = find_label(names) if columns is None and not is_scored_header(names) else None
    layout = Layout(found, languages, language_keys, nested, label_key=label)
    ignored = [name for name in names if name not in (*layout.column_names, *LANGUAGE_COLUMNS)]
    if ignored and columns is None and not is_scored_header(names):
        read = ", ".join(layout.keys)
        logger.warning("%s: columns read: %s; no objective sees the others: %s", where, read, ", ".join(ignored))
    return layout


def check_unique(read: Iterable[str], names: Sequence[str], where: str) -> None:
    """Raise ``ParallelTextError`` if a column that is read is there twice, as it is unknown which one is meant."""
    for name in read:
        if names.count(name) > 1:
            raise ParallelTextError(
                f"{where}: {names.count(name)} columns are called {name!r}, and which one is meant is unknown; "
                "rename or remove one, or choose the columns of CSV and TSV by number: ?columns=0,1"
            )


def _local_pair(spelled: Mapping[str, str], known: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Return source and target, or query and passage, by their names in other languages."""
    names = (*QUESTION_NAMES, *LOCAL_NAMES) if known is QUERY_NAMES else LOCAL_NAMES
    for source, target in names:
        # A table of sentences has columns that name their languages, too.
        if {source, target} <= spelled.keys() and (len(spelled) == 2 or source != "source language"):
            return spelled[source], spelled[target]
    return None


def find_label(names: Iterable[str]) -> str | None:
    """Return the column that says whether the texts of a row belong together; ``None`` where there is none."""
    spelled = {name.strip().lower().replace("_", " "): name for name in names}
    return next((spelled[name] for name in LABEL_NAMES if name in spelled), None)


def _english_pair(spelled: Mapping[str, str], named: Languages) -> tuple[tuple[str, str], Any]:
    """English second, unless the known languages differ."""
    is_english = [None if code is None else canonical_language(code) == "eng" for code in named]
    other = next((code for code, english in zip(named, is_english) if english is False), None)
    if is_english[0] or is_english[1] is False:
        return (spelled["english"], spelled["non english"]), ("en", other)
    return (spelled["non english"], spelled["english"]), (other, "en")


def _language_pair(names: Sequence[str], languages: Languages, nested: bool = False) -> tuple[str, str] | None:
    by_code = {_language(name) or name.strip(): name for name in reversed(names)}
    source, target = (by_code.get((code and match_language(code, by_code)) or "") for code in languages)
    if source and target and source != target:
        return source, target
    # Codes only where there are no other columns: "id" may be a row number, "is" a flag.
    if len(names) > 2 and not nested:
        names = [name for name in names if _language(name) and not is_evident_code(name.strip())]
    if len(names) != 2 or not (nested or all(map(_language, names))):
        return None
    one, other = names
    # A dictionary may begin with the two names of a language: Deutsch, German.
    if not nested and canonical_language(_language(one) or one) == canonical_language(_language(other) or other):
        return None
    if source == other or target == one:
        one, other = other, one
    # A language that is asked for and is neither column's leaves no choice.
    fits = [code is None or found == name for code, found, name in zip(languages, (source, target), (one, other))]
    return (one, other) if all(fits) else None


def _language(name: str) -> str | None:
    """Return the language that a column is called by: ``de``, ``German``, ``Chinese (Simplified)``, ``de_text``."""
    if is_evident_code(name):
        return name
    text = name.strip().lower().replace("_", " ")
    if code := named_language(re.sub(r"\s*\(.*\)$|:$", "", text)):
        return hub_language(code)
    words = [word for word in re.findall(r"\w+", text) if word not in _NO_LANGUAGES]
    if len(words) != 1 or words[0] == text:
        return None
    code = words[0] if is_evident_code(words[0]) else named_language(words[0])
    return code and hub_language(code)


def column_order_warning(names: Sequence[str]) -> str:
    """Return a warning if other columns come before the two that are called source and target, else ``""``.

    Losses read the columns of a data set in their order, whatever they are called.

    Args:
        names: Columns of a data set for training.
    Example:
        >>> column_order_warning(["sent_id", "source", "target"]).partition(";")[0]
        'losses read columns in their order: sent_id first, then source'
    """
    spelled = {name.strip().lower().replace("_", " "): name for name in names}
    texts = [name for name in names if not name.endswith("_language") and name not in ("label", "labels", "score")]
    for pair in QUERY_NAMES:
        if spelled.keys() >= set(pair):
            expected = [spelled[name] for name in pair]
            if set(texts[:2]) == set(expected):
                return ""
            return (
                f"losses read columns in their order: {texts[0]} first, then {texts[1]}; put {expected[0]} and "
                f"{expected[1]} first: dataset.select_columns([{expected[0]!r}, {expected[1]!r}, …])"
            )
    return ""


def find_layout(rows: Iterator[Row], where: str, choice: ColumnChoice) -> Layout:
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
    following = [len(cell.split()) for _, row in islice(rows, 3) if isinstance(row, list) for cell in row]
    if isinstance(first, Mapping):
        return layout_of_names(list(first), first.get("translation"), where, choice, named=named)
    by_name = columns is not None and isinstance(columns[0], str)
    by_header = choice if by_name else replace(choice, columns=None)
    layout = choose_columns(first, where, by_header, named=named) if len(first) > 1 else None
    # "no,si" may well be a pair; one or two words above sentences may well be names.
    doubtful = layout is None and len(first) > 1 and max(following, default=0) > 3 and all(map(_WORDS.fullmatch, first))
    are_codes = layout is not None and all(len(key) == 2 and key.isascii() and key.isalpha() for key in layout.keys[:2])
    if are_codes and not by_name and not any(named):
        layout, doubtful = None, True
    if doubtful and columns is None:
        note = "%s: the first line is read as a pair; if it is a header, name its columns: ?columns=%s"
        logger.warning(note, where, ",".join(first))
    if layout is not None and (columns is None or by_name):
        check_unique(layout.column_names, first, where)
    if layout is not None:
        keys = tuple(columns) if columns and not by_name else tuple(map(first.index, layout.keys))
        language_keys = tuple(None if name is None else first.index(name) for name in layout.language_keys)
        escaped = is_scored_header(first)
        label_key = None if layout.label_key is None else first.index(layout.label_key)
        return Layout(
            keys,
            layout.languages,
            language_keys,
            header=first,
            width=len(first),
            escaped=escaped,
            label_key=label_key,
        )
    if by_name:
        raise ValueError(f"{where}: expected the columns {columns!r} in the header, got {first}; pass names it has")
    languages = tuple(code or UNKNOWN for code in named)
    if columns is not None:
        return Layout(tuple(columns), languages)
    width = max(2, len(first)) if choice.known is QUERY_NAMES else 2
    return Layout(tuple(range(width)), languages, width=width)


def layout_of_names(
    names: Sequence[str], translation: Any, where: str, choice: ColumnChoice, *, named: Languages
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
        languages = keys or [name for name in names if _language(name)]
        known = "source/target, src/tgt, sentence1/sentence2, anchor/positive, english/non_english or languages"
        wanted = " and ".join(map(repr, columns)) if columns else known
        fault = f"expected {wanted}, got {', '.join(names) or 'none'}"
        if columns is None and len(languages) > 1:
            codes = [_language(name) or name for name in languages]
            fault = f"expected two languages out of {', '.join(languages)}"
            if any(choice.languages):
                asked = "-".join(code or "?" for code in choice.languages)
                fault += f"; {asked} was asked for"
            else:
                fault += f"; name two, as in {codes[0]}-{codes[1]}={where}"
        faults.add_beyond_repair(where, "missing key", fault)
        faults.finalize()
    assert layout is not None
    return layout
