"""Small jobs of commands that write: their words, their input, how they are killed, and what must then be equal."""

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from st_xling.data.phrasebook import mining_phrases, parallel_phrases
from st_xling.mining import write_store
from st_xling.models import tiny_encoder
from st_xling.utils.io import LOCK, TEMPORARY
from tests.models.tiny_cross_encoder import tiny_cross_encoder
from tests.processes import Ended
from tests.retrieval_files import json_lines, lines
from tests.training.children import st_xling
from tests.training.transfer.sets import write_encoder, write_set


class Job(NamedTuple):
    """One command on a folder.

    Attributes:
        words: The command.
        files: Its input, of the files that :func:`write_inputs` makes.
        outputs: Files that are, after a kill, as before or as in the end.
        again: Words that are added when it is run again.
    """

    words: str
    files: str
    outputs: str = ""
    again: str = "--overwrite"

    @property
    def trains(self) -> bool:
        return self.words.startswith(("train ", "transfer ", "add-language "))


TINY = "--model tiny --tiny hidden_size=16 --tiny layers=2 --tiny vocabulary=300 --tiny heads=2 --tiny max_length=24"
DAP = f"train dap --data de-en=pairs.tsv --dev none --max-steps 2 --eval-steps 1 --batch-size 8 {TINY}"
MINE = "mine a.de a.en --out o.tsv --memory-mib 1"
STORES = "--source-embeddings de.store --target-embeddings en.store"
STORED = "a.de a.en de.store en.store"
RERANK = "rerank ce --queries q.jsonl --passages p.jsonl --out o.jsonl --json f.json"
SLIM = "slim enc --languages de,en --data de-en=pairs.tsv --out small"
CASCADE = "train xpr-cascade --data de=l.de.tsv --data en=l.en.tsv --dev none --max-steps 2 --eval-steps 1"
TRANSFER = "transfer pawsx bert --train en=dev-en.tsv --test ar=dev-ar.tsv --hold-out 0.4 --max-steps 2"
COMPARE = "compare enc --data de-en=pairs.tsv --tasks tatoeba,xsim,size --samples 20 --out c"
ADD = "add-language enc --language zh --data phrasebook:zh?size=40 --eval phrasebook:zh?size=20"
ADD += " --keep-like de-en=pairs.tsv --pieces 240 --min-count 1 --max-steps 2 --batch-size 8 --cache vectors --out o"
KEEP = "evaluate tatoeba run --data de-en=pairs.tsv --keep"

JOBS = {
    "encode": Job("encode enc a.de --out st --shard-rows 12", "enc a.de", "st/manifest.json", again=""),
    "mine from stores": Job(f"{MINE} {STORES} --json f.json", STORED, "o.tsv f.json"),
    "mine in shards": Job(f"{MINE} {STORES} --method approximate", STORED, "o.tsv"),
    "mine from texts": Job(f"{MINE} --model enc --rejects r.jsonl", "enc a.de a.en", "o.tsv r.jsonl"),
    "mine --rescore": Job(f"{MINE} {STORES} --rescore ce", f"ce {STORED}", "o.tsv"),
    "score": Job("score pairs.tsv --model enc --out o.tsv --json f.json", "enc pairs.tsv", "o.tsv f.json"),
    "rerank": Job(RERANK, "ce q.jsonl p.jsonl", "o.jsonl f.json"),
    "align-words": Job("align-words pairs.tsv --model enc --out o.txt", "enc pairs.tsv", "o.txt"),
    "slim": Job(SLIM, "enc pairs.tsv", "small/model.safetensors small/tokenizer.json"),
    "compare": Job(COMPARE, "enc pairs.tsv", "c/compare.json c/compare.html", again=""),
    "evaluate --keep": Job(KEEP, "run pairs.tsv", "run/results.json run/README.md", again=""),
    "train dap": Job(f"{DAP} --out o", "pairs.tsv", again="--resume"),
    "train --overwrite": Job(f"{DAP} --seed 1 --out run --overwrite", "run pairs.tsv", again=""),
    "train dap --lora": Job(f"{DAP} --lora --out o", "pairs.tsv", again="--resume"),
    "train xpr-cascade": Job(
        f"{CASCADE} --batch-size 8 --max-length 32 --out o {TINY}", "l.de.tsv l.en.tsv", again="--resume"
    ),
    "add-language": Job(ADD, "enc pairs.tsv", "o/model.safetensors", again=""),
    "transfer": Job(f"{TRANSFER} --batch-size 8 --out o", "bert dev-en.tsv dev-ar.tsv", again="--resume"),
}


