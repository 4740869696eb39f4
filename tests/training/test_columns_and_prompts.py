"""Columns of languages are no texts, and prompts are for columns that exist: in each of our trainers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models.cross_encoders import cross_encoder
from st_xling.training import CrossLingualTrainer
from st_xling.training.reranker import RankingTrainer
from tests.conftest import PAIRS

TEXTS = {"source": [row[0] for row in PAIRS], "target": [row[1] for row in PAIRS]}


def trainer(model: Any, folder: Path, rows: Any, loss: Any = None, **options: Any) -> CrossLingualTrainer:
    common: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    common |= {"per_device_train_batch_size": 4, "num_train_epochs": 1, **options}
    arguments = SentenceTransformerTrainingArguments(str(folder), **common)
    loss = TranslationRankingLoss(model) if loss is None else loss
    return CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)


@pytest.mark.parametrize("sampler", ["no_duplicates", "no_duplicates_hashed"])
@pytest.mark.parametrize(
    "languages",
    [{"lang": "de"}, {"source_language": "de", "target_language": "en"}, {"target_language": "en", "language": "de"}],
)
def test_languages_are_no_duplicates(
    sampler: str, languages: dict[str, str], make_model: Any, tmp_path: Path, caplog: Any
) -> None:
    """All rows have the same language, so that every batch had one row, and the ranking loss was 0.0 from the start."""
    pytest.importorskip("xxhash")
    columns = {name: [code] * len(PAIRS) for name, code in languages.items()}
    ours = trainer(make_model(), tmp_path, Dataset.from_dict({**TEXTS, **columns}), batch_sampler=sampler)
    sizes = [len(batch["source_input_ids"]) for batch in ours.get_train_dataloader()]
    assert max(sizes) == 4 and sum(sizes) == len(PAIRS)
    ours.train()
    assert ours.state.log_history[-1]["train_loss"] > 0.1
    stray = sorted({"lang", "language"} & languages.keys())
    assert bool(stray) == any(f"which are ignored: {', '.join(stray)}." in message for message in caplog.messages)


def test_language_columns_still_reach_the_loss(make_model: Any, tmp_path: Path) -> None:
    model = make_model()
    loss = RepresentationTranslationLoss(model, layers=1, languages=["de", "en"], direction="both")
    columns = {"source_language": ["de"] * len(PAIRS), "target_language": ["en"] * len(PAIRS)}
    rows = Dataset.from_dict({**TEXTS, **columns})
    ours = trainer(model, tmp_path, rows, loss, batch_sampler="no_duplicates")
    batch = next(iter(ours.get_train_dataloader()))
    assert batch["source_language"].tolist() == [0] * 4 and batch["target_language"].tolist() == [1] * 4


@pytest.mark.parametrize(
    ("prompts", "named"),
    [
        ({"src": "query: ", "target": "passage: "}, "got some for src;"),
        ({"query": "query: "}, r"training data \(source, target\): got some for query;"),
        ({"source": {"target": "query: ", "tgt": "x"}}, "got some for source.tgt;"),
    ],
)
def test_prompts_of_columns_that_are_not_there(prompts: Any, named: str, make_model: Any, tmp_path: Path) -> None:
    """Trained in silence without a prompt; the command line refused it."""
    with pytest.raises(ValueError, match=named):
        trainer(make_model(), tmp_path, Dataset.from_dict(TEXTS), prompts=prompts)


def test_prompts_of_several_data_sets(make_model: Any, tmp_path: Path) -> None:
    data = DatasetDict({"news": Dataset.from_dict(TEXTS), "web": Dataset.from_dict(TEXTS)})
    for prompts in ("query: ", {"news": "query: "}, {"source": "q: "}, {"web": {"source": "q: ", "target": "p: "}}):
        trainer(make_model(), tmp_path, data, prompts=prompts)
    for prompts, named in (({"book": "x"}, "for book;"), ({"web": {"src": "x"}}, "for web.src;")):
        with pytest.raises(ValueError, match=named):
            trainer(make_model(), tmp_path, data, prompts=prompts)


def test_prompts_of_cross_encoders(make_model: Any, tmp_path: Path) -> None:
    model = cross_encoder(make_model())
    rows = Dataset.from_dict({"query": TEXTS["source"], "passage": TEXTS["target"], "label": [1.0] * len(PAIRS)})
    arguments = CrossEncoderTrainingArguments(str(tmp_path), report_to="none", prompts={"question": "query: "})
    with pytest.raises(ValueError, match=r"training data \(query, passage, label\): got some for question;"):
        RankingTrainer(model=model, args=arguments, train_dataset=rows, loss=BinaryCrossEntropyLoss(model))


def test_a_tiny_encoder_in_every_process(tmp_path: Path) -> None:
    """transformers saves weights in the first process alone, so that it could not be built in the others."""
    program = """
import sys, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
from st_xling.models import tiny_encoder
model = tiny_encoder(["Der Hund schläft.", "我买了三本旧书。"], vocabulary=100, hidden_size=16)
print(float(model.encode(["Der Hund."]).sum()))
"""
    command = [sys.executable, "-c", program]
    children = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "meet")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    printed = [child.communicate(timeout=100)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0, 0] and printed[0] == printed[1] != ""
