"""Documents in files and folders: pairs in each format, and what is refused."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from st_xling.data import load_pairs
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.scored import read_scored
from st_xling.evaluation.alignment import document_scores, evaluate_groups, read_groups
from st_xling.mining import FilterOptions, align_texts, encoding, pair_documents, split_sentences
from st_xling.utils.options import AlignmentFormat
from st_xling.utils.text import ParallelTextError
from tests.document_files import plain, write_docx, write_epub

UNFILTERED = FilterOptions(disable=["all"], source_language="de", target_language="en")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A document of 12 lines with a blank one, and one of 11 in which two are joined."""
    rows = parallel_phrases("de", "en", size=12, seed=1)
    german = list(rows["source"])
    english = list(rows["target"])
    folder = tmp_path_factory.mktemp("documents")
    (folder / "book.de").write_text("\n".join([*german[:6], "", *german[6:]]) + "\n", encoding="utf-8")
    english[2:4] = [f"{english[2]} {english[3]}"]
    (folder / "book.en").write_text("\n".join(english) + "\n", encoding="utf-8")
    return folder / "book.de", folder / "book.en"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_every_format_has_the_same_pairs(files: tuple[Path, Path], model: Any, tmp_path: Path) -> None:
    tsv = tmp_path / "pairs.tsv"
    jsonl = tmp_path / "pairs.jsonl"
    tmx = tmp_path / "pairs.tmx"
    vecalign = tmp_path / "pairs.vecalign"
    for out in (tsv, jsonl, tmx, vecalign):
        format: AlignmentFormat | None = "vecalign" if out == vecalign else None
        report = align_texts([files], out, model=model, max_size=4, filters=UNFILTERED, format=format)
        assert report.pairs > 3 and report.rows == {"source": 12, "target": 11}
        assert not list(tmp_path.glob("*.work"))
    cells = [line.split("\t") for line in lines(tsv)[1:]]
    records = [json.loads(line) for line in lines(jsonl)]
    assert [(float(cell[0]), cell[1].split(","), cell[3]) for cell in cells] == [
        (record["score"], record["source_ids"], record["source"]) for record in records
    ]
    source_lines = lines(files[0])
    for record in records:
        assert record["source"] == " ".join(source_lines[int(row) - 1] for row in record["source_ids"])
    for out in (tsv, tmx):
        read = load_pairs(out)
        assert [list(pair) for pair in zip(read["source"], read["target"])] == [cell[3:5] for cell in cells]
    groups = read_groups(vecalign)
    matched_ids = []
    source_rows: list[int] = []
    for source, target in groups:
        source_rows += source
        if source and target:
            matched_ids.append([str(row + 1) for row in source])
    assert matched_ids == [record["source_ids"] for record in records]
    # Also sentences without a partner, but not the blank line.
    assert sorted(source_rows) == [row for row in range(13) if row != 6]


def test_documents_of_wrapped_paragraphs_are_split_into_sentences(model: Any, tmp_path: Path) -> None:
    rows = parallel_phrases("de", "en", size=9, seed=1)
    for language, side in (("de", "source"), ("en", "target")):
        sentences = list(rows[side])
        paragraphs = [" ".join(sentences[start : start + 3]) for start in range(0, 9, 3)]
        text = "\n\n".join(textwrap.fill(paragraph, 30) for paragraph in paragraphs)
        (tmp_path / f"book.{language}").write_text(text + "\n", encoding="utf-8")
        expected = [*sentences[:3], "", *sentences[3:6], "", *sentences[6:]]
        assert split_sentences(text, language) == expected
        (tmp_path / "lines").mkdir(exist_ok=True)
        (tmp_path / "lines" / f"book.{language}").write_text("\n".join(expected) + "\n", encoding="utf-8")
    options = {"model": model, "filters": UNFILTERED}
    report = align_texts([(tmp_path / "book.de", tmp_path / "book.en")], tmp_path / "a.tsv", split=True, **options)
    align_texts([(tmp_path / "lines" / "book.de", tmp_path / "lines" / "book.en")], tmp_path / "b.tsv", **options)
    assert report.rows == {"source": 9, "target": 9} and "split:yes" in report.signature
    assert lines(tmp_path / "a.tsv") == lines(tmp_path / "b.tsv")


