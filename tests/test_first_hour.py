"""README followed to the letter: every block in its order, in one folder, and whether what came is right.

Once with a tiny encoder and text of the phrasebook, whose translations are known, and once, where ``ST_XLING_E5`` and
``ST_XLING_DATA`` name them, with multilingual-e5-small on news. ``tests/test_examples.py`` runs each line alone.
"""

import io
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases, parallel_phrases
from st_xling.models import tiny_encoder
from tests.commands import command_lines
from tests.example_files import teach, write_example_files
from tests.retrieval_files import lines

README = Path(__file__).resolve().parents[1] / "README.md"
ENCODER = "intfloat/multilingual-e5-small"

# What a reader runs elsewhere: it installs, trains for minutes, or runs these tests.
NOT_HERE = ("pip install", "pytest", "st-xling demo")


class FirstHour:
    """A folder in which a reader follows README.

    Args:
        folder: The folder, with the files that README names.
        gold: Sentences of ``news.de`` with their translations in ``news.en``.

    Attributes:
        printed: Command line or number of a Python block → what it printed, on both streams.
    """

    def __init__(self, folder: Path, gold: set[tuple[str, str]]) -> None:
        self.folder = folder
        self.gold = gold
        self.printed: dict[str, str] = {}
        self.session: dict[str, Any] = {"__name__": "readme"}

    def follow(self) -> None:
        """Run every block of README."""
        for number, (language, block) in enumerate(readme_blocks()):
            if language == "python":
                with captured() as text:
                    exec(compile(block, f"README.md, block {number}", "exec"), self.session)
                self.printed[f"python {number}"] = text.getvalue()
                continue
            for line in command_lines(block):
                if not line.startswith(NOT_HERE):
                    self.run(line)

    def run(self, line: str) -> None:
        with captured() as text:
            status = main(shlex.split(line)[1:])
        assert status == 0, f"{line}\n{text.getvalue()}"
        self.printed[line] = text.getvalue()

    def output_of(self, start: str) -> str:
        """Return what the first command with this beginning printed."""
        return next(text for line, text in self.printed.items() if line.startswith(start))

    def precision_and_recall(self, name: str) -> tuple[float, float]:
        """Compare the pairs of a mined file with the gold."""
        header, *rows = (self.folder / name).read_text(encoding="utf-8").splitlines()
        columns = header.split("\t")
        source = columns.index("source")
        target = columns.index("target")
        cells = [row.split("\t") for row in rows]
        mined = {(row[source], row[target]) for row in cells}
        correct = len(mined & self.gold)
        return correct / len(mined), correct / len(self.gold)


@contextmanager
def captured() -> Iterator[io.StringIO]:
    """Collect what is printed on both streams, in the order in which it was printed."""
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        yield text


