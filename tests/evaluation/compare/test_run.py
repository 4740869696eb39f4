"""A comparison of tiny encoders: values are those of the evaluators, and finished tasks are not run again."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from st_xling.data import hard_translations
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import BuccEvaluator, RetrievalEvaluator, TatoebaEvaluator, xsim_by_language, xsim_plus_plus
from st_xling.evaluation.compare import (
    ComparisonReport,
    ModelSpec,
    compare_models,
    load_comparison_data,
    parse_models,
    tasks,
)
from st_xling.models import load_encoder, tiny_encoder
from st_xling.utils.io import locked
from tests.example_files import write_bucc
from tests.retrieval_files import lines
from tests.xquad_r_files import write_xquad_r

SPEC = "phrasebook:de,fr?size=60"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two tiny encoders of random weights."""
    folder = tmp_path_factory.mktemp("models")
    phrases = parallel_phrases("de", "en", size=50)
    texts = [*phrases["source"], *phrases["target"]]
    for name, size in (("wide", 32), ("narrow", 8)):
        tiny_encoder(texts, vocabulary=300, hidden_size=size, layers=2, heads=2).save(str(folder / name))
    return [ModelSpec(name, str(folder / name)) for name in ("wide", "narrow")]


@pytest.fixture(scope="module")
def data():
    return load_comparison_data([SPEC])


@pytest.fixture(scope="module")
def report(models, data):
    return compare_models(models, data, samples=100)


def test_values_are_those_of_the_evaluators(models, data, report):
    contents = report.content["tasks"]
    for spec in models:
        model = load_encoder(spec.model)

        def value(task, index, label, spec=spec):
            return contents[task]["measures"][index]["values"][spec.name][label][0]

        tatoeba = TatoebaEvaluator(data.pairs, name="")(model)
        errors = xsim_by_language(model, data.pairs).metrics
        for code in ("deu", "fra"):
            assert value("tatoeba", 1, code) == pytest.approx(tatoeba[f"{code}_to_en_accuracy"])
            assert value("tatoeba", 2, code) == pytest.approx(tatoeba[f"{code}_from_en_accuracy"])
            assert value("xsim", 1, code) == pytest.approx(errors[code]["to_en_error"])
            assert value("xsim", 2, code) == pytest.approx(errors[code]["from_en_error"])
        assert value("tatoeba", 0, "mean") == pytest.approx(tatoeba["mean_accuracy"])
        test = {pair: corpora.test for pair, corpora in data.mining.items()}
        train = {pair: corpora.train for pair, corpora in data.mining.items()}
        mined = BuccEvaluator(test, train=train, name="")(model)
        for index, key in enumerate(("f1", "precision", "recall")):
            assert value("mining", index, "deu") == pytest.approx(mined[f"de-en_{key}"])
            assert value("mining", index, "mean") == pytest.approx(mined[key])
        pool = RetrievalEvaluator(data.pool, pool="mixed", measures=["MAP"]).report(model)
        assert value("pool", 0, "mean") == pytest.approx(pool.means["MAP"])
        assert value("pool", 0, "deu") == pytest.approx(pool.figures["de"]["MAP"])
        # xsim++ of one language, sentence by sentence.
        german, english = data.pairs["deu"]
        hard = hard_translations(english, most=2)
        hard_texts = [sentence.text for sentence in hard]
        result = xsim_plus_plus(
            np.array(list(map(model.encode, german))),
            np.array(list(map(model.encode, english))),
            np.array(list(map(model.encode, hard_texts))),
            [sentence.index for sentence in hard],
            [sentence.category for sentence in hard],
        )
        assert value("xsim++", 0, "deu") == pytest.approx(result.error_rate)
    n_bytes = contents["size"]["measures"][2]["values"]
    assert n_bytes["wide"]["all"][0] == 128 and n_bytes["narrow"]["all"][0] == 32


def test_the_report_says_what_was_compared(report):
    table = report.table()
    assert "Tatoeba: accuracy" in table and "mean of Tatoeba: deu, fra" in table
    assert table.splitlines()[-1] == report.signature and "|tests:swaps,holm," in report.signature
    comparisons = []
    for task in report.content["tasks"].values():
        for measure in task["measures"]:
            comparisons += measure.get("comparisons", [])
    assert len(comparisons) == report.content["tests"]
    assert all(test["p"] <= test["p_corrected"] for test in comparisons)
    json.dumps(report.content, allow_nan=False)


