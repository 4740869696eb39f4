"""Recipes: what ships loads, what is misspelt is named with its nearest neighbor, what wins over what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from st_xling.training import ModelOptions, Recipe, TrainingOptions, build_loss, load_recipe, recipe_names
from st_xling.training.adapter import load_adapter_recipe
from st_xling.training.recipe_files import recipe_kind
from st_xling.training.reranker import load_cross_encoder_recipe
from st_xling.training.retriever import load_retrieval_recipe
from st_xling.training.run import check_tiny

DAP: dict[str, Any] = {"losses": {"translation_ranking": {"weight": 1.0}, "representation_translation": {"layers": 1}}}
KINDS = [
    (load_recipe, "tr", "loses", "losses"),
    (load_adapter_recipe, "sf", "adaptr", "adapter"),
    (load_retrieval_recipe, "ir", "retreival", "retrieval"),
    (load_cross_encoder_recipe, "xpr-mixed", "negativs", "negatives"),
]


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


def test_kinds() -> None:
    kinds = {"dap": "encoder", "sf": "adapter", "ir-semacl": "retriever", "xpi": "cross-encoder"}
    assert {name: recipe_kind(name) for name in kinds} == kinds
    assert all(name in recipe_names(kind) for name, kind in kinds.items()) and set(kinds) < set(recipe_names(None))
    with pytest.raises(ValueError, match="no recipe is called 'xpr-mixd'; did you mean 'xpr-mixed'"):
        recipe_kind("xpr-mixd")


def test_ranking_goes_the_papers_ways() -> None:
    """DAP, equation 5, and AMBER, equation 4: source to target; LaBSE: both."""
    for name in ("dap", "dap-released", "tr", "tr-tlm", "amber"):
        assert load_recipe(name).losses["translation_ranking"]["bidirectional"] is False, name
    labse = load_recipe("labse").losses["translation_ranking"]
    assert labse["bidirectional"] is True and labse["margin"] == 0.3


def test_amber_is_the_papers(make_model: Any) -> None:
    """SA as a plain dot product; BERT's positions and segments where a pair is read at once."""
    losses = load_recipe("amber").losses
    assert (losses["translation_ranking"]["similarity"], losses["translation_ranking"]["scale"]) == ("dot", 1.0)
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
    both = load_recipe("dap-released", overrides={**ranking, "losses.tlm": {"weight": 0.1, "mask_probability": 0.2}})
    assert both.losses["tlm"] == {"weight": 0.1, "mask_probability": 0.2} and both.training.learning_rate == 3e-5


def test_what_wins(write: Any) -> None:
    """Defaults < the recipe < its tiny section < overrides; untouched keys of a touched section stay."""
    training = {"num_train_epochs": 2, "warmup_steps": 0.2, "seed": 3}
    path = write({**DAP, "training": training, "tiny": {"training": {"num_train_epochs": 5, "seed": 4}}})
    options = load_recipe(path, tiny=True, overrides={"training.seed": 9}).training
    assert (options.per_device_train_batch_size, options.warmup_steps) == (128, 0.2)
    assert (options.num_train_epochs, options.seed) == (5.0, 9)
    assert load_recipe(path).training.num_train_epochs == 2.0 and load_recipe(path).name == "mine"
    plain, tiny = load_recipe("dap"), load_recipe("dap", tiny=True)
    assert (plain.bare.pooling, tiny.bare.pooling, tiny.bare.max_length) == ("cls", "mean", 32)
    assert plain.model == tiny.model == ModelOptions() and plain.for_tiny == {}
    tiny = load_recipe("dap", tiny=True, overrides={"training.learning_rate": 1e-4})
    assert tiny.for_tiny["training.num_train_epochs"] == 4 and "training.learning_rate" not in tiny.for_tiny
    assert tiny.losses["representation_translation"] == {**plain.losses["representation_translation"], "tied": True}


