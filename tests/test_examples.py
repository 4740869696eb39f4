"""The commands of README, guide and every ``--help``, run as they can be pasted, on small files of those names."""

import io
import re
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from st_xling.cli import main
from tests.commands import COMMANDS, command_lines, examples, parse
from tests.example_files import write_example_files
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "st_xling" / "docs"
PAGES = {
    page.name: page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", DOCS / "guide.md", *sorted((DOCS / "guide").glob("*.md")))
}

# What a line begins with → why it is not run here.
EXCEPTED = {
    "ST_XLING_DATA": "it mines with an encoder of real size; tests/test_benchmark.py runs it on less text",
    "pip install": "it would install what these tests run",
    "pytest": "it would run these tests",
    "st-xling demo": "it trains for minutes; tests/test_demo.py runs it on less text",
    "st-xling reproduce xpr": "it trains for hours",
}

# The only words added: two steps instead of a recipe's hundreds; the encoder of these tests has 32 dimensions.
SHORTER = {"train": ["--max-steps", "2"], "add-language": ["--max-steps", "2"], "--whiten": ["--dim", "12"]}

# Command → what its stdout says at least, if not a signature.
SIGNATURE = r"(?m)^\w+\|.*\|st-xling:\S+$"
SAYS = {
    "train": r"steps in .* the model (of layer \S+ )?is in my-",
    "info": r"^versions\n  st-xling ",
    "card": r"^the card is my-encoder/README.md\n",
    "search": r"\bHanoi\b",
    "pairs": r"^scores of \d+ pairs, best first:\n",
    "reproduce": r"(?m)^Table 1: ",
    "push": r"(?m)^would go to user/\S+: \d+ files|^https://huggingface.co/\S+/commit/\w+$",
}


@dataclass(frozen=True)
class Example:
    """A command line, and the page or help that shows it."""

    origin: str
    line: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.line}"

    @property
    def words(self) -> list[str]:
        """Without the program's name, and without a pipe behind it, which is the shell's."""
        return shlex.split(re.split(r" [|>] ", self.line)[0])[1:]

    def after(self, *flags: str) -> list[str]:
        """What follows these flags."""
        return [word for flag, word in zip(self.words, self.words[1:]) if flag in flags]


def page_lines(text: str) -> list[str]:
    """Return the command lines of a page: those in blocks, then those within its text."""
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    inline = re.findall(r"(?<!`)`(st-xling [^`\s]+ [^`]*)`", text)
    lines: list[str] = []
    for block in [*blocks, *inline]:
        lines += command_lines(block)
    return lines


def excepted(line: str) -> str | None:
    return next((start for start in EXCEPTED if line.startswith(start)), None)


def shorter(words: list[str]) -> list[str]:
    """Return the words of a command that ends soon."""
    if {"--print", "--print-python", "--list", "--diagnose"} & set(
        words
    ):  # nothing is trained; --max-steps may be refused
        return words
    if "--epochs" in words:  # which --max-steps excludes
        start = words.index("--epochs")
        words = words[:start] + words[start + 2 :]
    added: list[str] = []
    for word, options in SHORTER.items():
        if word in words:
            added += options
    return [*words, *added]


ALL: list[Example] = []
for page, text in PAGES.items():
    ALL += [Example(page, line) for line in page_lines(text)]
for name, command in COMMANDS.items():
    ALL += [Example(f"{name} --help", line) for line in examples(command.help)]
PIPELINE_STEPS = [Example("st-xling --help", line) for line in examples()]
# A line that several pages show is run once.
RUNNABLE = [example for example in ALL if not excepted(example.line) and "--help" not in example.line]
EXAMPLES = list({example.line: example for example in RUNNABLE}.values())


