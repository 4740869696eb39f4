"""BUCC evaluation: against plain loops, from files and the phrasebook; thresholds to publish."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from st_xling import __version__
from st_xling.data import BuccCorpus, read_bucc
from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc import publishable_thresholds
from st_xling.mining import PublishedThreshold
from st_xling.models.normalization import Centering, apply_centering
from tests import reference_mining as reference
from tests.evaluation.table_model import TableModel
from tests.example_files import write_bucc


def corpus(name, seed, gold=8, others=10, dim=5):
    """A corpus with noisy translations among sentences without one, and the vectors of its texts."""
    random = np.random.default_rng(seed)
    source = random.standard_normal((gold + others, dim))
    target = np.concatenate(
        [source[:gold] + 0.4 * random.standard_normal((gold, dim)), random.standard_normal((9, dim))]
    )
    texts = [f"{name} s{i}" for i in range(len(source))], [f"{name} t{i}" for i in range(len(target))]
    vectors = dict(zip(texts[0] + texts[1], np.concatenate([source, target]).astype(np.float32)))
    return (*texts, [(i, i) for i in range(gold)]), vectors


def by_loops(parts, vectors, *, k, margin, retrieval):
    """(scores, correct, n_gold) of one corpus."""
    source, target, gold = parts
    pairs = reference.mine(
        [vectors[t] for t in source], [vectors[t] for t in target], k=k, margin=margin, retrieval=retrieval
    )
    return [score for score, _, _ in pairs], [pair[1:] in set(gold) for pair in pairs], len(gold)


@pytest.fixture
def data():
    made = {
        (pair, part): corpus(f"{pair} {part}", seed)
        for seed, (pair, part) in enumerate(
            [("de-en", "train"), ("de-en", "test"), ("zh-en", "train"), ("zh-en", "test")]
        )
    }
    vectors = {}
    for _, table in made.values():
        vectors |= table
    train = {pair: made[pair, "train"][0] for pair in ("de-en", "zh-en")}
    test = {pair: made[pair, "test"][0] for pair in ("de-en", "zh-en")}
    return (train, test), vectors


def test_sentences_give_the_figures_again(data):
    """They are what is resampled for an interval over test sentences."""
    (train, test), vectors = data
    result = BuccEvaluator(test, train=train).evaluate(TableModel(vectors))
    for pair, (source, _, gold) in test.items():
        counts = result.sentences[pair]
        assert counts["n"] == len(source) and counts["gold"] == sorted(row for row, _ in gold)
        assert set(counts["correct"]) <= set(counts["gold"]) & set(counts["mined"])
        f1 = 2 * len(counts["correct"]) / (len(counts["mined"]) + len(counts["gold"]))
        assert 0 < f1 == pytest.approx(result.metrics[f"bucc_{pair}_f1"], rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"k": 2, "margin": "distance", "retrieval": "intersect"}], ids=str)
def test_threshold_of_train_applied_to_test(data, options):
    (train, test), vectors = data
    settings = {"k": 4, "margin": "ratio", "retrieval": "max", **options}
    metrics = BuccEvaluator(test, train=train, **options)(TableModel(vectors))
    f1s = []
    for pair in test:
        scores, correct, n_gold = by_loops(train[pair], vectors, **settings)
        threshold = metrics[f"bucc_{pair}_threshold"]
        assert reference.f1_at(scores, correct, n_gold, threshold) == pytest.approx(
            reference.best_f1(scores, correct, n_gold), rel=1e-9
        )
        scores, correct, n_gold = by_loops(test[pair], vectors, **settings)
        kept = [hit for score, hit in zip(scores, correct) if score >= threshold]
        assert metrics[f"bucc_{pair}_n_mined"] == len(kept)
        assert metrics[f"bucc_{pair}_n_correct"] == sum(kept)
        assert metrics[f"bucc_{pair}_n_gold"] == 8
        assert metrics[f"bucc_{pair}_precision"] == pytest.approx(sum(kept) / len(kept))
        assert metrics[f"bucc_{pair}_recall"] == pytest.approx(sum(kept) / 8)
        f1s.append(reference.f1_at(scores, correct, n_gold, threshold))
        assert metrics[f"bucc_{pair}_f1"] == pytest.approx(f1s[-1], rel=1e-9)
    assert metrics["bucc_f1"] == pytest.approx(sum(f1s) / 2, rel=1e-9)
    assert 0 < metrics["bucc_f1"] <= 1


def test_given_and_tuned_thresholds(data):
    (_, test), vectors = data
    evaluator = BuccEvaluator(test, threshold="tune")
    tuned = evaluator(TableModel(vectors))
    assert "|threshold:tuned on this gold|" in evaluator.identity
    for pair in test:
        rows = by_loops(test[pair], vectors, k=4, margin="ratio", retrieval="max")
        assert tuned[f"bucc_{pair}_f1"] == pytest.approx(reference.best_f1(*rows), rel=1e-9)
    everything = BuccEvaluator(test, threshold=-1e9)(TableModel(vectors))
    scores, correct, _ = by_loops(test["de-en"], vectors, k=4, margin="ratio", retrieval="max")
    assert everything["bucc_de-en_n_mined"] == len(scores) and everything["bucc_de-en_n_correct"] == sum(correct) > 3


def test_signature_says_what_a_figure_depends_on(data):
    (train, test), _ = data
    evaluator = BuccEvaluator(test, train=train, name="news")
    body, digest = evaluator.identity.split("@")
    assert body == (
        "bucc|pairs:de-en,zh-en|margin:ratio|k:4|retrieval:max|threshold:train|split:test|duplicates:kept|data:news"
    )
    assert digest.endswith(f"|st-xling:{__version__}") and len(digest.split("|")[0]) == 8
    other = BuccEvaluator({**test, "zh-en": (*test["zh-en"][:2], [(0, 0)])}, train=train, name="news")
    assert other.identity != evaluator.identity


CORPORA = (["a", "b"], ["x", "y"], [(0, 0)])


def test_errors():
    without_gold = BuccCorpus(["1"], ["a"], ["2"], ["x"], None, "de", "en")
    for corpora, options, message in (
        ({}, {"threshold": 1.0}, "corpora of none"),
        ({"de-en": without_gold}, {"threshold": 1.0}, "de-en: .*got 0"),
        ({"de-en": CORPORA}, {"k": 1}, "train of none, threshold=None"),
        ({"de-en": CORPORA}, {"k": 1, "train": {"fr-en": CORPORA}}, "corpora of de-en, train of fr-en"),
    ):
        with pytest.raises(ValueError, match=message):
            BuccEvaluator(corpora, **options)


def test_another_split_gives_the_threshold(tmp_path):
    for split, drawn_from in (("training", "dev"), ("sample", "test")):
        write_bucc(tmp_path, "de", split, drawn_from)
    with pytest.raises(ValueError, match="got split 'training' for both"):
        BuccEvaluator.from_spec(tmp_path, ["de-en"], split="training", k=1)
    tuned = BuccEvaluator.from_spec(tmp_path, ["de-en"], split="training", threshold="tune", k=1)
    assert "|threshold:tuned on this gold|" in tuned.identity
    other = BuccEvaluator.from_spec(tmp_path, split="sample", k=1)  # all pairs, this one
    assert list(other.corpora) == ["de-en"]
    # Rows of the ids in the files.
    corpus = read_bucc(tmp_path, "de-en", "sample")
    rows = [(corpus.source_ids.index(source), corpus.target_ids.index(target)) for source, target in corpus.gold]
    assert other.corpora["de-en"] == (corpus.source, corpus.target, rows)
    assert "|threshold:train|split:sample|" in other.identity


def test_a_folder_with_gold_of_one_split(tmp_path):
    """XTREME publishes BUCC's gold as ``dev`` alone: neither the split nor how to choose a threshold was said."""
    write_bucc(tmp_path, "de", "dev", "test")
    with pytest.raises(ValueError, match=r"has none\. It has gold of dev: pass --split dev --threshold tune"):
        BuccEvaluator.from_spec(tmp_path)
    with pytest.raises(ValueError, match=r"of which .* has no gold .but of dev.: pass threshold='tune' .--split dev"):
        BuccEvaluator.from_spec(tmp_path, split="dev")
    evaluator = BuccEvaluator.from_spec(tmp_path, split="dev", threshold="tune")
    assert list(evaluator.corpora) == ["de-en"] and "|split:dev|" in evaluator.identity
    write_bucc(tmp_path, "de", "training", "dev")
    with pytest.raises(ValueError, match=r"has gold of dev, training: pass --split dev\."):
        BuccEvaluator.from_spec(tmp_path)
    assert BuccEvaluator.from_spec(tmp_path, split="dev").train is not None


