"""What the trainer reads and what is looked at before: all of a data set, the first rows of a stream."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from datasets import Dataset, IterableDataset

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.samplers import LengthGroupedBatchSampler
from st_xling.training import TrainingOptions, mixture
from st_xling.training.arguments import sampler_options
from st_xling.training.mixture import COLUMNS, fingerprint, log_mixture, mix, prepare


def corpus(language: str, size: int) -> Dataset:
    return parallel_phrases(language, "en", size=size).select_columns(COLUMNS)


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return {"de-en": corpus("de", 200), "vi-en": corpus("vi", 50)}


def test_whole_data_sets(data: dict[str, Dataset]) -> None:
    made = prepare(data, TrainingOptions(language_alpha=0.5))
    assert not made.streamed and made.rows == len(made.pairs) == len(made.looked_at) == 250
    assert made.parts == data
    assert made.shares == pytest.approx({"de-en": 2 / 3, "vi-en": 1 / 3})
    assert made.manifest == {name: {"rows": len(part), "sha8": fingerprint(part)} for name, part in data.items()}


@pytest.mark.parametrize("alpha", [None, 0.5])
@pytest.mark.parametrize("batch_size", [16, 64])
def test_rows_are_those_in_full_batches(alpha: float | None, batch_size: int, data: dict[str, Dataset]) -> None:
    options = TrainingOptions(batches="one_pair", batch_size=batch_size, language_alpha=alpha)
    made = prepare(data, options)
    sampler = LengthGroupedBatchSampler(made.pairs, batch_size, True, **sampler_options(options))
    assert made.rows == len(list(sampler)) * batch_size == len(sampler) * batch_size


def test_streams(data: dict[str, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "HEAD_ROWS", 60)
    mixed = {"de-en": data["de-en"].to_iterable_dataset(), "vi-en": data["vi-en"]}
    made = prepare(mixed, TrainingOptions(max_steps=3, batch_size=16))
    assert made.streamed and made.rows is None and isinstance(made.pairs, IterableDataset)
    assert {name: len(part) for name, part in made.parts.items()} == {"de-en": 60, "vi-en": 50}
    assert made.parts["de-en"]["source"][:] == data["de-en"]["source"][:60]
    assert {row["target_language"] for row in made.pairs.take(32)} == {"en"}


def test_sizes_of_data_sets_among_streams_are_known(data: dict[str, Dataset]) -> None:
    mixed = {"de-en": data["de-en"], "vi-en": data["vi-en"], "x": data["vi-en"].to_iterable_dataset()}
    made = prepare(mixed, TrainingOptions(max_steps=3, language_alpha=0.0))
    assert made.manifest["de-en"]["rows"] == 200 and made.manifest["x"]["rows"] is None
    with pytest.raises(ValueError, match="balancing streams needs their sizes: x says none"):
        prepare(mixed, TrainingOptions(max_steps=3, language_alpha=0.5))


def test_a_stream_needs_an_end(data: dict[str, Dataset]) -> None:
    with pytest.raises(ValueError, match="a stream has no end that is known: got no max_steps"):
        prepare({"x": data["de-en"].to_iterable_dataset()}, TrainingOptions())


@pytest.mark.parametrize("stream", [False, True])
def test_unusable_data(stream: bool, data: dict[str, Dataset]) -> None:
    def given(part: Dataset) -> Any:
        return {"x": part.to_iterable_dataset() if stream else part}

    options = TrainingOptions(max_steps=1)
    with pytest.raises(ValueError, match="data set 'x' lacks source_language: it has source, target, target_language"):
        prepare(given(data["de-en"].remove_columns("source_language")), options)
    nothing: Any = data["de-en"].select([])
    if stream:
        nothing = data["de-en"].to_iterable_dataset().filter(lambda row: False)
    with pytest.raises(ValueError, match="data set 'x' is empty"):
        prepare({"x": nothing}, options)
    with pytest.raises(ValueError, match="data set 'y' is empty"):
        prepare({**given(data["de-en"]), "y": data["de-en"].select([])}, options)
    with pytest.raises(ValueError, match="at least one data set: got none"):
        mix({})


def test_fingerprint_is_that_of_all_text_in_order(data: dict[str, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    part = data["vi-en"]
    lines = "".join(f"{text}\n" for side in ("source", "target") for text in part[side])
    assert fingerprint(part) == hashlib.sha256(lines.encode()).hexdigest()[:8]
    assert fingerprint(part.select(range(49, -1, -1))) != fingerprint(part)


def test_what_is_told(data: dict[str, Dataset], capsys: pytest.CaptureFixture[str]) -> None:
    options = TrainingOptions(max_steps=1, batches="one_pair", language_alpha=0.5)
    log_mixture(prepare(data, options), options)
    assert capsys.readouterr().err == "share of the batches (one pair): de-en 66.7 %, vi-en 33.3 %\n"
    log_mixture(prepare({"vi-en": data["vi-en"]}, options), options)
    assert capsys.readouterr().err == ""
    log_mixture(prepare({"vi-en": data["vi-en"].to_iterable_dataset()}, TrainingOptions(max_steps=1)), options)
    told = capsys.readouterr().err
    assert "those of the first 50 rows; tokens that come later only are left out of a target_vocabulary: auto" in told
