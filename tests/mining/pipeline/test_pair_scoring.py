"""Scores of the pairs of a corpus: those of ``score_pairs``, in its order, duplicates counted once; faults left out."""

import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from st_xling.data.pairs import pair_dataset
from st_xling.data.phrasebook import parallel_phrases
from st_xling.mining import FilterOptions, SearchOptions, score_pairs, score_texts, write_store
from st_xling.mining.pipeline.pair_scoring import _read_corpus
from st_xling.models.encoding import encode
from tests.mining.pipeline.test_text_mining import read_cells, write

PAIRS = [(row["source"], row["target"]) for row in parallel_phrases("de", "en", size=150, split="test")]


def scores(path: Path) -> list[float]:
    return [float(cells[0]) for cells in read_cells(path)]


def texts(path: Path) -> list[list[str]]:
    return [cells[3:] for cells in read_cells(path)]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def vectors(model: Any, side: int, pairs: list[tuple[str, str]]) -> np.ndarray:
    return encode(model, [pair[side] for pair in pairs], normalize_embeddings=True)


@pytest.mark.parametrize(("k", "margin"), [(4, "ratio"), (2, "distance")])
def test_equals_score_pairs(k: int, margin: str, model: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in PAIRS])
    out = tmp_path / "deep" / "scored.tsv"
    report = score_texts(path, out, model=model, search=SearchOptions(k=k, margin=margin))
    expected = score_pairs(vectors(model, 0, PAIRS), vectors(model, 1, PAIRS), k=k, margin=margin)
    assert scores(out) == expected.tolist()
    assert texts(out) == [list(pair) for pair in PAIRS]
    assert (report.pairs, report.kept, report.below, report.rejected, report.faulty) == (150, 150, 0, {}, {})
    assert report.signature.startswith("score|model:") and f"|margin:{margin}|k:{k}|" in report.signature
    assert "|pairs:pairs.tsv@" in report.signature
    assert [path.name for path in out.parent.iterdir()] == ["scored.tsv"]


def test_a_line_that_is_there_often_scores_as_if_it_were_there_once(model: Any, tmp_path: Path) -> None:
    often = [*PAIRS[:60], *[PAIRS[7]] * 9, *PAIRS[60:]]
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in often])
    out = tmp_path / "o"
    score_texts(path, out, model=model)
    expected = score_pairs(vectors(model, 0, PAIRS), vectors(model, 1, PAIRS)).tolist()
    assert scores(out) == pytest.approx([*expected[:60], *[expected[7]] * 9, *expected[60:]], rel=1e-6)


def test_a_scored_file_is_scored_again(model: Any, tmp_path: Path) -> None:
    pairs = [*PAIRS[:60], ("C:\\neu\\tab", "C:\\new\\tab")]
    score_texts(write(tmp_path / "p.tsv", ["\t".join(pair) for pair in pairs]), tmp_path / "o.tsv", model=model)
    score_texts(tmp_path / "o.tsv", tmp_path / "again.tsv", model=model)
    assert texts(tmp_path / "again.tsv") == [list(pair) for pair in pairs]
    assert scores(tmp_path / "again.tsv") == scores(tmp_path / "o.tsv")
    report = score_texts(tmp_path / "o.tsv", tmp_path / "none.tsv", model=model, threshold=9.0)
    assert report.kept == 0 and report.best == max(scores(tmp_path / "o.tsv"))
    assert f"no pair reaches the threshold: the best score is {report.best:.4f}" in report.lines()


def test_columns_threshold_forms(model: Any, tmp_path: Path) -> None:
    """A packed file is read whatever its name, and the order is kept when lines are left out."""
    lines = [f"{row}\t{target}\tx y\t{source}" for row, (source, target) in enumerate(PAIRS)]
    path = tmp_path / "pairs.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\r\n" for line in lines).encode()))
    score_texts(f"{path}?columns=3,1", tmp_path / "all", model=model)
    all_scores = scores(tmp_path / "all")
    threshold = sorted(all_scores)[50]
    report = score_texts(f"{path}?columns=3,1", tmp_path / "some", model=model, threshold=threshold)
    all_cells = read_cells(tmp_path / "all")
    assert [cells[1:] for cells in all_cells] == [[str(row)] * 2 + list(pair) for row, pair in enumerate(PAIRS, 1)]
    expected = [cells for cells, score in zip(all_cells, all_scores) if score >= threshold]
    assert read_cells(tmp_path / "some") == expected
    assert report.below == 50 and report.kept == len(expected) == 100


FAULTS: list[tuple[bytes, str, str | None]] = [
    (b"only one", "wrong_column_count", "got 1"),
    (b"\xff\xfe\tx", "invalid_utf_8", ""),
    (b" \tx", "empty_side", "source"),
    (b"x\t\xe3\x80\x80", "empty_side", "target"),
    (b"\t", "empty_side", "source"),
    (b"", "empty_line", ""),
    (b"x\t" + b"y" * 5001, "too_long", "5,001 characters"),
]