def test_corpora_of_the_phrasebook() -> None:
    evaluator = BuccEvaluator.from_spec("phrasebook?size=30&gold=5&seed=2", ["de-en", "zh-vi"])
    test = mining_phrases("zh", "vi", split="test", size=30, gold=5, seed=2)
    dev = mining_phrases("zh", "vi", split="dev", size=30, gold=5, seed=2)
    assert evaluator.corpora["zh-vi"] == (test.source, test.target, test.gold)
    assert evaluator.train is not None and evaluator.train["zh-vi"] == (dev.source, dev.target, dev.gold)
    assert "|pairs:de-en,zh-vi|" in evaluator.identity and "|threshold:dev|split:test|" in evaluator.identity
    assert "|data:phrasebook-30x5-seed2@" in evaluator.identity
    with_threshold = BuccEvaluator.from_spec("phrasebook:de?size=20&gold=4", threshold=1.06)
    assert with_threshold.train is None and "|threshold:given|" in with_threshold.identity
    for spec, options, message in (
        ("phrasebook", {"pairs": ["deen"]}, "deen"),
        ("phrasebook?size=5&gold=6", {}, "gold=6 for size=5"),
        ("phrasebook:de", {"pairs": ["fr-en"]}, "once: got phrasebook:de and the pairs fr-en"),  # de was passed over
        ("phrasebook", {"split": "dev"}, "split 'dev' for both"),
    ):
        with pytest.raises(ValueError, match=message):
            BuccEvaluator.from_spec(spec, **options)


