#!/usr/bin/env bash
# transformers 5.23.0, Python 3.11: HfArgumentParser reads a learning rate of 5e-5 as a number from a command line, and
# as text from a YAML file with the same line; a whole number takes 2.5.
#
# Expected: parse_yaml_file() and parse_args_into_dataclasses() give the same values for the same arguments, with the
# types of the dataclass, or an error that names the argument.
# Seen: values of a file are passed on as YAML reads them, and YAML 1.1 has no number without a dot before its exponent.
# Training arguments keep the text; the optimizer fails on it when the data and the model are loaded, and a comparison
# with another rate is one of text.
#
# Output:
#   command line 5e-05 4 file '5e-5' 2.5
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q transformers==5.23.0
cd "$folder"
printf 'learning_rate: 5e-5\nmax_steps: 2.5\n' >arguments.yaml
cat >script.py <<'PYTHON'
import sys
from dataclasses import dataclass

from transformers.hf_argparser import HfArgumentParser


@dataclass
class Arguments:
    learning_rate: float = 1e-4
    max_steps: int = -1


parser = HfArgumentParser(Arguments)
[line] = parser.parse_args_into_dataclasses(["--learning_rate", "5e-5", "--max_steps", "4"])
[file] = parser.parse_yaml_file("arguments.yaml")
print("command line", line.learning_rate, line.max_steps, "file", repr(file.learning_rate), file.max_steps)
sys.exit(0 if line.learning_rate == 5e-5 and (file.learning_rate, file.max_steps) == ("5e-5", 2.5) else 1)
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py
