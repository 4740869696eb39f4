"""Learning from another model: its vectors, computed once, are the labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch.nn import functional as F

from st_xling.cli import main
from st_xling.training import load_recipe, train
from st_xling.training import teacher as teaching
from st_xling.training.options import TeacherOptions
from st_xling.training.run_folder import RunFolder
from st_xling.training.sentence_vectors import CachedVectors
from st_xling.training.teacher import load_teacher, principal_directions
from st_xling.training.trainer import CrossLingualTrainer
from tests.training.children import stop_at

STEPS = {"training.max_steps": 6, "training.per_device_train_batch_size": 8, "training.eval_steps": 2}
MSE = "MSELoss"


@pytest.fixture(scope="module")
def teacher(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 dimensions, of length 1, with a prompt and a license."""
    model = make_model(hidden_size=24, seed=3)
    model.append(Normalize())
    model.prompts, model.default_prompt_name = {"query": "query: "}, "query"
    model.save_pretrained(str(folder := tmp_path_factory.mktemp("models") / "teacher"))
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A teacher\n", encoding="utf-8")
    return folder


def recipe(name: str = "distill", **changes: Any) -> Any:
    return load_recipe(name, tiny=True, overrides={**STEPS, **{k.replace("__", "."): v for k, v in changes.items()}})


