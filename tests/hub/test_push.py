"""What is pushed, as one commit, and what strangers then have: the same model, without us."""

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
from st_xling.hub.files import published_files
from st_xling.hub.push import check_described
from st_xling.models.sidecar import names
from tests.hub.clients import environment, run
from tests.hub.conftest import RUNS
from tests.hub.hub_state import LFS_SUFFIXES, TOKEN, Hub

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
found = {}
for kind, name in kinds.items():
    if kind == "cross-encoder":
        found[kind] = CrossEncoder(name, device="cpu").predict([[s, sentences[0]] for s in sentences]).tolist()
    else:
        model = SentenceTransformer(name, device="cpu")
        found[kind] = [model.encode_query(sentences).tolist(), model.encode_document(sentences).tolist()]
assert [name for name in sys.modules if name.startswith("st_xling")] == ["st_xling"]
print(json.dumps(found))
"""


def outputs(kind: str, folder: Path) -> Any:
    if kind == "cross-encoder":
        return CrossEncoder(str(folder), device="cpu").predict([(text, SENTENCES[0]) for text in SENTENCES])
    model = SentenceTransformer(str(folder), device="cpu")
    return [model.encode_query(SENTENCES), model.encode_document(SENTENCES)]


def test_every_kind_of_model_comes_back_as_it_was(
    copy_of: Callable[[str], Path], hub: Hub, client: Run, tmp_path: Path
) -> None:
    folders = {kind: copy_of(kind) for kind in RUNS}
    for kind, folder in folders.items():
        done = client("push", folder, f"tester/{kind}")
        assert done.status == 0, done.stderr
        repo = hub.model(f"tester/{kind}")
        assert [commit.title for commit in repo.commits.values()] == [
            "initial commit",
            f"Push {kind} with st-xling {__version__}",
        ]
        assert done.stdout == f"{hub.url}/tester/{kind}/commit/{repo.refs['main']}\n"
        files = hub.files(f"tester/{kind}")
        del files[".gitattributes"]
        assert files == {file.path: (folder / file.path).read_bytes() for file in published_files(folder)}
        card = files["README.md"].decode()
        assert all(names(card, path) for path in files)
        assert {"card.json", "results.json", "training/run.json", "training/log.jsonl"} <= files.keys()
        assert not any("checkpoint" in path or "base/" in path for path in files)
    weights = {
        kind: {path for path in hub.files(f"tester/{kind}") if path.endswith(".safetensors")} for kind in folders
    }
    assert weights["lora"] == weights["encoder"] == {"model.safetensors"}
    assert weights["separate"] == {f"{side}_0_Transformer/model.safetensors" for side in ("query", "document")}
    assert len(weights["adapter"]) > 1 and "model.safetensors" in weights["cross-encoder"]

    told = [json.dumps({kind: f"tester/{kind}" for kind in folders}), json.dumps(SENTENCES)]
    pulled = run(["-I", "-c", STRANGER, *told], environment(hub.url, tmp_path / "home"), tmp_path)
    assert pulled.status == 0, pulled.stderr
    found = json.loads(pulled.stdout)
    for kind, folder in folders.items():
        assert np.allclose(found[kind], outputs(kind, folder), atol=1e-6, rtol=0), kind
    sides = [hub.files("tester/separate")[path] for path in sorted(weights["separate"])]
    assert sides[0] != sides[1]


def test_the_command_itself(my_encoder: Path, hub: Hub, tmp_path: Path) -> None:
    """In a process of its own, logged in as people are: with a file in their home."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text(TOKEN)
    variables = environment(hub.url, home, token=None)
    words = ["-m", "st_xling.cli", "push", my_encoder, "tester/mine", "--private", "--message", "First"]
    done = run(words, variables, tmp_path)
    assert done.status == 0, done.stderr
    repo = hub.model("tester/mine")
    assert repo.private and repo.commits[repo.refs["main"]].title == "First"
    assert done.stdout == f"{hub.url}/tester/mine/commit/{repo.refs['main']}\n"
    files = hub.files("tester/mine")
    assert {"README.md", "mining.json", "pictures/token_states.png", "results.json", "card.json"} <= files.keys()
    assert "tester/mine" in files["README.md"].decode() and not any(
        b"not for others" in text for text in files.values()
    )
    assert set(hub.tokens) <= {TOKEN, None}
    no_secret(done.stdout + done.stderr, my_encoder)
    no_secret("".join(file.decode(errors="replace") for file in files.values()), home, but="token")