def test_labeled_rows_are_scored_whatever_their_label(model: Any, tmp_path: Path) -> None:
    """What is scored may be what tells them apart, and embeddings have a row for each line."""
    rows = [
        "sentence1\tsentence2\tlabel",
        *(f"{other}\t{english}\t{row % 2}" for row, (other, english) in enumerate(PAIRS)),
    ]
    (tmp_path / "labeled.tsv").write_text("".join(f"{line}\n" for line in rows), encoding="utf-8")
    report = score_texts(tmp_path / "labeled.tsv", tmp_path / "out.tsv", model=model, search=SearchOptions(k=2))
    assert report.pairs == len(PAIRS)


def test_faulty_lines_go_to_the_rejects(model: Any, tmp_path: Path) -> None:
    """With line and reason, before what filters reject; the others score as if these had never been there."""
    filtered = [("Gleicher Satz hier.", "Gleicher Satz hier."), ("Es sind 5.", "There are 7.")]
    sound = ["\t".join(pair).encode() for pair in [*PAIRS[:50], *filtered, *PAIRS[50:]]]
    lines = list(sound)
    for number, (line, _, _) in enumerate(FAULTS):
        lines.insert(20 * number, line)
    noisy = tmp_path / "noisy.tsv"
    clean = tmp_path / "clean.tsv"
    noisy.write_bytes(b"\n".join(lines))
    clean.write_bytes(b"\n".join(sound))
    filters = FilterOptions(limits={"copy": 1.0}, disable=["length_ratio"])
    options: dict[str, Any] = {"model": model, "filters": filters}
    report = score_texts(noisy, tmp_path / "o", rejects=tmp_path / "deep" / "rejects.jsonl", **options)
    other = score_texts(clean, tmp_path / "c", rejects=tmp_path / "c.jsonl", **options)
    assert scores(tmp_path / "o") == scores(tmp_path / "c") and texts(tmp_path / "o") == texts(tmp_path / "c")
    faults = {"wrong_column_count": 1, "invalid_utf_8": 1, "empty_side": 3, "empty_line": 1, "too_long": 1}
    assert report.faulty == faults
    described = ", ".join(f"{count} {reason}" for reason, count in faults.items())
    assert f"skipped as faulty: {described}" in report.lines()
    assert report.rejected == other.rejected == {"copy": 1, "numbers": 1} and report.kept == len(PAIRS)
    rejects = records(tmp_path / "deep" / "rejects.jsonl")
    for number, ((_, reason, detail), record) in enumerate(zip(FAULTS, rejects)):
        assert record["reason"] == reason and detail in str(record["value"])
        assert record["source_ids"] == record["target_ids"] == [str(20 * number + 1)]
        assert record["score"] is record["source"] is record["target"] is None
    rejected_pairs = rejects[len(FAULTS) :]
    line_numbers = [lines.index("\t".join(pair).encode()) + 1 for pair in filtered]
    assert [(line["reason"], line["source_ids"]) for line in rejected_pairs] == [
        ("copy", [str(line_numbers[0])]),
        ("numbers", [str(line_numbers[1])]),
    ]
    assert records(tmp_path / "c.jsonl")[0]["source_ids"] == ["51"]


def test_faults_of_other_kinds_of_files(model: Any, tmp_path: Path) -> None:
    good = [json.dumps({"source": source, "target": target}) for source, target in PAIRS[:30]]
    bad = ["{", '["a"]', '{"source": "x"}', '{"source": 3, "target": "x"}', '{"source": "\\ud800", "target": "x"}']
    path = write(tmp_path / "p.jsonl", [*good[:10], *bad, *good[10:]])
    assert score_texts(path, tmp_path / "o", model=model, rejects=tmp_path / "r").pairs == 30
    assert [(line["reason"], line["source_ids"]) for line in records(tmp_path / "r")] == [
        ("bad_json", ["11"]),
        ("bad_json", ["12"]),
        ("missing_key", ["13"]),
        ("non_string_value", ["14"]),
        ("bad_json", ["15"]),
    ]


