"""Every loss of sentence-transformers, and losses of one's own in its form, as terms: in sums, cached, heads saved."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses as st_losses
from torch import Tensor, nn

from st_xling.losses import CachedLoss, TranslationRankingLoss, make
from st_xling.losses.base import encodes_by_itself
from st_xling.losses.gather import own_parameters
from st_xling.training import CrossLingualTrainer
from st_xling.training.trainer import LOSS_STATE_NAME, load_loss_state, own_state, save_loss_state
from tests.conftest import PAIRS

SCORES = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
TAUGHT = torch.randn(8, 2, 16, generator=torch.Generator().manual_seed(0))
#: Options that have no default, labels, and columns, where they are not a pair's.
OPTIONS: dict[str, dict[str, Any]] = {
    "SoftmaxLoss": {"embedding_dimension": 16, "num_labels": 2},
    "MatryoshkaLoss": {"matryoshka_dims": [16, 8]},
    "Matryoshka2dLoss": {"matryoshka_dims": [16, 8]},
    "MSELoss": {"projection_dim": 16},
    "EmbedDistillLoss": {"projection_dim": 16},
    "CachedMultipleNegativesRankingLoss": {"mini_batch_size": 4},
}
LABELS: dict[str, Tensor] = {
    "SoftmaxLoss": SCORES.long(),
    "MSELoss": TAUGHT[:, 0],
    "EmbedDistillLoss": TAUGHT,
    "MarginMSELoss": SCORES,
    "DistillKLDivLoss": torch.stack([SCORES, 1 - SCORES], dim=1),
}
COLUMNS = {"TripletLoss": (0, 1, 0), "MarginMSELoss": (0, 1, 0), "DistillKLDivLoss": (0, 1, 0)}
#: They need data loaders, batch orders or decoders of their own, and no column of labels.
OTHER_DATA = {"ContrastiveTensionLoss", "ContrastiveTensionLossInBatchNegatives", "DenoisingAutoEncoderLoss"}
NAMES = [name for name in st_losses.__all__ if name.endswith("Loss") and name not in OTHER_DATA]


def build(name: str, model: Any) -> Any:
    kind = getattr(st_losses, name)
    options = dict(OPTIONS.get(name, {}))
    parameters = inspect.signature(kind).parameters
    if "guide" in parameters:
        options["guide"] = model
    if "loss" in parameters and name not in ("CosineSimilarityLoss",):
        options["loss"] = TranslationRankingLoss(model)
    torch.manual_seed(0)
    return kind(model, **options)


def labels_of(name: str) -> Tensor:
    return LABELS.get(name, SCORES.long() if name.startswith("Batch") else SCORES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_term_and_its_weights_are_saved(name: str, make_model: Any, features: Any, tmp_path: Path) -> None:
    model = make_model(layers=2)

    def batch() -> Any:
        return features(model, columns=COLUMNS.get(name, (1,) if name.startswith("Batch") else (0, 1)))

    loss = build(name, model)
    if name.startswith("Batch"):
        total = make(loss) * 0.5
    else:
        total = TranslationRankingLoss(model).on(0, 1) + 0.5 * make(loss)
    term = total.term_list()[-1]
    torch.manual_seed(0)
    value = total(batch(), labels_of(name))[total.names[-1]]
    value.backward()
    assert value.isfinite() and value.item() != 0
    assert all(weight.grad is not None for weight in own_parameters(total))
    if encodes_by_itself(term.loss):
        with pytest.raises(ValueError, match=f"{name} makes an encoder pass of its own"):
            CachedLoss(total)
    else:
        torch.manual_seed(0)
        cached = CachedLoss(total, mini_batch_size=2)
        again = cached(batch(), labels_of(name))
        assert again[total.names[-1]].item() == pytest.approx(value.item(), rel=1e-4)
        sum(again.values()).backward()

    state = own_state(total, model)
    assert bool(state) == (name in ("SoftmaxLoss", "MSELoss", "EmbedDistillLoss"))
    save_loss_state(total, model, tmp_path)
    expected = {key: tensor.clone() for key, tensor in state.items()}
    with torch.no_grad():
        for tensor in state.values():
            tensor.zero_()
    load_loss_state(total, model, tmp_path)
    torch.testing.assert_close(own_state(total, model), expected)


class RotatedDistanceLoss(nn.Module):
    """Distance of translations after a layer of the loss's own, under another name for the model."""

    def __init__(self, model: Any, *, weight: float = 1.0) -> None:
        super().__init__()
        self.sentence_model = model
        self.rotation = nn.Linear(16, 16)
        self.weight = weight

    def forward(self, sentence_features: Any, labels: Any = None) -> Tensor:
        columns = [self.sentence_model(column)["sentence_embedding"] for column in sentence_features]
        return self.compute(columns)

    def compute(self, columns: list[Tensor]) -> Tensor:
        return self.weight * (self.rotation(columns[0]) - columns[1]).square().mean()


class CacheableLoss(RotatedDistanceLoss):
    """The same with the method that lets a sum share its pass and its cache."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Any = None) -> Tensor:
        return self.compute(embeddings)


@pytest.mark.parametrize("kind", [RotatedDistanceLoss, CacheableLoss])
def test_a_loss_of_ones_own_trains_saves_and_resumes_its_layer(kind: Any, make_model: Any, tmp_path: Path) -> None:
    rows = Dataset.from_dict({"source": [row[0] for row in PAIRS], "target": [row[1] for row in PAIRS]})

    def trainer(steps: int) -> CrossLingualTrainer:
        model = make_model()
        torch.manual_seed(0)
        total = TranslationRankingLoss(model) + kind(model, weight=0.5)
        loss = CachedLoss(total, mini_batch_size=2) if kind is CacheableLoss else total
        common: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
        arguments = SentenceTransformerTrainingArguments(
            str(tmp_path), max_steps=steps, per_device_train_batch_size=4, save_steps=2, learning_rate=1e-3, **common
        )
        arguments.lr_scheduler_type = "constant"  # type: ignore[assignment]
        return CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)

    uninterrupted = trainer(4)
    uninterrupted.train()
    name = {RotatedDistanceLoss: "rotated_distance", CacheableLoss: "cacheable"}[kind]
    assert all(name in entry for entry in uninterrupted.state.log_history[:4])
    assert (tmp_path / "checkpoint-2" / LOSS_STATE_NAME).is_file()
    resumed = trainer(4)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    states = [own_state(run.loss, run.model) for run in (uninterrupted, resumed)]
    assert len(states[0]) == 2
    torch.testing.assert_close(states[1], states[0], rtol=1e-5, atol=1e-7)
