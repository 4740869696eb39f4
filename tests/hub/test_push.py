"""What is pushed, as one commit, and what strangers then have; what goes wrong on the way, and a second try."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from tqdm import tqdm

from st_xling import __version__
from st_xling.data.phrasebook import parallel_phrases
from st_xling.hub import published_files
from tests.hub.hub_server import CUT, TOKEN, Hub
from tests.hub.publishing import change, contents

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

SENTENCES = ["Der Hund schläft.", "我买了三本旧书。", "The dog is sleeping 🙂", "لا أعرف أين المفتاح."]

# A process that has sentence-transformers, and neither us nor peft.
STRANGER = """
import json, sys

sys.modules["st_xling"] = sys.modules["peft"] = None
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

torch.set_num_threads(1)
kinds, sentences = json.loads(sys.argv[1]), json.loads(sys.argv[2])
outputs = {}
for kind, name in kinds.items():
    if kind == "cross-encoder":
        outputs[kind] = CrossEncoder(name, device="cpu").predict([[s, sentences[0]] for s in sentences]).tolist()
    else:
        model = SentenceTransformer(name, device="cpu")
        outputs[kind] = [model.encode_query(sentences).tolist(), model.encode_document(sentences).tolist()]
assert [name for name in sys.modules if name.startswith("st_xling")] == ["st_xling"]
print(json.dumps(outputs))
"""


def outputs(kind: str, folder: Path) -> Any:
    if kind == "cross-encoder":
        return CrossEncoder(str(folder), device="cpu").predict([(text, SENTENCES[0]) for text in SENTENCES])
    model = SentenceTransformer(str(folder), device="cpu")
    return [model.encode_query(SENTENCES), model.encode_document(SENTENCES)]


@pytest.mark.slow
def test_every_kind_of_model_comes_back_as_it_was(models: Path, hub: Hub, client: Run, tmp_path: Path) -> None:
    kinds = ("encoder", "separate", "cross-encoder")
    for kind in kinds:
        done = client("push", models / kind, f"tester/{kind}")
        assert done.status == 0, done.stderr
        repo = hub.repo(f"tester/{kind}")
        files = hub.files(f"tester/{kind}")
        titles = ["by hand", f"Push {kind} with st-xling {__version__}"]
        assert [title for title, _ in repo.commits.values()] == titles
        assert done.stdout == f"https://huggingface.co/tester/{kind}/commit/{repo.head}\n"
        del files[".gitattributes"]
        assert files == {path: (models / kind / path).read_bytes() for path in published_files(models / kind)}
        assert {"card.json", "results.json", "training/run.json", "training/log.jsonl"} <= files.keys()
        for path, content in files.items():
            write(tmp_path / kind / path, content)
    words = [json.dumps({kind: str(tmp_path / kind) for kind in kinds}), json.dumps(SENTENCES)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    pulled = subprocess.run([sys.executable, "-I", "-c", STRANGER, *words], env=environment, capture_output=True)
    assert pulled.returncode == 0, pulled.stderr
    for kind, vectors in json.loads(pulled.stdout).items():
        assert np.allclose(vectors, outputs(kind, models / kind), atol=1e-6, rtol=0), kind


def test_a_private_model_and_no_secret_anywhere(my_encoder: Path, hub: Hub, client: Run, tmp_path: Path) -> None:
    done = client("push", my_encoder, "tester/mine", "--private")
    assert done.status == 0, done.stderr
    files = hub.files("tester/mine")
    assert hub.repo("tester/mine").private
    assert {"README.md", "mining.json", "pictures/cosines.png", "results.json", "card.json"} <= files.keys()
    assert "tester/mine" in files["README.md"].decode() and b"not for others" not in b"".join(files.values())
    written = [*contents(tmp_path).values(), *files.values()]
    assert TOKEN not in done.stdout + done.stderr and TOKEN.encode() not in b"".join(written)


def test_a_dry_run_asks_nobody_and_changes_nothing(my_encoder: Path, hub: Hub, client: Run) -> None:
    (my_encoder / "notes.txt").write_text("mine")
    before = contents(my_encoder)
    done = client("push", my_encoder, "tester/new", "--dry-run")
    assert done.status == 0, done.stderr
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert rows[0][0] == "README.md"
    assert "would go to tester/new: " in done.stdout.splitlines()[-1]
    assert "not published, since not part of a model: notes.txt" in done.stderr
    assert hub.requests == [] and contents(my_encoder) == before
    assert client("push", my_encoder, "tester/new").status == 0
    assert {row[0] for row in rows[:-1]} == hub.files("tester/new").keys() - {".gitattributes"}
    assert rows[0][1] == tqdm.format_sizeof(len(hub.files("tester/new")["README.md"]), "B")


@pytest.mark.slow
def test_no_published_file_names_a_place_on_this_machine(hub: Hub, client: Run, tmp_path: Path) -> None:
    """Of a run on files, evaluated on files, and cut."""
    run = tmp_path / "a run"
    small = tmp_path / "small"
    data = tmp_path / "my data" / "pairs.tsv"
    rows = [f"{row['source']}\t{row['target']}" for row in parallel_phrases("de", "en", size=60)]
    write(data, "\n".join(rows))
    write(data.with_name("few.tsv"), "\n".join(rows[:6]))
    tiny = "--model tiny --tiny vocabulary=400 --tiny hidden_size=16 --tiny layers=1 --batch-size 8 --max-steps 2"
    for words in (
        ["train", "tr", "--data", f"de-en={data}", "--check-leak", f"de-en={data}", *tiny.split(), "--out", run],
        ["evaluate", "precision", run, "--data", f"de-en={data}", "--keep"],
        ["slim", run, "--languages", "de,en", "--data", f"de-en={data.with_name('few.tsv')}", "--out", small],
    ):
        done = client(*words)
        assert done.status == 0, done.stderr
    assert str(tmp_path) in (run / "training" / "run.json").read_text(encoding="utf-8")
    for folder in (run, small):
        assert client("push", folder, f"tester/{folder.name.removeprefix('a ')}").status == 0
    assert len(hub.repos) == 2
    for repo in hub.repos:
        kind, name = repo.split("/", 1)
        for path, content in hub.files(name, kind).items():
            for folder_name in (str(tmp_path), str(Path.home()) + "/", "my data"):
                assert folder_name.encode() not in content, (name, path)
    card = hub.files("tester/run")["README.md"].decode()
    record = hub.files("tester/run")["training/run.json"].decode()
    command = "st-xling train tr --data de-en=pairs.tsv --check-leak de-en=pairs.tsv --model tiny"
    assert command in card and command in record and "<code>de-en=pairs.tsv</code>" in card


def test_old_files_of_the_model_go_and_what_others_put_there_stays(my_encoder: Path, hub: Hub, client: Run) -> None:
    first = client("push", my_encoder, "tester/mine")
    again = client("push", my_encoder, "tester/mine")
    assert (again.status, again.stdout) == (0, first.stdout)  # no empty commit
    theirs = {"LICENSE.txt": b"by hand", "onnx/model.onnx": b"converted"}
    hub.put("tester/mine", {**theirs, "model-00001-of-00002.safetensors": b"of a larger one"})
    (my_encoder / "pictures" / "cosines.png").rename(my_encoder / "pictures" / "another.png")
    commits = len(hub.repo("tester/mine").commits)
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    files = hub.files("tester/mine")
    assert "pictures/another.png" in files and theirs.items() <= files.items()
    assert not {"pictures/cosines.png", "model-00001-of-00002.safetensors"} & files.keys()
    assert len(hub.repo("tester/mine").commits) == commits + 1
    assert "tester/mine is public" in client("push", my_encoder, "tester/mine", "--private").error
    assert len(hub.repo("tester/mine").commits) == commits + 1


def test_pictures_of_a_repository_that_is_not_ours_stay(my_encoder: Path, hub: Hub, client: Run) -> None:
    """The first push into somebody's own repository deleted all pictures of it; only weights make way for ours."""
    theirs = {"pictures/old.png": b"old", "2_Dense/config.json": b"{}", "notes.md": b"by hand"}
    hub.put("tester/theirs", {**theirs, "README.md": b"# Theirs", "model-00001-of-00002.safetensors": b"old"})
    done = client("push", my_encoder, "tester/theirs")
    assert done.status == 0, done.stderr
    files = hub.files("tester/theirs")
    assert theirs.items() <= files.items() and "pictures/cosines.png" in files
    assert "model-00001-of-00002.safetensors" not in files


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(content)


