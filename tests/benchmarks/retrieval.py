"""Does evaluating retrieval stay in bounded memory? What it adds, by a smaller corpus.

300 queries over passages of 100 random words in BEIR's layout, a tiny encoder, each size in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measure import Ratio, Run, apart, main, peak

WORDS = [f"w{number}" for number in range(3000)]
QUERIES = 300


def write_set(folder: Path, passages: int) -> None:
    draw = random.Random(0)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", compresslevel=1, encoding="utf-8") as file:
        for row in range(passages):
            file.write(json.dumps({"_id": f"p{row}", "text": " ".join(draw.choices(WORDS, k=100))}) + "\n")
    asked = [{"_id": f"q{row}", "text": " ".join(draw.choices(WORDS, k=8))} for row in range(QUERIES)]
    (folder / "queries.en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in asked), encoding="utf-8")
    judged = [f"q{row}\tp{row * (passages // QUERIES)}\t1\n" for row in range(QUERIES)]
    (folder / "qrels.tsv").write_text("".join(judged), encoding="utf-8")


def memory_and_seconds(passages: int) -> list[float]:
    """MiB beyond what the libraries and the model take, and seconds."""
    from st_xling.data.retrieval import read_retrieval_set
    from st_xling.evaluation.retrieval import RetrievalEvaluator
    from st_xling.models import tiny_encoder

    model = tiny_encoder([" ".join(WORDS)], vocabulary=3200, hidden_size=16, layers=1, heads=2, max_length=8).to("cpu")
    model.encode(["warm"] * 256)
    with tempfile.TemporaryDirectory() as folder:
        write_set(Path(folder), passages)
        before, started = peak(), time.process_time()
        RetrievalEvaluator([read_retrieval_set(folder, language="en")], batch_size=256).report(model)
        return [peak() - before, time.process_time() - started]


def measure(run: Run, *, passages: tuple[int, ...] = (20_000, 100_000)) -> Iterator[Ratio]:
    small, large = (apart(memory_and_seconds, count) for count in passages)
    what, peer = f"{passages[1]:,} passages: ", f"{passages[0]:,}"
    note = f"{large[0]:.0f} by {small[0]:.0f} MiB"
    yield Ratio(f"{what}memory", peer, max(1.0, large[0]) / max(1.0, small[0]), note=note)
    yield Ratio(f"{what}time", peer, large[1] / small[1], at_most=1.2 * passages[1] / passages[0])


if __name__ == "__main__":
    main(measure, quick={"passages": (300, 600)})
