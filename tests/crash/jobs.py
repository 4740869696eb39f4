"""Small jobs of every command that writes, to be killed and run again: their input, words, and what must be equal."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.data.phrasebook import mining_phrases, parallel_phrases
from st_xling.models import tiny_encoder
from tests.crash.points import Zygote
from tests.models.tiny_cross_encoder import tiny_cross_encoder
from tests.retrieval_files import json_lines, lines
from tests.training.transfer.sets import write_encoder, write_set

TINY = "--model tiny --tiny hidden_size=16 --tiny layers=2 --tiny vocabulary=300 --tiny heads=2 --tiny max_length=24"
DAP = f"train dap --data de-en=pairs.tsv --dev none --max-steps 2 --eval-steps 1 --batch-size 8 {TINY}"

OWN = {"seconds", "train_runtime", "train_samples_per_second", "train_steps_per_second"}
OWN |= {"train_loss", "encoded", "command", "peak_memory"}
"""Fields of JSON files that are of one process: its time, memory and words, its own steps' mean, what it embedded."""

UNCOMPARED = {".bin", ".pth", ".pt", ".md"}
"""Of training: pickles, whose weights are compared elsewhere, and cards, which tell the time."""

TOKENIZERS = {"tokenizer.json", "tokenizer_config.json"}


@dataclass(frozen=True)
class Job:
    """One command on a folder.

    Attributes:
        words: The command.
        files: What it reads, of the inputs.
        first: Commands that run before it, undisturbed.
        again: Words that are added when it is run again.
        whole: Files and folders that are, after a kill, as before or as in the end.
        exchanged: They lie in a folder that two renames exchange: it is gone between them, until the next run.
        done: See :func:`tests.crash.points.faults`.
        training: Weights must be equal, and the names of all files.
    """

    words: str
    files: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    again: str = ""
    whole: tuple[str, ...] = ()
    exchanged: bool = False
    done: str = ""
    training: bool = False


MINE = "mine a.de a.en --out o.tsv --save-seconds 0 --memory-mib 1"
RERANK = "rerank ce --queries q.jsonl --passages p.jsonl --out o.jsonl"
SLIM = "slim enc --languages de,en --data de-en=pairs.tsv --out small"
TEXT = ("a.de", "a.en")
VECTORS = "--source-embeddings de.npy --target-embeddings en.npy"
ENCODE = "encode enc a.de --out st --shard-rows 12"

JOBS: dict[str, Job] = {
    "encode": Job(ENCODE, ("enc", "a.de"), whole=("st/manifest.json",)),
    "encode --overwrite": Job(
        f"{ENCODE} --overwrite",
        ("enc", *TEXT),
        (ENCODE.replace("a.de", "a.en"),),
    ),
    "mine from vectors": Job(
        f"{MINE} {VECTORS} --json f.json", (*TEXT, "de.npy", "en.npy"), again="--overwrite", whole=("o.tsv", "f.json")
    ),
    "mine from texts": Job(
        f"{MINE} --model enc --rejects r.jsonl",
        ("enc", *TEXT),
        again="--overwrite",
        whole=("o.tsv", "r.jsonl"),
    ),
    "mine --rescore": Job(
        f"{MINE} {VECTORS} --rescore ce", ("ce", *TEXT, "de.npy", "en.npy"), again="--overwrite", whole=("o.tsv",)
    ),
    "mine --keep-threshold": Job(
        f"{MINE} --model run --source-language de --target-language en --calibrate pairs.tsv --keep-threshold",
        ("run", "pairs.tsv", *TEXT),
        again="--overwrite",
        whole=("o.tsv", "run/mining.json", "run/README.md"),
    ),
    "score": Job(
        "score pairs.tsv --model enc --out o.tsv --save-seconds 0 --json f.json",
        ("enc", "pairs.tsv"),
        again="--overwrite",
        whole=("o.tsv", "f.json"),
    ),
    "rerank": Job(
        f"{RERANK} --json f.json", ("ce", "q.jsonl", "p.jsonl"), again="--overwrite", whole=("o.jsonl", "f.json")
    ),
    "rerank --keep-work": Job(f"{RERANK} --keep-work", ("ce", "q.jsonl", "p.jsonl"), whole=("o.jsonl",)),
    "slim": Job(
        SLIM, ("enc", "pairs.tsv"), done="--overwrite", whole=("small/model.safetensors", "small/tokenizer.json")
    ),
    "slim --overwrite": Job(
        f"{SLIM} --overwrite",
        ("enc", "pairs.tsv"),
        (f"{SLIM} --min-count 2",),
        whole=("small/model.safetensors", "small/tokenizer.json"),
        exchanged=True,
    ),
    "card": Job("card run --license apache-2.0", ("run",), whole=("run/README.md",)),
    "evaluate --keep": Job(
        "evaluate tatoeba run --data de-en=pairs.tsv --keep",
        ("run", "pairs.tsv"),
        whole=("run/results.json", "run/README.md"),
    ),
    "train dap": Job(f"{DAP} --out o", ("pairs.tsv",), again="--resume", training=True),
    "train dap --overwrite": Job(
        f"{DAP} --out o --overwrite", ("pairs.tsv",), (f"{DAP} --out o --seed 7",), training=True
    ),
    "train sf": Job(
        f"train sf --data de-en=pairs.tsv --dev none --max-steps 2 --out o {TINY} --cache cache",
        ("pairs.tsv",),
        again="--resume",
        training=True,
    ),
    "train ir": Job(
        "train ir-semacl-langcl --data queries=nq.jsonl --parallel de-en=pairs.tsv --mono de=a.de --max-steps 2 "
        f"--batch-size 4 --max-length 24 --set training.eval_steps=1 {TINY} --out o",
        ("nq.jsonl", "pairs.tsv", "a.de"),
        again="--resume",
        training=True,
    ),
    "train xpr-cascade": Job(
        "train xpr-cascade --data de=l.de.tsv --data en=l.en.tsv --xpi-data de-en=pairs.tsv --xpi-steps 2 "
        f"--xpi-dev none --dev none --max-steps 2 --eval-steps 1 --batch-size 8 --max-length 32 --out o {TINY}",
        ("l.de.tsv", "l.en.tsv", "pairs.tsv"),
        again="--resume",
        training=True,
    ),
    "transfer": Job(
        "transfer pawsx bert --train en=dev-en.tsv --test ar=dev-ar.tsv --hold-out 0.4 --max-steps 2 --save-steps 1 "
        "--batch-size 8 --out o",
        ("bert", "dev-en.tsv", "dev-ar.tsv"),
        again="--resume",
        training=True,
    ),
}
if importlib.util.find_spec("faiss"):
    JOBS["mine in shards"] = Job(
        f"{MINE} {VECTORS} --method approximate --shard-rows 12",
        (*TEXT, "de.npy", "en.npy"),
        again="--overwrite",
        whole=("o.tsv",),
    )