def link(path: Path) -> None:
    """Move a file or folder out of the model, and leave a link to it."""
    elsewhere = path.parent.with_name(f"{path.parent.name}-elsewhere")
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


# What spoils the folder, and what is said of it.
SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "unfinished": (lambda at: change(at / "training" / "run.json", finished=False), "has not ended"),
    "no model": (lambda at: (at / "model.safetensors").unlink(), "model.safetensors"),
    "code": (lambda at: write(at / "modules.json", '[{"path": "", "type": "mine.Head"}]'), "mine.Head"),
    # Others could load such a model with trust_remote_code only, and its code is not even published with it.
    "code of transformers": (lambda at: change(at / "config.json", auto_map={"AutoModel": "mine.Model"}), "mine.Model"),
    "code of a part": (
        lambda at: change(at / "config.json", text_config={"auto_map": {"AutoConfig": "user/repo--mine.Config"}}),
        "user/repo--mine.Config",
    ),
    "code of a tokenizer": (
        lambda at: change(at / "tokenizer_config.json", auto_map={"AutoTokenizer": ["mine.Slow", None]}),
        "tokenizer_config.json needs the code of auto_map",
    ),
    "a pipeline": (lambda at: change(at / "config.json", custom_pipelines={"x": {"impl": "mine.X"}}), "mine.X"),
    "a library for adapters": (
        lambda at: write(at / "adapter_config.json", '{"auto_mapping": {"parent_library": "mine.models"}}'),
        "mine.models",
    ),
    "adapters of a folder": (
        lambda at: write(at / "adapter_config.json", '{"base_model_name_or_path": "./base"}'),
        "./base: merge them",
    ),
    "a linked module": (lambda at: link(at / "1_Pooling"), "lacks the module 1_Pooling"),
    "a linked file": (lambda at: link(at / "results.json"), "results.json link to files elsewhere"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_what_is_not_published(fault: str, my_encoder: Path, hub: Hub, client: Run) -> None:
    spoil, message = SPOILT[fault]
    spoil(my_encoder)
    assert message in client("push", my_encoder, "tester/mine").error
    assert hub.requests == []


def test_a_card_of_others_is_published_as_it_is(my_encoder: Path, hub: Hub, client: Run) -> None:
    for trace in ("card.json", "training/run.json"):
        (my_encoder / trace).unlink()
    (my_encoder / "README.md").write_text("my words", encoding="utf-8")
    assert client("push", my_encoder, "tester/words").status == 0
    assert (my_encoder / "README.md").read_bytes() == hub.files("tester/words")["README.md"] == b"my words"


def test_what_files_are(my_encoder: Path) -> None:
    weights = load_file(my_encoder / "model.safetensors")
    for number, keys in enumerate((list(weights)[:3], list(weights)[3:]), start=1):
        save_file({key: weights[key] for key in keys}, my_encoder / f"model-0000{number}-of-00002.safetensors")
    write(my_encoder / "model.safetensors.index.json", "{}")
    write(my_encoder / "sentencepiece.bpe.model", b"\0")
    write(my_encoder / "query_1_Pooling" / "config.json", "{}")
    (my_encoder / "blob").write_text("{}")
    (my_encoder / "special_tokens_map.json").symlink_to(my_encoder / "blob")
    files = published_files(my_encoder)
    named = {"model-00002-of-00002.safetensors", "sentencepiece.bpe.model", "pictures/cosines.png"}
    assert named | {"1_Pooling/config.json", "query_1_Pooling/config.json"} <= set(files)
    assert files["special_tokens_map.json"] == 2 and "blob" not in files
    assert next(iter(files)) == "README.md"
    assert not any(path.startswith("training/checkpoint") or path.endswith(".csv") for path in files)


def test_a_failed_push_changes_nothing(my_encoder: Path, hub: Hub, client: Run) -> None:
    before = contents(my_encoder)
    for route, fault, reason in (("create", 401, "401"), ("commit", 429, "429"), ("commit", CUT, "disconnected")):
        hub.faults = {route: fault}
        error = client("push", my_encoder, "tester/mine").error
        assert reason in error and "hf auth login" in error and TOKEN not in error, error
        assert contents(my_encoder) == before
    assert hub.files("tester/mine").keys() == {".gitattributes"}
    hub.faults = {}
    assert client("push", my_encoder, "tester/mine").status == 0
    assert "model.safetensors" in hub.files("tester/mine")


def test_a_time_limit(my_encoder: Path, hub: Hub, client: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    hub.faults = {"tree": ended}
    monkeypatch.setattr("st_xling.hub.push._PATIENCE_S", 1.0)
    monkeypatch.setattr("st_xling.hub.push._SLOWEST_BYTES_PER_S", 1e9)
    assert "failed: no answer within 1 s" in client("push", my_encoder, "tester/mine").error
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "push":
            thread.join()


def test_offline_is_named(my_encoder: Path, client: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """``HF_HUB_OFFLINE=1``, as on a cluster, is why nothing can be pushed: the message names it."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert "HF_HUB_OFFLINE" in client("push", my_encoder, "tester/mine").error  # these tests are offline themselves


@pytest.mark.parametrize(
    ("token", "repo", "reason"),
    [
        ("", "tester/mine", "no token found"),
        ("hf_" + "WrongWrongWrongWrongWrongWrong1234", "tester/mine", "Invalid username or password"),
        (TOKEN, "mine", "user/name: got 'mine'"),
    ],
)
def test_who_may_not(
    token: str, repo: str, reason: str, my_encoder: Path, hub: Hub, client: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    done = client("push", my_encoder, repo)
    assert reason in done.error and (not token or token not in done.stderr)
    assert hub.repos == {} and (token != "" or hub.requests == [])