def test_finished_tasks_are_not_run_again(models, data, tmp_path, monkeypatch):
    """Interrupted, resumed, and run again for what has changed."""
    ran = []
    stop = ["narrow xsim"]

    def run_or_stop(task, original, session):
        model = "wide" if session.model.get_embedding_dimension() == 32 else "narrow"
        step = f"{model} {task}"
        if step in stop:
            raise KeyboardInterrupt
        ran.append(step)
        return original(session)

    for name in ("tatoeba", "xsim"):
        task = tasks.COMPARISON_TASKS[name]
        monkeypatch.setitem(tasks.COMPARISON_TASKS, name, task._replace(run=partial(run_or_stop, name, task.run)))
    options = {"tasks": ["tatoeba", "xsim"], "out": tmp_path / "out", "samples": 20}
    with pytest.raises(KeyboardInterrupt):
        compare_models(models, data, **options)
    assert ran == ["wide tatoeba", "wide xsim", "narrow tatoeba"] and not (tmp_path / "out" / "compare.html").exists()
    stop.clear()
    first = compare_models(models, data, **options)
    assert ran[3:] == ["narrow xsim"]
    again = compare_models([models[0], ModelSpec("narrow", models[1].model, {"layer": 1})], data, **options)
    assert ran[4:] == ["narrow tatoeba", "narrow xsim"]
    assert again.content["models"][1]["options"] == {"layer": "1"} and "layer '1'" in again.table()
    first_values = first.content["tasks"]["tatoeba"]["measures"][0]["values"]
    later_values = again.content["tasks"]["tatoeba"]["measures"][0]["values"]
    assert first_values["wide"] == later_values["wide"]
    compare_models(models, load_comparison_data(["phrasebook:de?size=60"]), **options)
    assert len(ran) == 10
    assert (tmp_path / "out" / "compare.html").is_file()


