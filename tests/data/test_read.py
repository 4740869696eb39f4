"""Readers of parallel text: what is written is what is read, whole or as a stream, and every fault is found."""

import csv
import gzip
import json
import logging
import lzma
import pickle
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict, Features, IterableDataset, Translation, Value

from st_xling.data import COLUMNS, ParallelTextError, load_data_specs, load_pairs
from st_xling.data.pairs import head, stream_rows
from st_xling.data.read import labeled_pairs
from tests.retrieval_files import json_lines

stream_pairs = partial(load_pairs, stream=True)

REAL = [
    ("هذا كتابٌ جديد", "This is a new book"),
    ("นี่คือหนังสือเล่มใหม่", "日本語のテキスト"),
    ("👩‍👩‍👧‍👦 Famille", "e\u0301te\u0301 vs été"),
    ("line\u2028separator", "next\x85line \x0b\x0c\x1c"),
    ('ein einzelnes " Zeichen', 'a lone " mark'),
    ('"', "'"),
    ("  leading and trailing  ", "\u00a0no-break\u00a0"),
]

KINDS = ["tsv", "tsv.gz", "tsv.xz", "csv", "jsonl", "jsonl.gz", "parquet", "moses", "moses.gz", "saved"]


def write(folder: Path, kind: str, pairs: list[tuple[str, str]]) -> Path:
    """The pairs in one of the layouts, in line ends and spellings that differ; the place to read them from."""
    sides = {"de": [source for source, _ in pairs], "en": [target for _, target in pairs]}
    packed = gzip.compress if kind.endswith(".gz") else lzma.compress if kind.endswith(".xz") else bytes
    path = folder / f"de-en.{kind}"
    if kind.startswith("tsv"):
        text = "\ufeff" + "\r\n".join(map("\t".join, pairs))
        path.write_bytes(packed(text.encode()))
    elif kind == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("source", "target"), *pairs])
    elif kind.startswith("jsonl"):
        rows = ({"src": s, "tgt": t} if packed is bytes else {"translation": {"de": s, "en": t}} for s, t in pairs)
        path.write_bytes(packed("\n".join(json.dumps(row, ensure_ascii=len(pairs) % 2 == 0) for row in rows).encode()))
    elif kind == "parquet":
        table = pa.table({"en": pa.array(sides["en"], "string"), "id": range(len(pairs)), "de": sides["de"]})
        pq.write_table(table, path, row_group_size=1000)
    elif kind.startswith("moses"):
        for code, texts in sides.items():
            end = f".{code}.gz" if packed is gzip.compress else f".{code}"
            (folder / f"c{end}").write_bytes(packed("".join(f"{text}\n" for text in texts).encode()))
        return folder / "c"
    else:
        path = folder / "saved"
        DatasetDict({"train": Dataset.from_dict(sides)}).save_to_disk(path)
    return path


def cells(dataset: Any) -> list[tuple[str, str]]:
    return [(row["source"], row["target"]) for row in dataset]


