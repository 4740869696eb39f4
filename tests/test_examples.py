"""The commands of README, guide and every ``--help``, run as they can be pasted, on small files of those names."""

import io
import re
import shlex
import shutil
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
SHORTER = {"train": ["--max-steps", "2"], "--whiten": ["--dim", "12"]}

# Command → what its stdout says at least, if not a signature.
SIGNATURE = r"(?m)^\w+\|.*\|st-xling:\S+$"
SAYS = {
    "train": r"steps in .* the model (of layer \S+ )?is in my-",
    "card": r"^the card is my-encoder/README.md\n",
    "search": r"\bHanoi\b",
    "pairs": r"^scores of \d+ pairs, best first:\n",
    "reproduce": r"(?m)^Table 1: ",
    "push": r"(?m)^would go to user/\S+: \d+ files|^https://huggingface.co/\S+/commit/\w+$",
}


@dataclass(frozen=True)
class Example:
    """A command line, and where it stands."""

    place: str
    line: str

    def __str__(self) -> str:
        return f"{self.place}: {self.line}"

    @property
    def words(self) -> list[str]:
        """Without the program's name, and without a pipe behind it, which is the shell's."""
        return shlex.split(re.split(r" [|>] ", self.line)[0])[1:]

    def after(self, *flags: str) -> list[str]:
        """What follows these flags."""
        return [word for flag, word in zip(self.words, self.words[1:]) if flag in flags]


def page_lines(text: str) -> list[str]:
    """Those of a page's blocks, and within its text."""
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    inline = re.findall(r"(?<!`)`(st-xling [^`\s]+ [^`]*)`", text)
    return [line for block in [*blocks, *inline] for line in command_lines(block)]


def excepted(line: str) -> str | None:
    return next((start for start in EXCEPTED if line.startswith(start)), None)


def shorter(words: list[str]) -> list[str]:
    """Return the words of a command that ends soon."""
    if {"--print", "--print-python", "--list"} & set(words):  # nothing is trained; --max-steps may be refused
        return words
    if "--epochs" in words:  # which --max-steps excludes
        start = words.index("--epochs")
        words = words[:start] + words[start + 2 :]
    added = [word for key, more in SHORTER.items() if key in words for word in more]
    return [*words, *added]


ALL = [Example(page, line) for page, text in PAGES.items() for line in page_lines(text)]
ALL += [Example(f"{name} --help", line) for name, command in COMMANDS.items() for line in examples(command.help)]
PIPELINE_STEPS = [Example("st-xling --help", line) for line in examples()]
# Each line once.
EXAMPLES = [*{one.line: one for one in ALL if not excepted(one.line) and "--help" not in one.line}.values()]


class Workshop:
    """A folder of the files that examples name, where each line is run once.

    What several examples need, such as ``my-encoder``, is made by the first of the examples whose ``--out`` it is; each
    of the others runs in a folder of its own, with copies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "files", folder / "home"
        self.folder.mkdir()
        write_example_files(self.folder)
        self.given = {path.name for path in self.folder.iterdir()}
        self.makers: dict[str, Example] = {}
        for example in EXAMPLES:
            for name in example.after("--out", "--json"):
                self.makers.setdefault(name, example)
        self.done: dict[str, tuple[Path, str]] = {}
        self.begun: set[str] = set()

    def needs(self, example: Example) -> list[str]:
        """What other examples make and this one takes."""
        own = {*self.given, *example.after("--out", "--json")}
        named = {word.rpartition("=")[2] for word in example.words} | {*example.words}  # de-en=mined.tsv
        return [name for name in self.makers if name in named - own]

    def run(self, example: Example) -> tuple[Path, str]:
        """The folder it ran in, and its stdout."""
        if example.line not in self.done:
            assert example.line not in self.begun, f"it failed before: {example}"
            self.begun.add(example.line)
            needed = self.needs(example)
            for name in needed:
                self.run(self.makers[name])
            shared = [name for name in example.after("--out") if self.makers[name].line == example.line]
            own = not shared or bool(set(shared) & self.given)
            folder = self.lay_out(example, needed) if own else self.folder
            self.done[example.line] = folder, self.in_process(folder, shorter(example.words))
        return self.done[example.line]

    def lay_out(self, example: Example, needed: list[str]) -> Path:
        """A folder with the files, and copies of what other examples made."""
        folder = self.folder.with_name(f"example-{len(self.begun)}")
        folder.mkdir()
        for name in self.given - set(example.after("--out")):
            (folder / name).symlink_to(self.folder / name)
        for name in needed:
            copy = shutil.copytree if (self.folder / name).is_dir() else shutil.copyfile
            copy(self.folder / name, folder / name)
        return folder

    def in_process(self, folder: Path, words: list[str]) -> str:
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout):
            patch.chdir(folder)
            patch.setattr("huggingface_hub.constants.HF_HOME", str(self.home))  # beside it, vectors are cached
            for name in ("TOKENIZERS_PARALLELISM", "TRANSFORMERS_VERBOSITY", "TRANSFORMERS_NO_ADVISORY_WARNINGS"):
                patch.setenv(name, "true" if name == "TOKENIZERS_PARALLELISM" else "error")
            assert main(words) == 0, f"{shlex.join(words)} failed"
        stdout.flush()
        return stdout.buffer.getvalue().decode("utf-8")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("examples"))


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
    """Files are there, and stdout says what the command's should; with ``--out -`` it is the data themselves."""
    for name in example.after("--out", "--json", "--rejects", "--runs"):
        path = folder / name
        made = any(path.iterdir()) if path.is_dir() else path.is_file()
        assert made or name == "-" or "--dry-run" in example.words, f"{name} is missing"
    if example.words[0] == "train" and "--out" in example.words:
        assert (folder / example.after("--out")[0] / "README.md").is_file()
    if "-" in example.after("--out"):
        assert all(len(line.split("\t")) > 1 or line.startswith("{") for line in stdout.splitlines()) and stdout
    elif {"--dry-run", "--list", "--print", "--print-python"} & {*example.words}:
        assert stdout.strip()
    else:
        assert re.search(SAYS.get(example.words[0], SIGNATURE), stdout), stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_explains_its_options(name: str) -> None:
    lines = examples(COMMANDS[name].help)
    assert any(line == name or line.startswith(f"{name} ") for line in lines)
    assert [each.name for each in COMMANDS[name].params if not each.help and each.name != "help"] == []


def test_exceptions_are_few_and_needed() -> None:
    lines = [example.line for example in ALL]
    assert all(line.startswith("st-xling ") or excepted(line) for line in lines)
    assert {excepted(line) for line in lines} - {None} == set(EXCEPTED)
    assert len(EXAMPLES) > 40


@pytest.mark.slow
def test_the_steps_of_the_help_follow_one_another(tmp_path: Path) -> None:
    """The examples of ``st-xling --help``, in one folder."""
    workshop = Workshop(tmp_path)
    steps = [example for example in PIPELINE_STEPS if not excepted(example.line)]
    for example in steps:
        check(example, workshop.folder, workshop.in_process(workshop.folder, shorter(example.words)))
    done = dict.fromkeys(example.words[0] for example in steps)
    assert list(done) == ["train", "evaluate", "mine", "rerank", "card", "push"]


def test_every_example_parses() -> None:
    for example in EXAMPLES:
        assert parse(example.words), example