def test_names_that_differ_in_a_sign_have_files_of_their_own(models, data, tmp_path):
    """a/b and a-b wrote over one another's results in --out."""
    named = [ModelSpec("a/b", models[0].model), ModelSpec("a-b", models[1].model)]
    options = {"tasks": ["tatoeba"], "out": tmp_path, "samples": 10}
    first = compare_models(named, data, **options)
    assert len(list((tmp_path / "results").glob("*.tatoeba.json"))) == 2
    assert compare_models(named, data, **options).content == first.content


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"fingerprint": "?"}', "cut", "flip", "no languages"])
def test_damaged_results_are_computed_again(damage: str, models, data, tmp_path, caplog):
    """A damaged file ended in a traceback, or gave the figures that it held."""
    options = {"tasks": ["tatoeba"], "out": tmp_path, "samples": 10}
    first = compare_models(models[:1], data, **options)
    (path,) = (tmp_path / "results").glob("*.tatoeba.json")
    text = path.read_text(encoding="utf-8")
    damaged = {
        "cut": text[: len(text) // 2],
        "flip": text.replace("true", "false", 1) if "true" in text else text.replace("false", "true", 1),
        "no languages": "{}",
    }.get(damage, damage)
    assert damaged != text
    path.write_text(damaged, encoding="utf-8")
    assert compare_models(models[:1], data, **options).content == first.content
    assert path.read_text(encoding="utf-8") == text
    assert f"{path.name} is damaged" in caplog.text


def test_results_of_another_version_are_computed_again(models, data, tmp_path, caplog):
    """They are neither used nor called damaged: the record has another fingerprint."""
    options = {"tasks": ["tatoeba"], "out": tmp_path, "samples": 10}
    first = compare_models(models[:1], data, **options)
    record = tmp_path / "results" / "done.json"
    before = record.read_text(encoding="utf-8")
    content = json.loads(before)
    (step,) = content["steps"].values()
    step["fingerprint"] = "?"
    record.write_text(json.dumps(content), encoding="utf-8")
    (path,) = (tmp_path / "results").glob("*.tatoeba.json")
    path.write_text("{}", encoding="utf-8")
    assert compare_models(models[:1], data, **options).content == first.content
    assert record.read_text(encoding="utf-8") == before and "is damaged" not in caplog.text


def test_two_comparisons_do_not_share_a_folder_at_once(models, data, tmp_path):
    """Two processes would each write a page of their own models over the other's."""
    (tmp_path / "results").mkdir()
    with locked(tmp_path / "results"), pytest.raises(ValueError, match="results"):
        compare_models(models[:1], data, tasks=["size"], out=tmp_path)


def test_folders_of_data(tmp_path):
    for code, side in (("deu", "source"), ("eng", "target")):
        pairs = parallel_phrases("de", "en", size=12, split="test")
        lines(tmp_path / "tatoeba" / f"tatoeba.deu-eng.{code}", pairs[side])
    for language, split, drawn_from in (("fr", "training", "dev"), ("fr", "test", "test"), ("es", "test", "test")):
        write_bucc(tmp_path / "mining" / f"{language}-en", language, split, drawn_from)
    for language in ("en", "zh"):
        write_xquad_r(tmp_path / "xquad_r", language)
    specs = [f"{tmp_path}/{part}" for part in ("tatoeba", "mining", "xquad_r")]
    data = load_comparison_data(specs)
    languages = [part.language for part in data.pool]
    assert (list(data.pairs), list(data.mining), languages) == (["deu"], ["fr-en"], ["en", "zh"])
    assert next(why for why in data.missing if "training split" in why).startswith("mining es-en: ")
    some = load_comparison_data(specs, ["de", "sw"])
    assert (list(some.pairs), list(some.mining), some.pool) == (["deu"], [], [])
    assert "the mixed pool: passages of en alone; it takes two languages" in some.missing
    with pytest.raises(ValueError, match="got none in .* of sw"):
        load_comparison_data(specs[:1], ["sw"])
    with pytest.raises(ValueError, match="another for fr-en"):  # the second was taken in place of the first
        load_comparison_data([specs[1]] * 2)


def test_comparisons_that_are_refused(models, data):
    with pytest.raises(ValueError, match="got none"):
        compare_models(models, data, tasks=[])
    with pytest.raises(ValueError, match="tatoeba, .*tatoebba"):
        compare_models(models, data, tasks=["tatoebba"])
    with pytest.raises(ValueError, match="different names: got a, a"):
        compare_models([ModelSpec("a", "x"), ModelSpec("a", "y")], data)
    with pytest.raises(ValueError, match="different names: got none"):
        compare_models([], data)
    with pytest.raises(ValueError, match="no/such/folder"):
        compare_models([ModelSpec("a", "no/such/folder")], data)
    with pytest.raises(ValueError, match="layer=7"):
        parse_models(["a/e5?layer=zero"])


def test_models_with_options_of_their_own():
    """What a model names itself goes before what is given for all."""
    specs = ["a/e5?prompt=query: &layer=7", "b/e5?name=mine"]
    first, second = parse_models(specs, prompt="passage: ", dtype="bfloat16")
    options = {"prompt": "query: ", "layer": 7, "dtype": "bfloat16"}
    assert (first.name, first.model, first.options) == ("e5", "a/e5", options)
    assert (second.name, second.options) == ("mine", {"prompt": "passage: ", "dtype": "bfloat16"})


def test_a_task_that_fails_names_the_model(models, data, monkeypatch):
    """Of several models and tasks: whose vectors are broken?"""

    def broken(session):
        raise ValueError("embeddings hold NaN.")

    monkeypatch.setitem(tasks.COMPARISON_TASKS, "xsim", tasks.COMPARISON_TASKS["xsim"]._replace(run=broken))
    with pytest.raises(ValueError, match="xsim, wide: embeddings hold NaN"):
        compare_models(models[:1], data, tasks=["tatoeba", "xsim"], samples=20)


def test_speed_is_measured_by_turns(data, monkeypatch):
    """On a machine that slows down steadily, two equal models are equally fast, whichever comes first."""
    clock = [0.0]
    encoded = []

    def encode(model, texts, batch_size=None):
        encoded.append(model)
        clock[0] += (1 + 0.01 * len(encoded)) * len(texts) / 100
        return np.zeros((len(texts), 2))

    monkeypatch.setattr(tasks, "encode", encode)
    monkeypatch.setattr(tasks.time, "perf_counter", lambda: clock[0])
    results = tasks.measure_speed({"a": "a", "b": "b"}, data)
    first = results["a"]["all"]
    second = results["b"]["all"]
    assert sum(first.columns["seconds"]) == pytest.approx(sum(second.columns["seconds"]), rel=1e-3)
    assert first.items == second.items
    assert encoded[2:6] == ["a", "b", "b", "a"]


def test_the_page_shows_names_as_text(report: ComparisonReport) -> None:
    content = json.loads(json.dumps(report.content).replace("narrow", "<img src=x>"))
    page = ComparisonReport(content).page()
    assert "http" not in page.split("</style>")[1] and "<script" not in page
    assert "<img" not in page and "&lt;img src=x&gt;" in page
    assert str(Path(report.content["models"][0]["model"]).parent) not in page  # it may be shown to others


def test_bars_of_shares_have_one_axis(report: ComparisonReport) -> None:
    """Each bar had a scale of its own without numbers: 100.0 stood in the middle, and so did 0.0 of another measure."""
    page = report.page()
    share = report.content["tasks"]["tatoeba"]["measures"][0]
    assert share["unit"] == "%"
    overall = report.content["tasks"]["tatoeba"]["overall"]
    for values in share["values"].values():
        assert f'<em style="left:{round(100 * values[overall][0], 2)}%">' in page
    assert '<div class="ends"><span>0 %</span><span>100 %</span></div>' in page
