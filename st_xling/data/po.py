"""Translations of programs in gettext's PO files: the finished pairs of messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from st_xling.data.check import FaultLog
from st_xling.data.columns import LanguagePair, NumberedRow
from st_xling.data.pairs import COLUMNS
from st_xling.data.tmx import spelled_code
from st_xling.utils.languages import UNKNOWN, may_be_language, resolve_pair
from st_xling.utils.options import require
from st_xling.utils.private import plural_function
from st_xling.utils.text import ParallelTextError, read_bytes

_SOURCE_LANGUAGE = "en"  # of gettext's messages, unless the file or the caller names another
_CHARSET = re.compile(rb'Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
_NO_CHARSET = "CHARSET"  # as gettext's template has it
# polib reads a string without its closing quotation mark as an empty one, without a word.
_UNCLOSED = re.compile(r'^[ \t]*(?:msg\w+(?:\[\d+\])?[ \t]+)?"(?:[^"\\\n]|\\.)*\\?$', re.MULTILINE)
_COUNTED = range(2, 1000)  # numbers of things by which the usual plural is found


def po_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read the translated messages of a PO file, numbered by their lines.

    Left out, and counted, are messages without a translation, fuzzy and obsolete ones. Of a message with plural forms
    the singular goes with the form of one thing, the plural with the form of most numbers.

    Args:
        path: ``.po``, plain or packed, in the encoding that its header names.
        faults: Where what is left out is counted.
        languages: Source and target, which may be those of the file in reverse. Otherwise those of the file's name, or
            those that the header names (``X-Source-Language``, ``Language``); messages are in English by default.

    Raises:
        ParallelTextError: For a file that is not PO, with its line, or in another encoding than it names.
        ValueError: If polib is not installed.
    """
    catalog = _parse(path)
    plural = _PluralForms(catalog.metadata.get("Plural-Forms", ""))
    chosen = resolve_pair(path, *languages)
    direction = _Direction(catalog.metadata, chosen)
    if direction.codes is None:
        found = "-".join(code or "?" for code in direction.file_codes)
        wanted = " and ".join(filter(None, chosen))
        faults.note(f"{path}: no message has {wanted}; its languages are {found}")
        return
    number = 0
    for entry in catalog:
        reason = _reason_to_leave_out(entry)
        if reason:
            faults.skip(path, reason)
            continue
        for source, target in _message_pairs(entry, plural):
            # A message with plural forms has two rows; their numbers rise.
            number = max(number + 1, entry.linenum)
            yield number, direction.row(source, target)


def _parse(path: str | Path) -> Any:
    """Return the ``polib.POFile`` of a file."""
    polib = require("polib", "reading PO files", extra="documents")
    content = read_bytes(path)
    match = _CHARSET.search(content)
    named = match[1].decode("ascii", "replace") if match else _NO_CHARSET
    charset = "utf-8" if named == _NO_CHARSET else named
    try:
        text = content.decode(charset).removeprefix("\ufeff").replace("\r\n", "\n")
    except LookupError as error:
        raise ParallelTextError(f"{path}: expected an encoding, got {charset!r} in the header; correct it") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ParallelTextError(
            f"{path}:{line}: expected {charset}, as the header says, got byte 0x{content[error.start]:02x}; correct "
            "the charset, or convert the file"
        ) from error
    if "msgid" not in text:
        raise ParallelTextError(f"{path}: expected messages of gettext, got none; is this a PO file?")
    unclosed = _UNCLOSED.search(text)
    if unclosed:
        line = text.count("\n", 0, unclosed.start()) + 1
        raise ParallelTextError(f'{path}:{line}: expected a string that ends in ", got {unclosed[0][:60]!r}')
    try:
        return polib.pofile(text)
    except OSError as error:  # polib's own error of syntax
        raise ParallelTextError(f"{path}: expected PO, got: {str(error).replace(text, '')[:200]}") from error


def _reason_to_leave_out(entry: Any) -> str:
    """Return why a message is left out; empty if it is read."""
    if entry.obsolete:
        return "an obsolete message"
    if not any([entry.msgstr, *entry.msgstr_plural.values()]):
        return "no translation"
    return "a fuzzy translation" if entry.fuzzy else ""


def _message_pairs(entry: Any, plural: _PluralForms) -> Iterator[tuple[str, str]]:
    """Yield the message and its translation, or of plural forms those of one and of many things."""
    if not entry.msgid_plural:
        yield entry.msgid, entry.msgstr
        return
    forms: Mapping[int, str] = entry.msgstr_plural
    one, many = plural.forms_of_one_and_many(len(forms))
    if one != many and forms.get(one):
        yield entry.msgid, forms[one]
    if forms.get(many):
        yield entry.msgid_plural, forms[many]


class _PluralForms:
    """Rule of a language for its plural forms.

    Args:
        header: As the file has it: ``nplurals=2; plural=n != 1;``; empty if it has none.
    """

    def __init__(self, header: str) -> None:
        self._one_and_many: tuple[int, int] | None = None
        rule = re.search(r"plural\s*=\s*([^;]+)", header.partition(";")[2])
        if rule:
            try:
                form_of = plural_function(rule[1])
                usual_forms = Counter(map(form_of, _COUNTED))
                self._one_and_many = (form_of(1), usual_forms.most_common(1)[0][0])
            except (ValueError, ArithmeticError, RecursionError):
                return  # a rule that is none, as in a template

    def forms_of_one_and_many(self, forms: int) -> tuple[int, int]:
        """Return the numbers of the forms of one thing, and of most numbers of things."""
        return self._one_and_many or (0, forms - 1)


class _Direction:
    """Languages of a PO file, and which is the source of its rows.

    Args:
        metadata: Header of the file.
        languages: Source and target that are chosen; ``None`` for those of the file.

    Attributes:
        codes: Languages of source and target; ``None`` if those that are chosen are others than those of the file.
        file_codes: Languages of the messages and of their translations.
    """

    def __init__(self, metadata: Mapping[str, str], languages: LanguagePair) -> None:
        named_source = metadata.get("X-Source-Language", "")
        # Without an encoding or a script in words, as in zh_TW.Big5 and sr@latin.
        target = re.split("[.@]", metadata.get("Language", ""))[0]
        self.file_codes = (spelled_code(named_source or _SOURCE_LANGUAGE), spelled_code(target) or None)
        self.codes: tuple[str, str] | None = None
        self._is_reversed = False
        # Messages that are in another language than English may be in the one that is chosen.
        unnamed_source = None if not named_source else self.file_codes[0]
        for source in (self.file_codes[0], unnamed_source):
            for first, second, is_reversed in ((source, self.file_codes[1], False), (self.file_codes[1], source, True)):
                may_be = may_be_language(first, languages[0]) and may_be_language(second, languages[1])
                if may_be and self.codes is None:
                    self.codes = (languages[0] or first or UNKNOWN, languages[1] or second or UNKNOWN)
                    self._is_reversed = is_reversed

    def row(self, source: str, target: str) -> dict[str, str]:
        """Return the row of a message and its translation."""
        assert self.codes is not None
        texts = (target, source) if self._is_reversed else (source, target)
        return dict(zip(COLUMNS, (*texts, *self.codes)))
