"""The published layouts: Tatoeba v1 folders and BUCC files, made up here and as they are."""

import gzip
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError, load_pairs, read_bucc, read_tatoeba

TATOEBA: dict[str, str | bytes] = {
    "tatoeba.deu-eng.deu": "Hund\nKatze",
    "tatoeba.deu-eng.eng": "dog\ncat\n",
    "tatoeba.tha-eng.tha": "หมา\n",
    "tatoeba.tha-eng.eng": gzip.compress(b"dog\n"),
    "README": "else",
}
BUCC: dict[str, str | bytes] = {
    "de-en.training.de": "de-1\tHund\nde-2\tKatze\nde-3\tHund\n",
    "de-en.training.en": "en-1\tdog\nen-2\tcat",
    "de-en.training.gold": "de-1\ten-1\nde-3\ten-1\n",
}


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        if isinstance(text, str):
            text = text.encode()
        (folder / name).write_bytes(text)
    return folder


def test_tatoeba(tmp_path: Path) -> None:
    sets = read_tatoeba(write(tmp_path, TATOEBA))
    assert list(sets) == ["deu", "tha"]
    row = {"source": "Katze", "target": "cat", "source_language": "deu", "target_language": "eng"}
    assert sets["deu"].to_list()[1] == row
    assert list(read_tatoeba(tmp_path, ["tha", "deu"])) == ["tha", "deu"]
    with pytest.raises(ValueError, match=r"codes out of deu, tha, got de, fra; add the files"):
        read_tatoeba(tmp_path, ["de", "fra", "tha"])
    with pytest.raises(FileNotFoundError, match=r"expected tatoeba\.xxx-eng\.xxx files"):
        read_tatoeba(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"tatoeba\.deu-eng\.eng"):
        read_tatoeba(write(tmp_path / "one", {"tatoeba.deu-eng.deu": "Hund\n"}))


def test_tatoeba_faults_of_all_languages_together(tmp_path: Path) -> None:
    texts = {"deu-eng.deu": "Hund\nKatze\n", "deu-eng.eng": "dog\n", "ita-eng.ita": "\n", "ita-eng.eng": "dog\n"}
    both = r"(?s)deu: unequal line counts \(2 lines.*ita:1: empty side"
    with pytest.raises(ParallelTextError, match=both) as caught:
        read_tatoeba(write(tmp_path, {f"tatoeba.{name}": text for name, text in texts.items()}))
    assert "skip_bad_lines=True" not in str(caught.value)


def test_bucc(tmp_path: Path) -> None:
    corpus = read_bucc(write(tmp_path / "de-en", BUCC))
    assert corpus.source_ids == ["de-1", "de-2", "de-3"] and corpus.source == ["Hund", "Katze", "Hund"]
    assert corpus.target_ids == ["en-1", "en-2"] and corpus.target == ["dog", "cat"]
    assert corpus.gold == [("de-1", "en-1"), ("de-3", "en-1")]
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    assert read_bucc(tmp_path) == corpus
    assert read_bucc(tmp_path / "de-en" / "de-en.training", pair="zh-en", split="test") == corpus
    with pytest.raises(FileNotFoundError, match=r"the nearest name there is de-en\.training\.de"):
        read_bucc(tmp_path / "de-en", split="test")
    with pytest.raises(ValueError, match="a pair like 'de-en'"):
        read_bucc(tmp_path, pair="deen")
    for ending in ("de", "en", "gold"):
        write(tmp_path / "de-en", {**BUCC, f"de-en.training.{ending}": ""})
        with pytest.raises(ParallelTextError, match=rf"de-en\.training\.{ending}: no rows"):
            read_bucc(tmp_path)
    (tmp_path / "de-en" / "de-en.training.gold").unlink()
    assert read_bucc(tmp_path).gold is None


def test_bucc_faults_of_three_files_together(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "de-en.training.de": "de-1\tHund\nde-1\tKatze\nde-2\t \nde-3\n",
        "de-en.training.en": b"en-1\tdog\nen-2\tc\xfft\n\tcat\n",
        "de-en.training.gold": "de-1\ten-1\nde-1\ten-1\nde-2\ten-9\nde-1\n",
    }
    with pytest.raises(ParallelTextError, match="got 8 faults") as caught:
        read_bucc(write(tmp_path, files))
    faults = [f"{Path(fault.path).suffix}:{fault.line} {fault.kind}" for fault in caught.value.faults]
    assert faults == [
        *(".de:2 duplicate id", ".de:3 empty side", ".de:4 wrong columns", ".en:2 invalid UTF-8", ".en:3 empty side"),
        *(".gold:2 duplicate pair", ".gold:3 unknown id", ".gold:4 wrong columns"),
    ]
    assert "skip_bad_lines" not in str(caught.value)


def test_real_sets(real_data: Path) -> None:
    sets = read_tatoeba(real_data / "tatoeba")
    assert (len(sets), sum(map(len, sets.values()))) == (36, 31692)
    corpus = read_bucc(real_data / "bucc2018", pair="zh-en", split="sample")
    assert (len(corpus.source), len(corpus.target), len(corpus.gold or [])) == (8624, 13589, 257)
    assert len(load_pairs(real_data / "parallel" / "zh-vi.tsv.gz")) == 6508
    for pair, sentences, gold in (("de-en", 3372, 84), ("zh-en", 4226, 106)):
        corpus = read_bucc(real_data / "mining", pair=pair, split="test")
        assert (len(corpus.source), len(corpus.target), len(corpus.gold or [])) == (sentences, sentences, gold)
