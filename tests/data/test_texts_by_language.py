"""Text by language: plain files, JSON lines, parallel text and the phrasebook, as rows."""

import gzip
from pathlib import Path

import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.texts_by_language import language_texts, load_texts


def test_files_of_one_language(tmp_path: Path) -> None:
    (tmp_path / "de.txt.gz").write_bytes(gzip.compress("Der Hund schläft.\n\n  \r\nMöwen fliegen 🙂\n".encode()))
    (tmp_path / "zh.jsonl").write_text('{"text": "我买了三本旧书。"}\n{"text": "好", "id": 7}\n', encoding="utf-8")
    german = list(language_texts(f"de={tmp_path / 'de.txt.gz'}"))
    assert german == [(("de", "Der Hund schläft."),), (("de", "Möwen fliegen 🙂"),)]
    chinese = list(language_texts(f"zh_Hans={tmp_path / 'zh.jsonl'}"))
    assert chinese == [(("zh_Hans", "我买了三本旧书。"),), (("zh_Hans", "好"),)]


def test_parallel_text_has_two_texts_a_row(tmp_path: Path) -> None:
    path = tmp_path / "de-en.tsv"
    path.write_text("Der Hund.\tThe dog.\nDie Katze.\tThe cat.\n", encoding="utf-8")
    assert list(language_texts(str(path))) == [
        (("de", "Der Hund."), ("en", "The dog.")),
        (("de", "Die Katze."), ("en", "The cat.")),
    ]


def test_the_phrasebook() -> None:
    for (source_language, _), (target_language, _) in language_texts("phrasebook:vi?size=2"):
        assert (source_language, target_language) == ("vi", "en")
    assert len(list(language_texts("phrasebook:vi?size=2"))) == 2
    assert [len(row) for row in language_texts("en=phrasebook?size=3")] == [1, 1, 1]


def test_text_of_the_phrasebook_is_other_than_its_pairs() -> None:
    """Text of one language beside parallel text teaches nothing if it is the same sentences."""
    texts = load_texts("fr=phrasebook?size=200")
    assert len(texts) == 200 and texts["source"][:] == texts["target"][:]
    parallel = parallel_phrases("fr", "en", size=4000)["source"][:]
    assert len(set(texts["source"]) & set(parallel)) < 10
    assert load_texts("fr=phrasebook?size=200&seed=0")["source"][:] == parallel[:200]
    with pytest.raises(ValueError, match="one language a spec"):
        load_texts("fr=phrasebook:de")


def test_faults_are_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Der Hund.\tThe dog.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the languages of .* are not known; put them before it"):
        next(language_texts(str(tmp_path / "pairs.tsv")))
    with pytest.raises(ValueError, match="pairs.tsv; name both languages, as in de-en=PATH"):
        next(language_texts(f"de={tmp_path / 'pairs.tsv'}"))
    with pytest.raises(FileNotFoundError, match="the nearest name there is pairs.tsv"):
        next(language_texts(f"de={tmp_path / 'pair.tsv'}"))
    (tmp_path / "bad.txt").write_bytes(b"gut\n\xff\xfe\n")
    (tmp_path / "bad.jsonl").write_text('{"text": ""}\n{"texts": "a"}\n{"text": "gut"}\n', encoding="utf-8")
    (tmp_path / "half.jsonl").write_text('{"text": "ein \\ud83d"}\n{"text": "gut"}\n', encoding="utf-8")
    faults = (("bad.txt", "invalid UTF-8"), ("bad.jsonl", "no text"), ("half.jsonl", "half a surrogate pair"))
    for name, fault in faults:
        with pytest.raises(ValueError, match=fault):
            list(language_texts(f"de={tmp_path / name}"))
        assert list(language_texts(f"de={tmp_path / name}", skip_bad_lines=True)) == [(("de", "gut"),)]


def test_a_sample_of_texts_in_order(tmp_path: Path) -> None:
    path = tmp_path / "de.txt"
    path.write_text("".join(f"Satz {number}\n\n" for number in range(30)), encoding="utf-8")
    texts = [text for ((_, text),) in language_texts(f"de={path}?size=6&seed=4")]
    numbers = [int(text.split()[1]) for text in texts]
    assert len(set(numbers)) == 6 and numbers == sorted(numbers)
