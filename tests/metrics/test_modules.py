"""The three metrics as evaluate runs them: hand-made cases, cards, batches, combinations, errors."""

import doctest
import re
import sys
import uuid
from pathlib import Path

import evaluate
import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from st_xling import __version__, metrics
from tests import reference_mining as reference
from tests.metrics.cases import CASES, gold, mined


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Evaluate's caches in a folder of the test's own."""
    folder = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluate.config.HF_MODULES_CACHE", folder / "modules")
        patch.setattr("evaluate.config.HF_METRICS_CACHE", folder / "metrics")
        patch.setattr("evaluate.config.HF_EVALUATE_OFFLINE", True)
        patch.syspath_prepend(str(folder / "modules"))
        for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
            patch.delitem(sys.modules, name)  # of another test's folder
        metrics.write_shims()
        yield


def load(name):
    # An id of its own: the lock of a computation that failed would make the next one wait a second.
    return evaluate.load(metrics.path(name), experiment_id=uuid.uuid4().hex)


@pytest.mark.parametrize(
    "name, case",
    [
        pytest.param(name, case, id=f"{name}{number}")
        for name in metrics.NAMES
        for number, case in enumerate(CASES[name])
    ],
)
def test_cases_of_the_modules(name, case):
    module = load(name)
    results = module.compute(predictions=case["predictions"], references=case["references"], **case.get("options", {}))
    for key, value in case["result"].items():
        assert results[key] == (value if isinstance(value, str) else pytest.approx(value)), key
    assert results["signature"].startswith(f"{name}|") and results["signature"].endswith(f"|st-xling:{__version__}")
    assert module.name == name


REFUSED = {
    "bucc_mining": [
        ([mined((1, 2, 0.5))], [gold(("ด", "é"))]),  # numbers as predicted ids, text in the gold
        ([mined(("a", "b", "viel"))], [gold(("a", "b"))]),
        ([mined(("a", "b", 1.0)), mined(("c", "d", 1.0))], [gold(("a", "b"))]),
        (mined(("a", "b", 1.0)), gold(("a", "b"))),
    ],
    "tatoeba": [([0, 1, 1], [0, 1, 2]), ([["a"]], [[1.0]]), ([[1.0, 2.0]], [[1.0, 2.0], [0.0, 1.0]])],
    "xpr_ranking": [([["hoch"]], [[1]]), ([0.5, 0.2], [1, 0]), ([[0.5]], [["ja"]]), ([[0.5]], [[1], [0]])],
}


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("name", metrics.NAMES)
def test_a_refused_call_leaves_nothing_behind(name: str, in_memory: bool) -> None:
    """After one refused call the same object refused valid ones: evaluate kept the types of the refused rows."""
    case = CASES[name][0]
    valid = {"predictions": case["predictions"], "references": case["references"], **case.get("options", {})}
    expected = load(name).compute(**valid)
    for predictions, references in REFUSED[name]:
        rows = {"predictions": predictions, "references": references}
        row = {"prediction": predictions[0], "reference": references[0]}
        for way, arguments in (("compute", rows), ("add_batch", rows), ("add", row)):
            module = evaluate.load(metrics.path(name), experiment_id=uuid.uuid4().hex, keep_in_memory=in_memory)
            try:
                getattr(module, way)(**arguments)
            except (ValueError, TypeError, AttributeError):
                assert len(module) == 0 and module.compute(**valid) == expected
            else:  # the first row alone is right
                assert way == "add"


@pytest.mark.parametrize("name", metrics.NAMES)
def test_a_missing_input_is_named(name: str) -> None:
    """A call without references, or with none of both, ended in "object of type 'NoneType' has no len()"."""
    case = CASES[name][0]
    predictions, references = case["predictions"], case["references"]
    for arguments, message in (
        ({"predictions": predictions}, "expected predictions and references: got no references"),
        ({"references": references}, "expected predictions and references: got no predictions"),
        ({}, "got no predictions and no references"),
    ):
        for way in ("compute", "add_batch"):
            with pytest.raises(ValueError, match=message):
                getattr(load(name), way)(**arguments)
    with pytest.raises(ValueError, match="expected prediction and reference: got no reference"):
        load(name).add(prediction=predictions[0])
    with pytest.raises(ValueError, match="must have at least one row: got none"):
        load(name).compute(predictions=[], references=[])
    # An empty batch, the last of a loop, adds nothing.
    module = load(name)
    module.add_batch(predictions=predictions, references=references)
    module.add_batch(predictions=[], references=[])
    assert module.compute(**case.get("options", {})) == load(name).compute(
        **{**case.get("options", {}), **{"predictions": predictions, "references": references}}
    )


def test_pairs_without_a_score_are_named() -> None:
    """``add`` of a pair without its score, and training pairs without one, were a bare KeyError: 'score'."""
    pair = {"source_id": "ก", "target_id": "é"}
    scored = {**pair, "score": 1.0}
    with pytest.raises(ValueError, match="predictions must be a list of pairs .*'score'"):
        load("bucc_mining").add(prediction=[pair], reference=[pair])
    with pytest.raises(ValueError, match="references must be a list of pairs"):
        load("bucc_mining").add(prediction=[scored], reference=[{"source_id": "ก"}])
    with pytest.raises(ValueError, match="train_predictions must be a list of pairs"):
        load("bucc_mining").compute(
            predictions=[[scored]], references=[[pair]], train_predictions=[[pair]], train_references=[[pair]]
        )


@pytest.mark.parametrize("ks", [3, (0,), (1.5,), ("1",)])
def test_ranks_are_whole_numbers(ks) -> None:
    """``ks=3`` was a TypeError about iterables, and acc@0 was reported as 0."""
    with pytest.raises(ValueError, match="ks must be a list of whole numbers from 1 on"):
        load("xpr_ranking").compute(predictions=[[0.9, 0.2]], references=[[0, 1]], ks=ks)


def test_rows_before_a_refused_one_are_kept() -> None:
    module = load("bucc_mining")
    module.add_batch(predictions=[mined(("a", "b", 1.0))], references=[gold(("a", "b"))])
    with pytest.raises(ValueError, match="format"):
        module.add_batch(predictions=[mined(("c", "d", "viel"))], references=[gold(("c", "d"))])
    module.add(prediction=mined(("c", "d", 1.0)), reference=gold(("c", "d")))
    assert module.compute(threshold=0.5)["n_correct"] == 2


def test_a_call_that_is_refused_by_the_metric_itself() -> None:
    """Options that do not fit are found after the rows were accepted."""
    module = load("bucc_mining")
    valid = {"predictions": [mined(("a", "b", 1.0))], "references": [gold(("a", "b"))]}
    for _ in range(2):
        with pytest.raises(ValueError, match="language_pairs"):
            module.compute(**valid, language_pairs=["de-en", "fr-en"])
        assert module.compute(**valid, threshold=0.5)["f1"] == 1.0


@pytest.mark.parametrize("name", metrics.NAMES)
def test_examples_of_the_docstrings(name):
    module = load(name)
    example = doctest.DocTestParser().get_doctest(module.inputs_description, {"evaluate": evaluate}, name, None, 0)
    assert len(example.examples) >= 3
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", metrics.NAMES)
def test_cards(name, capsys):
    """Snippets that run in order."""
    card = (Path(metrics.path(name)) / "README.md").read_text(encoding="utf-8")
    exec("".join(re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)), {})
    assert capsys.readouterr().out


# bucc_mining


def test_bucc_mining_equals_loops():
    """Random corpora with ties, thresholds tuned and given, against plain loops."""
    random = np.random.default_rng(0)
    rows, golds, expected = [], [], []
    for _ in range(6):
        scores = random.choice([0.9, 1.0, 1.1, 1.2], 12)
        pairs = [(f"s{i}", f"t{random.integers(0, 3)}", float(score)) for i, score in enumerate(scores)]
        right = [(f"s{i}", f"t{random.integers(0, 3)}") for i in range(15)]
        rows.append(mined(*pairs))
        golds.append(gold(*right))
        correct = [pair[:2] in set(right) for pair in pairs]
        expected.append((scores, correct, len(right)))
    module = load("bucc_mining")
    tuned = module.compute(predictions=rows, references=golds, threshold="tune")
    best = [reference.best_f1(*row) for row in expected]
    assert [row["f1"] for row in tuned["rows"]] == pytest.approx(best, rel=1e-9)
    assert tuned["f1"] == pytest.approx(sum(best) / len(best), rel=1e-9)
    # The thresholds found, given back, find the same.
    again = module.compute(predictions=rows, references=golds, threshold=tuned["thresholds"])
    assert again["f1"] == tuned["f1"] and again["threshold_source"] == "given"


ROW = {"predictions": [mined(("a", "b", 1.0))], "references": [gold(("a", "b"))]}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"language_pairs": ["de-en", "fr-en"]}, "language_pairs"),
        ({"predictions": [mined(("a", "b", float("nan")))]}, "row 0: .*nan"),
        ({"predictions": [gold(("a", "b"))]}, "'score'"),
        ({"predictions": mined(("a", "b", 1.0))}, "for each corpus"),
        ({"predictions": [mined(("a", "b", 1.0), ("a", "b", 2.0))]}, r"row 0: predictions .*\('a', 'b'\) twice"),
    ],
)
def test_errors_of_bucc_mining(changes, message):
    with pytest.raises(ValueError, match=message):
        load("bucc_mining").compute(**{**ROW, **changes})


def test_a_corpus_in_parts_is_refused():
    module = load("bucc_mining")
    for part in (mined(("a", "b", 1.0)), mined(("c", "d", 2.0))):
        module.add_batch(predictions=[part], references=[gold(("a", "b"), ("c", "d"))])
    with pytest.raises(ValueError, match="into one row"):
        module.compute()


# tatoeba


def embeddings(seed=0, rows=40, dim=6, noise=1.0):
    random = np.random.default_rng(seed)
    source = random.standard_normal((rows, dim)).astype(np.float32)
    return source, (source + noise * random.standard_normal((rows, dim))).astype(np.float32)


def test_tatoeba_equals_its_definitions():
    """P@1 by loops; mteb's F1 by the call that mteb 2.26.24 makes; xsim by loops."""
    source, target = embeddings()
    results = load("tatoeba").compute(predictions=source, references=target)
    rows = list(range(len(source)))
    for way, queries, corpus in (("source_to_target", source, target), ("target_to_source", target, source)):
        neighbors = [max(rows, key=lambda j, q=query: reference.cosine(q, corpus[j])) for query in queries]
        hits = [index == row for row, index in enumerate(neighbors)]
        assert results[f"{way}_accuracy"] == pytest.approx(sum(hits) / len(hits))
        expected = f1_score(rows, neighbors, zero_division=0, average="weighted")
        assert results[f"{way}_f1"] == pytest.approx(expected, rel=1e-9)
        assert results[f"{way}_f1"] <= results[f"{way}_accuracy"]
    for margin in ("ratio", "distance", "absolute"):
        forward = reference.mine(source, target, k=4, margin=margin, retrieval="forward")
        right = sum(i == j for _, i, j in forward)
        error = load("tatoeba").compute(predictions=source, references=target, margin=margin)["xsim_error"]
        assert error == pytest.approx(1 - right / len(source))


