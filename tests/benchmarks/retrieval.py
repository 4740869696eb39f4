"""Does evaluating retrieval stay in bounded memory? Peak memory over corpora of growing size.

``python -m tests.benchmarks.retrieval`` prints a line a size: 300 queries over passages of 100 words, a tiny encoder.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [f"w{number}" for number in range(3000)]
QUERIES = 300
SIZES = (20_000, 100_000)


def write_set(folder: Path, passages: int) -> None:
    """A set in BEIR's layout, of random words."""
    draw = random.Random(0)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", compresslevel=1, encoding="utf-8") as file:
        for row in range(passages):
            file.write(json.dumps({"_id": f"p{row}", "text": " ".join(draw.choices(WORDS, k=100))}) + "\n")
    asked = [{"_id": f"q{row}", "text": " ".join(draw.choices(WORDS, k=8))} for row in range(QUERIES)]
    (folder / "queries.en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in asked), encoding="utf-8")
    judged = [f"q{row}\tp{row * (passages // QUERIES)}\t1\n" for row in range(QUERIES)]
    (folder / "qrels.tsv").write_text("".join(judged), encoding="utf-8")


def measure(passages: int) -> None:
    """Print seconds and the memory that evaluation adds to what the libraries and the model take."""
    from st_xling.data.retrieval import read_retrieval_set
    from st_xling.evaluation.retrieval import RetrievalEvaluator
    from st_xling.models import tiny_encoder

    model = tiny_encoder([" ".join(WORDS)], vocabulary=3200, hidden_size=16, layers=1, heads=2, max_length=8).to("cpu")
    model.encode(["warm"] * 256)
    with tempfile.TemporaryDirectory() as folder:
        write_set(Path(folder), passages)
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        RetrievalEvaluator([read_retrieval_set(folder, language="en")], batch_size=256).report(model)
        added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{passages:>9,} passages  {time.perf_counter() - started:6.1f} s  +{added:.0f} MiB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
    else:
        for size in SIZES:
            subprocess.run([sys.executable, "-m", "tests.benchmarks.retrieval", str(size)], check=True, timeout=900)
