#!/usr/bin/env bash
# translate-toolkit 3.20.4, Python 3.11: a PO file in another encoding than UTF-8 is not read, though its header names it.
#
# Expected: as msgfmt and polib do, the charset of the header (Content-Type: text/plain; charset=ISO-8859-1) is that of
# the file, so that "öffnen" is read. Older translations of free software are often in such encodings.
# Seen: UnicodeDecodeError from factory.getobject and from pofile: the file is decoded as UTF-8. polib reads it.
#
# Output:
#   translate-toolkit: UnicodeDecodeError 'utf-8' codec can't decode byte 0xf6 in position 8: invalid start byte
#   polib: öffnen
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q translate-toolkit==3.20.4 polib==1.2.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import sys
from pathlib import Path

import polib
from translate.storage import factory

HEADER = r"""msgid ""
msgstr ""
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=ISO-8859-1\n"
"Content-Transfer-Encoding: 8bit\n"

"""
Path("de.po").write_bytes((HEADER + 'msgid "open"\nmsgstr "öffnen"\n').encode("iso-8859-1"))
try:
    seen = str(factory.getobject("de.po").units[-1].target)
except UnicodeDecodeError as error:
    seen = f"UnicodeDecodeError {error}"
print("translate-toolkit:", seen)
print("polib:", polib.pofile("de.po")[0].msgstr)
sys.exit(0 if seen.startswith("UnicodeDecodeError") and polib.pofile("de.po")[0].msgstr == "öffnen" else 1)
PYTHON