def test_other_keys_of_mined_pairs_are_not_read():
    """Rows of ``mine``'s JSON lines have texts as well."""
    case = CASES["bucc_mining"][0]
    options = case.get("options", {})
    plain = load("bucc_mining").compute(predictions=case["predictions"], references=case["references"], **options)
    longer = [[{**pair, "source": "Hallo.", "reason": ""} for pair in corpus] for corpus in case["predictions"]]
    results = load("bucc_mining").compute(predictions=longer, references=case["references"], **options)
    assert results["f1"] == plain["f1"]


def test_rows_added_one_by_one_to_combined_metrics():
    both = evaluate.combine({"first": load("xpr_ranking"), "second": load("xpr_ranking")}, force_prefix=True)
    both.add_batch(predictions=[[0.1, 0.9]], references=[[0, 1]])
    both.add_batch(predictions=[[0.9, 0.1], []], references=[[0, 1], []])
    results = both.compute()
    assert results["first_acc@1"] == results["second_acc@1"] == 0.5
    assert results["first_n_queries"] == 3 and results["second_n_without_relevant"] == 1


def test_each_row_has_the_threshold_of_its_own_training_row():
    train = mined(("a", "b", 1.5), ("c", "d", 1.0))
    test = mined(("a", "b", 1.25), ("c", "d", 1.2), ("e", "f", 2.0))
    results = load("bucc_mining").compute(
        predictions=[test, test],
        references=[gold(("a", "b"), ("c", "d")), gold(("e", "f"))],
        train_predictions=[train, train],
        train_references=[gold(("a", "b")), gold(("c", "d"), ("a", "b"))],
        language_pairs=["de-en", "fr-en"],
    )
    assert results["thresholds"] == [1.25, 1.0]
    rows = [(row["language_pair"], row["n_mined"], row["f1"]) for row in results["rows"]]
    assert rows == [("de-en", 2, 0.5), ("fr-en", 3, 0.5)]
    assert "|pairs:de-en,fr-en|threshold:train|duplicates:error|" in results["signature"]


