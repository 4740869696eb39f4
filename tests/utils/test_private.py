"""Canaries: each fails first when a library changes private API that we use, and says what depends on it."""

import ast
import copy
import dataclasses
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import pytest
import torch
from datasets import Dataset, IterableDataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from tokenizers import Tokenizer
from torch import nn
from transformers import BertConfig, BertModel, Trainer

import st_xling
from st_xling.metrics import path
from st_xling.training.settings import _ARGUMENT_FILES
from st_xling.training.trainer import FiniteTrainer, GuardedTrainer
from st_xling.utils import private
from st_xling.utils.private import dataclass_fields

TEXTS = ["Der Hund schläft.", "สุนัขหลับ", "Le café est fermé."]


@pytest.mark.parametrize("kind", [SentenceTransformerTrainingArguments, CrossEncoderTrainingArguments])
def test_training_arguments_are_found_without_importing_them(kind: type) -> None:
    """The names are read in the libraries' files, so that ``train --set`` reports a typing error before torch loads."""
    names: set[str] = set()
    for package, module in _ARGUMENT_FILES:
        names.update(dataclass_fields(package, module))
    assert {field.name for field in dataclasses.fields(kind)} <= names


def test_rules_of_plural_forms_are_compiled() -> None:
    """Which translation of a PO file is the plural for most numbers depends on it; the standard library hides it."""
    assert [private.plural_function("n%10==1 ? 0 : n>4 ? 2 : 1")(number) for number in (1, 2, 5, 21)] == [0, 1, 2, 0]
    with pytest.raises(ValueError):
        private.plural_function("EXPRESSION")


def test_a_module_that_is_not_there_has_no_names() -> None:
    assert dataclass_fields("transformers", "no_such_file.py") == dataclass_fields("no_such_package", "a.py") == []


def test_attention_can_be_changed_for_a_block() -> None:
    """``WordAlignmentLoss`` reads weights of attention: it needs eager attention, the only kind that returns them."""
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=9)
    model = BertModel(config).eval()
    shapes: list[Any] = []

    def record_shape(module: nn.Module, inputs: Any, output: Any) -> None:
        weights = output[1]
        shapes.append(None if weights is None else tuple(weights.shape))

    for layer in model.encoder.layer:
        layer.attention.self.register_forward_hook(record_shape)
    ids = torch.tensor([[1, 2, 3]])
    model.set_attn_implementation("sdpa")
    model(ids)
    with private.with_attention(model.config, "eager"):
        assert private.attention_implementation(model.config) == "eager"
        model(ids)
    model(ids)
    assert shapes == [None, (1, 2, 3, 3), None]
    assert private.attention_implementation(model.config) == "sdpa"


def test_shared_evaluation_is_known(make_model: Callable[..., Any]) -> None:
    """Where processes share an evaluation, ``encode`` of sentence-transformers must be called, not ours."""
    model = make_model()
    assert model._distributed_inference is None and not private.encodes_in_several_processes(model)
    model._distributed_inference = lambda inputs, **options: torch.zeros(len(inputs), 3)
    assert private.encodes_in_several_processes(model)
    assert model.encode(TEXTS, convert_to_tensor=True).shape == (3, 3)


def test_a_fingerprint_follows_content() -> None:
    """Loading ``--data`` and resumed runs recognize a data set by it."""
    data = Dataset.from_dict({"source": TEXTS})
    assert private.fingerprint(data) == private.fingerprint(copy.deepcopy(data))
    assert private.fingerprint(data) != private.fingerprint(data.select([0, 1]))


@pytest.mark.slow
def test_a_compiled_module_gives_the_one_inside() -> None:
    """Losses must find the model inside the wrapper: a trainer with ``torch_compile`` gives them that."""
    module = nn.Linear(2, 2)
    assert private.uncompiled(torch.compile(module)) is module  # type: ignore[arg-type]
    assert private.uncompiled(module) is module


def test_a_stream_gets_its_features() -> None:
    """Text that is streamed from the Hub may come without column names, from which its languages are read."""
    stream = IterableDataset.from_generator(lambda: ({"source": text} for text in TEXTS))
    assert stream.features is None
    resolved = private.with_features(stream)
    assert list(resolved.features) == ["source"]
    assert [row["source"] for row in resolved] == TEXTS
    assert private.with_features(resolved) is resolved


