"""Streams give what readers give, row for row; their faults have line numbers; memory stays small."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict, IterableDataset

from st_xling.data import ParallelTextError, load_data_specs, read_parallel, stream_parallel
from st_xling.data.pairs import head, stream_rows

PAIRS = [
    ("Der Hund schläft.", "The dog sleeps."),
    ("แมวดำตัวหนึ่ง", "A black cat."),
    ('Ein "Zitat', 'A "quote'),
    ("لا أعرف.", "I don't\u2028know. 🙂"),
] * 700  # more than two parts


def write(folder: Path, kind: str) -> Any:
    """The pairs in one of the layouts, as a location to read."""
    tsv = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    if kind == "tsv":
        (folder / "de-en.tsv").write_bytes(b"\xef\xbb\xbf" + tsv.replace("\n", "\r\n").encode().removesuffix(b"\r\n"))
    elif kind == "tsv.gz":
        (folder / "de-en.tsv.gz").write_bytes(gzip.compress(tsv.encode()))
    elif kind == "csv":
        with (folder / "de-en.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(PAIRS)
    elif kind == "jsonl":
        rows = [json.dumps({"translation": {"de": s, "en": t}, "source_language": "nds"}) for s, t in PAIRS]
        (folder / "de-en.jsonl").write_text("\n".join(rows), encoding="utf-8")
    elif kind == "parquet":
        table = pa.table({"en": [t for _, t in PAIRS], "id": range(len(PAIRS)), "de": [s for s, _ in PAIRS]})
        pq.write_table(table, folder / "de-en.parquet", row_group_size=1000)
    elif kind in ("moses", "prefix"):
        for place, code in enumerate(("de", "en")):
            (folder / f"c.{code}").write_text("".join(f"{pair[place]}\n" for pair in PAIRS), encoding="utf-8")
        return (folder / "c.de", folder / "c.en") if kind == "moses" else folder / "c"
    else:
        columns = {"de": [s for s, _ in PAIRS], "en": [t for _, t in PAIRS]}
        DatasetDict({"train": Dataset.from_dict(columns)}).save_to_disk(folder / "saved")
        return folder / "saved"
    return folder / f"de-en.{kind}"


@pytest.mark.parametrize("kind", ["tsv", "tsv.gz", "csv", "jsonl", "parquet", "moses", "prefix", "folder"])
def test_a_stream_is_what_is_read(kind: str, tmp_path: Path) -> None:
    location = write(tmp_path, kind)
    whole, stream = read_parallel(location), stream_parallel(location)
    assert isinstance(stream, IterableDataset) and stream.column_names == whole.column_names
    assert list(stream) == list(whole) == list(stream)  # twice
    assert stream_rows(stream) == (None if kind == "folder" else len(PAIRS))
    assert list(head(stream, 1500)) == list(whole.select(range(1500)))


def test_data_files_in_a_folder_stream_by_the_hub_reader(tmp_path: Path) -> None:
    pq.write_table(pa.table({"de": ["Hund", "Katze"], "en": ["dog", "cat"]}), tmp_path / "train.parquet")
    stream = stream_parallel(tmp_path)
    assert list(stream) == list(read_parallel(tmp_path))
    assert next(iter(stream))["source_language"] == "de"


def test_languages_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("1\tHund\tdog\n2\tKatze\tcat\n", encoding="utf-8")
    row = next(iter(stream_parallel(path, source_language="en", target_language="de", columns=(2, 1))))
    assert row == {"source": "dog", "target": "Hund", "source_language": "en", "target_language": "de"}


FAULTS = {
    "tsv": (
        "x.tsv",
        "a\tb\n" * 1500 + "no column\n" + "a\tb\n",
        r"x\.tsv:1501: wrong column count \(expected 2, got 1",
    ),
    "jsonl": ("x.jsonl", '{"source": "a", "target": "b"}\n' * 1500 + "{\n", r"x\.jsonl:1501: bad JSON"),
    "empty side": ("x.tsv", "a\tb\n" * 1200 + "a\t \n", r"x\.tsv:1201: empty side \(target\)"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_line_is_named_when_it_is_reached(case: str, tmp_path: Path, caplog: Any) -> None:
    name, text, message = FAULTS[case]
    (tmp_path / name).write_text(text, encoding="utf-8")
    rows = iter(stream_parallel(tmp_path / name))
    for _ in range(1000):
        next(rows)
    with pytest.raises(ParallelTextError, match=message):
        list(rows)
    with caplog.at_level(logging.WARNING):
        kept = list(stream_parallel(tmp_path / name, skip_bad_lines=True))
    assert len(kept) == text.count("\n") - 1
    assert [record.message for record in caplog.records] == ["dropped 1 faulty lines in this pass over the stream"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"a\tb\n\xff\tb\n")
    with pytest.raises(ParallelTextError, match=r"x\.tsv:2: invalid UTF-8 \(byte 0xff at byte 1\)"):
        list(stream_parallel(tmp_path / "x.tsv"))
    (tmp_path / "y.tsv").write_bytes("a\tb\n".encode("utf-16"))
    with pytest.raises(ParallelTextError, match="byte order mark of UTF-16"):
        list(stream_parallel(tmp_path / "y.tsv"))
    (tmp_path / "z.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 9000)[:-20])
    with pytest.raises(ParallelTextError, match="expected a whole packed file"):
        stream_parallel(tmp_path / "z.tsv.gz")
    whole = gzip.compress("".join(f"{n}\t{n * n}\n" for n in range(150_000)).encode())
    (tmp_path / "z.tsv.gz").write_bytes(whole[:-20])
    stream = stream_parallel(tmp_path / "z.tsv.gz")
    with pytest.raises(ParallelTextError, match="expected a whole packed file, got after .* bytes"):
        list(stream)
    (tmp_path / "w.tsv.gz").write_bytes(b"a\tb\n")
    with pytest.raises(ParallelTextError, match="expected gz"):
        list(stream_parallel(tmp_path / "w.tsv.gz"))


def test_moses_files_of_unequal_length(tmp_path: Path) -> None:
    (tmp_path / "c.de").write_text("a\n" * 1500, encoding="utf-8")
    (tmp_path / "c.en").write_text("b\n" * 1400, encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"c\.de: unequal line counts \(1500 lines, but .*c\.en has 1400"):
        list(stream_parallel(tmp_path / "c", skip_bad_lines=True))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("absent.tsv", "absent.jsonl.gz"):
        with pytest.raises(FileNotFoundError, match="absent"):
            stream_parallel(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="c.en"):
        stream_parallel((write(tmp_path, "moses")[0], tmp_path / "d" / "c.en"))


def test_specs(tmp_path: Path) -> None:
    write(tmp_path, "tsv"), write(tmp_path, "parquet")
    specs = [str(tmp_path / "de-en.tsv"), f"fr-en={tmp_path / 'x.tsv'}", "phrasebook:zh?size=5"]
    (tmp_path / "x.tsv").write_text("a\tb\n", encoding="utf-8")
    loaded = load_data_specs(specs, stream=True)
    assert list(loaded) == ["de-en", "fr-en", "zh-en"]
    assert isinstance(loaded["fr-en"], IterableDataset) and isinstance(loaded["zh-en"], Dataset)
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    with pytest.raises(ParallelTextError, match="at least one sentence pair"):
        load_data_specs([str(tmp_path / "empty.tsv")], stream=True)


MEASURE = """
import resource, sys
from st_xling.data import load_data_specs
from st_xling.data.stream_mixture import mix_streams
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
stream = load_data_specs([sys.argv[1]], stream=True)["x"]
mixed = mix_streams({"x": stream}, batch_rows=64, buffer_rows=5000)
for rows, _ in enumerate(mixed.take(25_000), 1):
    before = peak() if rows == 5000 else before if rows > 5000 else 0
print(rows, peak() - before, peak())
"""


def test_a_file_of_200_megabytes_takes_little_memory(tmp_path: Path) -> None:
    """Measured in a process of its own; the file holds long lines, so that few of them are many bytes."""
    line = json.dumps({"source": "Quelle {} " + "x" * 3000, "target": "target {} " + "y" * 3000})
    lines = [line.replace("{}", str(n)) for n in range(1000)]
    with (tmp_path / "x.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(35):
            file.write("\n".join(lines) + "\n")
    size = (tmp_path / "x.jsonl").stat().st_size / 2**20
    assert size > 200
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "x.jsonl")], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    rows, growth, peak = map(int, ran.stdout.split())
    assert rows == 25_000 and growth < 60, (growth, peak)