def write_inputs(folder: Path, zygote: Zygote) -> None:
    """Everything that any job reads."""
    news = mining_phrases("de", "en", split="test", size=30, gold=20)
    lines(folder / "a.de", [*news.source, news.source[0]])
    lines(folder / "a.en", [*news.target, news.source[3]])
    data = parallel_phrases("de", "en", size=32)
    pairs = list(zip(data["source"], data["target"]))
    lines(folder / "pairs.tsv", ["\t".join(pair) for pair in pairs])
    random = np.random.default_rng(0)
    for name in TEXT:
        rows = len((folder / name).read_text(encoding="utf-8").splitlines())
        np.save(folder / f"{name[2:]}.npy", random.standard_normal((rows, 8), dtype=np.float32))
    json_lines(folder / "q.jsonl", [{"id": f"q{row}", "text": source} for row, (source, _) in enumerate(pairs[:3])])
    json_lines(folder / "p.jsonl", [{"id": f"p{row}", "text": target} for row, (_, target) in enumerate(pairs[:4])])
    json_lines(folder / "nq.jsonl", [{"query": source, "passage": target} for source, target in pairs[:12]])
    for side, language in enumerate(("de", "en")):
        texts = [pair[side] for pair in pairs[:16]]
        rows = [f"{one}\t{one}\t1\n{one}\t{other}\t0" for one, other in zip(texts, texts[1:] + texts[:1])]
        lines(folder / f"l.{language}.tsv", ["query\tpassage\tlabel", *rows])
    write_set(folder, "pawsx")
    write_encoder(folder / "bert")
    texts = [text for pair in pairs for text in pair]
    others = parallel_phrases("fr", "vi", size=32)  # words that `slim` takes away
    shape: dict[str, Any] = {"vocabulary": 500, "layers": 1, "hidden_size": 16, "heads": 2, "max_length": 24}
    tiny_encoder([*texts, *others["source"], *others["target"]], dropout=0.0, **shape).save_pretrained(
        str(folder / "enc")
    )
    tiny_cross_encoder(texts).save_pretrained(str(folder / "ce"))
    zygote.warm(folder / "enc")
    ended = zygote.run(shlex.split(f"{DAP} --out run"), folder)
    assert ended.status == 0, ended.stderr


def lay_out(job: Job, inputs: Path, folder: Path, zygote: Zygote) -> None:
    """The folder of a job, before it."""
    folder.mkdir()
    for name in job.files:
        copy: Callable[..., Any] = shutil.copytree if (inputs / name).is_dir() else shutil.copyfile
        copy(inputs / name, folder / name)
    for words in job.first:
        ended = zygote.run(shlex.split(words), folder)
        assert ended.status == 0, ended.stderr


def contents(folder: Path, job: Job, *, tokenizers: bool = False) -> dict[str, Any]:
    """Name → content of each file and folder, without what is of one process.

    Args:
        folder: Of the job.
        job: If it trains, the files named above are looked for, not into.
        tokenizers: Compare a trained model's tokenizer as well.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        apart = UNCOMPARED | (set() if tokenizers else TOKENIZERS)
        passed = job.training and bool({path.suffix, path.name} & apart)
        found[str(path.relative_to(folder))] = None if path.is_dir() or passed else content(path)
    return found


def content(path: Path) -> Any:
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            return without_own(json.loads(data))
        if path.name == "log.jsonl":
            return [without_own(json.loads(line)) for line in data.splitlines()]
        if path.suffix == ".md":  # cards, but for what they tell of the process
            return [line for line in data.splitlines() if not line.startswith((b"| time", b"| memory"))]
    except ValueError:  # half of a file, after a kill
        pass
    return data


def without_own(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_own(part) for key, part in value.items() if key not in OWN}
    return [without_own(part) for part in value] if isinstance(value, list) else value


def half_written(found: dict[str, Any], job: Job, before: dict[str, Any], after: dict[str, Any]) -> str:
    """Which of ``job.whole`` is, after a kill, neither as it was nor as it shall be; ``""``: none."""

    def part(of: dict[str, Any], name: str) -> dict[str, Any]:
        return {path: data for path, data in of.items() if path == name or path.startswith(f"{name}/")}

    gone = job.exchanged and not any(part(found, name) for name in job.whole)
    bad = [name for name in job.whole if not gone and part(found, name) not in (part(before, name), part(after, name))]
    return f"neither old nor new: {', '.join(bad)}" if bad else ""
