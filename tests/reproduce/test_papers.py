"""The five papers' tables: every command is one that st-xling takes, at every scale, and every name is there."""

import gzip
import importlib
import itertools
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import st_xling.utils.precision
from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.hub.card import plain
from st_xling.models import tiny_encoder
from st_xling.reproduce import load_paper, paper_names, reproduce
from st_xling.reproduce.paper import SCALES, Paper, Step
from st_xling.reproduce.principal_components import fit_principal_components
from st_xling.reproduce.reports import report, table_heading, write_report
from tests.commands import parse
from tests.data.reranking.aligned_sentences import CHINESE, ENGLISH, write_translation, write_v2

#: As the papers number them; AMBER's figure 2 is in its figures 3 and 4.
TABLES = {
    "amber": {"2", "5", "6", "7", "8", "figure 3", "figure 4"},
    "dap": {"1", "2", "3", "4", "5", "6", "7", "8", "figure 1", "figure 3", "figure 4"},
    "ir": {"2", "3", "4", "5", "6", "7", "8", "9", "10", "figure 3", "figure 4"},
    "sf": {*map(str, range(5, 14)), "figure 6", "figure 7"},
    "xpr": {"3", "4", "5"},
}


#: Models that tables can start from: the scale's own, and the bases that `--model` names.
STARTS = ("", "mlm", "e5-small", "e5-12")
PAPERS = [(name, scale, start) for name in paper_names() for scale in SCALES for start in STARTS]


@pytest.fixture(scope="module", params=PAPERS, ids="-".join)
def paper(request: pytest.FixtureRequest) -> Paper:
    name, scale, start = request.param
    return load_paper(name, scale=scale, model=start or None, seeds=(0, 1))


def test_every_command_parses(paper: Paper) -> None:
    """From each start: `slim`, which makes e5-small and e5-12, got a `--seed` that it does not have, and 13 of 18
    published pages could not be made again."""
    words = set()
    for step in paper.steps():
        if step.is_python:  # in the package, so that an installed one has it
            module = importlib.import_module(step.words[2])
            assert step.words[1] == "-m" and module.__name__.startswith("st_xling.")
            module.parser().parse_args(step.command()[3:])
        else:
            parse([*step.command(), *(["--overwrite"] if step.trains or step.fine_tunes else [])])
        words.update(step.words)
    assert len({step.id for step in paper.steps()}) == len(paper.steps())
    # The smallest scale needs no files of anybody.
    assert paper.scale != "tiny" or not any("{data}" in word for word in words)
    assert not [word for word in words if re.search(r"\{[\w-]+\}", word.replace("{data}", ""))]


@pytest.mark.parametrize("name", paper_names())
def test_float32_where_bfloat16_is_slow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def words(precision: str | None = None) -> set[str]:
        steps = load_paper(name, scale="small", precision=precision).steps()
        return set(itertools.chain.from_iterable(step.words for step in steps))

    half = words("bf16")
    single = words("fp32")
    differ = {word for word in half ^ single if "models/" not in word}
    assert differ and differ <= {"arguments.bf16=true", "bfloat16", "float32", "--autocast"}
    assert not {"arguments.bf16=true", "bfloat16"} & single
    speedups = {"cpu": 4.0, "cuda": 8.0}
    monkeypatch.setattr(st_xling.utils.precision, "bfloat16_speedup", speedups.__getitem__)
    for device, speedup, chosen in (
        ("cpu", 4.0, half),
        ("cpu", 0.65, single),
        ("cuda", 8.0, half),
        ("cuda", 0.2, single),
    ):
        accelerator = None if device == "cpu" else torch.device(device)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda device=accelerator, **_: device)
        speedups[device] = speedup
        assert words() == chosen


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_the_paper(name: str) -> None:
    assert set(load_paper(name, scale="paper").tables) >= TABLES[name]


def test_models_are_shared() -> None:
    """By rows, tables and papers: a step is its command."""
    dap = load_paper("dap", scale="small", seeds=(0,))
    trained = [step for step in dap.steps() if step.trains]
    assert sum(step.name == "tr, seed 0" for step in trained) == 1
    bases = set()
    for name in paper_names():
        bases |= {step.id for step in load_paper(name, scale="small").steps() if step.name == "mlm"}
    assert len(bases) == 1


