"""Runs: nothing of others is touched, no run is lost by accident, nothing half-made stays; leaks are found."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers.base.evaluation import SequentialEvaluator

from st_xling.cli import main
from st_xling.data import LeakError
from st_xling.evaluation import SavedResults, TatoebaEvaluator, read_saved_results, save_results
from st_xling.training import NotFiniteError, TrainingResult, load_recipe, train
from st_xling.training.run import evaluation_texts, save_run, write_log
from st_xling.training.run_folder import DONE, RunFolder, is_complete, newest_checkpoint, remove_earlier, save_folder

RUN = {
    "recipe": {"name": "tr", "arguments": {"num_train_epochs": 1.0, "seed": 0}},
    "model": "tiny",
    "data": {"de-en": {"rows": 3}},
    "load_options": {"revision": "v1"},
}
TINY = {"hidden_size": 32, "layers": 1, "vocabulary": 300}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def short(**overrides: Any) -> Any:
    keys = {"arguments.max_steps": 1, "arguments.per_device_train_batch_size": 8}
    keys |= {key.replace("__", "."): value for key, value in overrides.items()}
    return load_recipe("tr", tiny=True, overrides=keys)


def test_an_occupied_folder_is_refused_and_untouched(tmp_path: Path, data: Any) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    before = snapshot(tmp_path)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match=r"--out must be empty or a run of ours: .* contains thesis.tex"):
            train(short(), data, tmp_path, model="tiny", tiny=TINY, **options)
    assert snapshot(tmp_path) == before


def begin(path: Path, manifest: dict[str, Any] = RUN, **options: Any) -> Path | None:
    """A run that begins, and is killed there."""
    with RunFolder(path, **options) as folder:
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
    return checkpoint


def test_an_earlier_run_needs_a_word(tmp_path: Path) -> None:
    out = tmp_path / "a" / "run"
    assert begin(out) is None
    with pytest.raises(ValueError, match=r"holds an earlier run \(it can be continued with --resume\); use --overwr"):
        begin(out)
    RunFolder(out).update(finished=True)
    with pytest.raises(ValueError, match=r"holds an earlier run \(it is complete\); use --overwrite"):
        begin(out)


def test_resuming_names_what_differs_but_for_command_and_version(tmp_path: Path) -> None:
    out = tmp_path / "run"
    begin(out, {**RUN, "command": "st-xling train tr", "version": "0.0"})
    before = snapshot(out)
    for changes, named in (
        ({"data": {"fr-en": {"rows": 3}}}, "data.de-en, data.fr-en differ"),
        (
            {"recipe": {"name": "tr", "arguments": {"num_train_epochs": 2.0}}},
            "recipe.arguments.num_train_epochs, .*seed",
        ),
    ):
        with pytest.raises(ValueError, match=f"must repeat the run that .* holds: {named}.*with st-xling train tr"):
            begin(out, {**RUN, **changes}, resume=True)
    assert snapshot(out) == before
    assert begin(out, {**RUN, "command": "st-xling train tr --resume", "version": "9"}, resume=True) is None
    assert begin(tmp_path / "new", resume=True) is None  # nothing to resume: it starts
    assert RunFolder(tmp_path / "new").read_manifest() == {**RUN, "finished": False}


BAD = [
    (short(losses__translation_ranking__scale=-1.0), TINY, "scale must be above 0"),
    (short(), {"hidden_size": 33, "heads": 2}, "hidden_size must be a multiple of heads, 2: got 33"),
]


def test_an_error_while_preparing_leaves_nothing(data: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for recipe, tiny, message in BAD:
        for name in ("run", "empty"):
            with pytest.raises(ValueError, match=message):
                train(recipe, data, tmp_path / name, model="tiny", tiny=tiny)
    assert not (tmp_path / "run").exists() and list((tmp_path / "empty").iterdir()) == []


def test_a_whole_run_then_overwriting_it(data: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = train(short(), data, out, model="tiny", tiny=TINY)
    assert first.steps == 1 and first.folder == out
    names = {path.name for path in out.iterdir()}
    assert {"model.safetensors", "modules.json", "results.json", "training"} <= names
    assert not any(name.startswith(".") for name in names)
    assert RunFolder(out).read_manifest()["finished"] is True

    before = snapshot(out)
    with pytest.raises(ValueError, match="scale must be above 0"):  # the replacement fails: the earlier run stands
        train(BAD[0][0], data, out, model="tiny", tiny=TINY, overwrite=True)
    assert snapshot(out) == before

    train(short(arguments__seed=1), data, out, model="tiny", tiny=TINY, overwrite=True)
    after = snapshot(out)
    assert after["model.safetensors"] != before["model.safetensors"]
    assert RunFolder(out).read_manifest()["recipe"]["arguments"]["seed"] == 1


class TwoFiles:
    """A model: what it says, in two files; the second in a folder of its own."""

    def __init__(self, says: str, *, dense: bool) -> None:
        self.says, self.names = says, ["model.txt", "2_Dense/model.txt"][: 1 + dense]

    def save_pretrained(self, path: str) -> None:
        for name in self.names:
            (Path(path) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(path) / name).write_text(self.says)


def run(out: Path, says: str, *, dense: bool = False, **options: Any) -> None:
    """The file operations of a run."""
    with RunFolder(out, **options) as folder:
        folder.claim({"recipe": says})
        folder.begin({"recipe": says})
        write_log(folder, [{"loss": 1.0}])
        folder.save_model(TwoFiles(says, dense=dense))
        (out / "results.json").write_text(says)
        folder.update(finished=True)


def model(out: Path) -> tuple[str, bool]:
    return (out / "model.txt").read_text(), (out / "2_Dense").exists()


def test_what_overwriting_removes(tmp_path: Path) -> None:
    """Before training: the model that ``run.json`` lists, what belongs to it, and what is ours in ``training``."""
    out = tmp_path / "run"
    run(out, "old", dense=True)
    kept = {"notes.txt", "2_Dense/notes.txt", "card.json", "training/notes.txt"}
    for name in (*kept, "mining.json", "training/log.jsonl"):
        (out / name).write_text("mine")
    checkpoint(out / "training", 1)
    with RunFolder(out, overwrite=True) as folder:
        assert model(out) == ("old", True)  # nothing is removed before data, model and options were looked at
        folder.begin({"recipe": "new"})
        names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
        assert names - {".st-xling.lock"} == {*kept, "training/run.json"}
    run(out, "new", resume=True)  # as if it had been killed there
    assert model(out) == ("new", True) and RunFolder(out).is_finished
    assert RunFolder(out).read_manifest()["recipe"] == "new"


def test_an_output_never_replaces_an_input(tmp_path: Path) -> None:
    """Wherever it is named: as the start, in a recipe, or as data."""
    out = tmp_path / "run"
    run(out, "old")
    checkpoint(out / "training", 1)
    (tmp_path / "link").symlink_to(out)
    before = snapshot(out)
    data = f"de-en={out / 'model.txt'}?size=3"
    cases: list[Any] = [{"inputs": [text]} for text in (str(out), data, str(tmp_path / "link"))]
    cases += [{"start": str(path)} for path in (out, out / "training" / "checkpoint-1")]
    for options in cases:
        for way in ("overwrite", "resume"):
            folder = RunFolder(out, **options, **{way: True})
            for enter in (folder.check, folder.__enter__):
                with pytest.raises(ValueError, match="--out must not replace an input: .* is part of the run"):
                    enter()
    assert snapshot(out) == before
    (out / "pairs.tsv").write_text("mine")
    run(out, "new", overwrite=True, inputs=[f"de-en={out / 'pairs.tsv'}", "tiny"])
    assert (out / "pairs.tsv").exists()


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with RunFolder(out):
        for attempt in (RunFolder(out).check, RunFolder(out, resume=True).__enter__):
            with pytest.raises(ValueError, match=f"another process is writing {out}"):
                attempt()
    run(out, "new")


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    run(tmp_path / "run", "old")
    (tmp_path / "run" / "training" / "run.json").write_text("{")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match=r"run\.json: expected "):
            run(tmp_path / "run", "old", **options)
    assert model(tmp_path / "run") == ("old", False)


def checkpoint(folder: Path, step: int, *, complete: bool = True) -> None:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "trainer_state.json").write_text("{}")
    if complete:
        (path / DONE).write_text("{}")


@pytest.mark.parametrize(
    ("keep", "best", "left"),
    [
        (None, None, {1, 2, 3, 4, 9}),
        (2, None, {3, 4, 9}),  # 2 is incomplete and goes; 9, not yet reached again, stays
        (1, 1, {1, 4, 9}),
        (99, 1, {1, 3, 4, 9}),
    ],
)
def test_which_checkpoints_are_removed(keep: int | None, best: int | None, left: set[int], tmp_path: Path) -> None:
    for step in (1, 2, 3, 9, 4):
        checkpoint(tmp_path, step, complete=step not in (2, 9))
    (tmp_path / "checkpoint-foo").mkdir()
    remove_earlier(tmp_path / "checkpoint-4", keep=keep, best=best and f"elsewhere/checkpoint-{best}")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"checkpoint-{step}" for step in left} | {"checkpoint-foo"}


@pytest.mark.slow
def test_a_full_disk_leaves_the_checkpoint_before(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch.save says it."""
    out = tmp_path / "run"
    recipe = short(arguments__max_steps=4, arguments__eval_steps=2, arguments__logging_steps=2)
    save = torch.save
    seen = 0

    def full(*args: Any, **options: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > 4:
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")
        save(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(OSError, match="Make room and run"):
            train(recipe, data, out, model="tiny", tiny=TINY)
    complete = [is_complete(out / "training" / f"checkpoint-{step}") for step in (2, 4)]
    assert complete == [True, False]
    assert train(recipe, data, out, model="tiny", tiny=TINY, resume=True).steps == 4


def finish(path: Path, model: Any, steps: int, **options: Any) -> None:
    with RunFolder(path, **options) as folder:
        folder.claim({"recipe": {}})
        folder.begin({"recipe": {}})
        save_run(TrainingResult(model, path, 1.0, steps, [{"loss": 1.0}]), folder)


def test_kept_figures_stand_while_the_model_does(make_model: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    model = make_model(hidden_size=8, layers=1)
    finish(out, model, 4)
    content = {"mean_accuracy": 0.5}
    figures = SavedResults("tatoeba", content, "tatoeba|data:x@0", "st-xling evaluate tatoeba run", [], [])
    save_results(out, figures)
    finish(out, model, 4, resume=True)  # it had ended: nothing is left to train
    assert read_saved_results(out) == [figures]
    training = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    assert training["steps"] == 4 and training["machine"]["cores"] >= 1
    finish(out, model, 8, overwrite=True)
    assert read_saved_results(out) == []
    save_results(out, figures)
    RunFolder(out).update(finished=False)  # it went on from here
    finish(out, model, 8, resume=True)
    assert read_saved_results(out) == []


@pytest.fixture
def evaluator(data: Any) -> TatoebaEvaluator:
    """Judges by two rows of the training data and one that is not in it."""
    rows = data["vi-en"].select([3, 7])
    source = [*rows["source"], "Xin chào các bạn!"]
    target = [*rows["target"], "Hello, friends!"]
    return TatoebaEvaluator({"vie": (source, target)}, name="dev")


def test_leaks_are_told_dropped_or_stop_the_run(
    data: Any, evaluator: TatoebaEvaluator, tmp_path: Path, logged: Any
) -> None:
    """What is trained on, and what a resumed run must repeat, are the rows that are left."""
    options: dict[str, Any] = {"model": "tiny", "tiny": TINY, "evaluator": evaluator}
    leaks = {}
    manifests = {}
    for way in ("report", "drop"):
        train(short(), data, tmp_path / way, **options, on_leak=way, evaluation={"later": ["x"]})
        leaks[way] = json.loads((tmp_path / way / "results.json").read_text(encoding="utf-8"))["leak"]
        manifests[way] = RunFolder(tmp_path / way).read_manifest()
        printed = logged()
        assert "dev vie" in printed and "leak|key:" not in printed  # the signature is in results.json
        assert leaks[way]["dropped"] is (way == "drop")
        sets = leaks[way]["sets"]
        assert {name: part["pair"]["leaked"] for name, part in sets.items() if "pair" in part} == {"dev vie": 2}
        assert "later" in sets and sets["dev vie"]["source"]["leaked"] == 2
    assert leaks["drop"]["signature"].startswith("leak|key:nfkc-casefold-lmn|match:exact|train:vi-en@")
    dropped = leaks["drop"]["train"]["vi-en"]["leaked"]
    assert [manifest["data"]["vi-en"]["rows"] for manifest in manifests.values()] == [24, 24 - dropped] and dropped >= 2
    with pytest.raises(ValueError, match=r"data\.vi-en\.rows"):
        train(short(), data, tmp_path / "drop", **options, resume=True)
    with pytest.raises(LeakError, match=r"1 of 1 evaluation sets share some \(dev vie\)"):
        train(short(), data, tmp_path / "fail", **options, on_leak="fail")
    assert not (tmp_path / "fail").exists()


def test_a_folder_to_start_from_is_there_when_it_is_complete(tmp_path: Path) -> None:
    """Killed while the base of adapters is saved, the next start took half a model for the base."""

    class Killed(TwoFiles):
        def save_pretrained(self, path: str) -> None:
            super().save_pretrained(path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_folder(Killed("old", dense=True), tmp_path / "base")
    assert not (tmp_path / "base").exists()
    save_folder(TwoFiles("new", dense=False), tmp_path / "base")
    assert model(tmp_path / "base") == ("new", False)
    assert [path.name for path in tmp_path.iterdir()] == ["base"]


def test_the_newest_complete_checkpoint_is_that_of_the_most_steps(tmp_path: Path) -> None:
    """By letters, checkpoint-9 comes after checkpoint-10: a resumed run went back."""
    assert newest_checkpoint(tmp_path) is None
    for step, complete in ((2, True), (10, True), (9, True), (11, False)):
        checkpoint(tmp_path, step, complete=complete)
    (tmp_path / "checkpoint-foo").mkdir()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"


@pytest.mark.parametrize("what", ["fail", "drop"])
def test_leaks_can_only_be_refused_with_evaluation_data(what: Any, data: Any, tmp_path: Path) -> None:
    """Asked to fail on leaks, a run that had nothing to compare with went on as if there were none."""
    options: dict[str, Any] = {"model": "tiny", "tiny": TINY}
    with pytest.raises(ValueError, match=f"on_leak='{what}' needs evaluation data"):
        train(short(), data, tmp_path / "run", **options, on_leak=what)
    with pytest.raises(ValueError, match="on_leak must be one of .*: got 'stop'"):
        train(short(), data, tmp_path / "run", **options, on_leak="stop")
    assert not (tmp_path / "run").exists()


def test_the_texts_of_evaluators(evaluator: TatoebaEvaluator) -> None:
    other = TatoebaEvaluator({"fra": (["Bonjour."], ["Hello."])}, name="test")
    assert list(evaluation_texts(SequentialEvaluator([evaluator, other]))) == ["dev vie", "test fra"]
    assert evaluation_texts(evaluator)["dev vie"] == evaluator.pairs["vie"]
    assert evaluation_texts(None) == {} == evaluation_texts(object())


def test_links_and_files(tmp_path: Path) -> None:
    """A link to a folder is a folder; one that leads nowhere, or to itself, is named before data are read."""
    for name, goal in (("dangling", "nowhere"), ("itself", "itself")):
        (tmp_path / name).symlink_to(tmp_path / goal)
    (tmp_path / "file").write_text("mine")
    for name in ("dangling", "itself", "file"):
        folder = RunFolder(tmp_path / name, overwrite=True)
        for enter in (folder.check, folder.__enter__):
            with pytest.raises(ValueError, match=f"--out must be a folder: .*{name} is a file or a broken link"):
                enter()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    run(tmp_path / "link", "old")
    run(tmp_path / "link", "new", overwrite=True)
    assert model(tmp_path / "elsewhere") == ("new", False) and (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "mine"


class NoRoom(TwoFiles):
    """A model for which the disk has no room."""

    def save_pretrained(self, path: str) -> None:
        super().save_pretrained(path)
        raise OSError(errno.ENOSPC, "No space left on device")


def test_no_room_for_the_model(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Make room"), RunFolder(tmp_path / "run") as folder:
        folder.begin({"recipe": "new"})
        folder.save_model(NoRoom("new", dense=False))
    assert not (tmp_path / "run").exists()


def test_a_run_without_an_option_of_loading_is_another(tmp_path: Path) -> None:
    begin(tmp_path / "run")
    with pytest.raises(ValueError, match=r"load_options\.revision"):
        begin(tmp_path / "run", {**RUN, "load_options": {}}, resume=True)


def test_a_run_that_fails_before_its_first_checkpoint_leaves_no_model(data: Any, tmp_path: Path) -> None:
    """An overwritten run is gone by then, but for the user's own files; a new folder is free again."""
    out = tmp_path / "run"
    broken = short(arguments__learning_rate=1e38, arguments__max_steps=5)
    train(short(), data, out, model="tiny", tiny=TINY)
    (out / "pairs.tsv").write_text("mine")
    with pytest.raises(NotFiniteError, match="there is no checkpoint yet"):
        train(broken, data, out, model="tiny", tiny=TINY, overwrite=True)
    assert sorted(snapshot(out)) == ["pairs.tsv", "training/run.json"]
    with pytest.raises(NotFiniteError):
        train(broken, data, tmp_path / "other", model="tiny", tiny=TINY)
    assert not (tmp_path / "other").exists()


SLOW = pytest.mark.slow
EVALUATED = {
    "tr": "--data phrasebook:de?size=120 --eval-steps 1",
    "sf": "--data de-en=phrasebook?size=120 --layer 1",
    "ir": "--data queries=phrasebook?size=40 --dev en=phrasebook?size=20 --eval-steps 1",
    "xpr-merged": "--data en=phrasebook?size=60 --data de=phrasebook?size=60 --eval-steps 1",
}


@pytest.mark.parametrize("recipe", ["tr", *(pytest.param(name, marks=SLOW) for name in [*EVALUATED][1:])])
def test_a_run_that_was_evaluated_is_replaced(recipe: str, tmp_path: Path) -> None:
    """Sentence-transformers' evaluators write files of their own, which are no reason to refuse the folder."""
    words = f"train {recipe} --model tiny --tiny hidden_size=16 --tiny layers=1 --tiny vocabulary=200"
    words += f" {EVALUATED[recipe]} --batch-size 8 --max-steps 2 --out {tmp_path / 'run'}"
    words += f" --cache {tmp_path / 'cache'}" if recipe == "sf" else ""
    for options in ("", " --overwrite --learning-rate 2e-3"):
        assert main((words + options).split()) == 0
    assert RunFolder(tmp_path / "run").read_manifest()["recipe"]["arguments"]["learning_rate"] == 2e-3
