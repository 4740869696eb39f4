"""The Tatoeba evaluator: keys, averages, one encoding per text, CSV, card, signature, trainer, table."""

import csv
import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from st_xling.evaluation import TATOEBA_GROUPS, TatoebaEvaluator, TatoebaResult, tatoeba_results, tatoeba_table

ENGLISH = ["The cat sleeps.", "I drink tea.", "Where is the station?", "Snow fell today. ❄"]
PAIRS = {
    "de": (["Die Katze schläft.", "Ich trinke Tee.", "Wo ist der Bahnhof?", "Heute fiel Schnee. ❄"], ENGLISH),
    "th": (["แมวนอนหลับ", "ฉันดื่มชา", "สถานีอยู่ที่ไหน", "วันนี้หิมะตก ❄"], ENGLISH),
    "ara": (["القطة نائمة.", "أشرب الشاي.", "أين المحطة؟"], ENGLISH[:3]),
}


class TableModel:
    """Embeds by looking texts up in a table, and remembers what it was asked."""

    class Card:
        def __init__(self):
            self.stored = []

        def set_evaluation_metrics(self, evaluator, metrics, epoch, step):
            self.stored.append((evaluator, metrics, epoch, step))

    def __init__(self, table):
        self.table, self.asked, self.model_card_data = table, [], self.Card()

    def encode(self, texts, *, truncate_dim, **options):
        self.asked.append((texts, truncate_dim, options))
        return np.array([self.table[text] for text in texts], dtype=np.float32)[:, :truncate_dim]


def perfect(pairs):
    """Every row i of every language is basis vector i."""
    return {text: np.eye(6)[i] for sides in pairs.values() for side in sides for i, text in enumerate(side)}


@pytest.fixture(scope="module")
def tiny_model():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    texts = [text for sides in PAIRS.values() for side in sides for text in side]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"]))
    torch.manual_seed(0)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")


def test_keys_values_and_averages():
    table = perfect(PAIRS)
    # German row 1 now finds English row 0, and English row 1 finds nothing near; English row 0 takes the first twin.
    table["Ich trinke Tee."] = table["The cat sleeps."]
    evaluator = TatoebaEvaluator(PAIRS, groups={"pair": ["th", "de"]})
    metrics = evaluator(TableModel(table))
    assert metrics == pytest.approx(
        {
            "tatoeba_ara_to_en_accuracy": 1.0,
            "tatoeba_ara_from_en_accuracy": 1.0,
            "tatoeba_deu_to_en_accuracy": 3 / 4,
            "tatoeba_deu_from_en_accuracy": 3 / 4,
            "tatoeba_tha_to_en_accuracy": 1.0,
            "tatoeba_tha_from_en_accuracy": 1.0,
            "tatoeba_pair_to_en_accuracy": 7 / 8,
            "tatoeba_pair_from_en_accuracy": 7 / 8,
            "tatoeba_pair_mean_accuracy": 7 / 8,
            "tatoeba_to_en_accuracy": 11 / 12,
            "tatoeba_from_en_accuracy": 11 / 12,
            "tatoeba_mean_accuracy": 11 / 12,
        }
    )
    assert evaluator.primary_metric == "tatoeba_mean_accuracy"
    assert evaluator.greater_is_better


def test_directions_are_not_mixed_up():
    """Both German sentences lie nearest English 0; English 1 still lies nearest German 1."""
    table = {"a": [1, 0], "b": [0.9, 0.5], "x": [1, 0.1], "y": [0, 1]}
    metrics = TatoebaEvaluator({"de": (["a", "b"], ["x", "y"])})(TableModel(table))
    assert metrics["tatoeba_deu_to_en_accuracy"] == 0.5
    assert metrics["tatoeba_deu_from_en_accuracy"] == 1.0
    assert metrics["tatoeba_mean_accuracy"] == 0.75


