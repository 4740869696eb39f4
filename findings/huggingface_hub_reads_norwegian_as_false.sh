#!/usr/bin/env bash
# huggingface_hub 2.4.0, Python 3.11: a card whose languages have Norwegian ("no") is read with False, and saved so.
#
# Expected: "no" under `language:` is the code of Norwegian, as the Hub itself reads it and as people write it.
# Seen: cards are read by YAML 1.1, in which a bare `no` is a truth value. ModelCard.load gives False as a language, and
# whoever changes another field and saves writes `- false`: the model is no longer found under Norwegian. DatasetCard
# and metadata_load do the same. A card made by huggingface_hub has 'no' in quotes, and is read back.
#
# Output:
#   languages [False, 'en'], saved as ['- false', '- en']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q huggingface_hub==2.4.0
cd "$folder"
printf -- '---\nlanguage:\n- no\n- en\n---\nEmbeddings of sentences.\n' >README.md
HF_HUB_OFFLINE=1 venv/bin/python - <<'PYTHON'
import sys
from pathlib import Path

from huggingface_hub import ModelCard

card = ModelCard.load("README.md")
card.data.license = "apache-2.0"
card.save("saved.md")
saved = [line for line in Path("saved.md").read_text().splitlines() if line.startswith("- ")]
print(f"languages {card.data.language}, saved as {saved}")
sys.exit(0 if card.data.language == [False, "en"] and saved == ["- false", "- en"] else 1)
PYTHON