def test_overrides_may_add_losses_and_fill_empty_sections(write: Any) -> None:
    path = write("losses:\n  translation_ranking:\nmodel:\ntraining:\n  lora:\n")
    changes = {"losses.representation_translation.layers": 1, "model.max_length": 64, "training.lora.rank": 4}
    recipe = load_recipe(path, overrides=changes)
    assert recipe.losses == {
        "translation_ranking": {"weight": 1.0},
        "representation_translation": {"layers": 1, "weight": 1.0},
    }
    assert recipe.model == ModelOptions(max_length=64)
    assert recipe.training.lora is not None and recipe.training.lora.rank == 4


RANKING = "losses.translation_ranking"
FAULTS: list[tuple[str, Any, str]] = [
    ("trainig", {}, "the recipe has no key 'trainig'; did you mean 'training'"),
    ("losses.translation_rankin", {}, "losses has no key 'translation_rankin'; did you mean 'translation_ranking'"),
    (f"{RANKING}.margn", 1, "losses.translation_ranking has no key 'margn'.*'margin'"),
    ("model.poling", "cls", "model has no key 'poling'; did you mean 'pooling'"),
    ("model.zzz", 1, "model has no key 'zzz'; it is one of pooling, max_length"),
    ("training.learning_rat", 1, "training has no key 'learning_rat'; did you mean 'learning_rate'"),
    ("training.num_train_epochs", "two", "training.num_train_epochs must be a number: got 'two'"),
    ("training.num_train_epochs", None, "training.num_train_epochs must be a number: got None"),
    ("training.num_train_epochs.x", 1, "cannot set .*: 'num_train_epochs' is no section"),
    ("training.per_device_train_batch_size", 1.5, "per_device_train_batch_size must be a whole number: got 1.5"),
    ("training.per_device_train_batch_size", True, "per_device_train_batch_size must be a whole number: got True"),
    ("training.group_by_length", 1, "training.group_by_length must be true or false: got 1"),
    ("training.keep_duplicates_apart", "yes please", "keep_duplicates_apart must be true or false"),
    ("training.bf16", 16, "training.bf16 must be true or false: got 16"),
    ("training", "fast", "training must be a mapping of keys: got 'fast'"),
    ("training", 0, "training must be a mapping of keys: got 0"),
    ("model.max_length", "long", r"model.max_length must be a whole number or null \(None\): got 'long'"),
    (RANKING, 3, "losses.translation_ranking must be a mapping of keys: got 3"),
    (f"{RANKING}.margin", "big", "losses.translation_ranking.margin must be a number: got 'big'"),
    (f"{RANKING}.columns", 0, r"columns must be a list of positions such as \[0, 1\]: got 0"),
    (f"{RANKING}.weight", [1], r"losses.translation_ranking.weight must be a number: got \[1\]"),
    (f"{RANKING}.weight", -1, "translation_ranking.weight must be a finite number, 0 or more: got -1"),
    (f"{RANKING}.weight", float("nan"), "must be a finite number"),
    (f"{RANKING}.weight", {"start": 0, "end": 1}, "as a ramp needs start, end and steps"),
    (f"{RANKING}.weight", {"start": 0, "end": 1, "stpes": 5}, "has no key 'stpes'; did you mean 'steps'"),
    (f"{RANKING}.weight", {"start": 0, "end": -1, "steps": 5}, r"weight\.end must be a finite number"),
    (f"{RANKING}.weight", {"start": 0, "end": 1, "steps": 0}, r"weight\.steps must be at least 1: got 0"),
    ("losses.representation_translation.layers", "2", "layers must be a whole number: got '2'"),
    ("losses", {}, "a recipe needs at least one loss under 'losses'"),
    ("losses", {"translation_ranking": {"weight": 0}}, "every loss of the recipe has weight 0: translation_ranking"),
    ("summary.x", 1, "cannot set 'summary.x': 'summary' is no section"),
    ("training.batches", "one-pair", r"batches is out of range \(it is mixed or one_pair\): got 'one-pair'"),
    ("training.language_alpha", 1.5, r"training.language_alpha or language_temperature: alpha must lie in \[0, 1\]"),
    ("training.language_temperature", 0.5, "language_temperature: temperature must be at least 1"),
    ("training.language_alpha", "even", r"training.language_alpha must be a number or null \(None\): got 'even'"),
    ("training.pivot", "English!", "training.pivot is out of range .*'English!'"),
    ("training.warmup_steps", 1.5, "training.warmup_steps is out of range .*: got 1.5"),
    (
        "training",
        {"logging_steps": 4, "eval_steps": 10},
        r"logging_steps is out of range \(it must divide eval_steps and save_steps\)",
    ),
    ("training", {"bf16": True, "fp16": True}, r"fp16 is out of range \(bf16 is chosen as well"),
]
OUT_OF_RANGE = {
    "per_device_train_batch_size": (0,),
    "learning_rate": (0.0, float("nan")),
    "num_train_epochs": (0, float("inf")),
    "warmup_steps": (-0.1,),
    "weight_decay": (-1.0,),
    "gradient_accumulation_steps": (0,),
    "lr_scheduler_type": ("liner",),
    "eval_steps": (-1,),
    "logging_steps": (-1,),
    "save_total_limit": (0,),
    "shuffle_buffer": (0,),
    "mini_batch_size": (3, -2),
    "seed": (-1,),
}
FAULTS += [(f"training.{key}", v, f"training.{key} is out of range") for key, vs in OUT_OF_RANGE.items() for v in vs]