def test_thresholds_to_publish(make_model: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """With what they yielded; not of text that chose them, nor where they mean nothing."""
    model = make_model()
    corpora = {}
    for split in ("test", "dev"):
        texts = mining_phrases("de", "en", split=split, size=30, gold=10)
        corpora[split] = (texts.source, texts.target, [tuple(pair) for pair in texts.gold])
    test = corpora["test"]
    dev = corpora["dev"]
    ways = {"k": 3, "margin": "distance", "retrieval": "intersect"}
    for options in ({"train": {"de-en": dev}}, {"threshold": 0.01, "name": ""}):
        evaluator = BuccEvaluator({"de-en": test}, **options, **ways)
        result = evaluator.evaluate(model)
        published = publishable_thresholds(evaluator, result)
        measured = dict(zip(("precision", "recall", "f1", "threshold"), result.rows[0].values))
        assert published["de-en"] == PublishedThreshold(**measured, **ways, signature=result.signature)
    for options, why in (({"train": {"de-en": test}}, "tuned on the gold"), ({"threshold": float("inf")}, "got inf")):
        evaluator = BuccEvaluator({"de-en": test}, **options)
        assert not publishable_thresholds(evaluator, evaluator.evaluate(model)) and why in caplog.text
    means = {"de": torch.linspace(-0.3, 0.3, 16), "en": torch.linspace(0.3, -0.2, 16)}
    evaluator = BuccEvaluator({"de-en": test}, threshold=0.01)
    centered = apply_centering(model, Centering(torch.zeros(16), means))
    published = publishable_thresholds(evaluator, evaluator.evaluate(centered))
    assert published["de-en"].options == {"center": "language"}


def test_bad_embeddings_name_the_pair():
    table = {"a": [0.0, 0.0], "b": [1.0, 0.0], "x": [1.0, 0.0], "y": [0.0, 1.0]}
    with pytest.raises(ValueError, match="de-en: .*only zeros in row 0"):
        BuccEvaluator({"de-en": CORPORA}, threshold=1.0, k=1)(TableModel(table))


def test_equal_sentences_share_a_vector_and_compete_by_index():
    """Two sources have the same text; the gold names the second, the first one wins the target."""
    table = {"Ja.": [1, 0.1], "Nein.": [0, 1], "Yes.": [1, 0], "No.": [0.1, 1]}
    texts = (["Ja.", "Ja.", "Nein."], ["Yes.", "No."], [(1, 0), (2, 1)])
    model = TableModel(table)
    evaluator = BuccEvaluator({"de-en": texts}, threshold=0.0, k=2, margin="absolute", name="")
    result = evaluator.evaluate(model)
    assert [result.metrics[f"de-en_{name}"] for name in ("n_mined", "n_correct", "recall")] == [2, 1, 0.5]
    assert [sorted(texts) for texts, _ in model.calls] == [sorted(table)]
    # For the picture on the card: of all mined pairs, by the gold.
    [counts] = result.histograms.values()
    assert (sum(counts["correct"]), sum(counts["wrong"])) == (1, 1)