def test_each_text_is_encoded_once():
    model = TableModel(perfect(PAIRS))
    TatoebaEvaluator(PAIRS, batch_size=7, truncate_dim=5)(model)
    ((texts, truncate_dim, options),) = model.asked
    assert texts == sorted({text for sides in PAIRS.values() for side in sides for text in side})
    assert (truncate_dim, options["batch_size"]) == (5, 7)


def test_equal_texts_are_found_at_the_first_index(tiny_model):
    """Four pairs, two texts: indices 1 and 3 are copies and can never be hits."""
    pairs = {"deu": (["Ich trinke Tee.", "Ich trinke Tee.", "Wo ist der Bahnhof?", "Wo ist der Bahnhof?"],) * 2}
    assert TatoebaEvaluator(pairs)(tiny_model)["tatoeba_mean_accuracy"] == 0.5


def test_groups_are_reported_only_when_whole(caplog):
    pairs = {language: (["a", "b"], ["a", "b"]) for language in TATOEBA_GROUPS["xnli14"]}
    with caplog.at_level(logging.INFO, logger="st_xling"):
        metrics = TatoebaEvaluator(pairs)(TableModel(perfect(pairs)))
    assert metrics["tatoeba_xnli14_mean_accuracy"] == 1.0
    assert "tatoeba_xtreme36_mean_accuracy" not in metrics
    assert "no average for xtreme36: 22 of 36 languages missing (afr, ben, est, eus, fin, …)" in caplog.text
    with caplog.at_level(logging.WARNING, logger="st_xling"):
        evaluator = TatoebaEvaluator({"xx": (["a"], ["b"])}, groups=["full28"])
    assert evaluator.groups == {}
    assert "no average for full28: 28 of 28" in caplog.text


def test_datasets_and_lists_are_the_same():
    datasets = {code: Dataset.from_dict({"source": s, "target": t}) for code, (s, t) in PAIRS.items()}
    assert TatoebaEvaluator(datasets).pairs == TatoebaEvaluator(PAIRS).pairs


def test_signature_follows_texts_order_and_truncation():
    evaluator = TatoebaEvaluator(PAIRS, name="mini")
    body, digest = evaluator.signature.split("@")
    assert body == "tatoeba|languages:ara,deu,tha|direction:both|ties:index|data:mini"
    assert len(digest.split("|")[0]) == 8 and "|st-xling:" in digest
    assert TatoebaEvaluator(dict(reversed(PAIRS.items())), name="mini").signature == evaluator.signature
    swapped = {**PAIRS, "ara": (PAIRS["ara"][0][::-1], PAIRS["ara"][1])}
    assert TatoebaEvaluator(swapped, name="mini").signature != evaluator.signature
    assert "|dim:8|" in TatoebaEvaluator(PAIRS, truncate_dim=8).signature
    whole = {language: (["a"], ["b"]) for language in TATOEBA_GROUPS["full28"]}
    assert "|languages:full28|" in TatoebaEvaluator(whole).signature