def no_secret(text: str, *folders: Path, but: str = "") -> None:
    """The token stands in no text and in no file."""
    assert TOKEN not in text
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file() and path.name != but):
        assert TOKEN.encode() not in path.read_bytes(), path


def test_a_dry_run_asks_nobody_and_changes_nothing(my_encoder: Path, hub: Hub, client: Run) -> None:
    (my_encoder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()}
    done = client("push", my_encoder, "tester/new", "--dry-run", token="")
    assert done.status == 0, done.stderr
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert rows[0][0] == "README.md" and rows[0][3] == "this card"
    assert "would go to tester/new: " in done.stdout.splitlines()[-1]
    assert "not published, since no part of a model: notes.txt" in done.stderr
    assert hub.calls == []
    assert {path: path.read_bytes() for path in my_encoder.rglob("*") if path.is_file()} == before

    assert client("push", my_encoder, "tester/new").status == 0
    assert {row[0] for row in rows[:-1]} == hub.files("tester/new").keys() - {".gitattributes"}
    assert rows[0][1] == f"{len(hub.files('tester/new')['README.md']) / 1024:.1f}"


def test_what_is_no_longer_published_goes_and_what_others_put_there_stays(
    my_encoder: Path, hub: Hub, client: Run
) -> None:
    assert client("push", my_encoder, "tester/mine").status == 0
    hub.put("tester/mine", {"LICENSE.txt": b"by hand", "pictures/mine.png": b"by hand", "onnx/model.onnx": b"x"})
    (my_encoder / "pictures" / "token_states.png").rename(my_encoder / "pictures" / "another.png")
    commits = len(hub.model("tester/mine").commits)
    hub.reset()
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    files = hub.files("tester/mine")
    assert "pictures/token_states.png" not in files and "pictures/another.png" in files
    assert {"LICENSE.txt", "pictures/mine.png", "onnx/model.onnx", ".gitattributes"} <= files.keys()
    assert "deleted: pictures/token_states.png" in done.stderr
    assert len(hub.model("tester/mine").commits) == commits + 1
    assert hub.uploaded == []  # weights and the picture are there already, under whatever name


def test_a_repository_that_is_not_ours_loses_nothing(my_encoder: Path, hub: Hub, client: Run) -> None:
    theirs = b"# Theirs\n\nSee `mining.json` and `pictures/old.png`.\n"
    hub.put("tester/theirs", {"README.md": theirs, "pictures/old.png": b"old", "2_Dense/config.json": b"{}"})
    assert client("push", my_encoder, "tester/theirs").status == 0
    assert {"pictures/old.png", "2_Dense/config.json"} <= hub.files("tester/theirs").keys()


def test_nothing_new_makes_no_commit(my_encoder: Path, hub: Hub, client: Run) -> None:
    first = client("push", my_encoder, "tester/mine")
    second = client("push", my_encoder, "tester/mine")
    assert (second.status, second.stdout) == (0, first.stdout)
    assert "holds all of it already" in second.stderr
    assert len(hub.model("tester/mine").commits) == 2


def test_a_branch_and_a_pull_request(my_encoder: Path, hub: Hub, client: Run) -> None:
    assert client("push", my_encoder, "tester/mine", "--revision", "v2/try").status == 0
    assert hub.files("tester/mine").keys() == {".gitattributes"}
    assert "model.safetensors" in hub.files("tester/mine", "v2/try")
    assert client("push", my_encoder, "tester/mine", "--revision", "v2/try").status == 0
    asked = client("push", my_encoder, "tester/mine", "--pr")
    assert asked.stdout == f"{hub.url}/tester/mine/discussions/1\n"
    assert "model.safetensors" in hub.files("tester/mine", "refs/pr/1")
    assert hub.files("tester/mine").keys() == {".gitattributes"}
    both = client("push", my_encoder, "tester/mine", "--pr", "--revision", "v2")
    assert both.error.startswith("a pull request is opened against main: got revision 'v2'")