def codes(dataset: Any) -> tuple[str, str]:
    row = next(iter(dataset))
    return row["source_language"], row["target_language"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_what_is_read(tmp_path: Path, kind: str) -> None:
    pairs = REAL * 300
    location = write(tmp_path, kind, pairs)
    dataset = load_pairs(location)
    stream = load_pairs(location, stream=True)
    assert isinstance(stream, IterableDataset) and stream.column_names == dataset.column_names == list(COLUMNS)
    assert {str(feature.dtype) for feature in dataset.features.values()} == {"string"}
    assert cells(dataset) == pairs and codes(dataset) == ("de", "en")
    assert list(stream) == list(dataset) == list(stream)  # twice
    expected = None if kind == "saved" else len(pairs) + (kind == "csv")  # an estimate: a header is a line
    assert stream_rows(stream) == expected
    assert list(head(stream, 1500)) == list(dataset.select(range(1500)))


JSON_FAULTS = [
    '{"source": "a", "target": "b"}',
    '{"source": "a", "target": ',
    '["a", "b"]',
    '{"source": "a"}',
    '{"source": 1, "target": null}',
    '{"source": "a", "target": " "}',
    "",
    '{"source": "\\ud83d", "target": "b"}',
]

# Name of a file, what it holds, its faults, and the pairs that are left without the faulty lines.
FAULTY: dict[str, tuple[str, bytes, list[str], list[tuple[str, str]]]] = {
    "TSV": (
        "c.tsv",
        b"gut\tgood\neins\n \tempty\n\nx\xff\ty\na\tb\tc\n",
        [
            r"c\.tsv:2: wrong column count \(expected 2, got 1\)",
            r":3: empty side \(source\)",
            r":4: empty line",
            r":5: invalid UTF-8 \(byte 0xff at byte 2\)",
            r":6: wrong column count \(expected 2, got 3\)",
        ],
        [("gut", "good")],
    ),
    "CSV, open quote": ("c.csv", b'x,y\n"a,b\n"e",f\n', [":2: unclosed quote"], [("x", "y"), ("e", "f")]),
    "CSV, a quote that is closed before another": (
        "c.csv",
        b'x,y\n"a,b\n"e",f\nRohr 5",pipe\n', [":2: unclosed quote"], [("x", "y"), ("e", "f"), ('Rohr 5"', "pipe")],
    ),
    "CSV, field over lines": (
        "c.csv",
        b'x,y\n"a\nb",c\nd,e\nRohr 5",pipe\n',
        [":2: unclosed quote", r":3: unclosed quote \(ends a field that line 2 opened"],
        [("x", "y"), ("d", "e"), ('Rohr 5"', "pipe")],
    ),
    "TSV, header of a second file": (
        "c.tsv",
        b"gut\tgood\nsource\ttarget\nSource\tsource\n",
        [r":2: second header \(source, target\)"],
        [("gut", "good"), ("Source", "source")],
    ),
    "CSV, header of a second file": (
        "de-en.csv", b"id,de,en\n1,a,b\nid,de,en\n", [r":3: second header \(id, de, en\)"], [("a", "b")],
    ),
    "CSV, semicolons": (
        "c.csv",
        b'source;target\n"Ja; nein, doch";"Yes; no, yes"\nnur eins\n',
        [r":3: wrong column count \(expected 2"],
        [("Ja; nein, doch", "Yes; no, yes")],
    ),
    "JSON": (
        "c.jsonl",
        "\n".join(JSON_FAULTS).encode(),
        [
            r":2: bad JSON \(Expecting value",
            r":3: bad JSON \(expected an object, got list\)",
            r":4: missing key \(expected 'source' and 'target', got source\)",
            r":5: non-string value \(source is int\)",
            r":5: non-string value \(target is null\)",
            r":6: empty side \(target\)",
            r":7: bad JSON \(an empty line\)",
            r":8: bad JSON \(source holds half a surrogate pair\)",
        ],
        [("a", "b")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTY)
def test_faults(tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture) -> None:
    """All together of a file, the first of a stream; dropped and counted where that is asked for."""
    name, content, faults, sound_pairs = FAULTY[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ParallelTextError) as caught:
        load_pairs(tmp_path / name)
    assert f"got {len(faults)} fault" in str(caught.value) and len(caught.value.faults) == len(faults)
    for fault in faults:
        assert re.search(fault, str(caught.value)), fault
    assert "skip_bad_lines=True / --skip-bad-lines" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults
    with pytest.raises(ParallelTextError, match=faults[0]):
        list(stream_pairs(tmp_path / name))
    faulty_lines = len({fault.line for fault in caught.value.faults})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # from the file, then from the cache
            assert cells(load_pairs(tmp_path / name, skip_bad_lines=True)) == sound_pairs
            assert f"dropped for faults in {faulty_lines} lines" in caplog.text and re.search(faults[-1], caplog.text)
            caplog.clear()
        assert cells(load_pairs(tmp_path / name, skip_bad_lines=True, stream=True)) == sound_pairs
        assert f"dropped for faults in {faulty_lines} lines" in caplog.text and re.search(faults[-1], caplog.text)


def test_many_faults_are_counted_and_rows_before_them_streamed(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("a\tb\n" * 3000 + "one\n" * 33, encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"got 33 faults(.|\n)*:3020: (.|\n)*and 13 more") as caught:
        load_pairs(path)
    assert ":3021:" not in str(caught.value)
    rows = iter(load_pairs(path, stream=True))
    for _ in range(3000):
        next(rows)
    with pytest.raises(ParallelTextError, match=r"c\.tsv:3001: wrong column count"):
        next(rows)


def test_faults_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"source": ["a", None, ""], "target": ["b", "c", "d"]}), path)
    with pytest.raises(ParallelTextError, match=r":2: non-string value \(source is null\)(.|\n)*:3: empty side"):
        load_pairs(path)
    pq.write_table(pa.table({"source": [1], "text": ["b"]}), path)
    with pytest.raises(ParallelTextError, match=r"missing key \(expected source/target.*got source, text"):
        load_pairs(path)
    pq.write_table(pa.table({"translation": [{"de": "Hund", "en": "dog"}]}), path)
    assert cells(load_pairs(path)) == [("Hund", "dog")]


MEASURE = """
import resource, sys
from st_xling.data import load_pairs
load_pairs(sys.argv[1] + "/small.jsonl")  # imports, and the caches of the libraries
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = load_pairs(sys.argv[1] + "/large.jsonl")
print(len(data), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.slow
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """90 MB, in a process of its own; long lines, so that few of them are many bytes."""
    line = json.dumps({"source": "Quelle {} " + "x" * 5000, "target": "target {} " + "y" * 5000})
    rows = "".join(line.replace("{}", str(n)) + "\n" for n in range(1000))
    (tmp_path / "small.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "large.jsonl").write_text(rows * 9, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, check=True)
    count, growth_mib = map(int, done.stdout.split())
    assert count == 9000 and growth_mib < 60, growth_mib


@pytest.mark.parametrize("reader", [load_pairs, stream_pairs])
def test_files_that_are_not_there(tmp_path: Path, reader: Any) -> None:
    (tmp_path / "de-en.tsv").write_text("a\tb\n", encoding="utf-8")
    (tmp_path / "c.de").write_text("a\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"the nearest name there is de-en\.tsv"):
        reader(tmp_path / "de-en.tsv.gz")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        reader(tmp_path / "nowhere" / "de-en.tsv")
    with pytest.raises(FileNotFoundError, match=r"the nearest name there is c\.de"):
        reader((tmp_path / "c.de", tmp_path / "c.en"))
    with pytest.raises(ValueError, match="pass both paths"):
        reader(tmp_path / "c.de")
    with pytest.raises(ValueError, match=r"takes no columns=\(0, 1\)"):
        reader((tmp_path / "c.de", tmp_path / "c.en"), columns=(0, 1))


NAMED = {"de-en.tsv": "de en", "de-en.dev.tsv": "de en", "wmt_zh-vi.tsv": "zh vi", "dev-de.tsv": "und und"}
NAMED |= {"news.ger-eng.tsv": "ger eng", "new-old.tsv": "und und", "built-in-to.tsv": "und und"}


@pytest.mark.parametrize("name", NAMED)
def test_languages_of_a_name(tmp_path: Path, name: str) -> None:
    source, target = NAMED[name].split()
    (tmp_path / name).write_text("a\tb\n", encoding="utf-8")
    assert codes(load_pairs(tmp_path / name)) == (source, target)
    assert codes(load_pairs(tmp_path / name, source_language="nl")) == ("nl", target)


def test_languages_of_columns(tmp_path: Path) -> None:
    text = "source,target,source_language,target_language\na,b,de,fr\nc,d,,fr\n"
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    dataset = load_pairs(tmp_path / "c.csv")
    assert dataset["source_language"][:] == ["de", "und"] and dataset["target_language"][:] == ["fr", "fr"]
    assert load_pairs(tmp_path / "c.csv", source_language="nl")["source_language"][:] == ["nl", "nl"]
    (tmp_path / "n.csv").write_text("n,en,de\n1,dog,Hund\n", encoding="utf-8")
    named = load_pairs(tmp_path / "n.csv", columns=("de", "en"))
    assert cells(named) == [("Hund", "dog")] and codes(named) == ("de", "en")
    (tmp_path / "de-en.tsv").write_text("Hund\tdog\n", encoding="utf-8")
    turned = load_pairs(tmp_path / "de-en.tsv", source_language="en", target_language="de", columns=(1, 0))
    assert cells(turned) == [("dog", "Hund")] and codes(turned) == ("en", "de")


def test_paragraphs_of_translated_questions(tmp_path: Path) -> None:
    def write(language: str, paragraphs: list[str]) -> Path:
        qas = [{"id": "1", "question": "?", "answers": []}]
        entries = [{"context": text, "qas": qas} for text in paragraphs]
        content = {"data": [{"paragraphs": entries}]}
        path = tmp_path / f"xquad.{language}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    zh = write("zh", ["你好。\n再见。", "猫。"])
    vi = write("vi", ["Xin chào. Tạm biệt.", "Con mèo."])
    pairs = load_data_specs([f"zh-vi={zh},{vi}"])["zh-vi"]
    assert cells(pairs) == [("你好。\n再见。", "Xin chào. Tạm biệt."), ("猫。", "Con mèo.")]
    assert codes(pairs) == ("zh", "vi")
    with pytest.raises(ParallelTextError, match="2 paragraphs, but .*xquad.vi.json has 1"):
        load_pairs((zh, write("vi", ["Con mèo."])))


def test_which_side_is_source(tmp_path: Path) -> None:
    for name in ("corpus", "en-de"):
        (tmp_path / f"{name}.en").write_text("dog\n", encoding="utf-8")
        (tmp_path / f"{name}.de").write_text("Hund\n", encoding="utf-8")
    assert cells(load_pairs(tmp_path / "corpus")) == [("Hund", "dog")]  # English is the target
    assert cells(load_pairs(tmp_path / "en-de")) == [("dog", "Hund")]  # unless the name says otherwise
    assert cells(load_pairs(tmp_path / "corpus", source_language="en")) == [("dog", "Hund")]
    with pytest.raises(ValueError, match="swap the languages or the files"):
        load_pairs((tmp_path / "corpus.de", tmp_path / "corpus.en"), source_language="en", target_language="de")
    (tmp_path / "corpus.fr").write_text("chien\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected two languages out of de, en, fr, got none named; name two, as in"):
        load_pairs(tmp_path / "corpus")
    chosen = load_pairs(tmp_path / "corpus", source_language="fr", target_language="de")
    assert cells(chosen) == [("chien", "Hund")]
    for ending in ("one.txt", "two.txt"):
        (tmp_path / ending).write_text("a\n", encoding="utf-8")
    assert codes(load_pairs((tmp_path / "one.txt", tmp_path / "two.txt"))) == ("und", "und")


@pytest.mark.parametrize("reader", [load_pairs, stream_pairs])
@pytest.mark.parametrize("rows", [(1500, 1400), (0, 1)])
def test_unequal_line_counts_cannot_be_skipped(tmp_path: Path, reader: Any, rows: tuple[int, int]) -> None:
    for code, count in zip(("de", "en"), rows):
        (tmp_path / f"c.{code}").write_text("a\n" * count, encoding="utf-8")
    counts = rf"unequal line counts \({rows[0]} lines, but .*c\.en has {rows[1]}\)"
    with pytest.raises(ParallelTextError, match=counts) as caught:
        list(reader(tmp_path / "c", skip_bad_lines=True))
    assert "skip_bad_lines=True" not in str(caught.value)


def hub_folder(tmp_path: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> Path:
    """A folder that ``load_dataset`` reads as it reads the Hub, of which tests ask nothing."""
    return json_lines(tmp_path / "set" / name, rows).parent


def test_unknown_id() -> None:
    with pytest.raises(ValueError, match=r"nobody/no-such-corpus; the Hub answered: ") as caught:
        load_pairs("nobody/no-such-corpus")
    assert caught.value.__cause__ is not None


def test_direction_and_columns_are_asked_for(tmp_path: Path) -> None:
    folder = hub_folder(tmp_path, [{"translation": {"de": "Hund", "en": "dog", "fr": "chien"}}])
    by_language = load_pairs(folder, source_language="en", target_language="fr")
    assert cells(by_language) == [("dog", "chien")] and codes(by_language) == ("en", "fr")
    by_column = load_pairs(folder, columns=("fr", "de"))
    assert cells(by_column) == [("chien", "Hund")] and codes(by_column) == ("fr", "de")
    with pytest.raises(ParallelTextError, match="missing key"):
        load_pairs(folder)


def test_a_stream_of_several_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for part in range(4):
        rows = [{"source": f"{part}", "target": "b", "n": part}, {"source": "", "target": "d", "n": part}]
        folder = hub_folder(tmp_path, rows, f"train-{part}.jsonl")
    stream = load_pairs(folder, skip_bad_lines=True, stream=True)
    assert stream.column_names == list(COLUMNS)
    assert cells(stream) == cells(load_pairs(folder, skip_bad_lines=True)) == [(f"{n}", "b") for n in range(4)]
    with pytest.raises(ParallelTextError, match=":2: empty side"):
        list(load_pairs(folder, stream=True))
    with pytest.raises(ParallelTextError, match="missing key"):
        load_pairs(folder, columns=("de", "en"), stream=True)


def test_splits_and_faulty_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"source": "a", "target": "b"}, {"source": "", "target": "d"}, {"source": "e", "target": None}]
    folder = hub_folder(tmp_path, rows, "test.jsonl")  # the only one
    with pytest.raises(ParallelTextError, match=r":2: empty side \(source\)(.|\n)*:3: non-string value"):
        load_pairs(folder)
    assert cells(load_pairs(folder, skip_bad_lines=True)) == [("a", "b")] and "dropped" in caplog.text
    hub_folder(tmp_path, [{"source": "c", "target": "d"}], "validation.jsonl")
    with pytest.raises(ValueError, match="expected a split to choose, got none for"):
        load_pairs(folder)
    assert cells(load_pairs(folder, split="validation")) == [("c", "d")]
    with pytest.raises(ValueError, match="with split dev; the Hub answered"):
        load_pairs(folder, split="dev")


def test_folders_of_tatoeba_and_streams_of_specs(tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    for code in ("deu", "eng"):
        (tmp_path / f"tatoeba.deu-eng.{code}").write_text("a\n", encoding="utf-8")
    with pytest.raises(ValueError, match="read_tatoeba"):
        load_pairs(tmp_path)
    assert codes(load_pairs(tmp_path / "tatoeba.deu-eng")) == ("deu", "eng")
    loaded = load_data_specs([str(write(tmp_path, "tsv", REAL)), "phrasebook:zh?size=5"], stream=True)
    assert isinstance(loaded["de-en"], IterableDataset) and isinstance(loaded["zh-en"], Dataset)
    with pytest.raises(ParallelTextError, match="at least one sentence pair"):
        load_data_specs([str(tmp_path / "empty.tsv")], stream=True)


def test_importing_is_cheap() -> None:
    heavy = "[name for name in ('datasets', 'torch', 'pyarrow', 'numpy') if name in sys.modules]"
    code = f"import sys, st_xling.data; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("columns", [("source", "target"), ("de", "en"), ("anchor", "positive", "negative")])
def test_languages_of_a_data_set_are_those_of_its_name(columns: tuple[str, ...]) -> None:
    data = Dataset.from_dict({name: [f"{name} 1", f"{name} 2"] for name in columns})
    labeled = labeled_pairs({"de-en": data})["de-en"]
    assert cells(labeled) == [(f"{columns[0]} {row}", f"{columns[1]} {row}") for row in (1, 2)]
    assert codes(labeled) == ("de", "en") and ("negative_1" in labeled.column_names) == (len(columns) == 3)
    assert labeled_pairs({"x": labeled}) == {"x": labeled} and labeled_pairs(labeled) == {"pairs": labeled}
    streamed = labeled_pairs({"de-en": data.to_iterable_dataset()})["de-en"]
    assert isinstance(streamed, IterableDataset) and list(streamed) == list(labeled)


@pytest.mark.parametrize("stream", [False, True])
def test_labels_of_a_data_set(stream: bool) -> None:
    """Rows with the label 0 are no pairs, with or without languages; a teacher's vectors are no such labels."""
    rows = [("Der Hund", "The dog", 1), ("Der Hund", "A city", 0)]
    without_languages = Dataset.from_dict(dict(zip(("source", "target", "label"), map(list, zip(*rows)))))
    languages = without_languages.add_column("source_language", ["de"] * 2).add_column("target_language", ["en"] * 2)
    vectors = without_languages.remove_columns("label").add_column("label", [[0.5, 1.0], [0.0, 1.0]])
    for data, kept in ((without_languages, 1), (languages, 1), (vectors, 2)):
        if stream:
            data = data.to_iterable_dataset()
        labeled = labeled_pairs({"de-en": data})["de-en"]
        assert len(list(labeled)) == kept and next(iter(labeled))["source_language"] == "de"
        assert "label" not in labeled.column_names


def test_a_data_set_of_translations() -> None:
    features = Features({"id": Value("string"), "translation": Translation(languages=["de", "en"])})
    dataset = Dataset.from_dict({"id": ["0"], "translation": [{"en": "Dog.", "de": "Hund."}]}, features=features)
    for data in (dataset, dataset.to_iterable_dataset()):
        labeled = labeled_pairs({"de-en": data})["de-en"]
        assert cells(labeled) == [("Hund.", "Dog.")] and codes(labeled) == ("de", "en")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ({"de-en": [("Ja.", "Yes.")]}, TypeError, "got list for de-en"),
        (Dataset.from_dict({"a": ["Ja."], "b": ["Yes."]}), ParallelTextError, "got a, b"),
        (Dataset.from_dict({"source": ["Ja.", None], "target": ["Yes.", "No."]}), ParallelTextError, "pairs:2"),
    ],
)
def test_data_sets_that_are_no_pairs(data: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        labeled_pairs(data)
