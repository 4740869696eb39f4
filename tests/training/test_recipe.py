"""Recipes: what ships loads, what is misspelt is named with its nearest neighbour, what wins over what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from st_xling.training import ModelOptions, Recipe, TrainingOptions, build_loss, load_recipe, recipe_names
from st_xling.training.adapter import load_adapter_recipe
from st_xling.training.reranker import load_cross_encoder_recipe
from st_xling.training.retriever import load_retrieval_recipe
from st_xling.training.run import check_tiny
from st_xling.training.transfer.tasks import FineTuning

DAP: dict[str, Any] = {"losses": {"translation_ranking": {"weight": 1.0}, "representation_translation": {"layers": 1}}}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(content: Any) -> str:
        path = tmp_path / "mine.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
        return str(path)

    return written


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_loads_and_builds(name: str, tiny: bool, make_model: Any) -> None:
    recipe = load_recipe(name, tiny=tiny)
    assert recipe.name == name and recipe.summary
    loss = build_loss(recipe, make_model(), token_ids=[{5, 6}, {7, 8}], languages=[["de"], ["en"]])
    assert len(loss.names) == len(recipe.losses)


def test_ranking_goes_the_papers_ways() -> None:
    """DAP, equation 5, and AMBER, equation 4: source to target; LaBSE: both."""
    for name in ("dap", "dap-released", "tr", "tr-tlm", "amber"):
        assert load_recipe(name).losses["translation_ranking"]["bidirectional"] is False, name
    labse = load_recipe("labse").losses["translation_ranking"]
    assert labse["bidirectional"] is True and labse["margin"] == 0.3


def test_amber_is_the_papers(make_model: Any) -> None:
    """SA as a plain dot product; BERT's positions and segments where a pair is read at once."""
    losses = load_recipe("amber").losses
    ranking = losses["translation_ranking"]
    assert (ranking["similarity"], ranking["scale"]) == ("dot", 1.0)
    for name in ("tlm", "word_alignment"):
        assert (losses[name]["positions"], losses[name]["segments"]) == ("running", True)
    changes = {"losses.mlm.columns": [2, 3], "losses.mlm.contiguous": True}
    loss = build_loss(load_recipe("amber", overrides=changes), make_model(), token_ids=[{7}, {8}])
    assert loss.min_columns == 4 and loss.terms[0].loss.head is loss.terms[1].loss.head


def test_the_released_script_of_dap_and_its_baselines() -> None:
    """The values of the authors' code, as the recipe's comment gives them."""
    recipe = load_recipe("dap-released")
    training = recipe.training
    assert (training.learning_rate, training.warmup_steps, training.weight_decay) == (5e-5, 0, 0)
    assert recipe.losses["representation_translation"]["weight"] == 0.1
    assert recipe.losses["translation_ranking"]["projection"] is True
    ranking = {"training.learning_rate": 3e-5, "losses.representation_translation.weight": 0}
    assert list(load_recipe("dap-released", overrides=ranking).losses) == ["translation_ranking"]
    both = {**ranking, "losses.tlm.weight": 0.1, "losses.tlm.mask_probability": 0.2}
    found = load_recipe("dap-released", overrides=both)
    assert found.losses["tlm"] == {"weight": 0.1, "mask_probability": 0.2} and found.training.learning_rate == 3e-5


def test_the_tiny_section_is_for_tiny_alone() -> None:
    plain, tiny = load_recipe("dap"), load_recipe("dap", tiny=True)
    assert (plain.model.pooling, tiny.model.pooling) == ("cls", "mean")
    assert (plain.training.num_train_epochs, tiny.training.num_train_epochs) == (1.0, 4.0)
    shared = {**plain.losses["representation_translation"], "tied": True}  # the section adds one key and keeps the rest
    assert tiny.losses["representation_translation"] == shared
    assert plain.model.max_length == tiny.model.max_length == 32  # untouched keys of a touched section stay


