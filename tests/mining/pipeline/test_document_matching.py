"""Documents of two folders are paired by what they say, and then aligned."""

import json
from pathlib import Path

import pytest

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.mining import folder_files, match_documents


def test_folders_of_other_names_are_aligned(
    saved_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders from two places have other file names; each file had to be renamed by hand before it could be aligned."""
    lines = list(parallel_phrases("de", "en", size=48)["source"])
    texts = ["\n".join(lines[start : start + 8]) for start in range(0, 48, 8)]
    # Copies, which any encoder finds; a.txt and 9.txt have no partner.
    for name, text in (("a", 0), ("b", 1), ("c", 2), ("sub/d", 3), (".hidden", 4)):
        (tmp_path / "de" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "de" / f"{name}.txt").write_text(texts[text], encoding="utf-8")
    (tmp_path / "xx").mkdir()
    for name, text in (("7", 2), ("8", 1), ("9", 5), ("10", 3)):
        (tmp_path / "xx" / f"{name}.txt").write_text(texts[text], encoding="utf-8")
    sources, targets = folder_files(tmp_path / "de"), folder_files(tmp_path / "xx")
    matches = match_documents(sources, targets, model=str(saved_encoder))
    names = [(Path(source).name, Path(target).name) for source, target in matches.files]
    assert names == [("b.txt", "8.txt"), ("c.txt", "7.txt"), ("d.txt", "10.txt")]
    assert [Path(file).name for file in matches.without_partner] == ["a.txt", "9.txt"]

    out = tmp_path / "out" / "pairs.tsv"
    words = ["align-documents", str(tmp_path / "de"), str(tmp_path / "xx"), "--model", str(saved_encoder)]
    words += ["--disable-filter", "all", "--max-size", "2", "--out", str(out), "--json", str(tmp_path / "r.json")]
    assert main([*words, "--pair"]) == 0
    assert "2 files have no partner" in capsys.readouterr().err + caplog.text
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()[1:]]
    assert {row[-2] for row in rows} == {"b.txt", "c.txt", "sub/d.txt"} and all(row[3] == row[4] for row in rows)
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["align-documents"]
    assert written["matches"] == matches.as_dict() and [path.name for path in out.parent.iterdir()] == [out.name]

    assert main([*words, "--overwrite"]) == 2 and "same names" in capsys.readouterr().err
    words[1] = sources[0]
    assert main([*words, "--overwrite", "--pair"]) == 2
    assert "--pair is for the documents of two folders" in capsys.readouterr().err


def test_what_is_refused(saved_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no files"):
        folder_files(tmp_path)
    (tmp_path / "blank.txt").write_text("\n\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("Guten Tag.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="target documents with text"):
        match_documents([tmp_path / "text.txt"], [tmp_path / "blank.txt"], model=str(saved_encoder))
