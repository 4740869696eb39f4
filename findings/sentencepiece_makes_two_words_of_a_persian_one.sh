#!/usr/bin/env bash
# sentencepiece 0.2.3, Python 3.11: the zero-width non-joiner inside a Persian word becomes a space.
#
# Expected: decode(encode(text)) is the text, but for what NFKC changes, which leaves U+200C as it is: it belongs to the
# spelling of Persian, and a trainer that sees all characters of the text (character_coverage=1) has a piece for it.
# Seen: the default rule (nmt_nfkc) makes it a space, so that a word becomes two, each with the mark of a beginning:
# «می‌خواهم» (I want) is read as «می خواهم», and comes back so. Word alignments, counts of words and generated text are
# those of another spelling. U+200D, the joiner of Sinhala and Hindi, is kept; so is U+200C with "nfkc".
#
# Output:
#   nmt_nfkc U+200C comes back as a space, beginnings of words: 2
#   nfkc     U+200C comes back as it was, beginnings of words: 1
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q sentencepiece==0.2.3
cd "$folder"
venv/bin/python - <<'PYTHON'
import sys
from pathlib import Path

import sentencepiece

WORD = "می\u200cخواهم"
Path("text.txt").write_text(f"{WORD} بروم\nکتاب را {WORD}\n" * 50, encoding="utf-8")
seen = {}
for rule in ("nmt_nfkc", "nfkc"):
    options = {"vocab_size": 40, "hard_vocab_limit": False, "character_coverage": 1.0, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        input="text.txt", model_prefix=rule, normalization_rule_name=rule, **options
    )
    model = sentencepiece.SentencePieceProcessor(model_file=f"{rule}.model")
    back = model.decode(model.encode(WORD))
    beginnings = sum(piece.startswith("▁") for piece in model.encode(WORD, out_type=str))
    seen[rule] = back, beginnings
    how = "as it was" if back == WORD else "as a space" if back == WORD.replace("\u200c", " ") else repr(back)
    print(f"{rule:<8} U+200C comes back {how}, beginnings of words: {beginnings}")
sys.exit(0 if seen == {"nmt_nfkc": (WORD.replace("\u200c", " "), 2), "nfkc": (WORD, 1)} else 1)
PYTHON