def readme_blocks() -> Iterator[tuple[str, str]]:
    """Yield the language and the text of README's blocks of code, in their order."""
    yield from re.findall(r"```(python|bash)\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def with_tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstHour]:
    """README with a tiny encoder under E5's name, on text of the phrasebook."""
    folder = tmp_path_factory.mktemp("first-hour")
    write_example_files(folder)
    shutil.rmtree(folder / ENCODER)
    taught_encoder().save_pretrained(str(folder / ENCODER))
    news = mining_phrases("de", "en", split="test", size=300, gold=120)
    lines(folder / "news.de", news.source)
    lines(folder / "news.en", news.target)
    gold = {(news.source[source], news.target[target]) for source, target in news.gold}
    yield from followed(folder, gold)


def taught_encoder() -> SentenceTransformer:
    """Return an encoder that finds most translations of the phrasebook, as E5 does those of news."""
    pairs = []
    for target, size in (("en", 3000), ("fr", 1000)):
        rows = parallel_phrases("de", target, size=size)
        pairs += zip(rows["source"], rows["target"])
    Random(0).shuffle(pairs)
    texts = [*chain.from_iterable(pairs)]
    encoder = tiny_encoder(texts, vocabulary=2000, hidden_size=96, heads=4, dropout=0.0)
    teach(encoder, pairs, steps=300, batch_size=64)
    return encoder


@pytest.fixture(scope="module")
def with_e5(tmp_path_factory: pytest.TempPathFactory, real_encoder: str, real_data: Path) -> Iterator[FirstHour]:
    """README with the real encoder on news, of which one sentence in forty has a translation."""
    folder = tmp_path_factory.mktemp("first-hour-e5")
    write_example_files(folder)
    shutil.rmtree(folder / ENCODER)
    (folder / ENCODER).symlink_to(real_encoder)
    shutil.rmtree(folder / "tatoeba")
    (folder / "tatoeba").mkdir()
    (folder / "tatoeba" / "v1").symlink_to(real_data / "tatoeba")
    corpus = real_data / "mining" / "de-en" / "de-en.test"
    texts = {}  # by sentence id
    for language in ("de", "en"):
        rows = read_rows(f"{corpus}.{language}")
        texts |= dict(rows)
        lines(folder / f"news.{language}", [text for _, text in rows])
    gold = {(texts[source], texts[target]) for source, target in read_rows(f"{corpus}.gold")}
    yield from followed(folder, gold)


def read_rows(path: str) -> list[list[str]]:
    """Return the tab-separated cells of each line of a file."""
    return [line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines()]


def followed(folder: Path, gold: set[tuple[str, str]]) -> Iterator[FirstHour]:
    hour = FirstHour(folder, gold)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("huggingface_hub.constants.HF_HOME", str(folder.with_name(f"{folder.name}-home")))
        hour.follow()
    for line, text in hour.printed.items():
        print(f"$ {line}\n{text}")
    yield hour


@pytest.fixture(params=["tiny", "e5"])
def hour(request: pytest.FixtureRequest) -> FirstHour:
    """README's first hour, with either encoder."""
    return request.getfixturevalue(f"with_{request.param}")


@pytest.mark.slow
def test_most_of_the_mined_pairs_are_right(hour: FirstHour) -> None:
    """README's own ``mine`` kept 254 pairs of which a third were translations, and the next command trained on them."""
    precision, recall = hour.precision_and_recall("mined.tsv")
    print(f"mined.tsv: precision {precision:.3f}, recall {recall:.3f}")
    assert precision > 0.5
    assert recall > 0.5


@pytest.mark.slow
def test_the_threshold_and_the_scores_are_the_last_that_is_read(hour: FirstHour) -> None:
    """That all pairs had been kept was said once, on stderr, before minutes of encoding."""
    last = hour.output_of("st-xling mine").splitlines()[-20:]
    assert any("threshold" in line for line in last)
    assert any("--calibrate" in line for line in last)


@pytest.mark.slow
def test_no_score_of_development_pairs_stands_alone(hour: FirstHour) -> None:
    """A training on 248 pairs reported "best development accuracy 100.0 %": of six pairs, after one step."""
    trainings = [text for line, text in hour.printed.items() if line.startswith("st-xling train")]
    assert len(trainings) == 2
    for text in trainings:
        for line in text.splitlines():
            if "development" in line and "%" in line:
                assert re.search(r"of [\d,]+ pairs", line), line


@pytest.mark.slow
def test_mined_pairs_are_not_called_unchecked_in_training(hour: FirstHour) -> None:
    """``train`` warns of pairs that were mined without a threshold; those of README's own command have one."""
    assert "without a threshold" not in hour.output_of("st-xling train tr")


@pytest.mark.slow
def test_the_first_block_finds_the_pairs_that_are_printed_below_it(with_e5: FirstHour) -> None:
    """Readers compare what they see with what is printed there."""
    readme = README.read_text(encoding="utf-8")
    expected = re.search(r"```text\n(1\.\d\d  .*?)```", readme, flags=re.DOTALL)
    assert expected is not None
    printed = next(iter(with_e5.printed.values()))
    assert [line[4:] for line in expected[1].splitlines()] == [line[4:] for line in printed.splitlines()[-3:]]
