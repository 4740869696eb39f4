"""The vocabulary head: the checkpoint's own, read without a second model, or transformers' initialisation."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, BertConfig, BertForMaskedLM, BertModel

from st_xling.losses import RepresentationTranslationLoss, TranslationLanguageModelingLoss
from st_xling.mining.store import model_identity
from st_xling.models import backbone, load_encoder
from st_xling.models.heads import VocabularyHead, check_savable, write_with_head
from st_xling.models.load import mark_loaded
from st_xling.models.view import rebuilt
from st_xling.training.trainer import load_loss_state, save_loss_state

SHAPE: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SHAPE |= {"max_position_embeddings": 32, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture
def masked_lm(tmp_path: Path, make_model: Any) -> Any:
    """Saves a masked language model with a tokenizer; every weight is drawn, so that nothing is one or zero."""

    def build(**changes: Any) -> tuple[Path, Any]:
        tokenizer = make_model().tokenizer
        folder = tmp_path / "bert"
        model: Any = BertForMaskedLM(BertConfig(**SHAPE, vocab_size=len(tokenizer), **changes)).eval()
        torch.manual_seed(1)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder, model

    return build


@pytest.mark.parametrize("tied", [True, False])
def test_rtl_starts_from_a_copy(masked_lm: Any, tied: bool) -> None:
    folder, masked_model = masked_lm()
    model = load_encoder(str(folder), device="cpu")
    ids = [40, 7, 12]
    loss = RepresentationTranslationLoss(model, target_vocabulary=ids, tied=tied)
    head = loss.head.vocabulary_head
    theirs = masked_model.cls.predictions
    assert torch.equal(head.dense.weight, theirs.transform.dense.weight)
    assert torch.equal(head.norm.bias, theirs.transform.LayerNorm.bias)
    assert torch.equal(head.bias, theirs.bias[[7, 12, 40]])
    assert torch.equal(head.output_weight(backbone(model).word_embeddings), theirs.decoder.weight[[7, 12, 40]])
    assert (head.weight is None) == tied


@pytest.mark.parametrize("tied", [True, False])
def test_a_trained_head_is_saved_with_its_encoder(masked_lm: Any, tmp_path: Path, tied: bool) -> None:
    """As transformers' masked language model, from which the next run starts; the encoder itself stays as it was."""
    model = load_encoder(str(masked_lm(tie_word_embeddings=tied)[0]), device="cpu").eval()
    head = TranslationLanguageModelingLoss(model, head="new" if tied else "auto").head
    torch.nn.init.normal_(head.bias)
    texts = ["ein Haus", "two words"]
    before = model.encode(texts, convert_to_tensor=True)
    model.save_pretrained(str(tmp_path / "out"))
    write_with_head(tmp_path / "out", backbone(model), head)
    again = load_encoder(str(tmp_path / "out"), device="cpu")
    for same in (model, again):
        assert torch.equal(same.encode(texts, convert_to_tensor=True), before)
    loaded = TranslationLanguageModelingLoss(again).head
    assert loaded.origin == f"from the checkpoint {tmp_path / 'out'}"
    torch.testing.assert_close(loaded.state_dict(), head.state_dict(), rtol=0, atol=0)
    masked_model = BertForMaskedLM.from_pretrained(tmp_path / "out").eval()
    tokens = model.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = masked_model.bert(**tokens).last_hidden_state
        scores = head(states) @ head.output_weight(backbone(model).word_embeddings).T + head.bias
        torch.testing.assert_close(masked_model(**tokens).logits, scores)


def test_a_checkpoint_in_the_hubs_cache(masked_lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head comes from the version that the encoder was loaded from; with transformers 5 it was always main's."""
    cache = tmp_path / "cache"
    repo = cache / "models--someone--a-model"
    (repo / "refs").mkdir(parents=True)
    biases: dict[str | None, set[float]] = {}
    for number, name in enumerate(["main", "v1"]):
        folder, masked_model = masked_lm()
        masked_model.cls.predictions.bias.data.fill_(number + 1.0)
        masked_model.save_pretrained(folder)
        (repo / "snapshots").mkdir(exist_ok=True)
        folder.rename(repo / "snapshots" / (str(number) * 40))
        (repo / "refs" / name).write_text(str(number) * 40)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(cache))
    for revision in (None, "v1", "1" * 40):
        model = load_encoder("someone/a-model", revision=revision, device="cpu")
        for same in (model, mark_loaded(copy.deepcopy(model)), rebuilt(model, list(model))):
            head = TranslationLanguageModelingLoss(same).head
            assert "someone/a-model" in head.origin
            biases.setdefault(revision, set()).update(head.bias.tolist())
        assert model_identity(model).revision in (str(int(revision is not None)) * 40, revision)
    assert biases == {None: {1.0}, "v1": {2.0}, "1" * 40: {2.0}}
    model.model_card_data.base_model_revision = "2" * 40  # a version that is not in the cache
    assert TranslationLanguageModelingLoss(model).head.is_new