@pytest.mark.parametrize(("key", "value", "message"), FAULTS)
def test_faults(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe("dap", overrides={key: value})


def test_faults_of_the_tiny_section(write: Any) -> None:
    with pytest.raises(ValueError, match="tiny has no key 'modl'; did you mean 'model'"):
        load_recipe(write({**DAP, "tiny": {"modl": {}}}))
    path = write({**DAP, "tiny": {"training": {"num_train_epoch": 1}}})
    with pytest.raises(ValueError, match="training has no key 'num_train_epoch'; did you mean 'num_train_epochs'"):
        load_recipe(path, tiny=True)


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
    recipe = load_recipe(write(text + "training: {learning_rate: 5e-5, num_train_epochs: 2}\n"))
    assert recipe.training.learning_rate == 5e-5 and isinstance(recipe.training.num_train_epochs, float)
    assert recipe.losses == {"translation_ranking": {"margin": 0.1, "weight": 0.5}}
    assert load_recipe("tr", overrides={"training.warmup_steps": "1e-1"}).training.warmup_steps == 0.1


@pytest.mark.parametrize(("direction", "expected"), [("target", [7, 8]), ("source", [5, 7]), ("both", [5, 7, 8])])
def test_auto_vocabulary_is_that_of_the_rebuilt_side(direction: str, expected: list[int], make_model: Any) -> None:
    recipe = load_recipe("dap", overrides={"losses.representation_translation.direction": direction})
    loss = build_loss(recipe, make_model(), token_ids=[{7, 5}, {8, 7}])
    assert loss.terms[1].loss.head.vocabulary_head.vocabulary_index.tolist() == expected


@pytest.mark.parametrize(
    ("direction", "columns", "languages", "expected"),
    [
        ("target", [["fr", "de"], ["en"]], None, None),
        ("target", [["en"], ["fr", "de"]], None, ["de", "en", "fr"]),
        ("target", [["de"], ["en", "eng"]], None, None),
        ("source", [["fr", "de"], ["eng", "en"]], None, ["de", "en", "fr"]),  # one language, one id
        ("both", [["de"], ["en"]], None, ["de", "en"]),
        ("target", [["de"], ["en"]], "auto", ["de", "en"]),
        ("both", [["de"], ["en"]], [], None),
        ("source", [["fr", "de"], ["en"]], ["fr", "de", "en"], ["fr", "de", "en"]),
        ("both", [], "auto", None),
    ],
)
def test_the_rebuilt_language_has_an_embedding_where_it_varies(
    direction: str, columns: list[list[str]], languages: Any, expected: list[str] | None, make_model: Any
) -> None:
    """DAP, section 5.1: language embeddings are added when the rebuilt language is not always the same."""
    options = {"direction": direction, "languages": languages}
    recipe = load_recipe("dap", overrides={f"losses.representation_translation.{k}": v for k, v in options.items()})
    rtl = build_loss(recipe, make_model(), token_ids=[{7}, {8}], languages=columns).terms[1].loss
    assert rtl.languages == expected
    count = len(expected) if expected else 2 if direction == "both" else 0
    assert (0 if rtl.head.language_embeddings is None else rtl.head.language_embeddings.num_embeddings) == count


def test_new_heads_are_those_of_the_seed(make_model: Any) -> None:
    heads = []
    for seed in (3, 3, 4):
        before = torch.get_rng_state()
        loss = build_loss(load_recipe("tr-tlm", overrides={"training.seed": seed}), make_model(), token_ids=[{7}, {8}])
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
    overrides = {"training.lora.rank": 4, "training.adam_beta2": 0.98}
    recipe = load_recipe("dap", tiny=True, overrides=overrides)
    assert load_recipe(write(recipe.as_dict())) == recipe
    assert Recipe("a", "b", {}).training == TrainingOptions()


@pytest.mark.parametrize(("load", "name", "misspelt", "meant"), KINDS, ids=[kind[1] for kind in KINDS])
def test_faults_of_every_kind(load: Any, name: str, misspelt: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the recipe has no key 'trainng'; did you mean 'training'"):
        load(name, overrides={"trainng.learning_rate": 0.5})
    with pytest.raises(ValueError, match=f"has no key '{misspelt}'; did you mean '{meant}'"):
        load(name, overrides={f"{misspelt}.x.weight": 9})
    for steps in (0, -5):
        with pytest.raises(ValueError, match=rf"training.max_steps is out of range .*: got {steps}"):
            load(name, overrides={"training.max_steps": steps})
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
        with pytest.raises(ValueError, match=message):
            load(str(path))


def test_yaml_anchors_and_merges(write: Any) -> None:
    text = "losses: &l {translation_ranking: &o {scale: 2}}\ntiny: {losses: {translation_ranking: {<<: *o}}}\n"
    assert load_recipe(write(text)).losses["translation_ranking"]["scale"] == 2.0


def test_set_takes_mappings_with_each_key_once() -> None:
    from st_xling.cli.train import _pairs

    assert _pairs(["losses.tlm={weight: 0.5}"], "--set") == {"losses.tlm": {"weight": 0.5}}
    for texts in (["a={weight: 1, weight: 2}"], ["a=1", "a=2"], ["a=" + "[" * 3000]):
        with pytest.raises(ValueError, match="--set a= (takes a YAML value|is given twice)"):
            _pairs(texts, "--set")


def test_tiny_options() -> None:
    with pytest.raises(ValueError, match="tiny options shape the model 'tiny' only: got layers for another model"):
        check_tiny({"layers": 2}, "some/encoder")
    assert check_tiny({"layers": 1, "dropout": "1e-1"}) == {"layers": 1, "dropout": 0.1} and check_tiny(None) == {}
    for options, message in (
        ({"layer": 1}, "tiny has no key 'layer'; did you mean 'layers'"),
        ({"layers": "two"}, r"tiny\.layers must be a whole number: got 'two'"),
        ({"texts": "Hallo"}, "tiny has no key 'texts'"),
        ({"vocabulary": 10**9}, r"tiny.vocabulary must be at most [\d,]+: got 1,000,000,000"),
        ({"layers": 10**6}, r"tiny.layers must be at most [\d,]+: got 1,000,000"),
    ):
        with pytest.raises(ValueError, match=message):
            check_tiny(options)


def test_the_precision_of_xpi_wins() -> None:
    changes = {"training.bf16": True, "xpi.training.fp16": True}
    recipe = load_cross_encoder_recipe("xpr-merged", xpi=True, overrides=changes)
    assert recipe.training.bf16 and recipe.xpi.training.fp16 and not recipe.xpi.training.bf16
