#!/usr/bin/env bash
# lxml 6.1.3 (libxml2 2.14.6), Python 3.11: an HTML page with one long text is parsed as an empty page, without an error.
#
# Expected: the whole page, or an error that names the limit, as for XML: "xmlSAX2Characters: huge text node".
# Seen: from 10,000,000 bytes of text in one element on, lxml.html.fromstring returns the page without that text and
# without all that follows it. A book or a dump that is one paragraph reads as nothing. HTMLParser(huge_tree=True) reads
# it; the parser's error_log, which nobody looks at, has the limit.
#
# Output (characters of the text, characters that are read):
#   9999000 9999005
#   11000000 0
#   11000000 11000005 (huge_tree)
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q lxml==6.1.3
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from lxml import html


def read(characters: int, **options: bool) -> int:
    page = f"<html><body><p>{'Es regnet. ' * (characters // 11)}</p><p>Ende.</p></body></html>"
    tree = html.fromstring(page, parser=html.HTMLParser(**options))
    length = len(tree.text_content())
    print(characters, length, *(f"({name})" for name in options))
    return length


shorter = read(9_999_000)
longer = read(11_000_000)
huge = read(11_000_000, huge_tree=True)
sys.exit(0 if shorter > 9_998_000 and longer == 0 and huge == 11_000_005 else 1)
PYTHON
