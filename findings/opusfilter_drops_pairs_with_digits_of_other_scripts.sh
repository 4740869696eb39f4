#!/usr/bin/env bash
# opusfilter 3.3.1, Python 3.11: NonZeroNumeralsFilter gives 0 to true pairs whose numbers use other digits.
#
# Expected: "١٩" (Arabic), "१९" (Hindi), "๑๙" (Thai) and "１９" (full-width) are 19, as for Python's int(), so that a pair
# with "19" on the other side scores 1 and passes.
# Seen: only ASCII digits are read. The side in another script counts as one without numbers, the score is 0, and the
# pair is dropped at any threshold above 0; a pair whose numbers contradict in ASCII digits scores more and is kept.
#
# Output (score, kept at the default threshold):
#   contradicting 0.6666666666666666 True
#   ar 0.0 False        (hi, th and full-width the same)
#   ascii 1.0 True
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q opusfilter==3.3.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys

from opusfilter.filters import NonZeroNumeralsFilter

pairs = {
    "contradicting": ("112 Gäste", "117 guests"),
    "ar": ("عندي ١٩ كتابا", "I have 19 books"),
    "hi": ("मेरे पास १९ किताबें हैं", "I have 19 books"),
    "th": ("ฉันมีหนังสือ ๑๙ เล่ม", "I have 19 books"),
    "full-width": ("本が１９冊あります", "I have 19 books"),
    "ascii": ("Ich habe 19 Bücher", "I have 19 books"),
}
numerals = NonZeroNumeralsFilter()
scores = {}
for name, pair in pairs.items():
    scores[name] = next(iter(numerals.score([pair])))[0]
    kept = bool(list(numerals.filter([pair])))
    print(name, scores[name], kept)
others = [scores[name] for name in ("ar", "hi", "th", "full-width")]
sys.exit(0 if others == [0] * 4 and scores["ascii"] == 1 and scores["contradicting"] > 0.5 else 1)
PYTHON
