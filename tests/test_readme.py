"""The Python of README and guide runs as printed; links lead somewhere."""

import doctest
import importlib
import logging
import re
from pathlib import Path

import pytest

import st_xling

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "st_xling" / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
BLOCKS = {page: re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCKS[page]], ids=lambda page: page.stem)
def test_python_of_a_page_runs(page, demo, monkeypatch, capsys, caplog, tmp_path):
    """Block by block in one session; the ready model of the Hub is the demo's here."""
    folder, _ = demo
    caplog.set_level(logging.WARNING, logger="st_xling")  # a page shows how to log more: not in the tests after it
    (tmp_path / folder.name).symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    session = {"__name__": "page"}
    for block in BLOCKS[page]:
        exec(compile(block.replace("intfloat/multilingual-e5-small", folder.name), page.name, "exec"), session)
    capsys.readouterr()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    """Within the project: to a file, and a heading of it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name} links to {link}"
        headings = re.findall(r"(?m)^#+ (.*)$", target.read_text(encoding="utf-8")) if anchor else []
        anchors = {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}
        assert not anchor or anchor in anchors, link


def test_commands_of_results_parse():
    """Other commands are run (``test_examples.py``); those of results take hours."""
    from tests.commands import command_lines, parse

    text = (DOCS / "results.md").read_text(encoding="utf-8")
    commands: list[str] = []
    for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
        commands += [line for line in command_lines(block) if line.startswith("st-xling ")]
    assert len(commands) > 10
    for command in commands:
        parse(command)


def test_commands_fit_their_page():
    """A reader copies the whole command: a line of more than 72 characters is cut on the site and on a terminal."""
    too_long: list[str] = []
    for page in PAGES:
        for block in re.findall(r"```(?:bash|sh)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            too_long += [f"{page.name}: {line}" for line in block.splitlines() if len(line) > 72]
    assert too_long == []


def test_steps_are_lists():
    """The six steps of add-language had run together into one paragraph when its lines were wrapped."""
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert re.findall(r"\S (\d\. \*\*.{10})", prose) == [], page
    assert re.findall(r"\S (\d\. \*\*.{10})", "no pieces. 2. **Start.** The vector") == ["2. **Start.** T"]


def test_tables_can_be_read():
    """No cell is longer than 100 characters, and results have at most six columns."""
    for page in DOCS.rglob("*.md"):
        for line in re.findall(r"(?m)^\|.*\|$", page.read_text(encoding="utf-8")):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            assert max(map(len, cells)) <= 100, line
            assert page.stem != "results" or len(cells) <= 6, line


FILES = [path for path in Path(st_xling.__file__).parent.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(README.parent).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    globs = {**vars(module), "torch": importlib.import_module("torch")}
    result = doctest.testmod(module, extraglobs=globs, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not result.failed
