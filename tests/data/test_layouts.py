"""Data as they come: layouts of sentence-transformers and OPUS, headers, hard negatives, sides that are swapped."""

import logging
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset

from st_xling.data import ParallelTextError, load_data_specs, load_pairs, orient
from st_xling.data.holdout import hold_out
from st_xling.data.pairs import stream_rows
from st_xling.data.samplers import LengthGroupedBatchSampler
from st_xling.data.spec import parse_data_spec
from tests.data.test_read import cells, codes, stream_pairs
from tests.retrieval_files import json_lines, lines

HUND = [("Der Hund schläft.", "The dog sleeps."), ("สุนัขนอนหลับ", "A dog — asleep")]
NEGATIVES = [("The cat sleeps.", "A cat"), ("No dog", "Two dogs")]


def table(folder: Path, ending: str, names: list[str], rows: list[tuple[str, ...]], name: str = "c") -> Path:
    """The same table as TSV or CSV with a header (if there are names), JSON lines or Parquet."""
    path = folder / f"{name}.{ending}"
    if ending in ("tsv", "csv"):
        divide = {"tsv": "\t", "csv": ","}[ending]
        lines(path, (divide.join(row) for row in ((tuple(names), *rows) if names else rows)))
    elif ending == "jsonl":
        json_lines(path, (dict(zip(names, row)) for row in rows))
    else:
        Dataset.from_dict(dict(zip(names, map(list, zip(*rows))))).to_parquet(str(path))
    return path


