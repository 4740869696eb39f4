"""Files of scored pairs: read in every format, looked at, and told whether they were mined with a threshold."""

import bz2
import csv
import gzip
import io
import json
import logging
import lzma
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import datasets
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from st_xling.data.scored import ScoredPair, inspect_scores, read_scored, warn_of_uncut
from st_xling.mining.pipeline.work import WrittenPair, pair_writer
from st_xling.utils.text import ParallelTextError


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


TEXTS = [("Zeile\tmit\nallem \\", "a line"), ("غدًا", "tomorrow"), ("แมวดำ", "a black cat <&>")]


PACK = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd}


def write(
    path: Path,
    scores: list[float],
    margins: list[float] | None = None,
    threshold: float | Literal["none"] | None = None,
) -> Path:
    """A file as ``mine`` writes it, packed if its name says so, or as Parquet."""
    is_packed = path.suffix in PACK
    unpacked = path.with_suffix("") if is_packed else path
    format = unpacked.suffix.removeprefix(".").replace("ndjson", "jsonl")
    if format == "parquet":
        rows = [
            {"score": score, "source": source, "target": target}
            for score, (source, target) in zip(scores, TEXTS * len(scores))
        ]
        if threshold is not None:
            rows = [{**row, "threshold": None if threshold == "none" else threshold} for row in rows]
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    stream = io.BytesIO()
    with pair_writer(stream, format, languages=("de", "en"), margins=margins is not None, threshold=threshold) as add:  # type: ignore[arg-type]
        for row, score in enumerate(scores):
            margin = None if margins is None else margins[row]
            add(WrittenPair(score, ([str(row)], [str(row)]), TEXTS[row % len(TEXTS)], margin))
    content = stream.getvalue()
    if is_packed:
        content = PACK[path.suffix](content)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.jsonl", "a.jsonl.gz", "a.tmx", "a.tmx.gz"])
def test_every_format_is_read(name: str, tmp_path: Path) -> None:
    read = list(read_scored(write(tmp_path / name, [1.25, 0.5, 1.0 / 3])))
    assert [pair.score for pair in read] == [1.25, 0.5, 1.0 / 3]
    expected = TEXTS
    if ".tmx" in name:  # whose segments have no line ends
        expected = [(" ".join(source.split()), " ".join(target.split())) for source, target in TEXTS]
    assert [pair[1:3] for pair in read] == expected
    if ".tmx" not in name:
        rescored = list(read_scored(write(tmp_path / name, [7.5], [1.1])))
        assert rescored == [ScoredPair(7.5, *TEXTS[0], 1.1)]


def test_a_pair_without_a_score(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.jsonl"):
        (pair,) = read_scored(write(tmp_path / name, [-math.inf]))
        assert not math.isfinite(pair.score)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "Hund\tdog\n", "expected scored pairs, with the columns score, .*to score pairs: st-xling score"),
        ("a.tsv", "", "an empty file"),
        ("a.jsonl", '{"source": "Hund", "target": "dog"}\n', "a key 'score'.*the keys source, target"),
        ("a.tmx", "<tmx><body><tu><tuv/><tuv/></tu></body></tmx>", "units with a property 'score'"),
        ("a.tsv", "score\tsource_id\ttarget_id\tsource\ttarget\nx\t1\t1\ta\tb\n1\t2\n", "a.tsv:2.*'x'.*a.tsv:3"),
        ("a.jsonl", '{"score": 1, "source": "a", "target": "b"}\n{"score": true}\n', "a.jsonl:2"),
    ],
)
def test_what_is_no_file_of_scored_pairs(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ParallelTextError, match=f"(?s){message}"):
        list(read_scored(tmp_path / name))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("around", "size"), [(1.0, 10), (0.5, 3), (9.0, 5), (-9.0, 4), (1.05, 1), (1.0, 400)])
