"""Mining from files to a file: what ``mine`` finds, every id of it, whatever happens on the way."""

import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from st_xling import mining
from st_xling.data.phrasebook import mining_phrases
from st_xling.models.encoding import encode as embed

OFF = mining.FilterOptions(disable=["all"])
TEXTS = mining_phrases("de", "en", split="test", size=600, gold=200)
TWO_NEIGHBORS = mining.SearchOptions(k=2)


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    """Distinct sentences of the phrasebook."""
    return write(tmp_path / "news.de", TEXTS.source), write(tmp_path / "news.en", TEXTS.target)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_cells(path: Path, *extra_columns: str) -> list[list[str]]:
    """Cells below the header line of a TSV file, without the threshold of mined pairs, which is that of all lines."""
    header, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    names = header.removesuffix("\tthreshold").split("\t")
    assert names == ["score", "source_id", "target_id", "source", "target", *extra_columns]
    cells = list(map(mining.tsv_cells, lines))
    assert len({row[len(names)] for row in cells if header.endswith("\tthreshold")}) <= 1
    return [row[: len(names)] for row in cells]


def read(path: Path) -> list[tuple[float, list[str], list[str], str, str]]:
    """Pairs of a TSV file."""
    pairs = []
    for score, source_ids, target_ids, source, target in read_cells(path):
        pairs.append((float(score), source_ids.split(","), target_ids.split(","), source, target))
    return pairs