@pytest.mark.parametrize("reader", [load_pairs, stream_pairs])
@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_columns_of_sentence_transformers(tmp_path: Path, ending: str, reader: Any) -> None:
    turned = [(english, other) for other, english in HUND]
    path = table(tmp_path, ending, ["english", "non_english"], turned)
    assert cells(reader(path)) == HUND and codes(reader(path)) == ("und", "en")
    assert codes(reader(path, source_language="de")) == ("de", "en")
    other_way = reader(path, source_language="en", target_language="de")
    assert cells(other_way) == turned and codes(other_way) == ("en", "de")
    named = table(tmp_path, ending, ["english", "non_english"], turned, name="talks.en-de")
    assert cells(reader(named)) == turned and codes(reader(named)) == ("en", "de")
    path = table(tmp_path, ending, ["Anchor", "Positive"], HUND)
    assert cells(reader(path)) == HUND


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_hard_negatives_stay_beside_their_pair(tmp_path: Path, ending: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [(*pair, *others) for pair, others in zip(HUND, NEGATIVES)]
    path = table(tmp_path, ending, ["anchor", "positive", "negative_2", "negative_1"], rows * 30)
    (dataset,) = load_data_specs([f"de-en={path}"]).values()
    (stream,) = load_data_specs([f"de-en={path}?size=60"], stream=True).values()
    for data in (dataset, stream):
        assert data.column_names[4:] == ["negative_1", "negative_2"] and len(list(data)) == 60
        row = next(iter(data))
        assert (row["negative_1"], row["negative_2"]) == NEGATIVES[0][::-1]
    assert dataset[:] == Dataset.from_list(list(stream))[:]
    train, _ = hold_out({"de-en": dataset}, share=0.5)
    assert "negative_2" in train["de-en"].column_names
    # A negative is a text of its batch like any other: it is counted, and kept apart from its equals.
    sampler = LengthGroupedBatchSampler(dataset, batch_size=4)
    assert sampler.keys is not None and sampler.keys.shape == (60, 4)
    columns: Any = (0, 1) if ending == "tsv" else ("anchor", "positive")
    chosen = load_pairs(path, columns=columns)
    assert len(chosen.column_names) == 4
    picked = parse_data_spec(f"{path}?columns=0,1,3").options["columns"]
    assert picked == (0, 1, 3)
    # Turned, they would be negatives of the wrong side.
    back, _ = orient({"en-de": load_pairs(path, source_language="en", target_language="de")})
    assert back["de-en"].column_names == dataset.column_names[:4] and "negative_1" in caplog.text


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_what_is_not_read_is_named_once(tmp_path: Path, ending: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [("1", *pair, "0.9") for pair in HUND]
    path = table(tmp_path, ending, ["id", "de", "en", "score"], rows, name="de-en")
    with caplog.at_level(logging.WARNING):
        assert cells(load_pairs(path)) == HUND
    assert sum("id, score" in record.message and "de, en" in record.message for record in caplog.records) == 1
    caplog.clear()
    stream = load_pairs(path, stream=True)
    assert list(stream) == list(stream) and sum("id, score" in record.message for record in caplog.records) == 1


def test_a_subset_names_the_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of ``sentence-transformers/parallel-sentences-talks``: configurations ``en-de``, two columns."""
    import datasets

    rows = Dataset.from_dict({"english": [e for _, e in HUND], "non_english": [o for o, _ in HUND]})
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    spec = "user/talks?name=en-de&split=train"
    (loaded,) = load_data_specs([spec]).values()
    assert codes(loaded) == ("en", "de") and cells(loaded)[0] == HUND[0][::-1]
    assert cells(orient(load_data_specs([spec]))[0]["de-en"]) == HUND
    assert list(load_data_specs([f"de-en={spec}"])) == ["de-en"]
    assert cells(load_data_specs([f"de-en={spec}"])["de-en"]) == HUND


def archive(folder: Path, files: dict[str, str], name: str = "de-en.txt.zip") -> Path:
    """An archive as OPUS publishes it: a Moses pair, a license and ids."""
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as packed:
        for member, text in {"README": "about", "LICENSE": "free", **files}.items():
            packed.writestr(member, text)
    return folder / name


def test_an_archive_is_read_where_it_lies(tmp_path: Path) -> None:
    files = {
        "TED2020.de-en.de": "".join(f"{source}\r\n" for source, _ in HUND * 700),
        "TED2020.de-en.en": "".join(f"{target}\r\n" for _, target in HUND * 700),
        "TED2020.de-en.ids": "1\n",
    }
    path = archive(tmp_path, files)
    for reader in (load_pairs, stream_pairs):
        assert cells(reader(path)) == HUND * 700 and codes(reader(path)) == ("de", "en")
        turned = reader(path, source_language="en", target_language="de")
        assert cells(turned)[0] == HUND[0][::-1]
    assert stream_rows(load_pairs(path, stream=True)) == 1400
    (small,) = load_data_specs([f"{path}?size=5"], stream=True).values()
    assert len(list(small)) == 5
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]  # nothing is unpacked


def test_members_of_a_region_and_in_the_current_folder(tmp_path: Path) -> None:
    """As ``zip -r x.zip .`` stores them."""
    path = archive(tmp_path, {"./x.en-zh_CN.en": "dog\n", "./x.en-zh_CN.zh_CN": "狗\n"})
    assert cells(load_pairs(path, source_language="zh", target_language="en")) == [("狗", "dog")]


def test_an_estimate_of_many_rows_in_an_archive(tmp_path: Path) -> None:
    """More than the megabyte that is looked at."""
    path = archive(tmp_path, {f"x.de-en.{code}": "Satz über einen Hund\n" * 120_000 for code in ("de", "en")})
    assert stream_rows(load_pairs(path, stream=True)) == pytest.approx(120_000, rel=0.01)


def test_faults_of_archives(tmp_path: Path) -> None:
    path = archive(tmp_path, {"x.de-en.de": "a\n\n", "x.de-en.en": "b\nc\n"})
    with pytest.raises(ParallelTextError, match=r"x\.de-en\.de:2: empty side"):
        load_pairs(path)
    assert cells(load_pairs(path, skip_bad_lines=True)) == [("a", "b")]
    names = ("x.de-en.de", "x.de-en.en", "y.fr-en.fr", "y.fr-en.en")
    with pytest.raises(ParallelTextError, match="got 2 pairs"):
        load_pairs(archive(tmp_path, dict.fromkeys(names, "a\n"), "two.zip"))
    (tmp_path / "no.zip").write_bytes(b"PK or not")
    with pytest.raises(ParallelTextError, match="no.zip: expected a zip archive"):
        load_pairs(tmp_path / "no.zip")
    with pytest.raises(ValueError, match="takes no columns"):
        load_pairs(path, columns=(0, 1))


CHINESE = [("狗", "dog"), ("猫", "cat")]


@pytest.mark.parametrize("kind", ["absolute", "above", "windows", "backslash", "deep"])
@pytest.mark.parametrize("reader", [load_pairs, stream_pairs])
def test_an_archive_reads_no_file_outside_it(kind: str, reader: Any, tmp_path: Path) -> None:
    """An archive of strangers named members ``/home/me/notes.de``: the user's own files were read, and published."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for code in ("de", "en"):
        (outside / f"notes.{code}").write_text("privat\n", encoding="utf-8")
    prefix = {
        "absolute": f"{outside}/notes",
        "above": "../outside/notes",
        "windows": r"C:\Users\me\notes",
        "backslash": r"..\outside\notes",
        "deep": "talks/../../outside/notes",
    }[kind]
    path = archive(tmp_path, {f"{prefix}.de": "a\n", f"{prefix}.en": "b\n"})
    with pytest.raises(ParallelTextError, match=r"de-en\.txt\.zip: expected names of files inside the archive, got"):
        reader(path)
    with pytest.raises((ParallelTextError, OSError)):
        reader((path / f"{prefix}.de", path / f"{prefix}.en")) if kind != "absolute" else reader(path)


def test_links_and_passwords_in_archives(tmp_path: Path) -> None:
    """The text of a link is a path of whoever packed it; it is no sentence."""
    path = tmp_path / "de-en.txt.zip"
    with zipfile.ZipFile(path, "w") as packed:
        link = zipfile.ZipInfo("x.de-en.de")
        link.external_attr = 0o120777 << 16
        packed.writestr(link, "/etc/hostname")
        packed.writestr("x.de-en.en", "b\n")
    for location in (path, (path / "x.de-en.de", path / "x.de-en.en")):
        with pytest.raises(ParallelTextError, match=r"expected files, got the link 'x\.de-en\.de'"):
            load_pairs(location)


CARD = """---
configs:
- config_name: default
  data_files: {files}
---
"""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("files", ["{outside}/notes.csv", "../outside/notes.csv", "../outside/*.parquet"])
def test_a_folder_reads_no_file_outside_it(files: str, stream: bool, tmp_path: Path) -> None:
    """The card of a folder of data named ``../notes.csv``: a file of the user's that is not part of that folder."""
    outside = tmp_path / "outside"
    folder = tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    table(outside, "csv", ["source", "target"], HUND, name="notes")
    table(outside, "parquet", ["source", "target"], HUND, name="notes")
    card = CARD.format(files=files.format(outside=outside))
    (folder / "README.md").write_text(card, encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"expected data files inside the folder, got .*outside/notes"):
        load_pairs(folder, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
def test_a_saved_data_set_reads_no_file_outside_it(stream: bool, tmp_path: Path) -> None:
    """The same of the shards that ``state.json`` names."""
    columns = dict(zip(("source", "target"), map(list, zip(*HUND))))
    Dataset.from_dict(columns).save_to_disk(str(tmp_path / "outside"))
    Dataset.from_dict(columns).save_to_disk(str(tmp_path / "folder"))
    assert cells(load_pairs(tmp_path / "folder")) == HUND
    state = tmp_path / "folder" / "state.json"
    text = state.read_text(encoding="utf-8")
    state.write_text(text.replace('"data-', '"../outside/data-'), encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"expected data files inside the folder, got .*outside/data-"):
        load_pairs(tmp_path / "folder", stream=stream)


def test_links_in_a_folder_are_the_users_own(tmp_path: Path) -> None:
    """Large files are linked into folders of data, and the Hub's cache has links alone: these are read."""
    table(tmp_path, "tsv", ["source", "target"], HUND, name="large")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "train.tsv").symlink_to(tmp_path / "large.tsv")
    (tmp_path / "alias").symlink_to(folder)
    assert cells(load_pairs(tmp_path / "alias")) == cells(load_pairs(folder)) == HUND


@pytest.mark.parametrize(
    ("names", "spec", "languages"),
    [
        (["zh_CN-en.tsv"], "zh_CN-en.tsv", ("zh_CN", "en")),
        (["pairs.tsv"], "zh_Hant-en=pairs.tsv", ("zh_Hant", "en")),
        (["pairs.tsv"], "zh-Hans-CN-en-GB=pairs.tsv", ("zh-Hans-CN", "en-GB")),
        (["corpus.zho_Hans", "corpus.eng_Latn"], "zho_Hans-eng_Latn=corpus", ("zho_Hans", "eng_Latn")),
        (["corpus.zh-Hans-CN", "corpus.en"], "zh-en=corpus", ("zh", "en")),
        (["c.zh_TW", "c.zh_CN", "c.en"], "zh_CN-en=c", ("zh_CN", "en")),
    ],
)
def test_codes_as_people_write_them(names, spec, languages, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in names:
        rows = CHINESE if len(names) == 1 else [[pair[name.endswith(("en", "en_US", "eng_Latn"))]] for pair in CHINESE]
        Path(name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    for stream in (False, True):
        ((name, loaded),) = load_data_specs([spec], stream=stream).items()
        assert name == "-".join(languages)
        assert cells(loaded) == CHINESE and codes(loaded) == languages


@pytest.mark.parametrize(
    ("header", "label", "languages", "texts"),
    [
        (["deu_Latn", "eng_Latn"], "", ("deu_Latn", "eng_Latn"), (0, 1)),
        (["eng_Latn", "deu_Latn"], "de-en=", ("de", "en"), (1, 0)),
        (["eng_Latn", "srp_Cyrl", "srp_Latn"], "sr_Latn-en=", ("sr_Latn", "en"), (2, 0)),
    ],
)
def test_columns_called_by_codes_with_scripts(header, label, languages, texts, tmp_path: Path) -> None:
    """As in FLORES-200 and NTREX: a column of the other script is another text."""
    path = table(tmp_path, "tsv", header, [tuple(f"text {column}" for column in range(len(header)))])
    (loaded,) = load_data_specs([f"{label}{path}"]).values()
    assert cells(loaded) == [tuple(f"text {column}" for column in texts)] and codes(loaded) == languages


def test_two_scripts_of_a_language_are_two_languages(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("狗\t狗\n", encoding="utf-8")
    assert list(load_data_specs([f"zh_Hans-zh_Hant={path}"])) == ["zh_Hans-zh_Hant"]
    with pytest.raises(ValueError, match="two languages, got zh_Hant-zho_Hant"):
        load_data_specs([f"zh_Hant-zho_Hant={path}"])
