"""mteb both ways: its own run of an encoder, and our results as its files."""

from itertools import chain
from pathlib import Path
from typing import Any

import mteb
import pytest
from datasets import Dataset

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import PrecisionEvaluator, TatoebaEvaluator, mteb_name, to_mteb
from st_xling.models import tiny_encoder

Sides = tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def pairs() -> dict[str, Sides]:
    phrases = {language: parallel_phrases(language, "en", size=30, seed=1) for language in ("de", "zh")}
    return {language: (list(rows["source"]), list(rows["target"])) for language, rows in phrases.items()}


@pytest.fixture(scope="module")
def encoder(pairs: dict[str, Sides]) -> Any:
    return tiny_encoder(texts(pairs), vocabulary=300, hidden_size=32, layers=1)


def texts(pairs: dict[str, Sides]) -> list[str]:
    """All texts of both sides."""
    sides = chain.from_iterable(pairs.values())
    return [*chain.from_iterable(sides)]


def scores(path: Path) -> dict[str, Any]:
    """Subset → scores, as mteb reads them."""
    result = mteb.TaskResult.from_disk(path)
    return {scores_of_subset["hf_subset"]: scores_of_subset for scores_of_subset in result.scores["test"]}


def test_tatoeba_is_what_mteb_computes(encoder: Any, pairs: dict[str, Sides], tmp_path: Path) -> None:
    subsets = {"deu-eng": "de", "cmn-eng": "zh"}
    task = mteb.get_task("Tatoeba", hf_subsets=list(subsets))
    columns = {name: dict(zip(("sentence1", "sentence2"), pairs[language])) for name, language in subsets.items()}
    task.dataset = {name: {"test": Dataset.from_dict(sides)} for name, sides in columns.items()}
    task.data_loaded = True
    theirs = mteb.evaluate(encoder, [task], cache=None).task_results[0].scores["test"]

    path = to_mteb(TatoebaEvaluator(pairs)(encoder), tmp_path, model_name="user/tiny", task="Tatoeba", revision="abc")
    assert path == tmp_path / "results" / "user__tiny" / "abc" / "Tatoeba.json"
    ours = scores(path)
    assert ours.keys() == subsets.keys()
    for expected in theirs:
        assert 0 < expected["f1"] < expected["accuracy"]
        for measure in ("f1", "accuracy", "recall", "main_score"):
            assert ours[expected["hf_subset"]][measure] == pytest.approx(expected[measure], abs=1e-6)
    loaded = mteb.ResultCache(tmp_path).load_results(["user/tiny"], ["Tatoeba"], require_model_meta=False)
    mean = sum(expected["f1"] for expected in theirs) / 2
    assert loaded.model_results[0].task_results[0].get_score() == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("names", [("de-en", "zh-en"), ("deu_Latn-eng_Latn", "zho_Hans-eng_Latn"), ("en-de", "en-zh")])
def test_pairs_of_other_tasks_in_both_directions(
    names: tuple[str, str], encoder: Any, pairs: dict[str, Sides], tmp_path: Path
) -> None:
    is_english_first = names[0].startswith("en")
    named = {name: sides[::-1] if is_english_first else sides for name, sides in zip(names, pairs.values())}
    evaluator = PrecisionEvaluator(named, name="flores")
    metrics = evaluator(encoder)
    ours = scores(to_mteb(metrics, tmp_path, model_name="tiny", task="NTREXBitextMining"))
    forward = metrics[f"flores_{names[0]}_source_to_target_weighted_f1"]
    backward = metrics[f"flores_{names[0]}_target_to_source_weighted_f1"]
    german = [ours["deu_Latn-eng_Latn"]["f1"], ours["eng_Latn-deu_Latn"]["f1"]]
    expected = [backward, forward] if is_english_first else [forward, backward]
    assert german == pytest.approx(expected, abs=1e-6)
    # Chinese is there in two scripts, so that the name must have one.
    assert ("zho_Hans-eng_Latn" in ours) == ("Hans" in names[1])


def test_what_is_refused(tmp_path: Path) -> None:
    metrics = {"tatoeba_xho_to_en_weighted_f1": 0.5, "tatoeba_xho_to_en_accuracy": 0.5}
    with pytest.raises(ValueError, match="BUCC.v2.*de-en"):
        to_mteb(metrics, tmp_path, model_name="tiny", task="BUCC.v2")


def test_models_with_names_keep_their_own_results(pairs: dict[str, Sides], tmp_path: Path) -> None:
    """mteb calls models of folders alike, and gave the second one the cached results of the first.

    The guide names them by ``mteb_name``. The first half fails once mteb tells such models apart; the guide need not
    say it then.
    """
    task = mteb.get_task("Tatoeba", hf_subsets=["deu-eng"])
    task.dataset = {"deu-eng": {"test": Dataset.from_dict(dict(zip(("sentence1", "sentence2"), pairs["de"])))}}
    task.data_loaded = True
    figures: dict[str, list[float]] = {"unnamed": [], "named": []}
    for kind, scores_of_seeds in figures.items():
        for seed in (0, 1):
            model = tiny_encoder(texts(pairs), vocabulary=300, hidden_size=32, layers=1, seed=seed)
            model.model_card_data.model_name = mteb_name(model) if kind == "named" else None
            results = mteb.evaluate(model, [task], cache=mteb.ResultCache(tmp_path / kind))
            scores_of_seeds.append(results.task_results[0].get_score())
    first, second = figures["unnamed"]
    first_named, second_named = figures["named"]
    assert second == pytest.approx(first, abs=1e-6) and first_named == pytest.approx(first, abs=1e-6)
    assert second_named != pytest.approx(first_named, abs=1e-3)


def test_two_folders_of_one_name_keep_their_own_files(pairs: dict[str, Sides], tmp_path: Path) -> None:
    """``to_mteb`` of a second model in a folder of the same name replaced the results of the first."""
    german = {"de": pairs["de"]}
    paths: dict[Path, dict[str, float]] = {}
    for seed in (0, 1):
        model = tiny_encoder(texts(pairs), vocabulary=300, hidden_size=32, layers=1, seed=seed)
        folder = tmp_path / str(seed) / "my encoder"
        model.save_pretrained(str(folder))
        metrics = TatoebaEvaluator(german)(model)
        paths[to_mteb(metrics, tmp_path, model_name=folder, task="Tatoeba")] = metrics
    assert len(paths) == 2
    for path, metrics in paths.items():
        assert scores(path)["deu-eng"]["f1"] == pytest.approx(metrics["tatoeba_deu_to_en_weighted_f1"], abs=1e-6)
    names = [mteb_name(tmp_path / seed / "my encoder") for seed in "01"]
    loaded = mteb.ResultCache(tmp_path).load_results(names, ["Tatoeba"], require_model_meta=False)
    assert sorted(result.model_name for result in loaded.model_results) == sorted(names)