def test_a_public_repository_is_not_taken_for_private(my_encoder: Path, hub: Hub, client: Run) -> None:
    assert client("push", my_encoder, "tester/open").status == 0
    commits = dict(hub.model("tester/open").commits)
    (my_encoder / "mining.json").unlink()
    assert (
        "tester/open is public, and --private does not change that"
        in client("push", my_encoder, "tester/open", "--private").error
    )
    assert hub.model("tester/open").commits == commits


def test_large_files_in_parts_and_ignored_ones_all_the_same(my_encoder: Path, hub: Hub, client: Run) -> None:
    hub.multipart = 10_000
    hub.put("tester/mine", {".gitignore": b"*.png\n*.safetensors\n"})
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    assert hub.asked("lfs_part") > 3 and hub.asked("lfs_complete") >= 1
    files = hub.files("tester/mine")
    assert files["model.safetensors"] == (my_encoder / "model.safetensors").read_bytes()
    assert "pictures/token_states.png" in files


def test_adapters_that_are_kept(copy_of: Callable[[str], Path], hub: Hub, client: Run, tmp_path: Path) -> None:
    base, kept = copy_of("encoder"), tmp_path / "kept"
    words = ["--data", "phrasebook:de?size=24", "--dev", "none", "--max-steps", "1", "--batch-size", "8"]
    done = client("train", "tr", "--model", base, *words, "--max-length", "24", "--lora-keep", "--out", kept)
    assert done.status == 0, done.stderr
    assert "adapters of a model that lies on this machine alone" in client("push", kept, "tester/kept").error
    assert hub.asked("create") == 0
    settings = json.loads((kept / "adapter_config.json").read_text())
    (kept / "adapter_config.json").write_text(json.dumps({**settings, "base_model_name_or_path": "tester/base"}))
    assert client("push", kept, "tester/kept").status == 0
    assert {"adapter_model.safetensors", "adapter_config.json"} <= hub.files("tester/kept").keys()


