"""Training data as one: pairs, streams, text beside them, pivots; what the tokenizer makes of it."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, IterableDataset

from st_xling.cli import main
from st_xling.data.pairs import COLUMNS
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.samplers import LengthGroupedBatchSampler
from st_xling.data.texts_by_language import read_all_others
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainingArguments, load_recipe, mixture, train
from st_xling.training import mixture as texts_module
from st_xling.training.mixture import add_mono, fingerprint, mix, prepare, report_texts
from st_xling.training.run_folder import RunFolder
from tests.conftest import PAIRS


def corpus(language: str, size: int) -> Dataset:
    return parallel_phrases(language, "en", size=size).select_columns(list(COLUMNS))


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return {"de-en": corpus("de", 200), "vi-en": corpus("vi", 50)}


def test_whole_data_sets(data: dict[str, Dataset]) -> None:
    made = prepare(data, CrossLingualTrainingArguments("run", language_alpha=0.5))
    assert not made.streamed and made.rows == len(made.pairs) == len(made.looked_at) == 250
    assert made.parts == data
    assert made.shares == pytest.approx({"de-en": 2 / 3, "vi-en": 1 / 3})
    assert made.manifest == {name: {"rows": len(part), "sha8": fingerprint(part)} for name, part in data.items()}


@pytest.mark.parametrize("alpha", [None, 0.5])
@pytest.mark.parametrize("batch_size", [16, 64])
def test_rows_are_those_in_full_batches(alpha: float | None, batch_size: int, data: dict[str, Dataset]) -> None:
    options = CrossLingualTrainingArguments(
        "run", batches="one_pair", per_device_train_batch_size=batch_size, language_alpha=alpha
    )
    made = prepare(data, options)
    sampler = LengthGroupedBatchSampler(made.pairs, batch_size, True, alpha=alpha, one_pair=True)
    assert made.rows == len(list(sampler)) * batch_size == len(sampler) * batch_size


def test_streams(data: dict[str, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "HEAD_ROWS", 60)
    mixed = {"de-en": data["de-en"].to_iterable_dataset(), "vi-en": data["vi-en"]}
    made = prepare(mixed, CrossLingualTrainingArguments("run", max_steps=3, per_device_train_batch_size=16))
    assert made.streamed and made.rows is None and isinstance(made.pairs, IterableDataset)
    assert {name: len(part) for name, part in made.parts.items()} == {"de-en": 60, "vi-en": 50}
    assert made.parts["de-en"]["source"][:] == data["de-en"]["source"][:60]
    assert {row["target_language"] for row in made.pairs.take(32)} == {"en"}
    mixed["x"] = data["vi-en"].to_iterable_dataset()
    mixed["de-en"] = data["de-en"]
    made = prepare(mixed, CrossLingualTrainingArguments("run", max_steps=3, language_alpha=0.0))
    assert made.manifest["de-en"]["rows"] == 200 and made.manifest["x"]["rows"] is None
    with pytest.raises(ValueError, match="got no max_steps"):
        prepare(mixed, CrossLingualTrainingArguments("run"))
    with pytest.raises(ValueError, match="balancing streams needs their sizes: x has none"):
        prepare(mixed, CrossLingualTrainingArguments("run", max_steps=3, language_alpha=0.5))


@pytest.mark.parametrize("stream", [False, True])
def test_unusable_data(stream: bool, data: dict[str, Dataset]) -> None:
    part: Any = data["de-en"].to_iterable_dataset() if stream else data["de-en"]
    options = CrossLingualTrainingArguments("run", max_steps=1)
    with pytest.raises(ValueError, match="data set 'x' is empty"):
        prepare({"x": part.filter(lambda row: False)}, options)
    with pytest.raises(ValueError, match="data set 'y' is empty"):
        prepare({"x": part, "y": data["de-en"].select([])}, options)
    with pytest.raises(ValueError, match="at least one data set: got none"):
        mix({})


def test_contiguous_sentences_stand_beside_the_pairs(tmp_path: Path) -> None:
    """Five sentences: two contiguous pairs, and one over; then the command trains on them."""
    text = tmp_path / "text.de"
    text.write_text("".join(f"Satz {number}.\n" for number in range(5)), encoding="utf-8")
    mixture = prepare({"de-en": parallel_phrases("de", "en", size=7)}, CrossLingualTrainingArguments("run"))
    mono = read_all_others([f"de={text}"])
    mixed = add_mono(mixture, mono, seed=1)
    beside = list(zip(mixed.pairs["mono"], mixed.pairs["mono_next"]))
    assert set(beside) == {("Satz 0.", "Satz 1."), ("Satz 2.", "Satz 3.")}
    assert {beside.count(pair) for pair in set(beside)} == {3, 4}
    assert mixed.pairs["source"][:] == mixture.pairs["source"][:]
    assert add_mono(mixture, mono, seed=1).pairs["mono"][:] == mixed.pairs["mono"][:]

    line = "train amber --model tiny --tiny hidden_size=16 --tiny layers=2 --tiny vocabulary=200 --dev none"
    line += f" --data phrasebook:de?size=40 --batch-size 8 --max-steps 2 --mono de={text} --out {tmp_path / 'run'}"
    assert main(line.split()) == 0
    manifest = RunFolder(tmp_path / "run").read_manifest()
    assert manifest["mono"]["de:text.de"]["rows"] == 5
    losses = manifest["recipe"]["losses"]
    mlm = losses.pop("mlm")
    assert (mlm["columns"], mlm["contiguous"], mlm["positions"]) == ([2, 3], True, "restarting")
    assert {tuple(options["columns"]) for options in losses.values()} == {(0, 1)}
    assert load_recipe("amber").losses["mlm"]["positions"] == "running"  # the tiny encoder's positions end too early


TINY = {"hidden_size": 16, "layers": 2, "vocabulary": 200}


def test_sides_are_put_in_order(tmp_path: Path, logged: Any) -> None:
    data = {
        f"{source}-{other}": parallel_phrases(source, other, size=20) for source, other in (("en", "de"), ("fr", "en"))
    }
    changes = {"arguments.max_steps": 1, "arguments.per_device_train_batch_size": 8, "data.pivot": "fr"}
    source = {"option": "data", "spec": "mine", "names": ["en-de", "fr-en"]}
    recipe = load_recipe("dap", tiny=True, overrides=changes)
    train(recipe, data, tmp_path / "run", model="tiny", tiny=TINY, provenance=[source])
    errors = logged()
    assert "en-fr: 20 rows turned" in errors and "several languages: de, fr" in errors, errors
    manifest = RunFolder(tmp_path / "run").read_manifest()
    names = {"en-de": 20, "en-fr": 20}
    assert {name: part["rows"] for name, part in manifest["data"].items()} == names
    assert manifest["sources"] == [{**source, "names": list(names)}]


TEXTS = ["", "kurz", "ein sehr langer Satz " * 30, "👩‍👩‍👧", *(text for pair in PAIRS for text in pair)]


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_encoder(TEXTS * 2, vocabulary=200, layers=1, hidden_size=16, max_length=12, architecture=request.param)


@pytest.mark.parametrize("max_length", [3, 8, 12])
def test_counts_are_those_of_the_tokenizer(model: Any, max_length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "BATCH_TEXTS", 3)
    tokenizer = model.tokenizer
    uncut = [tokenizer(text, verbose=False)["input_ids"] for text in TEXTS]
    cut = [tokenizer(text, truncation=True, max_length=max_length)["input_ids"] for text in TEXTS]
    monkeypatch.setattr(model, "max_seq_length", max_length)
    report = report_texts(model, Dataset.from_dict({"source": TEXTS}), "source")
    assert report.texts == len(TEXTS)
    assert report.truncated == sum(before != after for before, after in zip(uncut, cut)) > 0
    assert report.longest == max(len(ids) for ids in uncut)
    assert report.token_ids == {token for ids in cut for token in ids}


def test_a_fingerprint_is_that_of_all_text_in_order(data: dict[str, Dataset]) -> None:
    part = data["vi-en"]
    lines = "".join(f"{text}\n" for side in ("source", "target") for text in part[side])
    assert fingerprint(part) == hashlib.sha256(lines.encode()).hexdigest()[:8]
    assert fingerprint(part.select(range(49, -1, -1))) != fingerprint(part)


@pytest.mark.parametrize("stream", [False, True])
def test_hard_negatives_that_every_data_set_has_are_kept(stream: bool, data: dict[str, Dataset], logged: Any) -> None:
    """Where an objective reads them; others are named, and were the reason for a column of None."""
    texts = data["de-en"]["target"][:]
    with_one = data["de-en"].add_column("negative_1", texts[1:] + texts[:1])
    with_two = with_one.add_column("negative_2", texts[2:] + texts[:2])
    options = CrossLingualTrainingArguments("run", max_steps=3, per_device_train_batch_size=8)

    def columns(*parts: Dataset, negatives: bool) -> list[str]:
        data_sets = {f"p{number}": part.to_iterable_dataset() if stream else part for number, part in enumerate(parts)}
        made = prepare(data_sets, options, negatives=negatives)
        assert set(next(iter(made.pairs))) == set(made.looked_at.column_names)
        return made.looked_at.column_names[4:]

    assert (
        columns(with_two, with_two, negatives=True) == ["negative_1", "negative_2"] and "hard negatives" not in logged()
    )
    assert columns(with_two, with_one, negatives=True) == ["negative_1"]
    assert "p0: hard negatives ignored (negative_2): not every data set" in logged()
    assert columns(with_two, data["vi-en"], negatives=True) == []
    assert columns(with_one, negatives=False) == []
    assert "p0: hard negatives ignored (negative_1): no objective" in logged()


def test_text_that_cannot_stand_beside_pairs(data: dict[str, Dataset]) -> None:
    mono = {"de": Dataset.from_dict({"source": ["Satz 1.", "Satz 2."]})}
    stream = prepare({"de-en": data["de-en"].to_iterable_dataset()}, CrossLingualTrainingArguments("run", max_steps=1))
    with pytest.raises(ValueError, match="use --mono without --stream"):
        add_mono(stream, mono)
    with pytest.raises(ValueError, match="'de' must have at least 2 sentences: got 1"):
        add_mono(prepare(data, CrossLingualTrainingArguments("run")), {"de": mono["de"].select([0])})


def test_shares_and_streams_are_logged(data: dict[str, Dataset], logged: Any) -> None:
    options = CrossLingualTrainingArguments("run", max_steps=1, batches="one_pair", language_alpha=0.5)
    prepare(data, options).log("one_pair")
    assert logged() == "share of the batches (one pair): de-en 66.7 %, vi-en 33.3 %\n"
    prepare({"vi-en": data["vi-en"]}, options).log(options.batches)
    assert logged() == ""
    prepare({"vi-en": data["vi-en"].to_iterable_dataset()}, options).log(options.batches)
    assert "first 50 rows" in logged()


def test_an_epoch_in_turn_ends_with_the_smallest_data_set(data: dict[str, Dataset]) -> None:
    """The steps between evaluations were a share of steps that are never made."""
    in_turn = CrossLingualTrainingArguments("run", multi_dataset_batch_sampler="round_robin")
    assert mixture.epoch_rows(data, in_turn) == 100
    assert mixture.epoch_rows(data, CrossLingualTrainingArguments("run")) == 250
