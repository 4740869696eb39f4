"""Languages, groups and text with English: from folders, files and the phrasebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import TATOEBA_GROUPS, resolve_languages
from st_xling.evaluation.tatoeba import aligned_pairs, load_english_pairs

XTREME = "af ar bg bn de el es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr nl pt ru sw ta te th tl tr ur vi zh"


def test_group_sizes_and_nesting():
    sizes = {group: len(set(members)) for group, members in TATOEBA_GROUPS.items()}
    assert sizes == {"xnli14": 14, "full28": 28, "xtreme36": 36, "laser112": 112}
    for smaller in ("xnli14", "full28"):
        assert set(TATOEBA_GROUPS[smaller]) < set(TATOEBA_GROUPS["xtreme36"]) < set(TATOEBA_GROUPS["laser112"])
    for members in TATOEBA_GROUPS.values():
        assert list(members) == sorted(set(members))


def test_two_letter_codes_of_the_papers_are_the_36():
    """Column heads of DAP, table 7."""
    assert sorted(resolve_languages(XTREME.split())) == list(TATOEBA_GROUPS["xtreme36"])


@pytest.mark.parametrize(
    "names, expected",
    [
        ("zh, et,fa", ("cmn", "est", "pes")),
        (["sw", "deu", "de"], ("swh", "deu")),
        ("XNLI14", TATOEBA_GROUPS["xnli14"]),
    ],
)
def test_resolve(names, expected):
    assert resolve_languages(names) == expected


@pytest.mark.parametrize(
    "names, message",
    [
        ("xtreme63", "groups .*xnli14, full28.*'xtreme63'"),
        ("en", "'en'"),
    ],
)
def test_unknown_languages(names, message):
    with pytest.raises(ValueError, match=message):
        resolve_languages(names)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"deu": "Hallo!", "fra": "Salut !"}.items():
        (tmp_path / f"tatoeba.{name}-eng.{name}").write_text(f"{text}\n", encoding="utf-8")
        (tmp_path / f"tatoeba.{name}-eng.eng").write_text("Hello!\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("你好！\tHello!\n", encoding="utf-8")
    return tmp_path


def test_a_folder(folder: Path) -> None:
    found = load_english_pairs([folder])
    assert found[1] == "tatoeba" and found[0]["fra"] == (["Salut !"], ["Hello!"])
    assert list(load_english_pairs([folder], "fr")[0]) == ["fra"]
    with pytest.raises(ValueError, match="expected three-letter codes out of deu, fra, got spa"):
        load_english_pairs([folder], "es")


def test_the_phrasebooks_test_split() -> None:
    found = load_english_pairs(["phrasebook:de,fr?size=3"], "fr,de")
    test = parallel_phrases("fr", "en", split="test", size=3)
    assert list(found[0]) == ["fra", "deu"] and found[1] == "phrasebook-test"
    assert found[0]["fra"] == (test["source"][:], test["target"][:])
    assert load_english_pairs(["phrasebook:de?size=3&split=dev"])[1] == "phrasebook-dev"
    with pytest.raises(ValueError, match="expected languages out of deu, fra: got rus; leave these out"):
        load_english_pairs(["phrasebook:de,fr?size=3"], "de,ru")


def test_files_whichever_side_is_english(folder: Path) -> None:
    found = load_english_pairs([f"zh-en={folder}/test.tsv", folder])
    assert list(found[0]) == ["cmn", "deu", "fra"] and found[1] == f"test.tsv+{folder.name}"
    (folder / "back.tsv").write_text("Hello!\t¡Hola!\n", encoding="utf-8")
    assert load_english_pairs([f"en-es={folder}/back.tsv"])[0] == {"spa": (["¡Hola!"], ["Hello!"])}


@pytest.mark.parametrize("label", ["", "zh-vi=", "en-eng="])
def test_text_without_english(folder: Path, label: str) -> None:
    with pytest.raises(ValueError, match="as in de-en=PATH"):
        load_english_pairs([f"{label}{folder}/test.tsv"])


def test_codes_with_script_or_region(folder: Path) -> None:
    (folder / "pt.tsv").write_text("Olá!\tHello!\n", encoding="utf-8")
    chinese = [f"zho_{script}-eng_Latn={folder}/test.tsv" for script in ("Hans", "Hant")]
    found = load_english_pairs([f"en-GB-pt_BR={folder}/pt.tsv?columns=1,0", *chinese])
    greeting = (["你好！"], ["Hello!"])
    assert found[0] == {"por": (["Olá!"], ["Hello!"]), "cmn_Hans": greeting, "cmn_Hant": greeting}
    assert list(load_english_pairs([*chinese, folder], "zh")[0]) == ["cmn_Hans", "cmn_Hant"]
    assert list(load_english_pairs(chinese[:1], "zh")[0]) == ["cmn"]
    assert aligned_pairs(found[0]) == found[0]
    with pytest.raises(ValueError, match="got another for cmn_Hans"):
        load_english_pairs([chinese[0], f"en-zh_Hans={folder}/test.tsv?columns=1,0"])
