"""Hard negatives that are mined from a run's own text before training: margin, prompts, draws by seed, and resuming."""

import dataclasses
import inspect
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_xling.data.text_cells import leak_key
from st_xling.training import hard_negatives, load_recipe, train
from st_xling.training.hard_negatives import add_hard_negatives
from st_xling.training.options import HardNegativeOptions
from st_xling.training.trainer import CrossLingualTrainer
from tests.training.children import stop_at

STEPS = {"arguments.num_train_epochs": 2, "arguments.per_device_train_batch_size": 8, "arguments.eval_steps": 2}


def test_a_recipe_mines_what_the_function_mines(data: Any, make_model: Any, tmp_path: Path) -> None:
    """With the recipe's options, prompts and seed: recipes drew from the ranks 2 to 32, where translations are, too."""
    prompts = {"source": "query: ", "target": "text: "}
    search = {"num_negatives": 3, "range_min": 1, "relative_margin": 0.01, "sampling_strategy": "random"}
    changes = {f"data.hard_negatives.{name}": value for name, value in search.items()}
    recipe = load_recipe(
        "tr",
        tiny=True,
        overrides={**STEPS, **changes, "arguments.max_steps": 1, "arguments.prompts": prompts, "arguments.seed": 7},
    )
    train(recipe, data, tmp_path / "run", model=make_model())
    mined = Dataset.from_parquet(str(tmp_path / "run" / "training" / "negatives.parquet"))
    expected = add_hard_negatives(
        data["vi-en"],
        make_model(),
        num_negatives=3,
        range_min=1,
        relative_margin=0.01,
        sampling_strategy="random",
        prompts=prompts,
        seed=7,
    )
    assert mined.column_names == ["negative_1", "negative_2", "negative_3"]
    assert negatives_of(mined) == negatives_of(expected)
    assert negatives_of(mined) != negatives_of(add_hard_negatives(data["vi-en"], make_model(), num_negatives=3))


