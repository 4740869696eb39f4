"""A language is added to a tiny encoder: what is trained, what stays, what a killed run takes up again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.evaluation import new_language
from st_xling.evaluation.new_language import AddingOptions, add_language, read_new_language, read_old_pairs
from st_xling.hub import write_card
from st_xling.models import load_encoder
from st_xling.models.vocabulary import slim_encoder
from tests.models.slim_encoders import encoder, german_english

CHINESE = "phrasebook:zh?size=120"
TESTS = ["phrasebook:zh,de?size=40"]
SHORT = {"arguments.max_steps": 4, "arguments.per_device_train_batch_size": 8}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads German and English, and no Chinese."""
    folder = tmp_path_factory.mktemp("models") / "start"
    slim_encoder(encoder("unigram"), german_english()).save_pretrained(str(folder))
    return folder


def options(**changes: Any) -> AddingOptions:
    return AddingOptions(pieces=400, min_count=1, rows_settings=SHORT, settings=SHORT, **changes)


def add(start: Path, out: Path, how: AddingOptions, **changes: Any) -> dict[str, Any]:
    cache = out.parent / "cache"
    return add_language(str(start), "zh", [CHINESE], out, evaluate_on=TESTS, how=how, cache=cache, **changes).content


def test_new_rows_alone_leave_old_text_as_it_was(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a language by new rows alone pays nothing: old embeddings are the same to the last bit. If the
    command is killed before the test of both models, nothing is learned a second time."""
    how = options()  # the rows alone, where pieces are added
    out = tmp_path / "out"

    def stop(*arguments: Any, **changes: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(new_language, "compare_models", stop)
        with pytest.raises(KeyboardInterrupt):
            add(start, out, how)
    for name in ("grow_vocabulary", "train_new_rows"):
        monkeypatch.setattr(new_language, name, None)  # whatever would start anew, fails
    content = add(start, out, how, complete=write_card)
    before, after = (SentenceTransformer(str(path), device="cpu") for path in (start, out))
    np.testing.assert_array_equal(after.encode(german_english()), before.encode(german_english()))
    untrained = SentenceTransformer(str(out / "training" / "stages" / "start"), device="cpu")
    assert not np.array_equal(after.encode(["她在睡觉。"]), untrained.encode(["她在睡觉。"]))
    assert list(content["stages"]) == ["rows"]
    assert content["stages"]["rows"]["steps"] == 4
    assert content["tokenization"]["before"]["needs_pieces"]
    assert content["tokenization"]["after"]["rows"][0]["unknown_text"] == 0
    chinese, german, mean = content["accuracy"]
    assert (chinese["language"], german["language"], mean["is_mean"]) == ("cmn", "deu", True)
    assert german["before"] == german["after"]
    assert german["p"] == 1
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert written["add-language"] == content
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"to which Chinese was added, with {content['pieces']} new pieces of the vocabulary" in card
    assert content["signature"] in card
    with pytest.raises(ValueError, match="use --overwrite to replace it"):
        add(start, out, how)


@pytest.mark.slow
def test_all_weights_learn_pairs_of_old_languages_besides(start: Path, tmp_path: Path) -> None:
    """Trained on pairs of the new language alone, a model fitted them too closely: on other text that language got
    worse, and old ones lost up to 8.5 points. Pairs of old languages besides make both better, so nothing is merged."""
    old = {"old_data": ["phrasebook:fr?size=40"], "keep_like": ["de=phrasebook?size=40"]}
    content = add(start, tmp_path / "out", options(), **old)
    assert list(content["stages"]) == ["rows", "all"]
    assert "|trained:rows,all|old_pairs:fr-en|direction" in content["signature"]
    assert content["langs"] == ["zh", "de", "fr", "en"]
    run = json.loads((tmp_path / "out" / "training" / "stages" / "all" / "training" / "run.json").read_text())
    assert {name: part["rows"] for name, part in run["data"].items()} == {"zh-en": 120, "fr-en": 40}


def test_as_many_old_pairs_are_drawn_as_there_are_new_ones() -> None:
    """Large files of old languages would otherwise leave the new one a small share of the batches."""
    specs = ["phrasebook:de,fr?size=100"]
    drawn = read_old_pairs("zh", specs, most=60)
    assert {name: len(pairs) for name, pairs in drawn.items()} == {"de-en": 30, "fr-en": 30}
    assert read_old_pairs("zh", specs, most=60)["fr-en"]["source"][:] == drawn["fr-en"]["source"][:]
    assert read_old_pairs("zh", specs, most=60, seed=1)["fr-en"]["source"][:] != drawn["fr-en"]["source"][:]
    with pytest.raises(ValueError, match="pairs of old languages are needed: got fr-en; those of fr belong to --data"):
        read_old_pairs("fr", specs, most=60)


@pytest.mark.slow
def test_all_weights_are_trained_next_to_old_text_and_merged(start: Path, tmp_path: Path) -> None:
    """The result is a known share of the last training, which moves old text. Kills: tests/crash."""
    content = add(start, tmp_path / "out", options(merge=0.25), keep_like=["de=phrasebook?size=40"])
    assert list(content["stages"]) == ["rows", "all", "merged"]
    assert "|trained:rows,all|merged:0.25|" in content["signature"]

    stages = tmp_path / "out" / "training" / "stages"
    rows, trained, merged = (
        load_encoder(str(folder)).state_dict() for folder in (stages / "rows", stages / "all", tmp_path / "out")
    )
    for name, weights in merged.items():
        torch.testing.assert_close(weights, torch.lerp(rows[name], trained[name], 0.25))
    moved = [name for name in rows if not torch.equal(rows[name], trained[name])]
    assert any("encoder.layer" in name for name in moved)


def test_faults_are_named_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("Guten Morgen.\tGood morning.\n" * 3, encoding="utf-8")
    german = f"de-en={tmp_path / 'p.tsv'}"
    for language, data, tests, message in (
        ("th", [german], [], r"pairs of th and another language are needed: got .*\['de'\] and \['en'\]"),
        ("de", [german], [], "got 3 pairs of de, too few to hold some out"),
        ("de", [german], ["phrasebook:fr?size=20"], "test text of de is needed: got fra"),
    ):
        with pytest.raises(ValueError, match=message):
            read_new_language(language, data, tests)


def test_sides_are_exchanged_where_the_new_language_is_second(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("".join(f"Good {n}.\tGut {n}.\n" for n in range(9)), encoding="utf-8")
    pairs = read_new_language("de", [f"en-de={tmp_path / 'p.tsv'}"], ["phrasebook:de?size=20"])
    assert pairs.train[0] == {
        "source": "Gut 0.",
        "target": "Good 0.",
        "source_language": "de",
        "target_language": "en",
    }


def test_what_cannot_be_trained_is_named(start: Path, tmp_path: Path) -> None:
    """A language that is read needs no pieces, so that their rows alone are nothing; a share of nothing is, too. Old
    pairs next to rows alone would be ignored without a word."""
    tests = {"evaluate_on": TESTS, "cache": tmp_path / "cache"}
    data = ["phrasebook:de?size=120"]
    french = ["phrasebook:fr?size=20"]
    for how, old_data, message in (
        (options(train="rows"), [], "there are none: No new vocabulary is needed"),
        (options(merge=0.0), [], "--merge must be above 0, and 1 at most: got 0.0"),
        (options(train="rows"), french, "got --old-data phrasebook:fr.size=20 with --train rows"),
    ):
        with pytest.raises(ValueError, match=message):
            add_language(str(start), "de", data, tmp_path / "out", how=how, old_data=old_data, **tests)
    assert not (tmp_path / "out").exists()
