"""What is pushed, as one commit, and what strangers then have; what goes wrong on the way, and a second try."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling import __version__
from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.hub import published_files
from tests.hub.clients import Client, change, environment, run
from tests.hub.hub_server import CUT, SILENT, TOKEN, Hub

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
def test_every_kind_of_model_comes_back_as_it_was(
    copy_of: Callable[[str], Path], hub: Hub, client: Run, tmp_path: Path
) -> None:
    folders = {kind: copy_of(kind) for kind in ("encoder", "separate", "cross-encoder")}
    for kind, folder in folders.items():
        done = client("push", folder, f"tester/{kind}")
        assert done.status == 0, done.stderr
        repo, files = hub.model(f"tester/{kind}"), hub.files(f"tester/{kind}")
        titles = ["initial commit", f"Push {kind} with st-xling {__version__}"]
        assert [commit.title for commit in repo.commits.values()] == titles
        assert done.stdout == f"{hub.url}/tester/{kind}/commit/{repo.refs['main']}\n"
        del files[".gitattributes"]
        assert files == {file.path: (folder / file.path).read_bytes() for file in published_files(folder)}
        assert {"card.json", "results.json", "training/run.json", "training/log.jsonl"} <= files.keys()
    words = [json.dumps({kind: f"tester/{kind}" for kind in folders}), json.dumps(SENTENCES)]
    pulled = run(["-I", "-c", STRANGER, *words], environment(hub.url, tmp_path / "home"), tmp_path)
    assert pulled.status == 0, pulled.stderr
    for kind, vectors in json.loads(pulled.stdout).items():
        assert np.allclose(vectors, outputs(kind, folders[kind]), atol=1e-6, rtol=0), kind


def test_the_command_itself_and_no_secret_anywhere(my_encoder: Path, hub: Hub, tmp_path: Path) -> None:
    """In a process of its own, logged in as people are: with a file in their home."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text(TOKEN)
    words = ["-m", "st_xling.cli", "push", my_encoder, "tester/mine", "--private"]
    done = run(words, environment(hub.url, home, token=None), tmp_path)
    assert done.status == 0, done.stderr
    files = hub.files("tester/mine")
    assert hub.model("tester/mine").private
    assert {"README.md", "mining.json", "pictures/cosines.png", "results.json", "card.json"} <= files.keys()
    assert "tester/mine" in files["README.md"].decode() and b"not for others" not in b"".join(files.values())
    assert hub.tokens <= {TOKEN, None}
    (home / "token").unlink()
    written = [path.read_bytes() for folder in (my_encoder, home) for path in folder.rglob("*") if path.is_file()]
    assert TOKEN not in done.stdout + done.stderr and TOKEN.encode() not in b"".join([*written, *files.values()])


def test_a_dry_run_asks_nobody_and_changes_nothing(my_encoder: Path, hub: Hub, client: Run) -> None:
    (my_encoder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()}
    done = client("push", my_encoder, "tester/new", "--dry-run", token="")
    assert done.status == 0, done.stderr
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert rows[0][0] == "README.md"
    assert "would go to tester/new: " in done.stdout.splitlines()[-1]
    assert "not published, since not part of a model: notes.txt" in done.stderr
    assert hub.paths == []
    assert {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()} == before
    assert client("push", my_encoder, "tester/new").status == 0
    assert {row[0] for row in rows[:-1]} == hub.files("tester/new").keys() - {".gitattributes"}
    assert rows[0][1] == f"{len(hub.files('tester/new')['README.md']) / 1024:.1f}"


@pytest.mark.slow
def test_no_published_file_names_a_place_on_this_machine(hub: Hub, client: Run, tmp_path: Path) -> None:
    """Of a run on files, evaluated on files, and cut."""
    run, small, data = tmp_path / "a run", tmp_path / "small", tmp_path / "my data" / "pairs.tsv"
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
    for kind, name in hub.repos:
        for path, content in hub.files(name, kind=kind).items():
            for place in (str(tmp_path), str(Path.home()) + "/", "my data"):
                assert place.encode() not in content, (name, path)
    card, record = (hub.files("tester/run")[path].decode() for path in ("README.md", "training/run.json"))
    command = "st-xling train tr --data de-en=pairs.tsv --check-leak de-en=pairs.tsv --model tiny"
    assert command in card and command in record and "<code>de-en=pairs.tsv</code>" in card