@pytest.mark.parametrize("reads", ["target", "both"])
def test_both_sentences_learn_the_teachers_vector(
    reads: str, teacher: Path, data: Any, make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, whole = [], CrossLingualTrainer.compute_loss

    def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(inputs["label"])
        return whole(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(CrossLingualTrainer, "compute_loss", compute_loss)
    student = make_model(hidden_size=24)
    made = recipe(teacher__model=str(teacher), teacher__reads=reads, training__learning_rate=1e-3)
    result = train(made, data, tmp_path / "run", model=student, cache=tmp_path / "cache")
    vectors, labels = SentenceTransformer(str(teacher)).encode(data["vi-en"]["target"][:]), seen[0]  # by its own prompt
    assert labels.shape == ((8, 24) if reads == "target" else (8, 2, 24))
    own = labels if reads == "target" else labels[:, 1]
    assert (own @ torch.tensor(vectors).T).max(dim=1).values.min() > 0.9999
    logged = [entry["loss"] for entry in result.history if "loss" in entry]
    assert logged[-1] < logged[0] and result.steps == 6
    assert "teacher" not in {name.partition(".")[0] for name, _ in result.model.named_parameters()}


def test_what_a_run_says_of_its_teacher(teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, the cache that a second run finds, run.json, and the card."""
    line = "train distill --model tiny --tiny hidden_size=16 --tiny layers=1 --dev none --data phrasebook:de?size=40"
    line += f" --max-steps 2 --batch-size 8 --teacher {teacher} --cache {tmp_path / 'cache'}"
    assert main([*(words := line.split()), "--out", str(tmp_path / "one")]) == 0
    monkeypatch.setattr(teaching, "encode", None)  # whatever would encode now, fails
    assert main([*words, "--set", "losses.translation_ranking.weight=0.5", "--out", str(tmp_path / "two")]) == 0
    run = RunFolder(tmp_path / "two").read_manifest()
    assert run["teacher"]["license"] == "mit" and run["teacher"]["model"] == str(teacher)
    assert set(run["recipe"]["losses"]) == {MSE, "translation_ranking"}
    card = (tmp_path / "two" / "README.md").read_text(encoding="utf-8")
    assert "Its teacher was `teacher` (license: mit)." in card and str(tmp_path) not in card and "Reimers" in card
    assert SentenceTransformer(str(tmp_path / "two")).encode("Hallo").shape == (16,)


@pytest.mark.slow
@pytest.mark.parametrize("projection", [{f"losses__{MSE}__projection_dim": 24}, {}], ids=["projection", "normalized"])
def test_a_run_that_was_stopped_goes_on_with_the_same_labels(
    projection: dict[str, Any], teacher: Path, data: Any, make_model: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """And with what was put on: a projection beside the model, or the normalization behind its pooling."""
    made = recipe(teacher__model=str(teacher), **projection)
    width, options = 16 if projection else 24, {"cache": tmp_path / "cache"}
    train(made, data, tmp_path / "whole", model=make_model(hidden_size=width), **options)
    with monkeypatch.context() as patch:
        stop_at(patch, CrossLingualTrainer, 4)
        with pytest.raises(KeyboardInterrupt):
            train(made, data, tmp_path / "run", model=make_model(hidden_size=width), **options)
    other = recipe(teacher__model=str(teacher), teacher__max_length=8, **projection)
    with pytest.raises(ValueError, match=r"--resume must repeat .*recipe\.teacher\.max_length"):
        train(other, data, tmp_path / "run", model=make_model(hidden_size=width), resume=True)
    train(made, data, tmp_path / "run", model=make_model(hidden_size=width), resume=True, **options)
    whole, run = (SentenceTransformer(str(tmp_path / name)) for name in ("whole", "run"))
    assert [type(module) for module in run] == [type(module) for module in whole]
    assert isinstance(run[-1], Normalize) != bool(projection)
    torch.testing.assert_close(run.state_dict(), whole.state_dict())
    if projection:
        torch.testing.assert_close(
            *(load_file(tmp_path / name / "training/checkpoint-6/loss.safetensors") for name in ("run", "whole"))
        )


def test_a_teacher_may_read_without_its_prompt(teacher: Path) -> None:
    texts = ["The dog sleeps.", "Rain."]
    for prompt, expected in ((None, "query: "), ("", ""), ("text: ", "text: ")):
        vectors = load_teacher(TeacherOptions(model=str(teacher), prompt=prompt)).encode(texts)
        np.testing.assert_allclose(vectors, SentenceTransformer(str(teacher)).encode(texts, prompt=expected), atol=1e-6)


def rows_of(matrix: Any) -> CachedVectors:
    return CachedVectors([str(row) for row in range(len(matrix))], [matrix.numpy()])


def test_the_directions_of_pca_keep_dot_products() -> None:
    """Of vectors that lie in three dimensions, three directions lose nothing; the first is the mean's, uncentered."""
    generator = torch.Generator().manual_seed(0)
    plane = torch.linalg.qr(torch.randn(8, 3, generator=generator))[0]
    matrix = (torch.randn(50, 3, generator=generator) + torch.tensor([5.0, 0.0, 0.0])) @ plane.T
    directions, share = principal_directions(rows_of(matrix), 3)
    assert share == pytest.approx(1.0)
    torch.testing.assert_close(directions.T @ directions, torch.eye(3))
    reduced = matrix @ directions
    torch.testing.assert_close(reduced @ reduced.T, matrix @ matrix.T, rtol=1e-4, atol=1e-3)
    assert F.cosine_similarity(directions[:, 0], matrix.mean(dim=0), dim=0).abs() > 0.99
    fewer, part = principal_directions(rows_of(matrix), 2)
    torch.testing.assert_close(fewer, directions[:, :2])
    assert 0.9 < part < 1.0 and (fewer.abs().argmax(dim=0) >= 0).all()


@pytest.mark.parametrize(("length", "changes", "normalized"), [
    (1.0, {}, True),
    (3.0, {}, False),
    (1.0, {f"losses.{MSE}.projection_dim": 16}, False),
])  # fmt: skip
def test_a_student_normalizes_where_its_teacher_does(
    length: float, changes: dict[str, Any], normalized: bool, make_model: Any
) -> None:
    student = make_model(hidden_size=16)
    matrix = length * F.normalize(torch.randn(40, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    learned: Any = teaching.vectors_for(student, rows_of(matrix), recipe(teacher__model="any", **changes))
    assert learned.keywords.get("unit", False) is normalized
    lengths = np.linalg.norm(student.encode(["Hallo.", "Good night."]), axis=1)
    assert np.allclose(lengths, 1.0, atol=1e-5) is normalized


def test_teachers_students_and_data_that_do_not_fit(teacher: Path, data: Any, make_model: Any, tmp_path: Path) -> None:
    rows = data["vi-en"]
    faults: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"teacher__model": None}, {}, "learn from a teacher, an encoder: got none; .*--teacher"),
        ({f"losses__{MSE}__projection_dim": 7}, {}, "projection_dim must be the teacher's 24 dimensions.* got 7"),
        ({"teacher__model": "nowhere/at-all"}, {}, "nowhere/at-all"),
        ({"teacher__prompt_name": "passage"}, {}, "passage"),
        (
            {},
            {"model": make_model(hidden_size=32)},
            "student of 32 dim.* got 24; train a projection.*projection_dim=24",
        ),
        ({}, {"data": {"vi-en": rows.select(range(8))}}, "student of 16 dimensions .* of 8 texts"),
        ({}, {"data": {"vi-en": rows.to_iterable_dataset()}}, "got a stream"),
        ({}, {"recipe": recipe("tr"), "teacher": make_model()}, "nothing in tr learns from a teacher"),
    ]
    for changes, options, error in faults:
        made = recipe(**{"teacher__model": str(teacher), **changes})
        good: dict[str, Any] = {"recipe": made, "data": data, "model": make_model(), "cache": tmp_path / "cache"}
        with pytest.raises(ValueError, match=error):
            train(out=tmp_path / "run", **{**good, **options})
    assert not (tmp_path / "run").exists()