def test_what_wins(write: Any) -> None:
    """Defaults < the recipe < its tiny section < overrides."""
    path = write(
        {
            **DAP,
            "training": {"num_train_epochs": 2, "warmup_steps": 0.2, "seed": 3},
            "tiny": {"training": {"num_train_epochs": 5, "seed": 4}},
        }
    )
    training = load_recipe(path, tiny=True, overrides={"training.seed": 9}).training
    assert (training.per_device_train_batch_size, training.warmup_steps, training.num_train_epochs, training.seed) == (
        128,
        0.2,
        5.0,
        9,
    )
    assert load_recipe(path, overrides={"training.seed": 9}).training.num_train_epochs == 2.0


def test_an_override_may_add_a_loss_and_a_section(write: Any) -> None:
    path = write({"losses": {"translation_ranking": None}})
    recipe = load_recipe(path, overrides={"losses.representation_translation.layers": 1, "model.max_length": 64})
    assert recipe.losses == {
        "translation_ranking": {"weight": 1.0},
        "representation_translation": {"layers": 1, "weight": 1.0},
    }
    assert recipe.model == ModelOptions(max_length=64)


UNKNOWN = [
    ({**DAP, "trainig": {}}, "the recipe has no key 'trainig'; did you mean 'training'"),
    (
        {"losses": {"translation_rankin": {}}},
        "losses has no key 'translation_rankin'; did you mean 'translation_ranking'",
    ),
    ({"losses": {"translation_ranking": {"margn": 1}}}, "losses.translation_ranking has no key 'margn'.*'margin'"),
    ({"losses": {"translation_ranking": {"wieght": 1}}}, "losses.translation_ranking has no key 'wieght'.*'weight'"),
    ({**DAP, "model": {"poling": "cls"}}, "model has no key 'poling'; did you mean 'pooling'"),
    ({**DAP, "training": {"learning_rat": 1}}, "training has no key 'learning_rat'; did you mean 'learning_rate'"),
    ({**DAP, "tiny": {"modl": {}}}, "tiny has no key 'modl'; did you mean 'model'"),
    ({**DAP, "model": {"zzz": 1}}, "model has no key 'zzz'; it is one of pooling, max_length"),
]


@pytest.mark.parametrize(("content", "message"), UNKNOWN)
def test_unknown_keys(content: Any, message: str, write: Any) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe(write(content))


