"""sentence-transformers' wrappers over our sentence-level losses, by definition, in ``fit`` and in its own trainer."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import InputExample, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses as st_losses
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader

from st_xling import losses
from st_xling.losses import CachedLoss, CombinedLoss, make
from tests.conftest import PAIRS
from tests.losses.test_contract import NewObjectiveLoss

#: Each sentence-level loss without draws, and a sum of some.
BUILD: dict[str, Any] = {
    "translation ranking": lambda model: losses.TranslationRankingLoss(model, margin=0.2),
    "projection": lambda model: losses.TranslationRankingLoss(model, projection=True),
    "in-batch ranking": losses.InBatchRankingLoss,
    "semantic contrastive": losses.SemanticContrastiveLoss,
    "language contrastive": losses.LanguageContrastiveLoss,
    "siamese": lambda model: losses.SiameseContrastiveLoss(model, margin=3.0),
    "embedding distance": losses.EmbeddingDistanceLoss,
    "koleo": losses.KoleoLoss,
    "new objective": NewObjectiveLoss,
    "sum": lambda model: losses.TranslationRankingLoss(model) + 0.3 * losses.KoleoLoss(model).on(1),
    "sum with one of ST's": lambda model: losses.KoleoLoss(model) + 0.5 * make("MultipleNegativesRankingLoss", model),
}
SIZES = {16: 1.0, 8: 0.5, 4: 0.25}


def total(value: Any) -> Any:
    return sum(value.values()) if isinstance(value, dict) else value


def embeddings_of(model: Any) -> list[Tensor]:
    return [model(model.preprocess(list(texts)))["sentence_embedding"] for texts in zip(*PAIRS)]


def matryoshka_by_definition(model: Any, loss: Any) -> Tensor:
    """The weighted sum of the loss on the embeddings' first dimensions."""
    value = torch.zeros(())
    for size, weight in SIZES.items():
        cut = [F.normalize(column[:, :size], dim=1) for column in embeddings_of(model)]
        value = value + weight * total(loss.compute_loss_from_embeddings(cut, None))
    return value


def layers_by_definition(model: Any, loss: Any) -> Tensor:
    """The loss on the last layer's embeddings, and its mean on those of each layer before, word embeddings included."""
    columns = []
    for texts in zip(*PAIRS):
        features = model.preprocess(list(texts))
        mask = features["attention_mask"]
        states = (
            model[0]
            .auto_model(
                **{key: value for key, value in features.items() if isinstance(value, Tensor)},
                output_hidden_states=True,
            )
            .hidden_states
        )
        columns.append(
            [model[1]({"token_embeddings": s, "attention_mask": mask})["sentence_embedding"] for s in states]
        )
    values = [total(loss.compute_loss_from_embeddings(list(layer), None)) for layer in zip(*columns)]
    return values[-1] + torch.stack(values[:-1]).mean()


WRAPPERS: dict[str, Any] = {
    "matryoshka": (
        lambda model, loss: st_losses.MatryoshkaLoss(model, loss, list(SIZES), list(SIZES.values())),
        matryoshka_by_definition,
    ),
    "layers": (
        lambda model, loss: st_losses.AdaptiveLayerLoss(model, loss, n_layers_per_step=-1, kl_temperature=0),
        layers_by_definition,
    ),
}


def values_in_fit(model: Any, loss: Any, folder: Path) -> None:
    loader: Any = DataLoader([InputExample(texts=list(pair)) for pair in PAIRS], batch_size=8)
    options: dict[str, Any] = {"epochs": 1, "warmup_steps": 0, "show_progress_bar": False}
    model.fit([(loader, loss)], checkpoint_path=str(folder), optimizer_params={"lr": 1e-5}, **options)


def values_in_the_trainer(model: Any, loss: Any, folder: Path) -> None:
    common: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    arguments = SentenceTransformerTrainingArguments(
        str(folder), max_steps=1, per_device_train_batch_size=8, learning_rate=1e-5, **common
    )
    rows = Dataset.from_dict({"source": [row[0] for row in PAIRS], "target": [row[1] for row in PAIRS]})
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows, loss=loss).train()