def test_old_files_of_the_model_go_and_what_others_put_there_stays(my_encoder: Path, hub: Hub, client: Run) -> None:
    first = client("push", my_encoder, "tester/mine")
    again = client("push", my_encoder, "tester/mine")
    assert (again.status, again.stdout) == (0, first.stdout)  # no empty commit
    theirs = {"LICENSE.txt": b"by hand", "onnx/model.onnx": b"converted"}
    hub.put("tester/mine", {**theirs, "model-00001-of-00002.safetensors": b"of a larger one"})
    (my_encoder / "pictures" / "cosines.png").rename(my_encoder / "pictures" / "another.png")
    commits = len(hub.model("tester/mine").commits)
    hub.paths.clear()
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    files = hub.files("tester/mine")
    assert "pictures/another.png" in files and theirs.items() <= files.items()
    assert not {"pictures/cosines.png", "model-00001-of-00002.safetensors"} & files.keys()
    assert len(hub.model("tester/mine").commits) == commits + 1
    assert not any(path.startswith("/_lfs/") for path in hub.paths)  # weights and the picture are there already


def test_a_branch_and_a_public_repository(my_encoder: Path, hub: Hub, client: Run) -> None:
    for _ in range(2):
        assert client("push", my_encoder, "tester/mine", "--revision", "v2/try").status == 0
    assert hub.files("tester/mine").keys() == {".gitattributes"}
    assert "model.safetensors" in hub.files("tester/mine", "v2/try")
    commits = dict(hub.model("tester/mine").commits)
    assert "tester/mine is public" in client("push", my_encoder, "tester/mine", "--private").error
    assert hub.model("tester/mine").commits == commits


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def link(path: Path) -> None:
    """Move a file or folder out of the model, and leave a link to it."""
    elsewhere = path.parent.with_name(f"{path.parent.name}-elsewhere")
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