def test_a_copied_card_can_be_forgotten(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Otherwise a slim model would be saved with the card of its source."""
    make_model().save_pretrained(str(tmp_path / "source"))
    (tmp_path / "source" / "README.md").write_text("# Café\n", encoding="utf-8")
    for forget in (False, True):
        model = SentenceTransformer(str(tmp_path / "source"), device="cpu")
        if forget:
            private.forget_card(model)
        model.save_pretrained(str(tmp_path / "copy"))
        assert ("Café" in (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")) != forget


def test_a_module_is_initialized_as_its_family_does() -> None:
    """New heads, such as that of ``RepresentationTranslationLoss``, start as a layer of their encoder would."""
    config = BertConfig(hidden_size=64, num_hidden_layers=0, num_attention_heads=1, initializer_range=0.5)
    part = nn.Linear(64, 64)
    torch.manual_seed(0)
    private.initialize(BertModel(config), part)
    assert not part.bias.any() and part.weight.std().item() == pytest.approx(0.5, rel=0.1)


def test_a_tokenizer_gets_another_backend(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Slim models get a backend with fewer tokens."""
    tokenizer = copy.deepcopy(make_model().tokenizer)
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.add_tokens(["สุนัขหลับ"])
    private.replace_backend(tokenizer, backend)
    assert tokenizer.backend_tokenizer is backend and tokenizer.tokenize("สุนัขหลับ") == ["สุนัขหลับ"]
    tokenizer.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert "สุนัขหลับ" in saved["added_tokens"][-1].values()


def test_children_of_a_shallow_copy_can_be_replaced() -> None:
    """A view of an encoder, with fewer layers for instance, must leave the encoder itself as it is."""
    module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    copied = private.shallow_copy(module)
    copied[1] = nn.Identity()
    assert isinstance(module[1], nn.Linear) and copied[0] is module[0]
    assert copied(torch.zeros(1, 2)).shape == (1, 3) and module(torch.zeros(1, 2)).shape == (1, 4)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_a_linear_layer_by_onednn() -> None:
    """Faster linear layers on CPUs use it, for gradients also with transposed weights."""
    states = torch.randn(3, 7, 20)
    weight = torch.randn(20, 30).t()
    bias = torch.randn(30)
    torch.testing.assert_close(private.onednn_linear(states, weight, bias), nn.functional.linear(states, weight, bias))
    torch.testing.assert_close(private.onednn_linear(states[0], weight, None), nn.functional.linear(states[0], weight))


def test_rows_of_a_metric_are_discarded(tmp_path: Path) -> None:
    """After rows that it refuses, ``evaluate``'s module would mix them with those of the next call."""
    module = evaluate.load(path("tatoeba"), cache_dir=str(tmp_path))
    for _ in range(2):
        module.add_batch(predictions=[[1.0, 0.0]], references=[[1.0, 0.0]])
        assert list(tmp_path.rglob("*.arrow"))
        private.discard_rows(module)
        assert not list(tmp_path.rglob("*.arrow"))
    assert module.compute(predictions=[[1.0, 0.0]], references=[[1.0, 0.0]])


def test_the_trainer_has_the_private_methods_that_ours_override() -> None:
    """transformers must go on calling them, or a finished run makes one more step, and adapters are not resumed."""
    for method in ("_run_epoch", "_load_from_checkpoint"):
        assert method in vars(Trainer)
        assert method in vars(FiniteTrainer) or method in vars(GuardedTrainer)
        assert f"self.{method}(" in inspect.getsource(Trainer)


#: Public in spite of their names: of named tuples, and of ``os``.
DOCUMENTED = {"_asdict", "_exit", "_replace"}
BY_NAME = {"getattr", "setattr", "hasattr"}


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def test_private_api_of_others_is_used_in_one_module() -> None:
    """An attribute with a leading underscore is ours, documented, or read in ``utils/private.py`` with a canary."""
    names: set[str] = set(DOCUMENTED)  # that the package defines
    uses: set[tuple[str, str]] = set()
    for file in Path(st_xling.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.Attribute) and is_private(node.attr):
                owner = node.value
                is_set_on_self = isinstance(node.ctx, ast.Store) and isinstance(owner, ast.Name) and owner.id == "self"
                if is_set_on_self:
                    names.add(node.attr)
                else:
                    uses.add((file.name, node.attr))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
                attribute = node.args[1]
                if isinstance(attribute, ast.Constant) and is_private(attribute.value):
                    uses.add((file.name, attribute.value))
    others = {(file, name) for file, name in uses if name not in names}
    assert {file for file, _ in others} == {"private.py"}, others