@pytest.mark.parametrize(
    ("name", "wrapper"),
    # A projection has one width.
    [pair for pair in itertools.product(BUILD, WRAPPERS) if pair != ("projection", "matryoshka")],
)
def test_wrappers_give_the_loss_by_definition(name: str, wrapper: str, make_model: Any, features: Any) -> None:
    model = make_model(layers=3)
    torch.manual_seed(0)
    loss = BUILD[name](model)
    wrap, by_definition = WRAPPERS[wrapper]
    value = total(wrap(model, loss)(features(model), None))
    assert value.item() == pytest.approx(by_definition(model, loss).item(), rel=1e-5)
    value.backward()
    assert model[0].auto_model.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("host", [values_in_fit, values_in_the_trainer], ids=["fit", "trainer"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["translation ranking", "sum"])
def test_wrappers_train_in_hosts(name: str, wrapper: str, host: Any, make_model: Any, tmp_path: Path) -> None:
    """AdaptiveLayerLoss divided the components of a sum, which they did not know."""
    model = make_model(layers=3)
    loss = BUILD[name](model)
    wrap, by_definition = WRAPPERS[wrapper]
    with torch.no_grad():
        expected = by_definition(model, loss).item()
    values: list[float] = []
    wrapped = wrap(model, loss)
    wrapped.register_forward_hook(lambda _, inputs, value: values.append(total(value).item()))
    before = model[0].auto_model.embeddings.word_embeddings.weight.detach().clone()
    host(model, wrapped, tmp_path)
    assert values == [pytest.approx(expected, rel=1e-4)]
    assert not torch.equal(model[0].auto_model.embeddings.word_embeddings.weight, before)


@pytest.mark.parametrize("name", BUILD)
def test_the_loss_from_embeddings_is_the_loss(name: str, make_model: Any, features: Any) -> None:
    """Also of embeddings in bfloat16, which are compared in float32."""
    model = make_model()
    torch.manual_seed(0)
    loss = BUILD[name](model)
    embeddings = embeddings_of(model)
    value = loss.compute_loss_from_embeddings(embeddings)
    torch.testing.assert_close(value, loss(features(model)))
    assert isinstance(value, dict) == isinstance(loss, CombinedLoss)
    rounded = [column.bfloat16() for column in embeddings]
    exact = loss.compute_loss_from_embeddings([column.float() for column in rounded])
    assert total(loss.compute_loss_from_embeddings(rounded)).item() == total(exact).item()


def test_a_loss_of_ST_may_call_ours(make_model: Any, features: Any) -> None:
    """As the documentation of GlobalOrthogonalRegularizationLoss adds it to another loss."""

    class SpreadRankingLoss(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model
            self.ranking = losses.TranslationRankingLoss(model)
            self.spread = st_losses.GlobalOrthogonalRegularizationLoss(model)

        def forward(self, sentence_features: Any, labels: Any = None) -> dict[str, Tensor]:
            embeddings = [self.model(column)["sentence_embedding"] for column in sentence_features]
            ranking = self.ranking.compute_loss_from_embeddings(embeddings, labels)
            return {"ranking": ranking, **self.spread.compute_loss_from_embeddings(embeddings, labels)}

    model = make_model()
    value = SpreadRankingLoss(model)(features(model))
    assert value["ranking"].item() == pytest.approx(losses.TranslationRankingLoss(model)(features(model)).item())
    assert len(value) == 3


def test_what_has_no_embeddings_to_read_says_so(make_model: Any) -> None:
    model = make_model()
    embeddings = embeddings_of(model)
    tokens = losses.RepresentationTranslationLoss(model, layers=1)
    for loss in (tokens, losses.TranslationRankingLoss(model) + tokens, CachedLoss(tokens)):
        with pytest.raises(ValueError, match="RepresentationTranslationLoss reads the states of tokens"):
            loss.compute_loss_from_embeddings(embeddings)
    with pytest.raises(ValueError, match="SoftmaxLoss makes an encoder pass of its own"):
        make("SoftmaxLoss", model, embedding_dimension=16, num_labels=2).compute_loss_from_embeddings(embeddings)
    projected = st_losses.MatryoshkaLoss(model, losses.TranslationRankingLoss(model, projection=True), [16, 8])
    with pytest.raises(ValueError, match="projection takes embeddings of 16 dimensions: got 8"):
        projected([model.preprocess(list(texts)) for texts in zip(*PAIRS)], None)
    with pytest.raises(ValueError, match="TranslationRankingLoss needs 2 text columns: the data set gives 1"):
        losses.TranslationRankingLoss(model).compute_loss_from_embeddings(embeddings[:1])