def test_it_reads_what_train_reads(model: Any, tmp_path: Path) -> None:
    """The same scores of the same pairs, however they are kept."""
    pairs = [*PAIRS[:40], ("Tab\tund \\", 'a, "b"\tc')]  # some text is none of TSV's
    rows = []
    csv_lines = ['"src","tgt"']
    for number, (source, target) in enumerate(pairs):
        rows.append(json.dumps({"id": number, "source": source, "target": target}))
        quoted = [text.replace('"', '""') for text in (source, target)]
        csv_lines.append('"{}","{}"'.format(*quoted))
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    write(tmp_path / "p.csv", csv_lines)
    pair_dataset((*pair, "de", "en") for pair in pairs).to_parquet(tmp_path / "p.parquet")
    sides = []
    for side, code in enumerate(("de", "en")):
        sides.append(tmp_path / f"p.{code}.xz")
        sides[-1].write_bytes(lzma.compress("\n".join(pair[side] for pair in pairs).encode()))
    specs = ["p.jsonl.gz", "p.csv", "p.parquet", "p", "p.jsonl.gz?columns=source,target"]
    scores_by_spec = []
    for spec in [f"de-en={sides[0]},{sides[1]}", *(str(tmp_path / spec) for spec in specs)]:
        report = score_texts(spec, tmp_path / "o", model=model)
        assert report.pairs == 41 and texts(tmp_path / "o") == [list(pair) for pair in pairs]
        scores_by_spec.append(scores(tmp_path / "o"))
        assert len(scores_by_spec) > 1 or "|pairs:p.de.xz,p.en.xz@" in report.signature
    assert scores_by_spec == scores_by_spec[:1] * 6


def test_the_languages_of_the_corpus_are_those_of_the_filter(model: Any, tmp_path: Path) -> None:
    french = "Les enfants mangent des pommes rouges dans le jardin.\tThey eat the red apples of the garden."
    path = write(tmp_path / "pairs.tsv", [*("\t".join(pair) for pair in PAIRS[:40]), french])
    for spec, target_language in ((f"de-en={path}", None), (str(path), None), (f"de-en={path}", "en")):
        filters = FilterOptions(target_language=target_language)
        assert score_texts(spec, tmp_path / "o", model=model, filters=filters).rejected == {"language": 1}


def test_stores_with_a_row_a_line(tmp_path: Path) -> None:
    random_ = np.random.default_rng(0)
    sides = [random_.standard_normal((150, 8)).astype(np.float32) + 1 for _ in range(2)]
    for number, side in enumerate(sides):
        write_store(tmp_path / f"{number}.store", side, sentences=[pair[number] for pair in PAIRS])
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in PAIRS])
    options = {"source_embeddings": tmp_path / "0.store", "target_embeddings": tmp_path / "1.store"}
    score_texts(path, tmp_path / "o", **options)
    assert scores(tmp_path / "o") == score_pairs(*sides).tolist()
    with pytest.raises(ValueError, match="the text is not the one that was encoded"):
        score_texts(f"{path}?columns=1,0", tmp_path / "p", **options)
    path.write_text(path.read_text(encoding="utf-8") + "one\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a row for each line.* 1 wrong_column_count, such as .*pairs\.tsv:151"):
        score_texts(path, tmp_path / "p", **options)


def test_what_cannot_be(model: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", ["a\tb", "c\td"])
    for content, options, message in (
        ("only one\nx\n", {}, r"got none in .*pairs\.tsv: 2 wrong_column_count, such as .*:1: wrong column count"),
        ("", {}, "at least one sentence pair, got none"),
        ("a\tb\n", {"search": SearchOptions(k=4)}, "k=4 for 1 distinct source"),
        ("a\tb\n", {"pairs": f"{path}?columns=0,7"}, "got none.*expected at least 8, got 2"),
        ("a\tb\n", {"pairs": f"{path}?size=1"}, "without .size"),
        ("a\tb\n", {"pairs": tmp_path / "absent.tsv"}, "absent"),
        ("a\tb\n", {"out": path}, "would replace the input"),
    ):
        path.write_text(content)
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            score_texts(**{"pairs": path, "out": tmp_path / "o", "model": model, **options})
        assert [file.name for file in tmp_path.iterdir()] == ["pairs.tsv"]


def test_text_stays_on_the_disk(tmp_path: Path, peak_growth: Callable[[Callable[[], Any]], int]) -> None:
    """Twelve MiB of long lines are scored in a part of that; Arrow's own memory is not in ``peak_growth``."""
    chance = random.Random(1)
    lines = [f"{row} {''.join(chance.choices('abcdef ghij', k=3000))}\t{row} Satz" for row in range(4000)]
    path = write(tmp_path / "pairs.tsv", lines)
    side = np.random.default_rng(0).standard_normal((4000, 8)).astype(np.float32)
    options: dict[str, Any] = {"search": SearchOptions(memory_mib=4)}
    for name in ("source", "target"):
        np.save(tmp_path / f"{name}.npy", side)
        options |= {f"{name}_embeddings": tmp_path / f"{name}.npy"}
    growth = peak_growth(lambda: score_texts(path, tmp_path / "o", **options))
    assert len(scores(tmp_path / "o")) == 4000
    assert growth < 30 * 2**20
    before = pa.total_allocated_bytes()
    table = _read_corpus(str(path), progress=False).table
    assert table.nbytes > 11 * 2**20 and pa.total_allocated_bytes() - before < 2**20