def test_csv_grows_by_one_row_a_label(tmp_path):
    evaluator, model = TatoebaEvaluator(PAIRS), TableModel(perfect(PAIRS))
    evaluator(model, str(tmp_path / "new"), epoch=0, steps=5)
    evaluator(model, str(tmp_path / "new"), epoch=1, steps=-1)
    with (tmp_path / "new" / "tatoeba_results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["ara", "deu", "tha", "all"] * 2
    assert (rows[0]["epoch"], rows[0]["steps"], rows[-1]["epoch"]) == ("0", "5", "1")
    assert float(rows[-1]["mean_accuracy"]) == 1.0
    TatoebaEvaluator(PAIRS, write_csv=False)(model, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_card_gets_metrics_and_settings(tiny_model):
    evaluator = TatoebaEvaluator(PAIRS, truncate_dim=8)
    metrics = evaluator(tiny_model)
    assert tiny_model.model_card_data.eval_results_dict[evaluator] == metrics
    assert evaluator.get_config_dict() == {
        "languages": ["ara", "deu", "tha"],
        "signature": evaluator.signature,
        "truncate_dim": 8,
    }
    assert evaluator.description == "Tatoeba"


def test_trains_with_the_hosts_trainer(tiny_model, tmp_path):
    source, target = PAIRS["de"]
    trainer = SentenceTransformerTrainer(
        model=tiny_model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=2,
            eval_strategy="steps",
            eval_steps=1,
            save_strategy="no",
            report_to="none",
            learning_rate=0.1,
            per_device_train_batch_size=4,
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"anchor": target, "positive": source}),
        loss=MultipleNegativesRankingLoss(tiny_model),
        evaluator=TatoebaEvaluator(PAIRS),
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_tatoeba_mean_accuracy" in entry]
    assert len(logged) == 2
    assert trainer.evaluate()["eval_tatoeba_mean_accuracy"] >= 0


def test_name_may_be_empty_or_a_metrics_word():
    model = TableModel(perfect(PAIRS))
    for name, key in (("", "mean_accuracy"), ("mean", "mean_mean_accuracy")):
        evaluator = TatoebaEvaluator(PAIRS, name=name)
        assert evaluator(model)[key] == 1.0
        assert evaluator.primary_metric == key


@pytest.mark.parametrize(
    "pairs, options, message",
    [
        ({}, {}, "at least one language: got none"),
        ({"de": (["a", "b"], ["c"]), "fr": ([], [])}, {}, "de has 2 and 1 texts; align.*fr has no texts"),
        ({"de": (["a"], ["b"]), "deu": (["a"], ["b"])}, {}, "both mean deu; keep one"),
        ({"de": Dataset.from_dict({"en": ["a"]})}, {}, "de has columns en; name them source and target"),
        ({"de": (["a"], ["b"])}, {"groups": ["xnli15"]}, "xnli14, full28.*got xnli15"),
        ({"de": (["a"], ["b"])}, {"groups": {"deu": ["de"]}}, "no language's: got 'deu'"),
        ({"de": (["a"], ["b"])}, {"groups": {"none": []}}, "must have languages.*got 'none'"),
    ],
)
def test_errors(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        TatoebaEvaluator(pairs, **options)


def test_bad_embeddings_name_language_and_row():
    table = {**perfect(PAIRS), "Ich trinke Tee.": np.full(6, np.nan)}
    with pytest.raises(ValueError, match=r"deu-eng.*queries must hold finite.*NaN or infinity in row 1;"):
        TatoebaEvaluator(PAIRS)(TableModel(table))


def test_table_and_rows():
    metrics = TatoebaEvaluator(PAIRS, groups={"pair": ["th", "de"]})(TableModel(perfect(PAIRS)))
    metrics = {**metrics, "tatoeba_deu_to_en_accuracy": 0.12345, "eval_loss": 3.0}
    assert tatoeba_table(metrics).splitlines() == [
        "language  to en  from en   mean",
        "ara       100.0    100.0  100.0",
        "deu        12.3    100.0   56.2",
        "tha       100.0    100.0  100.0",
        "pair      100.0    100.0  100.0",
        "-------------------------------",
        "all       100.0    100.0  100.0",
    ]
    assert tatoeba_results(metrics)[-1] == TatoebaResult("all", 1.0, 1.0, is_average=True)
    with pytest.raises(ValueError, match="metrics must hold other_to_en_accuracy"):
        tatoeba_table(metrics, name="other")


def test_folder_of_real_files(tiny_model):
    folder = Path(os.environ.get("ST_XLING_DATA", Path(__file__).parents[2] / ".." / "shared" / "data")) / "tatoeba"
    if not folder.is_dir():
        pytest.skip("no tatoeba under ST_XLING_DATA or ../shared/data")
    evaluator = TatoebaEvaluator.from_folder(folder, "te,jv")
    assert evaluator.languages == ("jav", "tel")
    assert [len(side) for side in evaluator.pairs["tel"]] == [234, 234]
    everything = TatoebaEvaluator.from_folder(folder)
    assert "|languages:xtreme36|" in everything.signature
    assert set(everything.groups) == {"xnli14", "full28", "xtreme36"}
    assert sum(len(source) for source, _ in everything.pairs.values()) == 31692
