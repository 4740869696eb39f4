"""In-batch negatives: a translation of the positive is kept out of its batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import MultipleNegativesRankingLoss

from st_xling.data.reranking.negatives import with_negatives
from st_xling.data.reranking.strategies import merged
from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.training.reranker import stage_training
from st_xling.training.reranker.batch_keys import meaning_keys
from st_xling.training.reranker.loss_rows import loss_rows
from st_xling.training.reranker.trainer import RankingTrainer
from tests.data.reranking.aligned_sentences import numbered
from tests.training.reranker.ranking_run import run, xpi_rows


def batches(rows: Any, keys: np.ndarray | None, folder: Path) -> list[list[int]]:
    model = tiny_cross_encoder(rows["query"], hidden_size=16, layers=1, vocabulary=200)
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=8,
        batch_sampler=ShuffledBatchSampler,  # type: ignore[arg-type]
        report_to="none",
    )
    loss = MultipleNegativesRankingLoss(model)
    trainer = RankingTrainer(model=model, args=arguments, train_dataset=rows, loss=loss, keys=keys)
    return [list(batch) for batch in trainer.get_train_dataloader().batch_sampler]


def test_no_translation_in_a_batch(tmp_path: Path) -> None:
    pairs = merged(with_negatives(numbered(40, "de", "en"), seed=1))[0]
    rows, _ = loss_rows(pairs, "positives")
    keys = meaning_keys(pairs, rows)
    assert keys is not None and keys.shape == (80, 3)

    def met_twice(batch: list[int]) -> bool:  # "p7 de" and "p7 en" say the same
        said = [rows[row][name].split()[0] for row in batch for name in ("positive", "negative_1")]
        return len(set(said)) < len(said)

    assert any(map(met_twice, batches(rows, None, tmp_path))), "or the test says nothing"
    apart = batches(rows, keys, tmp_path)
    assert not any(map(met_twice, apart)) and sorted(row for batch in apart for row in batch) == list(range(80))


def test_labelled_pairs_without_keys_have_none() -> None:
    pairs = xpi_rows()
    assert meaning_keys(pairs, loss_rows(pairs, "positives")[0]) is None


@pytest.mark.parametrize(("loss", "kept"), [("multiple_negatives_ranking", True), ("binary_cross_entropy", False)])
def test_a_run_keeps_them_apart_where_the_loss_compares(
    loss: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Watched(RankingTrainer):
        def get_batch_sampler(self, *args: Any, **options: Any) -> Any:
            seen.append(super().get_batch_sampler(*args, **options))
            return seen[-1]

    monkeypatch.setattr(stage_training, "RankingTrainer", Watched)
    run(tmp_path / "run", "xpr-merged", loss=loss, judged=False, training__max_steps=1)
    assert len(seen) == 1 and (seen[0].keys is not None) == kept
    if kept:
        assert seen[0].keys.shape[1] == 6  # query, positive and negative, as text and as meaning
