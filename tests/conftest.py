"""Shared fixtures: no network, one thread, text in several scripts, tiny encoders, and the real data where it is."""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp(prefix="datasets-")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start
# Of other libraries, whose bars a command switches off before it imports them: here they are imported already.
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch

atexit.register(shutil.rmtree, os.environ["HF_DATASETS_CACHE"], ignore_errors=True)

ROOT = Path(__file__).resolve().parents[1]

PAIRS = [
    ("Der Hund schläft unter dem Tisch.", "The dog is sleeping under the table."),
    ("Les enfants mangent des pommes rouges.", "The children are eating red apples."),
    ("لا أعرف أين المفتاح.", "I do not know where the key is."),
    ("แมวดำตัวหนึ่งนั่งอยู่บนหลังคา", "A black cat is sitting on the roof."),
    ("我买了三本旧书。", "I bought three old books."),
    ("Tôi đã gặp cô ấy hôm qua.", "I met her yesterday."),
    ("Mañana iré al mercado 🙂", "Tomorrow I will go to the market 🙂"),
    ("Él cree que la cafe\u0301 está fría.", "He believes that the coffee is cold."),
]


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is imported: each training of transformers has it look through everything."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """As small models want it, most of all where other work waits for the same cores; and as equal bytes need it."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """Real translations in eight languages and five scripts, one with a combining accent, one with an emoji."""
    return list(PAIRS)


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Any]:
    """Builds a small encoder over the shared pairs; without dropout unless asked for."""
    from st_xling.models import tiny_encoder

    def build(
        *,
        vocabulary: int = 300,
        layers: int = 2,
        hidden_size: int = 16,
        heads: int = 2,
        dropout: float = 0.0,
        max_length: int = 24,
        **options: Any,
    ) -> Any:
        model = tiny_encoder(
            [*chain.from_iterable(PAIRS)],
            vocabulary=vocabulary,
            layers=layers,
            hidden_size=hidden_size,
            heads=heads,
            dropout=dropout,
            max_length=max_length,
            **options,
        )
        return model.to("cpu")

    return build


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> Any:
    """One such encoder for all tests of a module."""
    return make_model()


@pytest.fixture(scope="session")
def saved_encoder(make_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder, to be read; a test that writes beside it takes a copy."""
    path = tmp_path_factory.mktemp("models") / "encoder"
    make_model().save_pretrained(str(path))
    return path


@pytest.fixture(scope="session")
def saved_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of a cross-encoder."""
    from tests.models.tiny_cross_encoder import tiny_cross_encoder

    path = tmp_path_factory.mktemp("models") / "cross-encoder"
    tiny_cross_encoder([*chain.from_iterable(PAIRS)], max_length=80).save_pretrained(str(path))
    return path


@pytest.fixture(scope="session")
def features() -> Callable[..., list[dict[str, torch.Tensor]]]:
    """Tokenized columns of the shared pairs, fresh dicts at each call (the encoder writes into them)."""

    def tokenize(model: Any, rows: slice = slice(None), columns: tuple[int, ...] = (0, 1)) -> list[dict[str, Any]]:
        features = []
        for column in columns:
            texts = [pair[column] for pair in PAIRS[rows]]
            features.append(model.preprocess(texts))
        return features

    return tokenize


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data; a test that needs it is skipped where there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ST_XLING_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data: set ST_XLING_DATA to its folder (looked in {folder})")
    return folder


@pytest.fixture(scope="session")
def real_encoder() -> str:
    """The folder of multilingual-e5-small; a test that needs it is skipped where there is none."""
    folder = os.environ.get("ST_XLING_E5", "")
    if not Path(folder).is_dir() or not folder:
        pytest.skip("no multilingual-e5-small: set ST_XLING_E5 to its folder")
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A demo on little text: the folder it wrote, called ``xling-demo``, and its results."""
    from st_xling.demo import DemoSize, run_demo

    folder = tmp_path_factory.mktemp("demo") / "xling-demo"
    size = DemoSize(train=250, test=60, mining=60, gold=30, epochs=2.0)
    return folder, run_demo(folder, size=size)


@pytest.fixture(scope="session")
def warm_python() -> Iterator[str]:
    """The path of a Python that starts at once, next to an ``st-xling`` that does; see :mod:`tests.warm`."""
    from tests.warm import write_programs

    with tempfile.TemporaryDirectory(prefix="warm-") as folder:  # not pytest's: a socket's path is short
        address = f"{folder}/socket"
        command = [sys.executable, "-m", "tests.warm", address]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None and server.stdout.readline() == b"ready\n"
            yield str(write_programs(Path(folder), address))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """What the library has logged since the last call, at INFO and above."""
    caplog.set_level("INFO", logger="st_xling")

    def since() -> str:
        text = "".join(f"{message}\n" for message in caplog.messages)
        caplog.clear()
        return text

    return since