@pytest.mark.parametrize("start", ["e5-small", "e5-12"])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("dap", ["as it is", "TR"]),
        pytest.param("sf", ["as it is", "SF"], marks=pytest.mark.slow),
        pytest.param("amber", ["as it is", "SA"], marks=pytest.mark.slow),
        pytest.param("ir", ["as it is", "IR"], marks=pytest.mark.slow),
        pytest.param("xpr", ["XPI + mixed"], marks=pytest.mark.slow),
    ],
)
def test_rows_run_from_each_start(
    name: str,
    rows: list[str],
    start: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Commands that parse can still be refused by what they run: at scale tiny, e5-small and e5-12 were cut by the very
    text that their model was made from, so that `slim` had nothing to drop, and SF read a second layer of one."""
    monkeypatch.chdir(tmp_path)
    table = next(iter(load_paper(name).tables))
    paper = load_paper(name, [table], model=start, rows=rows)
    assert start in [step.name for step in paper.steps()]
    for step in paper.steps():
        run_quickly(step, capsys)
    assert list(report(paper, tmp_path, {})["tables"][table]["rows"]) == rows


def run_quickly(step: Step, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process; of training two steps."""
    if step.is_python:
        Path("results").mkdir(exist_ok=True)
        importlib.import_module(step.words[2]).main(step.command()[3:])
    else:
        quick = ["--max-steps", "2"] if step.words[0] == "train" else []
        assert main([*step.command(), *quick]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "table", "rows", "joined"),
    [("dap", "figure 1", ["as it is", "TR"], False), ("sf", "figure 7", ["as it is", "SF"], True)],
)
def test_pictures_of_principal_components(
    name: str,
    table: str,
    rows: list[str],
    joined: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """DAP's figure 1 and mBERT-SF's figure 7, which pages listed and no command made any more."""
    monkeypatch.chdir(tmp_path)
    paper = load_paper(name, [table], rows=rows)
    for step in paper.steps():
        run_quickly(step, capsys)
    write_report(paper, tmp_path, {})
    page = (tmp_path / f"{paper.file_name}.md").read_text(encoding="utf-8")
    (picture_path,) = re.findall(r"!\[.*principal components\]\((.*)\)", page)
    assert (tmp_path / picture_path).read_bytes().startswith(b"\x89PNG")
    content = report(paper, tmp_path, {})["tables"][table]
    picture = content["picture"]
    assert list(picture) == rows and all(len(signature.split("|")) > 4 for signature in content["signatures"])
    for components in picture.values():
        source = np.array(components["points"]["source"])
        target = np.array(components["points"]["target"])
        assert (len(source) == len(target) == 100) == joined
        assert source.shape[1] == 2 and 0 < components["variance"] <= 1
    assert content["rows"]["as it is"]["variance shown, %"] == [pytest.approx(100 * picture["as it is"]["variance"])]


def test_principal_components_are_those_of_a_singular_value_decomposition() -> None:
    random = np.random.default_rng(0)
    source = random.standard_normal((40, 7)) * [5, 1, 1, 3, 1, 1, 1]
    target = random.standard_normal((30, 7)) + 2
    components = fit_principal_components(source, target)
    states = np.concatenate([source, target])
    centered = states - states.mean(axis=0)
    left_vectors, values, _ = np.linalg.svd(centered, full_matrices=False)
    points = np.concatenate([components.source, components.target])
    assert np.abs(points) == pytest.approx(np.abs(left_vectors[:, :2] * values[:2]))
    assert components.variance == pytest.approx((values[:2] ** 2).sum() / (values**2).sum())
    spread = np.sqrt((centered**2).sum() / len(states))
    assert components.distance == pytest.approx(np.linalg.norm(source.mean(0) - target.mean(0)) / spread)
    again = fit_principal_components(source * 2.0, target * 2.0)  # the same signs
    assert again.source == pytest.approx(2 * components.source) and again.distance == pytest.approx(components.distance)


PAGES = sorted((Path(__file__).parents[2] / "hub_cards" / "reproduce").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_published_pages_come_out_of_their_commands(page: Path) -> None:
    """Four pages named tables and rows that were gone, thirteen an option of `slim` that it does not have, and four
    trained by other settings than the command at their top: the plan of that command is what is printed below it."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    command, *printed = itertools.chain.from_iterable(block.splitlines() for block in blocks)
    paper = planned(command)
    assert printed == [paper.shown(step) for step in paper.steps()]
    # A plan and its page can agree on an option that the command refuses.
    for line in printed:
        if line.startswith("st-xling "):
            parse(line)
        else:
            words = shlex.split(line)
            assert words[:2] == ["python", "-m"] and words[2].startswith("st_xling."), line
            importlib.import_module(words[2]).parser().parse_args(words[3:])
    # A recipe is named by the commands only, and its values could change below a page.
    recipes = ", ".join(f"{name} {fingerprint}" for name, fingerprint in paper.recipes().items())
    assert f"recipes by fingerprint: {recipes}." in text or not recipes
    sections = dict(re.findall(r"^## (.*?: .*?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert [*sections] == [plain(table_heading(name, table.title)) for name, table in paper.tables.items()]
    for section, table in zip(sections.values(), paper.tables.values()):
        ours = section.partition("| difference |")[0].partition("| paper: ")[0]
        labels = re.findall(r"^\| ([^|]+) \|", ours, re.MULTILINE)
        assert labels == [":---", *map(plain, table.cells)]
        columns = re.findall(r"^\|  \| (.*) \|$", ours, re.MULTILINE)[0].split(" | ")
        known_columns = {*itertools.chain.from_iterable(table.cells.values()), *table.entry.get("paper", {})}
        known_columns.update(itertools.chain.from_iterable(table.entry.get("paper", {}).values()))
        assert set(columns) <= known_columns
        assert plain(table.note) in section
        # Bars of values were there, which no command drew any more, with names of rows that were gone.
        assert ("![" in section) == bool(table.entry.get("picture"))


def planned(command: str) -> Paper:
    """What a command of `reproduce` runs, by the precision that it names."""
    options = parse(command)
    changes = dict(change.split("=", 1) for change in options["changes"])
    return load_paper(
        options["paper"],
        options["table"] or (),
        scale=options["scale"],
        model=options["model"],
        precision=options["precision"] or "bf16",
        seeds=[int(seed) for seed in options["seeds"]],
        rows=options["rows"] or (),
        changes=changes,
    )


def test_a_page_fails_if_a_setting_changes() -> None:
    """The comparison above can fail: another number of steps makes other commands, and another name of the page."""
    page = PAGES[0].read_text(encoding="utf-8")
    command = re.findall(r"```bash\n(.*?)\n```", page, re.DOTALL)[0]
    paper = planned(command)
    changed = planned(f"{command} --set 'budget=--max-steps 7'")
    assert paper.file_name != changed.file_name
    steps = {paper.shown(step) for step in paper.steps()}
    trained = [changed.shown(step) for step in changed.steps() if step.trains and step.seed is not None]
    assert trained and not steps.intersection(trained)


@pytest.mark.parametrize("change", ["stpes=1", "steps", "=1", "model=x", "within=x"])
def test_a_setting_that_a_paper_does_not_have_is_named(change: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "xpr", "3", "--set", change]) == 2
    error = capsys.readouterr().err
    name = change.partition("=")[0] or change
    assert repr(name) in error or repr(change) in error, error


@pytest.mark.slow
def test_the_papers_own_setting_reads_the_papers_own_files(
    tmp_path: Path, warm_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """InsuranceQA in English and Chinese, and parallel text for XPI, in their published layouts."""
    monkeypatch.setattr(sys, "executable", warm_python)  # of the steps
    data = tmp_path / "data"
    for part in ("train", "valid", "test"):
        write_v2(data / "insuranceQA" / "V2", part=part)
        write_translation(data / "insuranceqa-corpus-zh", part=part)
    pairs = parallel_phrases("zh", "en", size=64).select_columns(["source", "target"])
    (data / "un").mkdir()
    with gzip.open(data / "un" / "zh-en.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{row['source']}\t{row['target']}\n" for row in pairs)
    texts = [*pairs["source"], *pairs["target"], *ENGLISH, *CHINESE]
    tiny_encoder(texts, vocabulary=300, hidden_size=16, layers=1, max_length=256).save(str(tmp_path / "tiny"))
    rows = ["merged", "XPI + mixed"]
    options: dict[str, Any] = {"scale": "paper", "model": str(tmp_path / "tiny"), "precision": "fp32"}
    content = reproduce(load_paper("xpr", ["3"], rows=rows, **options), tmp_path / "out", data=data, jobs=2)
    assert not content["failed"] and list(content["tables"]["3"]["rows"]) == rows
    # Three questions of the four have a right answer in their pools, of two to four answers.
    for row in content["tables"]["3"]["rows"].values():
        assert row["acc@10"] == [100.0] and 25.0 <= row["MRR"][0] <= 100.0
    assert any("|n:3|" in signature for signature in content["tables"]["3"]["signatures"])
