"""Recipes: what ships loads, what is misspelt is named with its nearest neighbor, what wins over what."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from st_xling.training import CrossLingualTrainingArguments, ModelOptions, build_loss, load_recipe, recipe_names
from st_xling.training.adapter import load_adapter_recipe
from st_xling.training.recipe_files import read_yaml, recipe_kind
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
    arguments = recipe.arguments
    assert (arguments.learning_rate, arguments.warmup_steps, arguments.weight_decay) == (5e-5, 0, 0)
    assert recipe.losses["representation_translation"]["weight"] == 0.1
    assert recipe.losses["translation_ranking"]["projection"] is True
    ranking = {"arguments.learning_rate": 3e-5, "losses.representation_translation.weight": 0}
    assert list(load_recipe("dap-released", overrides=ranking).losses) == ["translation_ranking"]
    both = load_recipe("dap-released", overrides={**ranking, "losses.tlm": {"weight": 0.1, "mask_probability": 0.2}})
    assert both.losses["tlm"] == {"weight": 0.1, "mask_probability": 0.2} and both.arguments.learning_rate == 3e-5


def test_what_wins(write: Any) -> None:
    """Defaults < the recipe < its tiny section < overrides; untouched keys of a touched section stay."""
    training = {"num_train_epochs": 2, "warmup_steps": 0.2, "seed": 3}
    path = write({**DAP, "arguments": training, "tiny": {"arguments": {"num_train_epochs": 5, "seed": 4}}})
    options = load_recipe(path, tiny=True, overrides={"arguments.seed": 9}).arguments
    assert (options.per_device_train_batch_size, options.warmup_steps) == (128, 0.2)
    assert (options.num_train_epochs, options.seed) == (5.0, 9)
    assert load_recipe(path).arguments.num_train_epochs == 2.0 and load_recipe(path).name == "mine"
    plain = load_recipe("dap")
    tiny = load_recipe("dap", tiny=True)
    assert (plain.bare.pooling, tiny.bare.pooling, tiny.bare.max_length) == ("cls", "mean", 32)
    assert plain.model == tiny.model == ModelOptions()
    tiny = load_recipe("dap", tiny=True, overrides={"arguments.learning_rate": 1e-4})
    assert (tiny.arguments.num_train_epochs, tiny.arguments.learning_rate) == (4, 1e-4)
    assert tiny.losses["representation_translation"] == {**plain.losses["representation_translation"], "tied": True}


def test_overrides_may_add_losses_and_fill_empty_sections(write: Any) -> None:
    path = write("losses:\n  translation_ranking:\nmodel:\narguments:\n  lora:\n")
    changes = {"losses.representation_translation.layers": 1, "model.max_length": 64, "arguments.lora.rank": 4}
    recipe = load_recipe(path, overrides=changes)
    expected = {"translation_ranking": {"weight": 1.0}, "representation_translation": {"layers": 1, "weight": 1.0}}
    assert recipe.losses == expected
    assert recipe.model == ModelOptions(max_length=64)
    assert recipe.arguments.lora is not None and recipe.arguments.lora.rank == 4


RANKING = "losses.translation_ranking"
FAULTS: list[tuple[str, Any, str]] = [
    ("losses.translation_rankin", {}, "losses has no key 'translation_rankin'.*'translation_ranking'"),
    (f"{RANKING}.margn", 1, "losses.translation_ranking has no key 'margn'.*'margin'"),
    ("model.zzz", 1, "model has no key 'zzz'.* pooling, max_length"),
    ("arguments.num_train_epochs", "two", "arguments.num_train_epochs .*'two'"),
    ("arguments.num_train_epochs.x", 1, "'num_train_epochs'"),
    ("arguments", "fast", "arguments .*'fast'"),
    (f"{RANKING}.margin", "big", "losses.translation_ranking.margin .*'big'"),
    (f"{RANKING}.columns", 0, "columns .*: got 0"),
    ("losses", {}, "'losses'"),
    ("losses", {"translation_ranking": {"weight": 0}}, "weight 0: translation_ranking"),
    ("arguments.batches", "one-pair", "arguments.batches .*'one-pair'"),
    ("data.pivot", "English!", "data.pivot .*'English!'"),
    ("arguments.mini_batch_size", 3, "arguments.mini_batch_size .*: got 3"),
]


@pytest.mark.parametrize(("key", "value", "message"), FAULTS)
def test_faults(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe("dap", overrides={key: value})


def test_an_error_of_a_loss_names_it(make_model: Any) -> None:
    for key, value, message in (
        ("representation_translation.layers", 9, r"representation_translation: layers must lie in 1\.\.2"),
        ("translation_ranking.columns", [0, 0], "columns are distinct positions"),
    ):
        recipe = load_recipe("dap", overrides={f"losses.{key}": value})
        with pytest.raises(ValueError, match=message):
            build_loss(recipe, make_model(), token_ids=[{7}, {8}])


def test_numbers_that_yaml_reads_as_text(write: Any) -> None:
    """YAML 1.1 has no number without a dot before its exponent: ``5e-5`` is text there."""
    assert yaml.safe_load("5e-5") == "5e-5"
    text = "losses: {translation_ranking: {margin: 1e-1, weight: 5e-1}}\n"
    recipe = load_recipe(write(text + "arguments: {learning_rate: 5e-5, num_train_epochs: 2}\n"))
    assert recipe.arguments.learning_rate == 5e-5 and isinstance(recipe.arguments.num_train_epochs, float)
    assert recipe.losses == {"translation_ranking": {"margin": 0.1, "weight": 0.5}}
    assert load_recipe("tr", overrides={"arguments.warmup_steps": "1e-1"}).arguments.warmup_steps == 0.1


def test_auto_vocabulary_is_that_of_the_rebuilt_side(make_model: Any) -> None:
    for direction, expected in (("target", [7, 8]), ("source", [5, 7]), ("both", [5, 7, 8])):
        recipe = load_recipe("dap", overrides={"losses.representation_translation.direction": direction})
        loss = build_loss(recipe, make_model(), token_ids=[{7, 5}, {8, 7}])
        assert loss.terms[1].loss.head.vocabulary_head.vocabulary_index.tolist() == expected


@pytest.mark.parametrize(
    ("direction", "columns", "languages", "expected"),
    [
        ("target", [["en"], ["fr", "de"]], None, ["de", "en", "fr"]),
        ("target", [["de"], ["en", "eng"]], None, None),
        ("source", [["fr", "de"], ["eng", "en"]], None, ["de", "en", "fr"]),  # one language, one id
        ("both", [["de"], ["en"]], None, ["de", "en"]),
        ("target", [["de"], ["en"]], "auto", ["de", "en"]),
        ("both", [["de"], ["en"]], [], None),
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
        loss = build_loss(load_recipe("tr-tlm", overrides={"arguments.seed": seed}), make_model(), token_ids=[{7}, {8}])
        assert torch.equal(torch.get_rng_state(), before)
        heads.append(loss.terms[1].loss.head.dense.weight)
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def test_no_such_recipe(tmp_path: Path, write: Any) -> None:
    for name, message in (
        ("dpa", "no recipe is called 'dpa'; did you mean 'dap'"),
        (str(tmp_path / "absent.yaml"), r"no recipe file at .*absent\.yaml; the named recipes are .*dap"),
    ):
        with pytest.raises(ValueError, match=message):
            load_recipe(name)
    for text, message in (
        ("- dap", "a recipe is a mapping of keys: .* holds list"),
        ("a: [1", "^.*is not valid YAML.*$"),
    ):
        with pytest.raises(ValueError, match=message):
            load_recipe(write(text))


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("losses:\n  tlm: {}\narguments:\n  seed: 1\nlosses:\n  mlm: {}\n", "losses", (1, 5)),
        ("arguments:\n  seed: 1\n  'seed': 2\nlosses: {tlm: {}}\n", "seed", (2, 3)),
        ("losses:\n  tlm: {weight: 1,\n    weight: 2}\n", "weight", (2, 3)),
        ("- losses\n- {tlm: 1, mlm: 2, tlm: 3}\n", "tlm", (2, 2)),
    ],
)
def test_a_key_twice_is_named_with_its_lines(text: str, key: str, lines: tuple[int, int], write: Any) -> None:
    """YAML takes the second one in silence: a recipe with two sections `losses` lost the terms of the first."""
    for load in (load_recipe, load_adapter_recipe, load_retrieval_recipe, load_cross_encoder_recipe):
        with pytest.raises(ValueError, match=f"the key '{key}' is in line {lines[0]} and again in line {lines[1]}"):
            load(write(text))


def test_keys_that_a_mapping_takes_over_may_be_replaced() -> None:
    content = read_yaml("a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {<<: [*a]}\n", "it")
    assert content == {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 1}}


def test_a_recipe_round_trips_through_its_dict(write: Any) -> None:
    overrides = {"arguments.lora.rank": 4, "arguments.adam_beta2": 0.98}
    recipe = load_recipe("dap", tiny=True, overrides=overrides)
    assert load_recipe(write(recipe.as_dict())) == recipe
    plain = load_recipe(write({"losses": {"translation_ranking": None}}))
    assert plain.arguments == CrossLingualTrainingArguments(disable_tqdm=True)


@pytest.mark.parametrize(("load", "name", "misspelt", "meant"), KINDS, ids=[kind[1] for kind in KINDS])
def test_faults_of_every_kind(load: Any, name: str, misspelt: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"has no key '{misspelt}'; did you mean '{meant}'"):
        load(name, overrides={f"{misspelt}.x.weight": 9})
    with pytest.raises(ValueError, match="arguments.max_steps .*: got 0"):
        load(name, overrides={"arguments.max_steps": 0})
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"name: 2001-99-99")
    with pytest.raises(ValueError, match="mine.yaml .* month must be in 1..12"):
        load(str(path))


def test_tiny_options() -> None:
    with pytest.raises(ValueError, match="tiny options shape the model 'tiny' only: got layers for another model"):
        check_tiny({"layers": 2}, "some/encoder")
    assert check_tiny({"layers": 1, "dropout": "1e-1"}) == {"layers": 1, "dropout": 0.1} and check_tiny(None) == {}
    with pytest.raises(ValueError, match="tiny has no key 'layer'; did you mean 'layers'"):
        check_tiny({"layer": 1})


def test_faults_of_the_tiny_section(write: Any) -> None:
    """Its sections are looked at in every run; their keys when it is used."""
    with pytest.raises(ValueError, match="tiny has no key 'modl'; did you mean 'model'"):
        load_recipe(write({**DAP, "tiny": {"modl": {}}}))
    path = write({**DAP, "tiny": {"arguments": {"num_train_epoch": 1}}})
    with pytest.raises(ValueError, match="arguments has no key 'num_train_epoch'; did you mean 'num_train_epochs'"):
        load_recipe(path, tiny=True)


def test_kinds() -> None:
    kinds = {"dap": "encoder", "sf": "adapter", "ir-semacl": "retriever", "xpi": "cross-encoder"}
    assert {name: recipe_kind(name) for name in kinds} == kinds
    assert all(name in recipe_names(kind) for name, kind in kinds.items()) and set(kinds) < set(recipe_names(None))
    with pytest.raises(ValueError, match="no recipe is called 'xpr-mixd'; did you mean 'xpr-mixed'"):
        recipe_kind("xpr-mixd")