def stored(tmp_path: Path, sources: dict[str, list[float]], targets: dict[str, list[float]]) -> dict[str, Any]:
    """Texts with vectors of our choice, as ``mine_texts`` takes them."""
    options: dict[str, Any] = {}
    for name, side in (("source", sources), ("target", targets)):
        options[name] = write(tmp_path / f"{name}.txt", list(side))
        vectors = np.array(list(side.values()), dtype=np.float32)
        mining.write_store(tmp_path / f"{name}.store", vectors, sentences=list(side))
        options[f"{name}_embeddings"] = tmp_path / f"{name}.store"
    return options


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv", "pairs.json", "pairs.csv.gz"])
def test_names_of_other_formats(name: str, model: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    """``mine --out pairs.parquet`` wrote TSV into it, which no program then read."""
    with pytest.raises(ValueError, match=r"as TSV, JSON lines or TMX: got the name .*pairs"):
        mining.mine_texts(*texts, tmp_path / name, model=model, filters=OFF)
    mining.mine_texts(*texts, tmp_path / name, model=model, filters=OFF, format="tsv")
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("retrieval", ["max", "backward"])
def test_without_filters_it_is_mine(retrieval: str, model: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing is folded here: places are rows, and ids lines."""
    options: dict[str, Any] = {"k": 3, "margin": "distance", "retrieval": retrieval}
    search = mining.SearchOptions(**options)
    out = tmp_path / "deep" / "pairs.tsv"
    report = mining.mine_texts(*texts, out, model=model, filters=OFF, search=search, threshold=0.0)
    vectors = [
        mining.EmbeddingStore.open(mining.encode(model, path, tmp_path / f"{path.name}.store").path)[:]
        for path in texts
    ]
    expected = mining.mine(*vectors, **options, threshold=0.0)
    assert 20 < len(expected) == report.pairs < 600
    rows = zip(expected.scores.tolist(), expected.source_indices.tolist(), expected.target_indices.tolist())
    assert read(out) == [
        (score, [str(source + 1)], [str(target + 1)], TEXTS.source[source], TEXTS.target[target])
        for score, source, target in rows
    ]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["pairs.tsv"]
    start = f"|margin:distance|k:3|retrieval:{retrieval}|method:exact|filters:none|threshold:0|duplicates:merged|"
    assert report.signature.startswith("mine|model:") and start in report.signature
    assert "|source:news.de@" in report.signature and "|target:news.en@" in report.signature


def test_stores_and_arrays_give_what_the_model_gives(model: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    """One side as a store, the other as a file or an array of numpy, then each with the model for the other side."""
    mining.mine_texts(*texts, tmp_path / "model.tsv", model=model)
    store = mining.encode(model, texts[0], tmp_path / "de.store")
    array = mining.encode(model, texts[1], tmp_path / "en.store")[:]
    np.save(tmp_path / "en.npy", array)
    ways: dict[str, dict[str, Any]] = {
        "both": {"source_embeddings": store.path, "target_embeddings": tmp_path / "en.npy"},
        "memory": {"source_embeddings": np.asarray(store), "target_embeddings": array},
        "store": {"source_embeddings": store.path, "model": model},
        "array": {"target_embeddings": str(tmp_path / "en.npy"), "model": model},
    }
    for name, options in ways.items():
        mining.mine_texts(*texts, tmp_path / f"{name}.tsv", **options)
        assert (tmp_path / f"{name}.tsv").read_bytes() == (tmp_path / "model.tsv").read_bytes(), name
    options = {**ways["both"], "work": tmp_path / "work"}
    report = mining.mine_texts(*texts, tmp_path / "o.tsv", **options)
    assert report.signature.split("|")[1].endswith(",en.npy")
    np.save(tmp_path / "en.npy", array[::-1])
    with pytest.raises(ValueError, match="begun for another task: target embeddings was"):
        mining.mine_texts(*texts, tmp_path / "o.tsv", **options)


def test_duplicates_are_mined_once_and_keep_all_ids(tmp_path: Path) -> None:
    """Also in NFD and with other white space; blank lines go; the first form is shown; with ids of their own."""
    lines = [("a", "Café au lait."), ("b", ""), ("c", "Il dort."), ("d", "Cafe\u0301  au lait. "), ("e", " \u3000")]
    others = [("1", "He sleeps."), ("2", "Milk coffee."), ("3", "He sleeps.")]
    sources = write(tmp_path / "s", [f"{name}\t{text}" for name, text in lines])
    targets = write(tmp_path / "t", [json.dumps({"id": name, "text": text}) for name, text in others])
    bucc = write(tmp_path / "t.bucc", [f"{name}\t{text}" for name, text in others])
    vectors = np.array([[1, 0.1], [9, 9], [0.1, 1], [7, 7], [9, 8]], dtype=np.float32)  # the first row's counts
    mining.write_store(tmp_path / "s.store", vectors)
    mining.write_store(tmp_path / "t.store", np.array([[0, 1], [1, 0], [5, 5]], dtype=np.float32))
    options: dict[str, Any] = {"source_embeddings": tmp_path / "s.store", "target_embeddings": tmp_path / "t.store"}
    options["search"] = mining.SearchOptions(k=2)
    report = mining.mine_texts(sources, bucc, tmp_path / "o", text_format="bucc", **options)
    assert [pair[1:] for pair in read(tmp_path / "o")] == [
        (["a", "d"], ["2"], "Café au lait.", "Milk coffee."),
        (["c"], ["1", "3"], "Il dort.", "He sleeps."),
    ]
    assert report.rows == {"source": 5, "target": 3} and report.blank == {"source": 2, "target": 0}
    assert report.distinct == {"source": 2, "target": 2}
    plain = write(tmp_path / "s.jsonl", [json.dumps({"id": name, "text": text}) for name, text in lines])
    mining.mine_texts(plain, targets, tmp_path / "o.jsonl", text_format="jsonl", **options)
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [[pair["source_ids"], pair["target_ids"], pair["source"], pair["target"]] for pair in found] == [
        list(pair[1:]) for pair in read(tmp_path / "o")
    ]
    write(plain, [json.dumps({"id": f"{name},1", "text": text}) for name, text in lines])
    with pytest.raises(ValueError, match=r"no commas, .* got 'a,1'; write JSON lines \(--format jsonl\)"):
        mining.mine_texts(plain, targets, tmp_path / "o", text_format="jsonl", **options)


NASTY = ["a\tb\\t", "line\nbreak\r\n", "\\", 'qu"ote', "\u2028 sep \x85", "แมว\u200b", "٣.5 🙂 e\u0301"]


@pytest.mark.parametrize("form", ["tsv", "jsonl"])
def test_any_sentence_comes_back(form: str, tmp_path: Path) -> None:
    """With tabs, line ends and backslashes, and ids that have them too."""
    options: dict[str, Any] = {}
    for side in ("source", "target"):
        texts = [f"{side}{text}" for text in NASTY]
        lines = [json.dumps({"id": f"{text}\t#", "text": text}) for text in texts]
        options[side] = write(tmp_path / side, lines)
        options[f"{side}_embeddings"] = np.eye(len(NASTY), dtype=np.float32) + 0.1
    out = tmp_path / f"pairs.{form}"
    mining.mine_texts(**options, out=out, text_format="jsonl", filters=OFF)
    if form == "tsv":
        found = [(*sources, *targets, source, target) for _, sources, targets, source, target in read(out)]
    else:
        rows = map(json.loads, out.read_text(encoding="utf-8").split("\n")[:-1])
        found = [(*row["source_ids"], *row["target_ids"], row["source"], row["target"]) for row in rows]
    expected = [(f"source{text}\t#", f"target{text}\t#", f"source{text}", f"target{text}") for text in NASTY]
    assert sorted(found) == sorted(expected)


def test_translation_memories_leave_out_what_xml_cannot_hold(tmp_path: Path) -> None:
    """A form feed in a scanned text would leave a file that no other program opens."""
    sides = {
        "source": ["Seite\x0c 1 & <b>2</b>", 'Er sagte\x00 "nein".', "แมว 🙂 ]]>", "\ufffeÄrger"],
        "target": ["Page 1 & <b>2</b>", 'He said\x1b "no".', "cat 🙂 ]]>", "trouble\uffff"],
    }
    options: dict[str, Any] = {}
    for side, texts in sides.items():
        options[side] = write(tmp_path / side, [json.dumps({"text": text}) for text in texts])
        options[f"{side}_embeddings"] = np.eye(4, dtype=np.float32) + 0.1
    out = tmp_path / "pairs.tmx"
    filters = replace(OFF, source_language="de", target_language="en")
    mining.mine_texts(**options, out=out, text_format="jsonl", filters=filters)
    units = ElementTree.parse(out).iterfind("body/tu")
    found = {tuple(segment.text for segment in unit.iter("seg")) for unit in units}
    assert found == {
        ("Seite 1 & <b>2</b>", "Page 1 & <b>2</b>"),
        ('Er sagte "nein".', 'He said "no".'),
        ("แมว 🙂 ]]>", "cat 🙂 ]]>"),
        ("Ärger", "trouble"),
    }


@pytest.mark.slow
def test_text_stays_in_its_files(tmp_path: Path, peak_growth: Callable[[Callable[[], Any]], int]) -> None:
    """Thirty MiB of lines are mined in half of that."""
    chance = random.Random(1)
    lines = [f"{row} " + "".join(chance.choices("abcdef ghij", k=1000)) for row in range(15000)]
    vectors = np.random.default_rng(0).standard_normal((15000, 8)).astype(np.float32)
    options: dict[str, Any] = {"search": mining.SearchOptions(memory_mib=4), "filters": OFF}
    for name, side, noise in (("source", lines, 0.0), ("target", [line[::-1] for line in lines], 0.05)):
        options[name] = write(tmp_path / f"{name}.txt", side)
        rows = vectors + noise * np.roll(vectors, 1, axis=0)
        mining.write_store(tmp_path / name, rows.astype(np.float32), sentences=side)
        options[f"{name}_embeddings"] = tmp_path / name
    growth = peak_growth(lambda: mining.mine_texts(**options, out=tmp_path / "pairs.tsv"))
    assert len(read(tmp_path / "pairs.tsv")) > 11000
    assert growth < 15 * 2**20


@pytest.mark.parametrize("retrieval", ["max", "forward"])
def test_a_copy_that_is_turned_down_leaves_its_partner_to_the_translation(retrieval: str, tmp_path: Path) -> None:
    """The copy is nearer than the translation; struck out after the choice, the sentence would have lost both."""
    options = stored(
        tmp_path,
        {"Guten Morgen, Welt!": [1, 0, 0], "Das Haus ist rot.": [0, 1, 0.1], "Wo bist du?": [0, 0.1, 1]},
        {"Guten Morgen, Welt!": [1, 0, 0], "Good morning, world!": [1, 0.3, 0], "The house is red.": [0, 1, 0]},
    )
    out = tmp_path / "out.tsv"
    rejects = tmp_path / "deep" / "rejects.jsonl"
    options["search"] = mining.SearchOptions(k=2, retrieval=retrieval)
    mining.mine_texts(**options, out=out, filters=OFF)
    assert ("Guten Morgen, Welt!", "Guten Morgen, Welt!") in [pair[3:] for pair in read(out)]
    report = mining.mine_texts(**options, out=out, rejects=rejects)
    assert ("Guten Morgen, Welt!", "Good morning, world!") in [pair[3:] for pair in read(out)]
    assert report.rejected == {"copy": 1}
    (reject,) = map(json.loads, rejects.read_text(encoding="utf-8").splitlines())
    assert (reject["reason"], reject["source_ids"], reject["target_ids"]) == ("copy", ["1"], ["1"])
    assert reject["source"] == reject["target"] == "Guten Morgen, Welt!"
    assert "rejected: 1 copy" in report.lines()


@pytest.mark.parametrize("retrieval", ["max", "intersect", "forward", "backward"])
@pytest.mark.parametrize("languages", [{}, {"source_language": "de", "target_language": "en"}])
def test_a_name_that_is_its_own_copy_stays_alone(retrieval: str, languages: dict[str, str], tmp_path: Path) -> None:
    """A rejected copy freed both names for wrong partners: EACCES with AT_EACCESS, in a fifth of a technical text."""
    sources = {
        "RES_DEFAULT": [1, 0, 0, 0, 0, 0.2],
        "RES_DNSRCH": [0, 1, 0, 0, 0, 0.2],
        "EACCES": [0, 0, 1, 0, 0, 0.2],
        "Linus Torvalds": [0.1, 0, 0, 0, 1, 0.1],
        "Die Datei ist nicht lesbar.": [0, 0, 0, 1, 0, 0.2],
        "Der Name wurde nicht gefunden.": [0, 0, 0, 0, 1, 0.3],
    }
    targets = {
        **dict(list(sources.items())[:4]),
        "RES_DEBUG": [0.9, 0, 0, 0, 0, 0.4],
        "AT_EACCESS": [0, 0, 0.9, 0, 0, 0.4],
        "The file cannot be read.": [0, 0, 0, 0.9, 0.1, 0.2],
        "The name was not found.": [0, 0, 0, 0.1, 0.9, 0.4],
    }
    options = stored(tmp_path, sources, targets)
    options |= {
        "search": mining.SearchOptions(k=3, retrieval=retrieval),
        "filters": mining.FilterOptions(**languages),
    }
    mining.mine_texts(**options, out=tmp_path / "out.tsv", rejects=tmp_path / "rejects")
    pairs = {pair[3:] for pair in read(tmp_path / "out.tsv")}
    backward = {("RES_DEFAULT", "RES_DEBUG"), ("EACCES", "AT_EACCESS")} if retrieval == "backward" else set()
    assert pairs - backward == {
        ("Die Datei ist nicht lesbar.", "The file cannot be read."),
        ("Der Name wurde nicht gefunden.", "The name was not found."),
    }
    rejects = [json.loads(line) for line in (tmp_path / "rejects").read_text(encoding="utf-8").splitlines()]
    copies = sorted(reject["source"] for reject in rejects if reject["source"] == reject["target"])
    assert copies == sorted(sources.keys() & targets.keys())


def test_a_sentence_in_the_wrong_language_leaves_its_copy_to_the_translation(tmp_path: Path) -> None:
    """Untranslated sentences next to their translations would otherwise lose a fifth of all true pairs."""
    options = stored(
        tmp_path,
        {"The lab is closed today, unfortunately.": [1, 0.1], "Leider ist das Labor heute geschlossen.": [1, 0.4]},
        {"The lab is closed today, unfortunately.": [1, 0.1], "Nobody knows the answer to this.": [0, 1]},
    )
    filters = mining.FilterOptions(source_language="de", target_language="en", disable=["copy"])
    mining.mine_texts(**options, out=tmp_path / "out.tsv", search=TWO_NEIGHBORS, filters=filters)
    pairs = [pair[3:] for pair in read(tmp_path / "out.tsv")]
    assert ("Leider ist das Labor heute geschlossen.", "The lab is closed today, unfortunately.") in pairs


def test_another_task_is_refused_and_another_choice_goes_on(
    model: Any,
    make_model: Callable[..., Any],
    texts: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a folder of choice, which is kept; a stream gets the same bytes, and nothing else is left."""
    work = tmp_path / "work"
    out = tmp_path / "o"
    options = {"source": texts[0], "target": texts[1], "out": out, "model": model, "work": work}
    mining.mine_texts(**options)
    before = sorted(tmp_path.rglob("*"))
    stream = io.BytesIO()
    mining.mine_texts(*texts, stream, model=model)
    assert stream.getvalue() == out.read_bytes() and sorted(tmp_path.rglob("*")) == before
    other = make_model()
    next(other.parameters()).data[0, 0] += 1
    changes: list[tuple[dict[str, Any], str]] = [
        ({"search": mining.SearchOptions(k=5)}, "k was 4, is now 5"),
        ({"model": other}, "source model was .*, is now .*; target model was"),
        ({"encoding": mining.EncodingOptions(dtype="int8")}, "source dtype was float32, is now int8; target dtype was"),
        ({"encoding": mining.EncodingOptions(prompt="query: ")}, "source prompt was None, is now query: "),
        ({"source": texts[1], "target": texts[0]}, "source text was .*; target text was"),
    ]
    for change, message in changes:
        with pytest.raises(ValueError, match=rf"work was begun for another task: {message}"):
            mining.mine_texts(**{**options, **change})
    assert sorted(tmp_path.rglob("*")) == before
    choice: dict[str, Any] = {"threshold": 0.5, "filters": OFF, "format": "jsonl"}
    search = mining.SearchOptions(margin="absolute")
    mining.mine_texts(**{**options, **choice, "search": search, "out": tmp_path / "fresh", "work": None})
    monkeypatch.setattr(type(model), "encode", None)  # nothing is embedded again
    search = replace(search, method="faiss:Flat?candidates=9")
    near = mining.mine_texts(**{**options, **choice, "search": search})
    assert len(list(work.rglob("*.faiss"))) == 2 and "|method:faiss:Flat?candidates=9|" in near.signature
    assert out.read_bytes() == (tmp_path / "fresh").read_bytes()


@pytest.fixture
def seeded(tmp_path: Path) -> tuple[Path, Path, Path]:
    """ "Translations" that even an untrained encoder finds: the same words with other marks at the end."""
    heap = mining_phrases("de", "en", split="train", size=600, gold=0)
    sources = heap.source[:400]
    targets = [*heap.source[:200], *heap.source[400:600]]
    known = write(tmp_path / "known.tsv", [f"{text}\t{text} !" for text in [*TEXTS.source[:90], *sources[:5]]])
    return write(tmp_path / "s", sources), write(tmp_path / "t", [f"{text} !" for text in targets]), known


def test_a_threshold_from_known_translations(
    model: Any, seeded: tuple[Path, Path, Path], tmp_path: Path, logged: Any
) -> None:
    *sides, known = seeded
    right_shares = {}
    for precision in (None, 0.95):
        out = tmp_path / f"{precision}.tsv"
        report = mining.mine_texts(
            *sides,
            out,
            model=model,
            search=TWO_NEIGHBORS,
            filters=OFF,
            calibrate_with=known,
            target_precision=precision,
        )
        calibration = report.calibration
        assert calibration is not None and calibration.threshold == report.threshold
        rows = read(out)
        assert min(row[0] for row in rows) >= report.threshold
        right_shares[precision] = np.mean([f"{row[3]} !" == row[4] for row in rows])
        assert f"threshold:{report.threshold:.6g} calibrated|" in report.signature
        # Those of the text itself are left out.
        note = report.lines()[-1]
        assert "from 90 added known pairs" in note
        # The estimate is inside its interval, and the note says which of both reached the target.
        estimate, low, high = map(float, re.findall(r"precision about (\S+) \[(\S+), (\S+)\]", note)[0])
        assert low <= estimate <= high and estimate == round(calibration.precision or 0, 3)
        reached = "the lower end of its interval " + ("reach" if precision and low >= precision else "does not")
        assert (f"reach the target precision {precision}" in note.replace("reaches", "reach")) == (
            precision is not None
        )
        assert precision is None or reached in note.replace(f"reaches the target precision {precision}, ", "")
    assert right_shares[0.95] >= 0.9
    near = mining.mine_texts(
        *sides,
        tmp_path / "o",
        model=model,
        search=replace(TWO_NEIGHBORS, method="approximate"),
        filters=OFF,
        calibrate_with=known,
        target_precision=0.95,
        progress=True,
    )
    # One search for the threshold, one for the pairs; so few sentences are all looked at.
    assert logged().count("approximate: recall of exact neighbors") == 2
    assert near.calibration == replace(calibration, signature=near.signature)
    assert (tmp_path / "o").read_bytes() == out.read_bytes()
    assert near.signature == report.signature.replace("|method:exact|", "|method:approximate|")
    with pytest.raises(
        ValueError, match=r"got 0.9999, and the highest estimate is 0\.\d+; lower it, or calibrate with more"
    ):
        mining.mine_texts(
            *sides,
            tmp_path / "unreached",
            model=model,
            search=TWO_NEIGHBORS,
            filters=OFF,
            calibrate_with=known,
            target_precision=0.9999,
        )
    with pytest.raises(ValueError, match=r"at least 4 pairs .* got 3 of 3; calibrate with|got 0 of 3"):
        few = write(tmp_path / "few.tsv", [f"{text}\tx{text}" for text in TEXTS.source[:3]])
        mining.mine_texts(*sides, tmp_path / "o", model=model, calibrate_with=few)


def test_faults_are_found_before_anything_is_embedded(model: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    blank = write(tmp_path / "blank", ["", " "])
    other = mining.encode(model, texts[0], tmp_path / "short.store").path
    mining.write_store(tmp_path / "foreign.store", np.ones((600, 16), dtype=np.float32))
    (tmp_path / "cut.npy").write_bytes(b"\x01" * 1000)
    before = sorted(tmp_path.iterdir())
    cases: list[tuple[dict[str, Any], str]] = [
        ({"model": None}, "the source and the target side"),
        ({"search": mining.SearchOptions(k=601)}, "k=601 for 600 distinct source and 600 distinct target"),
        ({"target": blank}, "blank .* got 2"),
        ({"source": ["Guten Morgen.", "Danke."]}, r"got a list.*mining\.mine\(source_sentences"),
        ({"threshold": "published"}, "it has none"),
        ({"threshold": 1.0, "calibrate_with": "known.tsv"}, "both set the threshold"),
        ({"out": texts[0]}, r"out .*news\.de would replace"),
        ({"rejects": other / "manifest.json", "source_embeddings": other}, "rejects must not replace"),
        ({"target_precision": 0.9}, "target_precision needs calibrate_with"),
        ({"rescore_threshold": 0.5}, "rescore_threshold needs rescore"),
        ({"source_embeddings": tmp_path / "foreign.store"}, "the same model .*foreign.store"),
        ({"target_embeddings": other}, r"short\.store: the text is not the one"),
        ({"source_embeddings": tmp_path / "cut.npy"}, r"cut\.npy"),
    ]
    for change, message in cases:
        options = {"source": texts[0], "target": texts[1], "out": tmp_path / "o", "model": model, **change}
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            mining.mine_texts(**options)
        assert sorted(tmp_path.iterdir()) == before, message


def test_a_vector_that_is_nan_names_the_line_of_the_text(
    make_model: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the distinct sentences in the work folder; which then does not stand in the way."""
    model = make_model()

    def broken(model: Any, sentences: list[str], **options: Any) -> Any:
        vectors = embed(model, sentences, **options)
        vectors[["5" in text for text in sentences]] = float("nan")
        return vectors

    monkeypatch.setattr(mining.encoding, "embed", broken)
    lines = ["eins", "eins", "", "zwei", "Zahl 5", "drei", "vier", "sechs"]
    source = write(tmp_path / "s", lines)
    target = write(
        tmp_path / "t", [f"the {line}" if line and "5" not in line else f"n{row}" for row, line in enumerate(lines)]
    )
    pairs = write(tmp_path / "p", ["a\tb", "a\tb", "a\tc 5", "d\te", "f\tg", "h\ti"])
    with pytest.raises(ValueError, match=rf"NaN or infinite in {source}:5; fix"):
        mining.mine_texts(source, target, tmp_path / "o", model=model)
    with pytest.raises(ValueError, match=rf"NaN or infinite in {pairs}:3; fix"):
        mining.score_texts(pairs, tmp_path / "scored", model=model)
    write(source, [line for line in lines if "5" not in line])
    assert mining.mine_texts(source, target, tmp_path / "o", model=model).distinct["source"] == 5


def news(tmp_path: Path, size: int = 400, gold: int = 60) -> tuple[tuple[Path, Path], dict[str, Any]]:
    """Texts in which few sentences have a translation, and their vectors."""
    source, target = np.random.default_rng(7).standard_normal((2, size, 48)).astype(np.float32)
    target[:gold] = source[:gold] + 0.7 * target[:gold]
    words = [_word(number) for number in range(size)]
    source_file = write(tmp_path / "few.de", [f"de Zeile Nr. {word}" for word in words])
    target_file = write(tmp_path / "few.en", [f"en Zeile Nr. {word}" for word in words])
    return (source_file, target_file), {"source_embeddings": source, "target_embeddings": target, "filters": OFF}


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_an_estimated_threshold(tmp_path: Path) -> None:
    """Without a threshold, README's ``mine`` wrote a file of which two thirds were wrong, and did not say so."""
    texts, options = news(tmp_path)
    every = mining.mine_texts(*texts, tmp_path / "all.tsv", **options)
    assert every.threshold is None and every.threshold_source == "none"
    assert every.lines()[-1].startswith("All pairs are kept, right or wrong. Set a threshold: --threshold X")
    report = mining.mine_texts(*texts, tmp_path / "few.tsv", threshold="auto", **options)
    assert report.threshold_source == "estimated" and report.threshold is not None
    assert f"|threshold:{report.threshold:.6g} estimated|" in report.signature
    rows = read(tmp_path / "few.tsv")
    all_rows = read(tmp_path / "all.tsv")
    assert rows == [row for row in all_rows if row[0] >= report.threshold]
    assert np.mean([row[1] == row[2] for row in all_rows]) < 0.3 and len(rows) > 50
    assert np.mean([row[1] == row[2] for row in rows]) > 0.9
    # The last lines say what the threshold keeps, and how to change it.
    share = f"{len(rows)} of {len(all_rows)} pairs ({len(rows) / len(all_rows):.1%}) reach the threshold."
    lines = report.lines()
    assert lines[-2].startswith(share) and "--keep-all" in lines[-2]
    assert lines[-1].startswith(f"threshold {report.threshold:.4f} estimated from the scores")
    assert lines[-13] == f"scores of {len(all_rows)} pairs, best first:" and max(map(len, lines[-12:-2])) <= 80
    assert report.as_dict()["histogram"]["kept"] == len(rows)
    assert sum(report.as_dict()["histogram"]["counts"]) == len(all_rows)
    # A given threshold keeps the same pairs.
    same = mining.mine_texts(*texts, tmp_path / "same.tsv", threshold=report.threshold, **options)
    assert (tmp_path / "same.tsv").read_bytes() == (tmp_path / "few.tsv").read_bytes()
    assert same.threshold_source == "given" and same.histogram == report.histogram


def test_a_resumed_run_estimates_the_same(tmp_path: Path) -> None:
    texts, options = news(tmp_path)
    work = tmp_path / "kept"
    first = mining.mine_texts(*texts, tmp_path / "a.tsv", threshold="estimated", work=work, **options)
    again = mining.mine_texts(*texts, tmp_path / "b.tsv", threshold="estimated", work=work, **options)
    assert first.threshold == again.threshold is not None
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()


def test_only_pairs_above_an_estimated_threshold_are_rejected(tmp_path: Path) -> None:
    """Filters look at all pairs, to estimate; the log is that of the pairs that the threshold would have kept."""
    texts, options = news(tmp_path)
    lines = texts[0].read_text(encoding="utf-8").split("\n")[:-1]
    write(texts[0], [f"{line} {'3' if row % 2 else '4'}" for row, line in enumerate(lines)])
    write(texts[1], [f"{line} 4" for line in texts[1].read_text(encoding="utf-8").split("\n")[:-1]])
    options["filters"] = mining.FilterOptions(disable=["copy", "length_ratio", "language"])
    report = mining.mine_texts(
        *texts, tmp_path / "few.tsv", threshold="estimated", rejects=tmp_path / "rejects.jsonl", **options
    )
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert report.threshold is not None and 20 < len(rejects) == report.rejected["numbers"] < 40
    assert min(rejected["score"] for rejected in rejects) >= report.threshold


def test_texts_in_which_no_translations_stand_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts, options = news(tmp_path, gold=0)
    report = mining.mine_texts(*texts, tmp_path / "wrong.tsv", threshold="auto", **options)
    assert report.threshold is None and report.threshold_source == "none" and "|threshold:none|" in report.signature
    assert "most of them are probably wrong" in report.lines()[-1] and report.lines()[-1] in caplog.text


def test_a_threshold_of_another_word(tmp_path: Path) -> None:
    """``threshold="none"`` of Python kept all pairs of a model without a published one, and none was asked for."""
    texts, options = news(tmp_path)
    with pytest.raises(ValueError, match="threshold.*'none'"):
        mining.mine_texts(*texts, tmp_path / "few.tsv", threshold="none", **options)
