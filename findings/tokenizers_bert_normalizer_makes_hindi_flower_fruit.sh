#!/usr/bin/env bash
# tokenizers 0.23.3, Python 3.11: lower-casing as BERT does removes vowels of Hindi, Thai and Bengali.
#
# Expected: BertNormalizer(lowercase=True) changes nothing in scripts that have no case; strip_accents, which is not set,
# is about the accents of Latin, Greek and Cyrillic letters.
# Seen: strip_accents follows lowercase, and removes all marks that take no room of their own, which many vowels are.
# Different words become one before the tokenizer sees them: an "uncased" multilingual encoder, or a WordPiece
# vocabulary trained with this normalizer, cannot tell them apart. strip_accents=False keeps them.
#
# Output:
#   hi फूल (flower) and फल (fruit): फल फल
#   th ดี (good) and ดู (look): ด ด
#   bn কুল (plum) and কাল (time): কল কাল
#   strip_accents=False: फूल फल
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tokenizers==0.23.3
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import sys

from tokenizers.normalizers import BertNormalizer

WORDS = [
    ("hi", "फूल", "flower", "फल", "fruit"),
    ("th", "ดี", "good", "ดู", "look"),
    ("bn", "কুল", "plum", "কাল", "time"),
]
lower = BertNormalizer(lowercase=True)
seen = []
for code, first, meaning, second, other_meaning in WORDS:
    normalized = lower.normalize_str(first), lower.normalize_str(second)
    print(f"{code} {first} ({meaning}) and {second} ({other_meaning}):", *normalized)
    seen.append(normalized)
kept = BertNormalizer(lowercase=True, strip_accents=False)
both = kept.normalize_str("फूल"), kept.normalize_str("फल")
print("strip_accents=False:", *both)
sys.exit(0 if seen == [("फल", "फल"), ("ด", "ด"), ("কল", "কাল")] and both == ("फूल", "फल") else 1)
PYTHON