def test_nothing_correct_and_no_threshold():
    rows = {"predictions": [mined((1, 2, 1.0))], "references": [gold((3, 4))]}
    tuned = load("bucc_mining").compute(**rows, threshold="tune")
    assert (tuned["thresholds"], tuned["n_mined"], tuned["f1"]) == ([float("inf")], 0, 0.0)
    plain = load("bucc_mining").compute(**rows)
    assert (plain["thresholds"], plain["threshold_source"], plain["n_mined"]) == ([None], "none", 1)


def test_tatoeba_takes_lists_tensors_and_batches():
    source, target = embeddings(3, rows=9)
    expected = load("tatoeba").compute(predictions=source, references=target)
    for kind in (lambda x: x.tolist(), torch.from_numpy, lambda x: x.astype(np.float64)):
        assert load("tatoeba").compute(predictions=kind(source), references=kind(target)) == expected
    module = load("tatoeba")
    for start in range(0, 9, 4):
        module.add_batch(predictions=source[start : start + 4], references=target[start : start + 4])
    assert module.compute() == expected
    half = load("tatoeba").compute(predictions=torch.from_numpy(source).bfloat16(), references=target)
    assert half["n_pairs"] == 9


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ([0, 1], [0, 1], {}, r"predictions must be embeddings, a vector .*: got 0 for a sentence; pass model.encode"),
        ([[1.0, 0.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]], {}, "predictions must be vectors of one length"),
        ([[1.0, 0.0]], [[1.0, 0.0, 0.0]], {}, "same dim: got 2 and 3"),
        ([[0.0, 0.0]], [[1.0, 0.0]], {}, "only zeros"),
        ([[float("nan"), 0.0]], [[1.0, 0.0]], {}, "NaN or infinity in row 0"),
        ([[1.0, 0.0]], [[1.0, 0.0]], {"margin": "log"}, "margin must be one of"),
        ([[1.0, 0.0]], [[1.0, 0.0]], {"k": 0}, "k must be at least 1"),
    ],
)
def test_errors_of_tatoeba(source, target, options, message):
    with pytest.raises(ValueError, match=message):
        load("tatoeba").compute(predictions=source, references=target, **options)