@pytest.mark.slow
def test_a_resumed_run_has_the_negatives_of_its_start(
    data: Any, make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not those that the model of the checkpoint would find."""
    changes = {**STEPS, "data.hard_negatives.num_negatives": 2, "arguments.learning_rate": 1e-2}
    recipe = load_recipe("tr", tiny=True, overrides=changes)
    undisturbed = train(recipe, data, tmp_path / "whole", model=make_model())
    assert undisturbed.steps == 6
    with monkeypatch.context() as patch:
        stop_at(patch, CrossLingualTrainer, 3)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, data, tmp_path / "run", model=make_model())
    train(recipe, data, tmp_path / "run", model=make_model(), resume=True)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole")]
    torch.testing.assert_close(*weights, rtol=0, atol=0)
    negatives = Dataset.from_parquet(str(tmp_path / "run" / "training" / "negatives.parquet"))
    assert negatives.column_names == ["negative_1", "negative_2"] and len(negatives) == 24
    assert undisturbed.history[0]["loss"] > np.log(8)  # eight targets and sixteen negatives


@pytest.mark.parametrize(("search", "error"), [
    ({"num_negatives": -1}, "num_negatives must be at least 1: got -1"),
    ({"num_negatives": 8, "range_max": 9, "range_min": 2}, r"range_max must be at least .* 10: got 9"),
    ({"num_negatives": 1, "range_min": -1}, "range_min must be at least 0: got -1"),
    ({"num_negatives": 1, "relative_margin": -0.1}, "relative_margin must be at least 0: got -0.1"),
    ({"num_negatives": 1, "max_score": 0.1, "min_score": 0.5}, "min_score must be at most max_score, 0.1: got 0.5"),
    ({"num_negatives": 1, "sampling_strategy": "rank"}, "sampling_strategy .*top.*random.* got 'rank'"),
    ({"relative_margin": 0.1}, r"relative_margin is for negatives that are mined: .*--mine-negatives"),
])  # fmt: skip
def test_a_search_that_finds_nothing(search: dict[str, Any], error: str) -> None:
    """-1 negatives ended in an error of sentence-transformers after the data were read; options alone did nothing."""
    with pytest.raises(ValueError, match=rf"data\.hard_negatives\.{error}"):
        load_recipe("tr", overrides={f"data.hard_negatives.{name}": value for name, value in search.items()})


def test_the_options_of_a_recipe_are_those_of_the_function() -> None:
    """31 was the most, since negatives were drawn from 31 ranks; a pair has as many as there are other targets."""
    many = load_recipe("tr", overrides={"data.hard_negatives.num_negatives": 40})
    assert many.data.hard_negatives.num_negatives == 40
    parameters = inspect.signature(add_hard_negatives).parameters
    options = {entry.name: entry.default for entry in dataclasses.fields(HardNegativeOptions)}
    assert options.pop("num_negatives") == 0
    assert options == {name: parameters[name].default for name in options}


def test_damaged_negatives_are_named(data: Any, make_model: Any, tmp_path: Path) -> None:
    """A run was resumed with other negatives in silence; of an empty file the error did not say which it was."""
    recipe = load_recipe(
        "tr", tiny=True, overrides={**STEPS, "data.hard_negatives.num_negatives": 2, "arguments.max_steps": 2}
    )
    train(recipe, data, tmp_path / "run", model=make_model())
    path = tmp_path / "run" / "training" / "negatives.parquet"
    written = path.read_bytes()
    columns = Dataset.from_parquet(str(path)).to_dict()
    Dataset.from_dict({name: texts[::-1] for name, texts in columns.items()}).to_parquet(str(path))
    changed = path.read_bytes()
    for content in (changed, written[: len(written) // 2], b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"negatives\.parquet is not as it was written.* --overwrite"):
            train(recipe, data, tmp_path / "run", model=make_model(), resume=True)
    path.write_bytes(written)
    assert train(recipe, data, tmp_path / "run", model=make_model(), resume=True).steps == 2


def test_data_that_do_not_fit(data: Any, make_model: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mined for transl.* koleo"):
        losses = {"losses.translation_ranking.weight": 0, "losses.koleo.weight": 1}
        load_recipe("tr", overrides={"data.hard_negatives.num_negatives": 1, **losses})
    recipe = load_recipe("tr", overrides={**STEPS, "data.hard_negatives.num_negatives": 30})
    with pytest.raises(ValueError, match=r"num_negatives must be at most .* got 30, too many for 24 of 24 sources"):
        train(recipe, data, tmp_path / "run", model=make_model())
    with pytest.raises(ValueError, match="got a stream"):
        streamed = load_recipe(
            "tr", overrides={**STEPS, "data.hard_negatives.num_negatives": 1, "arguments.max_steps": 2}
        )
        train(streamed, {"vi-en": data["vi-en"].to_iterable_dataset()}, tmp_path / "run", model=make_model())


VARIANTS = [  # equal but for case, punctuation or white space, each another row
    ("Il dort.", "He sleeps."),
    ("il dort", "He is asleep."),
    ("Je ne sais pas où est la clé.", "I do not know where the key is."),
    ("Où est la clé ?", "HE SLEEPS"),
    ("แมวดำตัวหนึ่งนั่งอยู่บนหลังคา", "A black cat is sitting on the roof."),
    ("لا أعرف أين المفتاح.", "I do not know where the key is!"),
    ("我买了三本旧书。", "I bought three old books."),
    ("我买了三本旧书。", "Three old books are what I bought."),
]


def dataset_of(rows: list[tuple[str, str]]) -> Dataset:
    sources, targets = zip(*rows)
    return Dataset.from_dict({"source": sources, "target": targets})


def negatives_of(dataset: Dataset) -> list[tuple[str, ...]]:
    return list(zip(*(dataset[name][:] for name in dataset.column_names if name.startswith("negative_"))))


def test_columns_of_negatives_follow_the_definition(make_model: Any, data: Any) -> None:
    """The nearest targets below the margin, recomputed one source at a time; what was there before stays as it was."""
    model = make_model()
    pairs = data["vi-en"]
    margin = 0.01
    mined = add_hard_negatives(
        pairs, model, num_negatives=2, relative_margin=margin, prompts={"source": "query: ", "target": "text: "}
    )
    assert mined.column_names == [*pairs.column_names, "negative_1", "negative_2"]
    assert mined.select_columns(pairs.column_names)[:] == pairs[:]
    targets = list(dict.fromkeys(pairs["target"]))
    vectors = dict(zip(targets, model.encode(targets, prompt="text: ", normalize_embeddings=True)))
    full = 0
    for row in mined:
        source_vector = model.encode(row["source"], prompt="query: ", normalize_embeddings=True)
        cosines = {text: float(source_vector @ vectors[text]) for text in targets}
        most = cosines[row["target"]] * (1 - margin)
        allowed = sorted((text for text in targets if cosines[text] < most), key=lambda text: -cosines[text])
        negatives = [row["negative_1"], row["negative_2"]]
        assert negatives[: len(allowed)] == allowed[:2][: len(negatives)]
        assert len({*negatives, row["target"]}) == 3 and {*negatives} <= {*targets}
        full += len(allowed) >= 2
    assert 0 < full < len(mined)  # others are filled up


@pytest.mark.parametrize("margin", [None, 0.0])
def test_no_translation_in_another_spelling_is_a_negative(margin: float | None, make_model: Any) -> None:
    """`Il dort.` had `He is asleep.` as a negative, the translation of `il dort`; and `HE SLEEPS` next to it."""
    model = make_model()
    mined = add_hard_negatives(dataset_of(VARIANTS), model, num_negatives=2, relative_margin=margin)
    for row, negatives in zip(VARIANTS, negatives_of(mined)):
        translations = {leak_key(target) for source, target in VARIANTS if leak_key(source) == leak_key(row[0])}
        keys = {leak_key(text) for text in negatives}
        assert not keys & translations and len(keys) == 2
    rows = negatives_of(mined)
    assert rows[0] == rows[1] and rows[6] == rows[7]  # equal sources share theirs


@pytest.mark.parametrize("strategy", ["top", "random"])
def test_the_same_negatives_in_any_order_of_the_rows(strategy: Any, make_model: Any, data: Any) -> None:
    """Of one seed; the global random generator is left as it was."""
    model = make_model()
    pairs = data["vi-en"]
    backwards = pairs.select(range(len(pairs) - 1, -1, -1))

    def mine(rows: Dataset, seed: int = 0, batch_size: int | None = None) -> list[tuple[str, ...]]:
        mined = add_hard_negatives(
            rows, model, num_negatives=3, sampling_strategy=strategy, seed=seed, batch_size=batch_size
        )
        return negatives_of(mined)

    random.seed(5)
    expected = random.random()
    random.seed(5)
    first = mine(pairs)
    assert random.random() == expected
    assert first == mine(backwards)[::-1] == mine(pairs, batch_size=2)
    assert first != mine(pairs, seed=1)  # of a random model, most are filled up


def test_negatives_do_not_depend_on_how_many_scores_fit_in_memory(
    make_model: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST compares 16,384 sources at a time with all targets: 40 GiB of scores for 668,000 pairs."""
    model = make_model()
    pairs = data["vi-en"]
    at_once = add_hard_negatives(pairs, model, relative_margin=None)
    monkeypatch.setattr(hard_negatives, "SCORES_AT_A_TIME", 2 * len(pairs))
    assert add_hard_negatives(pairs, model, relative_margin=None)[:] == at_once[:]


def test_rows_without_candidates_are_filled_up_and_counted(
    make_model: Any, data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """ST leaves such rows out, and their translations with them."""
    model = make_model()
    pairs = data["vi-en"]
    with caplog.at_level("INFO", logger="st_xling"):
        mined = add_hard_negatives(pairs, model, num_negatives=4, min_score=0.999999)
    assert "24 of 24 pairs have fewer than 4 hard negatives" in caplog.text and "tells these texts apart" in caplog.text
    for row, negatives in zip(pairs, negatives_of(mined)):
        assert len({*negatives, row["target"]}) == 5
    caplog.clear()
    with caplog.at_level("INFO", logger="st_xling"):
        add_hard_negatives(pairs, model, relative_margin=None)
    assert "filled up" not in caplog.text


def test_whose_prompts_are_read(make_model: Any, data: Any) -> None:
    """Without ``prompts`` the model's own for queries and documents, as in ``mine_hard_negatives``."""
    model = make_model()
    pairs = data["vi-en"]
    options: dict[str, Any] = {"num_negatives": 3, "relative_margin": None}
    plain = negatives_of(add_hard_negatives(pairs, model, **options))
    with_prompt = negatives_of(add_hard_negatives(pairs, model, prompts="Where is the key? ", **options))
    sided = {"source": "Where is the key? ", "target": "I bought three old books. "}
    both = negatives_of(add_hard_negatives(pairs, model, prompts=sided, **options))
    model.prompts = {"query": sided["source"], "document": sided["target"]}
    assert negatives_of(add_hard_negatives(pairs, model, **options)) == both
    assert negatives_of(add_hard_negatives(pairs, model, prompts="", **options)) == plain
    assert negatives_of(add_hard_negatives(pairs, model, prompts={}, **options)) == plain
    assert len({str(rows) for rows in (plain, with_prompt, both)}) == 3


def test_other_columns_of_pairs(make_model: Any, data: Any) -> None:
    model = make_model()
    pairs = data["vi-en"]
    named = pairs.rename_columns({"source": "anchor", "target": "positive"})
    mined = add_hard_negatives(named, model, anchor_column_name="anchor", positive_column_name="positive")
    assert mined["negative_1"][:] == add_hard_negatives(pairs, model)["negative_1"][:]


PAIRS = dataset_of([("Es regnet.", "It rains."), ("Ich weiß.", "I know."), ("Es regnet!", "Rain falls.")])


@pytest.mark.parametrize(("dataset", "options", "error"), [
    (PAIRS, {"num_negatives": 0}, "num_negatives must be at least 1: got 0"),
    (PAIRS, {"num_negatives": -1}, "at least 1: got -1"),
    (PAIRS, {"num_negatives": 2}, "got 2, too many for 1 of 2 sources, such as 'Es regnet!'"),
    (PAIRS.to_iterable_dataset(), {}, "got a stream; load it whole"),
    (DatasetDict({"train": PAIRS}), {}, "expected a data set of pairs, got DatasetDict"),
    ([("Es regnet.", "It rains.")], {}, "expected a data set of pairs, got list"),
    (PAIRS.rename_column("target", "en"), {}, "got source, en, without target; name them by .*positive_column_name"),
    (PAIRS.add_column("target_2", [1, 2, 3]), {"positive_column_name": "target_2"}, "without target_2"),
    (PAIRS, {"positive_column_name": "source"}, "two columns: got source for both"),
    (PAIRS.add_column("negative_1", ["a", "b", "c"]), {}, r"already \(negative_1\); to replace .*remove_columns"),
    (PAIRS.select([]), {}, "got an empty data set"),
    (Dataset.from_dict({"source": ["a", "b"], "target": ["c", None]}), {}, "got None in row 1 of the column target"),
    (PAIRS, {"prompts": {"query": "query: "}}, "prompts must be for columns .* got query"),
    (PAIRS, {"relative_margin": float("nan")}, "relative_margin must be a finite number: got nan"),
    (PAIRS, {"relative_margin": -0.05}, "relative_margin must be at least 0: got -0.05"),
    (PAIRS, {"sampling_strategy": "nearest"}, "sampling_strategy must be one of top, random: got 'nearest'"),
    (PAIRS, {"range_min": 3, "range_max": 3}, r"range_max must be at least range_min \+ num_negatives, 4: got 3"),
])  # fmt: skip
def test_errors_come_before_any_text_is_encoded(
    dataset: Any, options: dict[str, Any], error: str, make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several came from ST or torch after both columns had been encoded, or named none of the user's arguments."""
    monkeypatch.setattr(hard_negatives, "encode", None)
    with pytest.raises((ValueError, TypeError), match=error):
        add_hard_negatives(dataset, make_model(), **options)


@pytest.mark.parametrize("name", ["CrossLingualTrainer", "SentenceTransformerTrainer"])
def test_both_trainers_read_the_columns(name: str, make_model: Any, data: Any, tmp_path: Path) -> None:
    """A loss over eight pairs ranks eight targets and eight negatives."""
    trainers: dict[str, Any] = {kind.__name__: kind for kind in (CrossLingualTrainer, SentenceTransformerTrainer)}
    model = make_model()
    pairs = add_hard_negatives(data["vi-en"].select_columns(["source", "target"]), model)
    args = SentenceTransformerTrainingArguments(
        str(tmp_path), max_steps=1, per_device_train_batch_size=8, logging_steps=1, report_to="none", disable_tqdm=True
    )
    loss = MultipleNegativesRankingLoss(model, scale=1.0)
    trainer = trainers[name](model=model, args=args, train_dataset=pairs, loss=loss)
    trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(np.log(16), abs=0.3)


def test_an_interrupted_search_leaves_nothing_behind(
    make_model: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a seeded global generator nor a changed data set."""
    pairs = data["vi-en"]

    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hard_negatives, "encode", interrupt)
    random.seed(5)
    expected = random.random()
    random.seed(5)
    with pytest.raises(KeyboardInterrupt):
        add_hard_negatives(pairs, make_model(), seed=1)
    assert random.random() == expected and "negative_1" not in pairs.column_names