def test_unknown_key_within_the_tiny_section(write: Any) -> None:
    path = write({**DAP, "tiny": {"training": {"num_train_epoch": 1}}})
    with pytest.raises(ValueError, match="training has no key 'num_train_epoch'; did you mean 'num_train_epochs'"):
        load_recipe(path, tiny=True)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("training.num_train_epochs", "two", r"training.num_train_epochs must be a number: got 'two'"),
        (
            "training.per_device_train_batch_size",
            1.5,
            r"training.per_device_train_batch_size must be a whole number: got 1.5",
        ),
        (
            "training.per_device_train_batch_size",
            True,
            r"training.per_device_train_batch_size must be a whole number: got True",
        ),
        ("training.group_by_length", 1, r"training.group_by_length must be true or false: got 1"),
        ("training.bf16", 16, r"training.bf16 must be true or false: got 16"),
        ("training.num_train_epochs", None, r"training.num_train_epochs must be a number: got None"),
        ("training", "fast", r"training must be a mapping of keys: got 'fast'"),
        ("training", 0, r"training must be a mapping of keys: got 0"),
        ("model.max_length", "long", r"model.max_length must be a whole number or null: got 'long'"),
        ("losses.translation_ranking", 3, r"losses.translation_ranking must be a mapping of keys: got 3"),
        ("losses.translation_ranking.margin", "big", r"losses.translation_ranking.margin must be a number: got 'big'"),
        ("losses.translation_ranking.weight", [1], r"losses.translation_ranking.weight must be a number: got \[1\]"),
        ("losses.translation_ranking.columns", 0, r"columns must be a list of positions such as \[0, 1\]: got 0"),
        ("losses.representation_translation.layers", "2", r"layers must be a whole number: got '2'"),
        ("losses.representation_translation.target_vocabulary", "atuo", r"must be 'auto' or a list: got 'atuo'"),
        ("losses", {}, "a recipe needs at least one loss under 'losses'"),
        (
            "training.num_train_epochs.x",
            1,
            "cannot set 'training.num_train_epochs.x': 'num_train_epochs' is no section",
        ),
    ],
)
def test_wrong_types(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe("dap", overrides={key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("per_device_train_batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("num_train_epochs", 0),
        ("num_train_epochs", float("inf")),
        ("warmup_steps", -0.1),
        ("weight_decay", -1.0),
        ("gradient_accumulation_steps", 0),
        ("lr_scheduler_type", "liner"),
        ("eval_steps", -1),
        ("logging_steps", -1),
        ("save_total_limit", 0),
        ("seed", -1),
    ],
)
def test_out_of_range(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"training.{key} is out of range"):
        load_recipe("tr", overrides={f"training.{key}": value})


def test_logged_steps_must_divide_evaluated_ones() -> None:
    with pytest.raises(
        ValueError, match=r"training.logging_steps is out of range \(it must divide eval_steps\): got 4"
    ):
        load_recipe("tr", overrides={"training.logging_steps": 4, "training.eval_steps": 10})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batches": "one-pair"}, r"training.batches is out of range \(it is mixed or one_pair\): got 'one-pair'"),
        ({"shuffle_buffer": 0}, "training.shuffle_buffer is out of range: got 0"),
        (
            {"language_alpha": 1.5},
            r"training.language_alpha or language_temperature: alpha must lie in \[0, 1\]",
        ),
        ({"language_temperature": 0.5}, "language_temperature: temperature must be at least 1"),
        ({"language_alpha": 0.5, "language_temperature": 2}, "by an exponent or by a temperature: .* leave one out"),
        ({"language_alpha": "even"}, "training.language_alpha must be a number or null: got 'even'"),
        ({"keep_duplicates_apart": "yes please"}, "training.keep_duplicates_apart must be true or false"),
    ],
)
def test_language_balance_and_batches(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe("tr", overrides={f"training.{key}": value for key, value in options.items()})


def test_sections_left_empty_can_be_set(write: Any) -> None:
    path = write("losses:\n  translation_ranking:\nmodel:\ntraining:\n  lora:\n")
    changes = {"losses.translation_ranking.margin": 0.3, "model.max_length": 16, "training.lora.rank": 4}
    recipe = load_recipe(path, overrides=changes)
    assert recipe.losses["translation_ranking"]["margin"] == 0.3
    assert recipe.model.max_length == 16 and recipe.training.lora is not None and recipe.training.lora.rank == 4
    with pytest.raises(ValueError, match="cannot set 'summary.x': 'summary' is no section"):
        load_recipe("tr", overrides={"summary.x": 1})


def test_an_error_of_a_loss_names_it(make_model: Any) -> None:
    recipe = load_recipe("dap", overrides={"losses.representation_translation.layers": 9})
    with pytest.raises(ValueError, match=r"losses\.representation_translation: layers must lie in 1\.\.2"):
        build_loss(recipe, make_model(), token_ids=[{7}, {8}])
    recipe = load_recipe("tr", overrides={"losses.translation_ranking.columns": [0, 0]})
    with pytest.raises(ValueError, match="columns are distinct positions"):
        build_loss(recipe, make_model(), token_ids=[{7}, {8}])


def test_numbers_that_yaml_reads_as_text(write: Any) -> None:
    """YAML 1.1 has no number without a dot before its exponent: ``5e-5`` is text there."""
    assert yaml.safe_load("5e-5") == "5e-5"
    text = "losses: {translation_ranking: {margin: 1e-1, weight: 5e-1}}\n"
    text += "training: {learning_rate: 5e-5, num_train_epochs: 2}\n"
    recipe = load_recipe(write(text))
    assert recipe.training.learning_rate == 5e-5 and recipe.training.num_train_epochs == 2.0
    assert isinstance(recipe.training.num_train_epochs, float)
    assert recipe.losses == {"translation_ranking": {"margin": 0.1, "weight": 0.5}}
    overridden = load_recipe("tr", overrides={"training.learning_rate": "2e-4", "training.warmup_steps": "1e-1"})
    assert (overridden.training.learning_rate, overridden.training.warmup_steps) == (2e-4, 0.1)


@pytest.mark.parametrize(("direction", "expected"), [("target", [7, 8]), ("source", [5, 7]), ("both", [5, 7, 8])])
def test_auto_vocabulary_is_that_of_the_rebuilt_side(direction: str, expected: list[int], make_model: Any) -> None:
    recipe = load_recipe("dap", overrides={"losses.representation_translation.direction": direction})
    loss = build_loss(recipe, make_model(), token_ids=[{7, 5}, {8, 7}])
    head = loss.terms[1].loss.head.vocabulary_head
    assert head.vocabulary_index.tolist() == expected


@pytest.mark.parametrize(
    ("direction", "columns", "given", "expected"),
    [
        ("target", [["fr", "de"], ["en"]], None, None),
        ("target", [["en"], ["fr", "de"]], None, ["de", "en", "fr"]),
        ("source", [["fr", "de"], ["en"]], None, ["de", "en", "fr"]),
        ("source", [["de"], ["en"]], None, None),
        ("both", [["de"], ["en"]], None, ["de", "en"]),
        ("target", [["de"], ["en"]], "auto", ["de", "en"]),
        ("both", [["de"], ["en"]], [], None),
        ("source", [["fr", "de"], ["en"]], ["fr", "de", "en"], ["fr", "de", "en"]),
        ("both", [], "auto", None),
    ],
)
def test_the_rebuilt_language_is_told_where_it_varies(
    direction: str, columns: list[list[str]], given: Any, expected: list[str] | None, make_model: Any
) -> None:
    """DAP, section 5.1: language embeddings are added when the rebuilt language is not always the same."""
    changes = {"direction": direction, "languages": given}
    key = "losses.representation_translation."
    recipe = load_recipe("dap", overrides={key + name: value for name, value in changes.items()})
    rtl = build_loss(recipe, make_model(), token_ids=[{7}, {8}], languages=columns).terms[1].loss
    assert rtl.languages == expected
    told = len(expected) if expected else 2 if direction == "both" else 0
    assert (0 if rtl.head.language_embeddings is None else rtl.head.language_embeddings.num_embeddings) == told


def test_new_heads_are_those_of_the_seed(make_model: Any) -> None:
    heads = []
    for seed in (3, 3, 4):
        before = torch.get_rng_state()
        recipe = load_recipe("tr-tlm", overrides={"training.seed": seed})
        loss = build_loss(recipe, make_model(), token_ids=[{7}, {8}])
        assert torch.equal(torch.get_rng_state(), before)
        heads.append(loss.terms[1].loss.head.dense.weight)
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def test_no_such_recipe(tmp_path: Path, write: Any) -> None:
    with pytest.raises(ValueError, match="no recipe is called 'dpa'; did you mean 'dap'"):
        load_recipe("dpa")
    with pytest.raises(ValueError, match=r"no recipe file at .*absent\.yaml; the named recipes are .*dap"):
        load_recipe(str(tmp_path / "absent.yaml"))
    with pytest.raises(ValueError, match=r"a recipe is a mapping of keys: .* holds list"):
        load_recipe(write("- dap"))
    with pytest.raises(ValueError, match="is not valid YAML") as error:
        load_recipe(write("losses: {a: [1"))
    assert "\n" not in str(error.value)


def test_a_recipe_round_trips_through_its_dict(write: Any) -> None:
    recipe = load_recipe("dap", tiny=True)
    assert load_recipe(write(recipe.as_dict())) == recipe
    assert Recipe("a", "b", {}).training == TrainingOptions()


def test_tiny_options() -> None:
    assert check_tiny({"layers": 1, "dropout": "1e-1"}) == {"layers": 1, "dropout": 0.1}
    assert check_tiny(None) == {}
    with pytest.raises(ValueError, match="tiny has no key 'layer'; did you mean 'layers'"):
        check_tiny({"layer": 1})
    with pytest.raises(ValueError, match=r"tiny\.layers must be a whole number: got 'two'"):
        check_tiny({"layers": "two"})
    with pytest.raises(ValueError, match="tiny has no key 'texts'"):
        check_tiny({"texts": "Hallo"})


KINDS = [
    (load_recipe, "tr", "loses"),
    (load_adapter_recipe, "sf", "adaptr"),
    (load_retrieval_recipe, "ir", "retreival"),
    (load_cross_encoder_recipe, "xpr-mixed", "negativs"),
]


@pytest.mark.parametrize(("load", "name", "section"), KINDS, ids=[name for _, name, _ in KINDS])
def test_misspelt_sections_of_overrides(load: Any, name: str, section: str) -> None:
    with pytest.raises(ValueError, match="the recipe has no key 'trainng'; did you mean 'training'"):
        load(name, overrides={"trainng.learning_rate": 0.5})
    meant = {"loses": "losses", "adaptr": "adapter", "retreival": "retrieval", "negativs": "negatives"}[section]
    with pytest.raises(ValueError, match=f"has no key '{section}'; did you mean '{meant}'"):
        load(name, overrides={f"{section}.x.weight": 9})


def test_what_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    faults = {
        b"losses: {tlm: {}}\ntraining: {seed: 1}\nlosses: {}\n": r"mine.yaml .*'losses' stands in line 1 and in line 3",
        b"training:\n  seed: 1\n  seed: 2\n": "'seed' stands in line 2 and in line 3",
        b"[" * 3000: "mine.yaml .* nested too deep",
        b"name: \xff": r"mine.yaml is not, at byte 6",
        b"name: 2001-99-99": "mine.yaml .* month must be in 1..12",
    }
    for content, message in faults.items():
        path.write_bytes(content)
        for load in (load_recipe, load_adapter_recipe, load_retrieval_recipe, load_cross_encoder_recipe):
            with pytest.raises(ValueError, match=message):
                load(str(path))
    path.write_text(
        "losses: &l {translation_ranking: &o {scale: 2}}\ntiny: {losses: {translation_ranking: {<<: *o}}}\n"
    )
    assert load_recipe(str(path)).losses["translation_ranking"]["scale"] == 2.0


def test_set_takes_mappings_with_each_key_once() -> None:
    from st_xling.cli.train import _pairs

    assert _pairs(["losses.tlm={weight: 0.5}"], "--set") == {"losses.tlm": {"weight": 0.5}}
    for given in (["a={weight: 1, weight: 2}"], ["a=1", "a=2"], ["a=" + "[" * 3000]):
        with pytest.raises(ValueError, match="--set a= (takes a YAML value|is given twice)"):
            _pairs(given, "--set")


@pytest.mark.parametrize("steps", [0, -5])
def test_steps_are_at_least_one(steps: int) -> None:
    for load, name, _ in KINDS:
        with pytest.raises(ValueError, match=rf"training.max_steps is out of range .*: got {steps}"):
            load(name, overrides={"training.max_steps": steps})
    with pytest.raises(ValueError, match=f"max_steps must be at least 1, .* got {steps}"):
        FineTuning(epochs=1, batch_size=1, learning_rate=1e-3, max_steps=steps)


def test_warmup_is_a_share_or_whole_steps() -> None:
    assert [load_recipe("tr", overrides={"training.warmup_steps": w}).training.warmup_steps for w in (0.5, 2)] == [
        0.5,
        2.0,
    ]
    with pytest.raises(ValueError, match=r"training.warmup_steps is out of range .*: got 1.5"):
        load_recipe("tr", overrides={"training.warmup_steps": 1.5})


@pytest.mark.parametrize(("name", "value"), [("vocabulary", 10**9), ("layers", 10**6), ("hidden_size", 10**9)])
def test_sizes_of_a_tiny_model_have_a_limit(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"tiny.{name} must be at most [\d,]+: got {value:,}"):
        check_tiny({name: value})
