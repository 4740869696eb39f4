#!/usr/bin/env bash
# eflomal 2.0.0, numpy 2.4.6, Python 3.11: behind a no-break space, links point to the word after the right one.
#
# Expected: words are divided by the spaces of the tokenized text, as fast_align, Moses and the gold files of alignment
# have them; a number written "10 000" with U+00A0, as in French and Slavic text, is one word.
# Seen: text is divided at every white space of Unicode. The sentence has one word more, and all links behind it are
# moved by one; the last one is of a word that does not exist. Against gold links they are wrong, and labels carried
# over a translation land on the wrong words.
#
# Output:
#   10_000 mon logis / 10_000 mein Haus: 3 words, links 0-0 1-1 2-2 3-3
#   10.000 mon logis / 10.000 mein Haus: 3 words, links 0-0 1-1 2-2
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q eflomal==2.0.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import sys
from pathlib import Path

from eflomal import Aligner

DETERMINERS = {"das": "le", "ein": "un", "mein": "mon", "dein": "ton"}
NOUNS = {"Haus": "logis", "Buch": "livre", "Hund": "chien", "Baum": "arbre", "Brot": "pain", "Lied": "chant"}
german, french = [], []
for determiner, article in DETERMINERS.items():
    for noun, nom in NOUNS.items():
        german.append(f"{determiner} {noun}")
        french.append(f"{article} {nom}")
for number in ("10\u00a0000", "10.000"):
    german.append(f"{number} mein Haus")
    french.append(f"{number} mon logis")
Aligner().align(german, french, links_filename_fwd="links.txt")
links = Path("links.txt").read_text().splitlines()[-2:]
for source, target, line in zip(german[-2:], french[-2:], links):
    words = len(source.split(" "))
    print(f"{target} / {source}: {words} words, links {line}".replace("\u00a0", "_"))
sys.exit(0 if links == ["0-0 1-1 2-2 3-3", "0-0 1-1 2-2"] else 1)
PYTHON