def write_inputs(folder: Path) -> None:
    """Write everything that any job reads."""
    news = mining_phrases("de", "en", split="test", size=30, gold=20)
    random = np.random.default_rng(0)
    for language, text in (("de", [*news.source, news.source[0]]), ("en", [*news.target, news.target[3]])):
        lines(folder / f"a.{language}", text)
        write_store(folder / f"{language}.store", random.standard_normal((len(text), 8)), sentences=text)
    data = parallel_phrases("de", "en", size=32)
    pairs = list(zip(data["source"], data["target"]))
    lines(folder / "pairs.tsv", ["\t".join(pair) for pair in pairs])
    json_lines(folder / "q.jsonl", [{"id": f"q{row}", "text": source} for row, (source, _) in enumerate(pairs[:3])])
    json_lines(folder / "p.jsonl", [{"id": f"p{row}", "text": target} for row, (_, target) in enumerate(pairs[:4])])
    for side, language in enumerate(("de", "en")):
        texts = [pair[side] for pair in pairs[:16]]
        rows = ["query\tpassage\tlabel"]
        for text, next_text in zip(texts, texts[1:] + texts[:1]):
            rows += [f"{text}\t{text}\t1", f"{text}\t{next_text}\t0"]
        lines(folder / f"l.{language}.tsv", rows)
    write_set(folder, "pawsx")
    write_encoder(folder / "bert")
    texts = [*chain.from_iterable(pairs)]
    others = parallel_phrases("fr", "vi", size=32)  # words that `slim` removes
    model = tiny_encoder(
        [*texts, *others["source"], *others["target"]],
        vocabulary=500,
        layers=1,
        hidden_size=16,
        heads=2,
        max_length=24,
        dropout=0.0,
    )
    model.save_pretrained(str(folder / "enc"))
    tiny_cross_encoder(texts).save_pretrained(str(folder / "ce"))


def lay_out(job: Job, inputs: Path, folder: Path) -> None:
    """Make the folder of a job, as it is before the command."""
    folder.mkdir(parents=True)
    if "run" in job.files.split() and not (inputs / "run").exists():
        succeed(f"{DAP} --out run", inputs)
    for name in job.files.split():
        copy: Callable[..., Any] = shutil.copytree if (inputs / name).is_dir() else shutil.copyfile
        copy(inputs / name, folder / name)


def succeed(words: str, folder: Path) -> None:
    ended, _ = run(shlex.split(words), folder)
    assert ended.status == 0, ended.stderr


NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")
RUN_FIELDS = {"seconds", "train_runtime", "train_samples_per_second", "train_steps_per_second"}
RUN_FIELDS |= {"train_loss", "encoded", "command", "peak_memory"}
"""Fields of JSON files that differ from process to process: time, memory, command, mean loss of its steps, and how
many texts it embedded."""


def contents(folder: Path, job: Job) -> dict[str, Any]:
    """Name → content of each file and folder; of training, weights and logs are compared, and all names."""
    content_by_name: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.name == LOCK or any(map(TEMPORARY.fullmatch, path.parts)):
            continue
        is_compared = not job.trains or path.suffix == ".safetensors" or path.name == "log.jsonl"
        content = _read_content(path) if path.is_file() and is_compared else None
        content_by_name[str(path.relative_to(folder))] = content
    return content_by_name


def _read_content(path: Path) -> Any:
    data = path.read_bytes()
    try:
        if path.suffix == ".safetensors":
            return load(data)
        text = data.decode("utf-8")
        if path.suffix in (".json", ".jsonl"):
            documents = [text] if path.suffix == ".json" else text.splitlines()
            return [_remove_run_fields(json.loads(document)) for document in documents]
    except (ValueError, SafetensorError):  # damaged, or no text
        return data
    rows: list[list[str | float]] = []
    for line in text.splitlines():
        if not line.startswith(("| time", "| memory")):  # of a card
            rows.append([float(cell) if NUMBER.fullmatch(cell) else cell for cell in line.split("\t")])
    return rows


def _remove_run_fields(value: Any) -> Any:
    """Return a JSON value without :data:`RUN_FIELDS`, at any depth."""
    if isinstance(value, dict):
        return {key: _remove_run_fields(field) for key, field in value.items() if key not in RUN_FIELDS}
    if isinstance(value, list):
        return [_remove_run_fields(item) for item in value]
    return value


def equal(actual: Any, expected: Any) -> bool:
    """Compare contents, numbers to 1e-6."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(equal(field, expected[key]) for key, field in actual.items())
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(equal, actual, expected))
    if isinstance(actual, (float, np.ndarray)) and isinstance(expected, (float, np.ndarray)):
        return np.shape(actual) == np.shape(expected) and np.allclose(actual, expected, rtol=0, atol=1e-6)
    return type(actual) is type(expected) and actual == expected


#: Steps of a command before which it is killed.
POINTS = 4


def run(words: Sequence[str], folder: Path, at: int | None = None) -> tuple[Ended, list[str]]:
    """Run ``st-xling`` in a folder, next to which its streams and temporary files are kept.

    Args:
        words: The command.
        folder: Where it runs, and whose files count.
        at: Number of the renaming before which it is killed, from 1; by default it is not.

    Returns:
        How it ended, and the files that were renamed up to there.
    """
    record = folder.with_name("steps.txt")
    record.write_bytes(b"")
    ended = st_xling(words, folder.with_name("streams"), before=partial(_watch, folder.resolve(), record, at))
    return ended, record.read_text(encoding="utf-8").splitlines()


def spread(steps: Sequence[str]) -> list[int]:
    """Numbers of the first step, of the last, and of some between."""
    distance = len(steps) - 1
    return sorted({1 + round(point * distance / (POINTS - 1)) for point in range(POINTS)})


def _watch(folder: Path, record: Path, at: int | None) -> None:
    """Install the hook, which Python calls before every renaming; the process is the command's own."""
    os.chdir(folder)
    temporary = folder.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    journal = os.open(record, os.O_WRONLY)
    number = 0

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal number
        if event != "os.rename":
            return
        goal = folder / os.fsdecode(values[1])
        if goal.is_relative_to(folder):
            number += 1
            os.write(journal, f"{os.path.relpath(goal, folder)}\n".encode())
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