def test_a_checkpoint_without_a_head_is_named_and_transformers_initialisation_used(
    tmp_path: Path, make_model: Any
) -> None:
    tokenizer = make_model().tokenizer
    BertModel(BertConfig(**{**SHAPE, "hidden_size": 64}, vocab_size=len(tokenizer))).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_encoder(str(tmp_path), device="cpu")
    head = TranslationLanguageModelingLoss(model).head
    assert head.origin.startswith("new") and str(tmp_path) in head.origin and "cls.predictions" in head.origin
    assert head.dense.weight.std().item() == pytest.approx(0.02, rel=0.1)  # BERT's initializer_range
    assert not head.dense.bias.any() and not head.bias.any() and (head.norm.weight == 1).all()


def test_a_family_without_such_a_head_is_named_before_training(make_model: Any) -> None:
    config: Any = AutoConfig.for_model("eurobert", **SHAPE, vocab_size=40, num_key_value_heads=1, pad_token_id=0)
    parts = SimpleNamespace(model=SimpleNamespace(config=config))
    with pytest.raises(ValueError, match="EuroBertConfig have no .*bias.*save_vocabulary_head"):
        check_savable(parts, VocabularyHead(backbone(make_model())))  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["first", "sharded", "pickled"])
def test_layouts_of_checkpoints(masked_lm: Any, layout: str) -> None:
    """BERT's first checkpoints say gamma and beta; large ones are cut into files; old ones are pickled."""
    folder, masked_model = masked_lm()
    path = folder / "model.safetensors"
    state = load_file(path)
    if layout == "first":
        renamed = {
            key.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): state[key] for key in state
        }
        save_file(renamed, path, metadata={"format": "pt"})
    elif layout == "pickled":
        path.unlink()
        torch.save(state, folder / "pytorch_model.bin")
    else:
        path.unlink()
        masked_model.save_pretrained(folder, max_shard_size="5KB")
        assert len(list(folder.glob("*.safetensors"))) > 1
    head = TranslationLanguageModelingLoss(load_encoder(str(folder), device="cpu")).head
    theirs = masked_model.cls.predictions
    assert torch.equal(head.norm.weight, theirs.transform.LayerNorm.weight) and torch.equal(head.bias, theirs.bias)


def test_a_resumed_run_has_a_decoder_of_its_own(masked_lm: Any, tmp_path: Path) -> None:
    """Word rows other than the word embeddings are trained, and loaded over an encoder that was saved without them."""
    folder, masked_model = masked_lm(tie_word_embeddings=False)
    model = load_encoder(str(folder), device="cpu")
    loss = TranslationLanguageModelingLoss(model)
    assert torch.equal(loss.head.weight, masked_model.cls.predictions.decoder.weight)
    assert not torch.equal(loss.head.weight, backbone(model).word_embeddings.weight)
    save_loss_state(loss, model, tmp_path)
    model.save_pretrained(str(tmp_path / "checkpoint"))
    again = load_encoder(str(tmp_path / "checkpoint"), device="cpu")
    resumed = TranslationLanguageModelingLoss(again)
    load_loss_state(resumed, again, tmp_path)
    assert torch.equal(resumed.head.weight, loss.head.weight)


@pytest.mark.parametrize("build", [TranslationLanguageModelingLoss, RepresentationTranslationLoss])
def test_a_head_of_another_vocabulary_is_refused(masked_lm: Any, build: Any) -> None:
    """Of an encoder that was given new words after it was loaded: the first step ended in sizes that do not match."""
    folder, _ = masked_lm()
    model = load_encoder(str(folder), device="cpu")
    model.tokenizer.add_tokens(["zzz"])
    model[0].auto_model.resize_token_embeddings(len(model.tokenizer))
    with pytest.raises(ValueError, match="bias.*head='new'"):
        build(model)
    build(model, head="new")


def test_the_head_follows_the_encoders_type(make_model: Any) -> None:
    """In float32 at least: 16 bits round small updates away. It reads the states of the encoder all the same."""
    for encoder, expected in (
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        parts = backbone(make_model().to(encoder))
        head = VocabularyHead(parts)
        assert {part.dtype for part in head.parameters()} == {expected}
        assert head(torch.ones(3, parts.hidden_size, dtype=encoder)).dtype == expected
