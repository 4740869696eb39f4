#!/usr/bin/env bash
# docx2python 3.7.1, Python 3.11: moved text and text boxes are read twice, and the reading of a word as text before it.
#
# Expected: the text that Word shows: "eins" where it was moved to; the text box once (Word writes it in two forms, of
# which a program shows one: mc:Choice or mc:Fallback); 漢字 with its reading above it, or the word alone.
# Seen: "eins" at both places, the box twice, and the reading かんじ in the line. A data set made of such files has
# sentences that nobody wrote. (python-docx and mammoth lose these words instead.)
#
# Output:
#   ['eins zwei eins', 'かんじ漢字', 'Kasten', 'Kasten']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q docx2python==3.7.1 python-docx==1.2.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import sys

import docx
from docx.oxml import parse_xml
from docx2python import docx2python

NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def change(kind, text):
    return f'<w:{kind} w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z">{run(text)}</w:{kind}>'


box = f"<w:txbxContent><w:p>{run('Kasten')}</w:p></w:txbxContent>"
choice = f'<mc:Choice Requires="wps"><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>'
fallback = f"<mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback>"
paragraphs = [
    change("moveFrom", "eins ") + run("zwei") + change("moveTo", " eins"),
    f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('かんじ')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby></w:r>",
    f"<w:r><mc:AlternateContent>{choice}{fallback}</mc:AlternateContent></w:r>",
]
document = docx.Document()
for content in paragraphs:
    document.element.body.insert(-1, parse_xml(f"<w:p {NAMESPACES}>{content}</w:p>"))
document.save("text.docx")
seen = [line for line in docx2python("text.docx").text.split("\n") if line]
print(seen)
sys.exit(0 if seen == ["eins zwei eins", "かんじ漢字", "Kasten", "Kasten"] else 1)
PYTHON