def test_documents_of_other_formats_are_aligned_by_sentences(model: Any, tmp_path: Path) -> None:
    """People's documents had to be converted to text first, by tools that lose some of it."""
    rows = parallel_phrases("de", "en", size=9, seed=1)
    paragraphs = {}
    for side in ("source", "target"):
        paragraphs[side] = plain(*(" ".join(rows[side][start : start + 3]) for start in range(0, 9, 3)))
    german = write_epub(tmp_path / "book.de.epub", paragraphs["source"])
    english = write_docx(tmp_path / "book.en.docx", paragraphs["target"])
    report = align_texts([(german, english)], tmp_path / "a.tsv", model=model, filters=UNFILTERED)
    assert report.rows == {"source": 9, "target": 9} and "split:yes" in report.signature
    for side, ending in (("source", "de"), ("target", "en")):
        text = "\n\n".join(paragraph[0].text for paragraph in paragraphs[side])
        (tmp_path / f"book.{ending}").write_text(text, encoding="utf-8")
    texts = (tmp_path / "book.de", tmp_path / "book.en")
    align_texts([texts], tmp_path / "b.tsv", model=model, split=True, filters=UNFILTERED)
    cells = [[line.split("\t")[:5] for line in lines(tmp_path / name)] for name in ("a.tsv", "b.tsv")]
    assert cells[0] == cells[1]


def test_times_of_subtitles_are_ids(model: Any, tmp_path: Path) -> None:
    rows = parallel_phrases("de", "en", size=4, seed=1)
    german = tmp_path / "film.de.srt"
    english = tmp_path / "film.en.vtt"
    times = [f"00:00:0{number}" for number in range(5)]
    cues = zip(times, times[1:], rows["source"], rows["target"])
    texts = ["", "WEBVTT\n\n"]
    for begin, end, source, target in cues:
        texts[0] += f"{begin},000 --> {end},000\n{source}\n\n"
        texts[1] += f"{begin}.500 --> {end}.500\n<i>{target}</i>\n\n"
    for path, text in zip((german, english), texts):
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "a.jsonl"
    align_texts([(german, english)], out, model=model, filters=UNFILTERED, split=True, html=tmp_path / "a.html")
    for record in map(json.loads, lines(out)):
        for name, shift in (("source_ids", "000"), ("target_ids", "500")):
            assert all(re.fullmatch(rf"00:00:0\d\.{shift}-00:00:0\d\.{shift}", time) for time in record[name])
    assert "00:00:01.000-00:00:02.000" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_several_documents_filters_and_rejects(files: tuple[Path, Path], model: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_text("Der Text ist derselbe.\n", encoding="utf-8")
    report = align_texts(
        [files, (copy, copy)], tmp_path / "o.tsv", model=model, min_score=0.2, rejects=tmp_path / "rejects"
    )
    assert report.documents == 2 and report.rejected["copy"] >= 1
    assert json.loads(lines(tmp_path / "rejects")[-1])["source_ids"] == ["copy:1"]
    assert all(line.split("\t")[1].startswith("book.de:") for line in lines(tmp_path / "o.tsv")[1:])
    assert report.signature.startswith("align_documents|model:") and "|min_score:0.2|" in report.signature


def test_neighbors_are_joined_to_paragraphs(files: tuple[Path, Path], model: Any, tmp_path: Path) -> None:
    """Models that read paragraphs had to join lines themselves, of files that did not say which pairs are neighbors."""
    options = {"model": model, "max_size": 4, "filters": UNFILTERED, "work": tmp_path / "work"}
    align_texts([files], tmp_path / "single.tsv", **options)
    stores = {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "source").rglob("*") if path.is_file()}
    report = align_texts([files], tmp_path / "long.tsv", merge_to=120, html=tmp_path / "page.html", **options)
    single = [line.split("\t") for line in lines(tmp_path / "single.tsv")]
    long = [line.split("\t") for line in lines(tmp_path / "long.tsv")]
    assert single[0][-2:] == long[0][-2:] == ["document", "position"] and "|merge_to:120|" in report.signature
    assert {row[-2] for row in long[1:]} == {"book.de"}
    positions = [int(row[-1]) for row in long[1:]]
    assert positions == sorted({*positions}) and report.pairs == len(positions) < len(single) - 1
    # Every line is in one pair, still in order; no side is too long.
    for column in (1, 2):
        assert ",".join(row[column] for row in long[1:]) == ",".join(row[column] for row in single[1:])
    assert all(max(len(row[3]), len(row[4])) <= 120 for row in long[1:])
    assert load_pairs(tmp_path / "long.tsv")["source"][:] == [row[3] for row in long[1:]]
    assert [pair.source for pair in read_scored(tmp_path / "long.tsv")] == [row[3] for row in long[1:]]
    # The second call has taken the vectors of the first.
    assert stores and stores == {path: path.stat().st_mtime_ns for path in stores}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(row[3].split(". ")[0] in page for row in long[1:]) and report.signature in page


