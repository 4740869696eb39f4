"""Metrics as Spaces: what is pushed is what ``evaluate.load`` finds, and what the Hub builds a page from."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling import metrics
from st_xling.metrics.bucc_mining.bucc_mining import BuccMining
from st_xling.metrics.widget import figures, input_names, page
from tests.hub.clients import Client
from tests.hub.hub_server import Fault, Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]


LOAD = """
import evaluate
metric = evaluate.load(words[0], download_mode="force_redownload")
mined = [{"source_id": "a", "target_id": "b", "score": 1.2}]
print(metric.compute(predictions=[mined], references=[[{"source_id": "a", "target_id": "b"}]])["f1"])
print(type(metric).__module__)
"""


def test_one_commit_that_evaluate_loads(hub: Hub, client: Run, process: Client) -> None:
    line = "st-xling @ git+https://example.org/st-xling"
    words = ("push", "--metric", "bucc_mining", "tester/bucc_mining", "--private", "--requirement", line)
    done = client(*words)
    assert done.status == 0, done.stderr
    repo, files = hub.model("tester/bucc_mining", "space"), hub.files("tester/bucc_mining", kind="space")
    assert done.stdout == f"{hub.url}/spaces/tester/bucc_mining/commit/{repo.refs['main']}\n"
    assert repo.sdk == "gradio" and repo.private and len(repo.commits) == 2
    assert files["requirements.txt"].decode().splitlines() == ["evaluate>=0.4", line]
    assert files["app.py"] == Path(metrics.__file__).with_name("space_app.py").read_bytes()
    folder = Path(metrics.path("bucc_mining"))
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}.items() <= files.items()
    hub.reset()
    loaded = process.python(LOAD, "tester/bucc_mining")
    assert loaded.status == 0, loaded.stderr
    assert loaded.stdout.startswith("1.0\nevaluate_modules.metrics.tester--bucc_mining.")
    assert ("resolve", "/spaces/tester/bucc_mining/resolve/main/bucc_mining.py") in hub.calls


def test_a_dry_run(hub: Hub, client: Run) -> None:
    done = client("push", "--metric", "xpr_ranking", "tester/xpr_ranking", "--dry-run", token="")
    assert done.status == 0 and "would go to tester/xpr_ranking: 5 files" in done.stdout
    assert "xpr_ranking.py" in done.stdout and hub.calls == []


def test_what_is_refused(hub: Hub, client: Run, tmp_path: Path) -> None:
    named = client("push", "--metric", "bucc_mining", "tester/mine").error
    assert "evaluate.load looks for bucc_mining.py in a Space called bucc_mining: got 'tester/mine'" in named
    assert "one of bucc_mining, tatoeba, xpr_ranking: got 'bucc'" in client("push", "--metric", "bucc", "t/bucc").error
    assert "--requirement is for the Space of a metric" in client("push", tmp_path, "t/x", "--requirement", "a").error
    assert hub.calls == []
    hub.faults = [Fault("create", 402, message="Gradio Spaces need a plan")]
    paid = client("push", "--metric", "bucc_mining", "tester/bucc_mining").error
    assert "refused while creating 'tester/bucc_mining' (402 Gradio Spaces need a plan)" in paid


@pytest.fixture
def bucc(tmp_path: Path) -> Any:
    return BuccMining(cache_dir=str(tmp_path))


def test_what_the_page_computes(bucc: Any) -> None:
    assert input_names(bucc) == ["predictions", "references"]
    mined = '[[{"source_id": "a", "target_id": "b", "score": 1.5}, {"source_id": "c", "target_id": "x", "score": 1.1}]]'
    gold = '[[{"source_id": "a", "target_id": "b"}]]'
    assert figures(bucc, [mined, gold])["precision"] == 0.5
    assert figures(bucc, [mined, gold], '{"threshold": 1.2}')["precision"] == 1.0
    with pytest.raises(ValueError, match="predictions must be a list in JSON: Expecting"):
        figures(bucc, ["[1", gold])
    with pytest.raises(ValueError, match="options must be an object in JSON: got list"):
        figures(bucc, [mined, gold], "[]")
    for texts, options in (([mined, gold], '{"treshold": 1}'), (["[]", "[]"], "")):
        with pytest.raises(ValueError, match="the metric does not take this"):
            figures(bucc, texts, options)


def test_the_page(bucc: Any) -> None:
    """Where gradio is; a Space has it."""
    pytest.importorskip("gradio")
    folder = metrics.path("bucc_mining")
    interface = page(bucc, folder)
    case = runpy.run_path(f"{folder}/tests.py")["test_cases"][0]
    assert len(interface.input_components) == 3
    found = interface.fn(*(json.dumps(case[name]) for name in input_names(bucc)), "")
    assert found["precision"] == case["result"]["precision"]