class Workshop:
    """A folder of the files that examples name, where each line is run once.

    What several examples need, such as ``my-encoder``, is made by the first of the examples whose ``--out`` it is; each
    of the others runs in a folder of its own, with copies.
    """

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder / "files"
        self.python = python
        self.home = folder / "home"
        self.folder.mkdir()
        write_example_files(self.folder)
        self.inputs = {path.name for path in self.folder.iterdir()}
        self.makers: dict[str, Example] = {}
        for example in EXAMPLES:
            for name in example.after("--out", "--json"):
                self.makers.setdefault(name, example)
        self.done: dict[str, tuple[Path, str]] = {}
        self.begun: set[str] = set()

    def needs(self, example: Example) -> list[str]:
        """Return the files that this example reads and other examples write."""
        words = set(example.words)
        words |= {word.rpartition("=")[2] for word in example.words}  # de-en=mined.tsv
        needed = words - self.inputs - set(example.after("--out", "--json"))
        needed |= {word.partition("/")[0] for word in needed}  # with-swahili/training/stages/start
        return [name for name in self.makers if name in needed]

    def run(self, example: Example) -> tuple[Path, str]:
        """The folder it ran in, and its stdout."""
        if example.line not in self.done:
            assert example.line not in self.begun, f"it failed before: {example}"
            self.begun.add(example.line)
            needed = self.needs(example)
            for name in needed:
                self.run(self.makers[name])
            # What it writes is shared with the examples that need it, unless it replaces an input of all.
            shared = {name for name in example.after("--out") if self.makers[name].line == example.line}
            if shared and not shared & self.inputs:
                folder = self.folder
            else:
                folder = self.lay_out(example, needed)
            self.done[example.line] = folder, self.in_process(folder, shorter(example.words))
        return self.done[example.line]

    def lay_out(self, example: Example, needed: list[str]) -> Path:
        """A folder with the files, and copies of what other examples made."""
        folder = self.folder.with_name(f"example-{len(self.begun)}")
        folder.mkdir()
        for name in self.inputs - set(example.after("--out")):
            (folder / name).symlink_to(self.folder / name)
        for name in needed:
            copy = shutil.copytree if (self.folder / name).is_dir() else shutil.copyfile
            copy(self.folder / name, folder / name)
        return folder

    def in_process(self, folder: Path, words: list[str]) -> str:
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout):
            patch.chdir(folder)
            patch.setattr(sys, "executable", self.python)  # of the steps of `reproduce`
            patch.setattr("huggingface_hub.constants.HF_HOME", str(self.home))  # beside it, vectors are cached
            patch.setenv("TOKENIZERS_PARALLELISM", "true")
            patch.setenv("TRANSFORMERS_VERBOSITY", "error")
            patch.setenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", "error")
            assert main(words) == 0, f"{shlex.join(words)} failed"
        stdout.flush()
        return stdout.buffer.getvalue().decode("utf-8")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("examples"), warm_python)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_runs(example: Example, workshop: Workshop, request: pytest.FixtureRequest) -> None:
    hub: Hub | None = None
    if "push" in example.words and "--dry-run" not in example.words:
        hub = request.getfixturevalue("hub")
    folder, stdout = workshop.run(example)
    assert hub is None or hub.repos
    check(example, folder, stdout)


def check(example: Example, folder: Path, stdout: str) -> None:
    """Check that files are there, and that stdout says what the command's should; with ``--out -`` it is the data."""
    for name in example.after("--out", "--json", "--rejects", "--runs"):
        path = folder / name
        written = any(path.iterdir()) if path.is_dir() else path.is_file()
        assert written or name == "-" or "--dry-run" in example.words, f"{name} is missing"
    if example.words[0] == "train" and "--out" in example.words:
        assert (folder / example.after("--out")[0] / "README.md").is_file()
    if "-" in example.after("--out"):
        assert stdout
        assert all("\t" in line or line.startswith("{") for line in stdout.splitlines())
    elif {"--dry-run", "--list", "--print", "--print-python"} & {*example.words}:
        assert stdout.strip()
    else:
        assert re.search(SAYS.get(example.words[0], SIGNATURE), stdout), stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_explains_its_options(name: str) -> None:
    lines = examples(COMMANDS[name].help)
    assert any(line == name or line.startswith(f"{name} ") for line in lines)
    assert [option.name for option in COMMANDS[name].params if not option.help and option.name != "help"] == []


def test_exceptions_are_few_and_needed() -> None:
    lines = [example.line for example in ALL]
    assert all(line.startswith("st-xling ") or excepted(line) for line in lines)
    assert {excepted(line) for line in lines} - {None} == set(EXCEPTED)
    assert len(EXAMPLES) > 40


@pytest.mark.slow
def test_the_steps_of_the_help_follow_one_another(tmp_path: Path) -> None:
    """The examples of ``st-xling --help``, in one folder."""
    workshop = Workshop(tmp_path, sys.executable)
    steps = [example for example in PIPELINE_STEPS if not excepted(example.line)]
    for example in steps:
        check(example, workshop.folder, workshop.in_process(workshop.folder, shorter(example.words)))
    done = dict.fromkeys(example.words[0] for example in steps)
    assert list(done) == ["train", "evaluate", "mine", "rerank", "card", "push"]


def test_every_example_parses() -> None:
    for example in EXAMPLES:
        assert parse(example.words), example