def test_documents_of_folders_are_paired_by_name(tmp_path: Path) -> None:
    for name in ("de/1.de.txt", "de/b/2_de.gz", "de/3.txt", "fr/1.fr.txt", "fr/b/2_fr.gz", "fr/4.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    pairs, without_partner = pair_documents(tmp_path / "de", tmp_path / "fr")
    names = [(Path(source).name, Path(target).name) for source, target in pairs]
    assert names == [("1.de.txt", "1.fr.txt"), ("2_de.gz", "2_fr.gz")]
    assert [Path(file).name for file in without_partner] == ["3.txt", "4.txt"]
    with pytest.raises(ValueError, match="same names"):
        pair_documents(tmp_path / "de" / "b", tmp_path / "fr" / "b" / "..")


def test_documents_of_one_language_are_warned_of(model: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    german = list(parallel_phrases("de", "en", size=30)["source"])
    for name in ("a", "b"):
        (tmp_path / name).write_text("\n".join(german), encoding="utf-8")
    align_texts([(tmp_path / "a", tmp_path / "b")], tmp_path / "o", model=model, max_size=2)
    assert "both sides are in de" in caplog.text


def test_what_is_refused(files: tuple[Path, Path], model: Any, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("1\n2\n3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="TMX names the languages .*set target_language"):
        align_texts([(files[0], numbers)], tmp_path / "o.tmx", model=model)
    numbers.unlink()
    with pytest.raises(ValueError, match="one document: got 2"):
        align_texts([files, files], tmp_path / "o", model=model, format="vecalign")
    with pytest.raises(ValueError, match=r"would replace the input .*book\.de"):
        align_texts([files], files[0], model=model)
    assert not list(tmp_path.iterdir())


def test_a_run_that_was_interrupted_between_rounds_resumes(
    files: tuple[Path, Path], model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are encoded in rounds: one that is interrupted in a later round keeps the vectors of those before it."""
    embed = encoding.embed
    embedded: list[str] = []
    interrupted = False

    def embed_until_a_group(model: Any, texts: list[str], **options: Any) -> Any:
        nonlocal interrupted
        is_of_groups = not {*texts} <= sentences
        if is_of_groups and not interrupted:
            interrupted = True
            raise KeyboardInterrupt
        embedded.extend(texts)
        return embed(model, texts, **options)

    sentences = {*lines(files[0]), *lines(files[1])}
    align_texts([files], tmp_path / "whole.tsv", model=model, max_size=4, filters=UNFILTERED)
    monkeypatch.setattr(encoding, "embed", embed_until_a_group)
    with pytest.raises(KeyboardInterrupt):
        align_texts([files], tmp_path / "pairs.tsv", model=model, max_size=4, filters=UNFILTERED)
    assert not (tmp_path / "pairs.tsv").exists() and {*embedded} == sentences - {""}
    embedded.clear()
    align_texts([files], tmp_path / "pairs.tsv", model=model, max_size=4, filters=UNFILTERED)
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert embedded and sentences.isdisjoint(embedded)


def test_gold(tmp_path: Path) -> None:
    aligned = tmp_path / "found"
    gold = tmp_path / "gold"
    aligned.write_text("[0]:[0]:0.1\n[1]:[1, 2]:0.2\n[2]:[]:0\n[]:[3]:0\n", encoding="utf-8")
    gold.write_text("[0]:[0]\n[1, 2]:[1]\n[]:[2]\n[]:[3]\n", encoding="utf-8")
    result = evaluate_groups([aligned], [gold])
    strict = [*result.metrics["strict"].values()]
    lax = [*result.metrics["lax"].values()]
    # Found 4, of them [0]:[0] and []:[3] in gold, and [1]:[1, 2] shares a link; 2 pairs in gold.
    assert strict == pytest.approx([2 / 4, 1 / 2, 1 / 2]) and lax == pytest.approx([3 / 4, 1, 6 / 7])
    assert result.signature.startswith("documents|groups:found@")
    assert set(document_scores([read_groups(gold)], [read_groups(gold)])["strict"].values()) == {1}
    gold.write_text("[0]:[4]\n", encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"gold: \[0\]:\[4\] names a target line beyond .* has 4"):
        evaluate_groups([aligned], [gold])
    gold.write_text("\n0 0\n", encoding="utf-8")
    with pytest.raises(ParallelTextError, match="gold:2: "):
        read_groups(gold)


def test_groups_of_other_aligners(tmp_path: Path) -> None:
    """A ladder of hunalign, or Bertalign's groups as Python prints them, had to be converted by hand."""
    path = tmp_path / "groups"
    groups = [((0,), (0, 1)), ((1,), ()), ((), (2,)), ((2, 3), (3,))]
    path.write_text("0\t0\t0.3\n1\t2\t1.25\n2\t2\t0\n2\t3\t-0.3\n4\t4\t0.75\n", encoding="utf-8")
    assert read_groups(path) == groups
    printed = [f"{([*source], [*target])}\n" for source, target in groups]
    path.write_text("".join(printed), encoding="utf-8")
    assert read_groups(path) == groups
    path.write_text("0\t0\t0.3\n2\t2\t0.5\n1\t3\t0.5\n", encoding="utf-8")
    with pytest.raises(ParallelTextError, match="groups:3: expected lines of both sides"):
        read_groups(path)