def change(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def add(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pickle": (
        lambda at: change(at / "pytorch_model.bin", "x"),
        "only safetensors weights are published: .*pytorch_mod",
    ),
    "nested pickle": (lambda at: change(at / "2_Dense" / "model.pt", "x"), "holds 2_Dense/model.pt"),
    "unfinished": (
        lambda at: change(at / "training" / "run.json", '{"finished": false}'),
        "has not ended; go on with it",
    ),
    "no model": (lambda at: (at / "model.safetensors").unlink(), "no model to publish in .*: expected modules.json"),
    "cut off": (
        lambda at: change(at / "model.safetensors", (at / "model.safetensors").read_bytes()[:-9]),
        "no whole saf",
    ),
    "pointer": (lambda at: change(at / "model.safetensors", "version https://git-lfs"), "is no whole safetensors file"),
    "not JSON": (lambda at: change(at / "modules.json", "[{"), "modules.json is not JSON"),
    "code": (lambda at: change(at / "modules.json", '[{"type": "mine.Head"}]'), "names mine.Head, which others could"),
    "a module of no type": (lambda at: change(at / "modules.json", '[{"idx": 0}]'), "a module without type"),
    "modules: numbers": (lambda at: change(at / "modules.json", "[7]"), r"modules.json: expected an object at \[0\]"),
    "code of transformers": (lambda at: add(at / "config.json", auto_map={"AutoModel": "mine.Net"}), "mine.Net"),
    "code of a tokenizer": (
        lambda at: add(at / "tokenizer_config.json", auto_map={"AutoTokenizer": "mine.T"}),
        "mine.T",
    ),
    "an unknown model": (lambda at: add(at / "config.json", model_type="my-net"), "does not know, 'my-net'"),
    "a file": (lambda at: shutil.rmtree(at), "expected the folder of a model: .* is none"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_published(fault: str, my_encoder: Path) -> None:
    spoil, message = FAULTS[fault]
    spoil(my_encoder)
    with pytest.raises(ValueError, match=message):
        published_files(my_encoder)


def test_such_a_folder_is_refused_before_anybody_is_asked(my_encoder: Path, hub: Hub, client: Run) -> None:
    change(my_encoder / "pytorch_model.bin", "x")
    assert "only safetensors weights are published" in client("push", my_encoder, "tester/mine").error
    assert "add whose it is" in client("push", my_encoder, "mine").error
    assert hub.calls == []


def test_the_card_must_name_every_file() -> None:
    card = "| <code>model.safetensors</code> | weights |\n| `1\\_Pooling/config.json` | settings |"
    check_described(["README.md", "model.safetensors", "1_Pooling/config.json"], card)
    with pytest.raises(ValueError, match="does not name config.json, pictures/a.png; make it anew with st-xling card"):
        check_described(["config.json", "pictures/a.png", "model.safetensors"], card)


def test_names_with_signs_of_markdown_are_found() -> None:
    assert names("| <code>pictures/loss&#95;&#95;dev.png</code> |", "pictures/loss__dev.png")
    assert not names("| <code>pictures/loss&#95;&#95;dev.png</code> |", "loss__dev.png")


def test_a_card_of_others_is_put_aside(my_encoder: Path, hub: Hub, client: Run) -> None:
    for trace in ("card.json", "training/run.json"):
        (my_encoder / trace).unlink(missing_ok=True)
    (my_encoder / "README.md").write_text("my words", encoding="utf-8")
    done = client("push", my_encoder, "tester/words")
    assert done.status == 0, done.stderr
    assert (my_encoder / "README.before.md").read_text(encoding="utf-8") == "my words"
    assert "is replaced by a card of ours" in done.stderr
    assert "README.before.md" not in hub.files("tester/words")


def test_places_on_this_machine_are_told(my_encoder: Path, client: Run) -> None:
    run_file = my_encoder / "training" / "run.json"
    run_file.parent.mkdir(exist_ok=True)
    run_file.write_text(
        json.dumps({"command": "st-xling train tr --data de-en=/home/me/client/a.tsv --out m", "finished": True}),
        encoding="utf-8",
    )
    done = client("push", my_encoder, "tester/new", "--dry-run", token="")
    assert done.status == 0, done.stderr
    assert "published files name places on this machine: training/run.json: /home/me/client/a.tsv" in done.stderr


def test_what_files_are(my_encoder: Path) -> None:
    """Sharded weights, vocabularies, links into a cache; and every phrase says something."""
    weights = load_file(my_encoder / "model.safetensors")
    for number, keys in enumerate((list(weights)[:3], list(weights)[3:]), start=1):
        save_file({key: weights[key] for key in keys}, my_encoder / f"model-0000{number}-of-00002.safetensors")
    change(my_encoder / "model.safetensors.index.json", "{}")
    change(my_encoder / "sentencepiece.bpe.model", b"\0")
    (my_encoder / "blob").write_text("{}")
    (my_encoder / "special_tokens_map.json").symlink_to(my_encoder / "blob")
    found = {file.path: file for file in published_files(my_encoder)}
    assert found["model-00002-of-00002.safetensors"].what == "weights, part 2 of 2"
    assert found["sentencepiece.bpe.model"].what == "vocabulary of the tokenizer"
    assert found["pictures/token_states.png"].what == "picture: token states"
    assert found["1_Pooling/config.json"].what == "Pooling module: settings"
    assert found["special_tokens_map.json"].size == 2 and "blob" not in found
    assert next(iter(found)) == "README.md" and all(file.what for file in found.values())
    assert not any(path.startswith("training/checkpoint") or path.endswith(".csv") for path in found)
    assert {path for path in found if path.endswith(LFS_SUFFIXES)} >= {"model.safetensors"}