def test_pairs_nearest_to_a_score(seed: int, around: float, size: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.choice(np.linspace(0.9, 1.1, 15), 200).tolist()
    pairs = [ScoredPair(score, f"s{row}", "t") for row, score in enumerate(scores)]
    inspection = inspect_scores(pairs, around=around, size=size)
    above = sorted((pair for pair in pairs if pair.score >= around), key=lambda pair: -pair.score)
    below = sorted((pair for pair in pairs if pair.score < around), key=lambda pair: -pair.score)
    assert len(inspection.above) + len(inspection.below) == min(size, 200)
    assert [pair.score for pair in inspection.above] == [
        pair.score for pair in above[len(above) - len(inspection.above) :]
    ]
    assert inspection.below == below[: len(inspection.below)]
    assert (
        abs(len(inspection.above) - len(inspection.below)) <= 1
        or len(inspection.above) == len(above)
        or inspection.below == below
    )
    assert inspection.histogram.total == 200 and inspect_scores(pairs).above == []


UNCUT = [*np.linspace(0.97, 1.08, 60).tolist()]


def test_a_size_or_score_that_cannot_be(tmp_path: Path) -> None:
    """A size of 0 ended with "list index out of range", from Python alone: the command line checks it before."""
    pairs = [ScoredPair(1.0, "Käse", "cheese")]
    with pytest.raises(ValueError, match="size must be at least 1: got 0"):
        inspect_scores(pairs, around=1.0, size=0)
    with pytest.raises(ValueError, match="around must be a finite number: got nan"):
        inspect_scores(pairs, around=math.nan)
    assert inspect_scores([], around=1.0).above == []


@pytest.mark.parametrize("score", ["1" + "0" * 400, '"1.5"', "true", "[]"])
def test_a_score_of_json_that_is_no_number(score: str, tmp_path: Path) -> None:
    """A whole number beyond the range of floats ended with Python's own "int too large to convert to float"."""
    path = tmp_path / "pairs.jsonl"
    path.write_text(f'{{"score": {score}, "source": "Käse", "target": "cheese"}}\n', encoding="utf-8")
    with pytest.raises(ParallelTextError, match="expected a score, a source and a target"):
        list(read_scored(path))


FORMATS = ["a.tsv", "a.tsv.gz", "a.tsv.xz", "a.tsv.zst", "a.jsonl", "a.jsonl.zst", "a.ndjson", "a.tmx", "a.tmx.xz"]


@pytest.mark.parametrize("name", [*FORMATS, "a.parquet"])
def test_a_mined_file_carries_its_threshold(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of a file without a threshold whose scores do not tell it, such as cosines, ``train`` took all in silence."""
    scores = [0.9, 0.8, 0.4, 0.1]
    path = write(tmp_path / name, scores, threshold="none")
    warn_of_uncut(path)
    assert f"{path} was mined without a threshold: all 4 pairs are in it, right or wrong" in caplog.text
    caplog.clear()
    assert [pair.score for pair in read_scored(path)] == scores
    warn_of_uncut(write(tmp_path / name, [score for score in UNCUT if score > 1.02], threshold=1.02))
    assert caplog.text == ""
    warn_of_uncut(write(tmp_path / name, UNCUT, threshold="none"))
    assert "was mined without a threshold: 17 of 60 pairs score below 1" in caplog.text
    caplog.clear()
    warn_of_uncut(write(tmp_path / name, UNCUT, threshold=0.5))
    assert "was mined with the low threshold 0.5: 17 of 60 pairs score below 1" in caplog.text


def without_nan(numbers: Iterable[float | None]) -> list[float | None]:
    return [None if number is None or math.isnan(number) else number for number in numbers]


@pytest.mark.parametrize("threshold", [1.02, "none"])
def test_other_readers_read_the_threshold(threshold: float | Literal["none"], tmp_path: Path) -> None:
    """A comment in the file, which would tell it, too, was a row to pandas, datasets and pyarrow, or an error."""
    path = write(tmp_path / "a.tsv", [1.08, 1.05], threshold=threshold)
    lines = write(tmp_path / "a.jsonl", [1.08, 1.05], threshold=threshold)
    expected = [None, None] if threshold == "none" else [1.02, 1.02]
    frame = pandas.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE)
    assert frame["score"].tolist() == [1.08, 1.05] and frame["target"].tolist() == ["a line", "tomorrow"]
    assert without_nan(frame["threshold"]) == expected
    table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False))
    assert without_nan(table["threshold"].to_pylist()) == expected
    read = pandas.read_json(lines, lines=True)
    assert without_nan(read["threshold"]) == expected
    loaded = datasets.load_dataset("json", data_files=str(lines), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["threshold"][:] == expected and loaded["source"][1] == "غدًا"


@pytest.mark.parametrize("name", [*FORMATS, "a.parquet"])
def test_a_file_that_was_mined_without_a_threshold(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``train`` took 254 mined pairs, 170 of them wrong, without a word."""
    path = write(tmp_path / name, UNCUT)
    warn_of_uncut(path)
    assert f"{path} seems to have been mined without a threshold: 17 of 60 pairs score below 1" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    caplog.clear()
    write(tmp_path / name, [score - 1 for score in UNCUT])
    warn_of_uncut(path)
    assert "17 of 60 pairs score below 0" in caplog.text


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.tmx"])
@pytest.mark.parametrize(
    "scores",
    [
        [score for score in UNCUT if score > 1.02],
        [1.08] * 90 + [0.99],  # of a text in which nearly all sentences have a translation
        np.linspace(0.2, 0.9, 50).tolist(),  # an alignment of documents
        [1.0],
        [],
    ],
)
def test_files_without_a_warning(
    name: str, scores: list[float], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_uncut(write(tmp_path / name, scores))
    assert caplog.text == ""


def test_a_folder_of_mined_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "a.tsv", [1.08, 1.05], threshold=1.02)
    path = write(tmp_path / "b.tsv.gz", [1.08, 1.05], threshold="none")
    warn_of_uncut(tmp_path)
    assert [record.message.partition(" was ")[0] for record in caplog.records] == [str(path)]


def test_margins_tell_where_a_cross_encoder_has_scored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_uncut(write(tmp_path / "cut.tsv", [-3.0, 0.2, 5.0], [1.1, 1.05, 1.2]))
    assert caplog.text == ""
    warn_of_uncut(write(tmp_path / "uncut.tsv", [0.2, 0.3, 0.4], [0.99, 1.05, 1.2]))
    assert "1 of 3 pairs score below 1" in caplog.text


def test_other_files_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xff\xfe\n")
    (tmp_path / "b.jsonl").write_text(json.dumps(["score"]), encoding="utf-8")
    (tmp_path / "c.tmx").write_text("<tmx", encoding="utf-8")
    (tmp_path / "d.tsv").write_text("Hund\tdog\n", encoding="utf-8")
    (tmp_path / "e.tsv.gz").write_bytes(b"no gzip")
    for path in [*tmp_path.iterdir(), tmp_path, tmp_path / "nothing", "user/data"]:
        warn_of_uncut(path)
    assert caplog.text == ""