# Fault → what spoils the folder, and what is said of it.
SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pickle": (lambda at: write(at / "pytorch_model.bin", "x"), "pytorch_model.bin"),
    "unfinished": (lambda at: change(at / "training" / "run.json", finished=False), "has not ended"),
    "no model": (lambda at: (at / "model.safetensors").unlink(), "model.safetensors"),
    "code": (lambda at: write(at / "modules.json", '[{"path": "", "type": "mine.Head"}]'), "mine.Head"),
    "code of transformers": (lambda at: change(at / "config.json", auto_map={"AutoModel": "auto_map"}), "auto_map"),
    "adapters of a folder": (
        lambda at: write(at / "adapter_config.json", '{"base_model_name_or_path": "./base"}'),
        "adapters .* ./base",
    ),
    "a linked module": (lambda at: link(at / "1_Pooling"), r"lacks modules .* 1_Pooling \(Pooling\)"),
    "a linked file": (lambda at: link(at / "results.json"), "results.json link to files elsewhere"),
    "no folder": (shutil.rmtree, "expected the folder of a model"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_what_is_not_published(fault: str, my_encoder: Path) -> None:
    spoil, message = SPOILT[fault]
    spoil(my_encoder)
    with pytest.raises(ValueError, match=message):
        published_files(my_encoder)


def test_such_a_folder_is_refused_before_anybody_is_asked(my_encoder: Path, hub: Hub, client: Run) -> None:
    write(my_encoder / "pytorch_model.bin", "x")
    assert "pytorch_model.bin" in client("push", my_encoder, "tester/mine").error
    assert "user/name: got 'mine'" in client("push", my_encoder, "mine").error
    assert hub.paths == []


def test_a_card_of_others_is_saved_beside(my_encoder: Path, hub: Hub, client: Run) -> None:
    for trace in ("card.json", "training/run.json"):
        (my_encoder / trace).unlink()
    (my_encoder / "README.md").write_text("my words", encoding="utf-8")
    done = client("push", my_encoder, "tester/words")
    assert done.status == 0 and "the earlier one is in README.before.md" in done.stderr
    assert (my_encoder / "README.before.md").read_text(encoding="utf-8") == "my words"
    assert "README.before.md" not in hub.files("tester/words")


def test_what_files_are(my_encoder: Path) -> None:
    weights = load_file(my_encoder / "model.safetensors")
    for number, keys in enumerate((list(weights)[:3], list(weights)[3:]), start=1):
        save_file({key: weights[key] for key in keys}, my_encoder / f"model-0000{number}-of-00002.safetensors")
    write(my_encoder / "model.safetensors.index.json", "{}")
    write(my_encoder / "sentencepiece.bpe.model", b"\0")
    write(my_encoder / "query_1_Pooling" / "config.json", "{}")
    (my_encoder / "blob").write_text("{}")
    (my_encoder / "special_tokens_map.json").symlink_to(my_encoder / "blob")
    files = {file.path: file for file in published_files(my_encoder)}
    named = {"model-00002-of-00002.safetensors", "sentencepiece.bpe.model", "pictures/cosines.png"}
    assert named | {"1_Pooling/config.json", "query_1_Pooling/config.json"} <= set(files)
    assert files["special_tokens_map.json"].size == 2 and "blob" not in files
    assert next(iter(files)) == "README.md"
    assert not any(path.startswith("training/checkpoint") or path.endswith(".csv") for path in files)


@pytest.mark.parametrize(
    ("route", "fault", "said"),
    [
        ("create", 401, ["401", "hf auth login"]),
        ("commit", 429, ["429", "wait"]),
        ("preupload", 400, ["400"]),
        ("lfs_put", CUT, ["connection", "try again"]),
        ("commit", CUT, ["connection"]),
    ],
    ids=str,
)
def test_a_failed_push_changes_nothing(
    route: str, fault: Any, said: list[str], my_encoder: Path, hub: Hub, client: Run
) -> None:
    """A clear line; files that have arrived are not sent again."""
    before = {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()}
    hub.faults = {route: fault}
    error = client("push", my_encoder, "tester/mine").error
    assert all(part in error for part in said) and TOKEN not in error, error
    assert {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()} == before
    if ("model", "tester/mine") in hub.repos:
        assert hub.files("tester/mine").keys() == {".gitattributes"}
    arrived = {f"/_lfs/{oid}" for oid in hub.blobs}
    hub.faults, hub.paths = {}, []
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    assert "model.safetensors" in hub.files("tester/mine") and not arrived & set(hub.paths)


def test_a_time_limit(my_encoder: Path, hub: Hub, process: Client) -> None:
    code = "from st_xling.hub import push_model; push_model(words[0], 'tester/mine', time_limit_s=0.5)"
    hub.faults = {"tree": SILENT}
    done = process.python(code, my_encoder)
    assert done.status == 1 and "HubError: the push was given up after 0.5 s" in done.stderr


@pytest.mark.parametrize(
    ("token", "repo", "said"),
    [
        ("", "tester/mine", "HF_TOKEN"),
        ("hf_" + "WrongWrongWrongWrongWrongWrong1234", "tester/mine", "(401"),
        (TOKEN, "others/mine", "'others/mine' (403"),
    ],
    ids=["none", "wrong", "another's"],
)
def test_who_may_not(token: str, repo: str, said: str, my_encoder: Path, hub: Hub, client: Run) -> None:
    done = client("push", my_encoder, repo, token=token)
    assert said in done.error and "hf auth login" in done.error
    assert not token or token not in done.stderr
    assert hub.repos == {} and (token != "" or hub.paths == [])


def test_offline(my_encoder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main(["push", str(my_encoder), "tester/mine"]) == 2  # these tests are offline themselves
    assert "HF_HUB_OFFLINE" in capsys.readouterr().err
