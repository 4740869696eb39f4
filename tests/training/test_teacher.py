"""Learning from another model: its vectors, computed once, are the labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MSELoss
from sentence_transformers.sentence_transformer.modules import Normalize
from torch.nn import functional as F

from st_xling.cli import main
from st_xling.training import load_recipe, sentence_vectors, train
from st_xling.training import teacher as teaching
from st_xling.training.hard_negatives import add_hard_negatives
from st_xling.training.options import TeacherOptions
from st_xling.training.run_folder import RunFolder
from st_xling.training.sentence_vectors import CachedVectors
from st_xling.training.teacher import TeacherVectors, add_teacher_vectors, load_teacher, principal_directions
from st_xling.training.trainer import CrossLingualTrainer
from tests.training.children import stop_at

STEPS = {"arguments.max_steps": 6, "arguments.per_device_train_batch_size": 8, "arguments.eval_steps": 2}
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
    seen = []
    original = CrossLingualTrainer.compute_loss

    def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(inputs["label"])
        return original(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(CrossLingualTrainer, "compute_loss", compute_loss)
    student = make_model(hidden_size=24)
    made = recipe(data__teacher__model=str(teacher), data__teacher__reads=reads, arguments__learning_rate=1e-3)
    result = train(made, data, tmp_path / "run", model=student, cache=tmp_path / "cache")
    vectors, labels = SentenceTransformer(str(teacher)).encode(data["vi-en"]["target"][:]), seen[0]  # by its own prompt
    assert labels.shape == ((8, 24) if reads == "target" else (8, 2, 24))
    expected = labels if reads == "target" else labels[:, 1]
    assert (expected @ torch.tensor(vectors).T).max(dim=1).values.min() > 0.9999
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
    made = recipe(data__teacher__model=str(teacher), **projection)
    width = 16 if projection else 24
    options = {"cache": tmp_path / "cache"}
    train(made, data, tmp_path / "whole", model=make_model(hidden_size=width), **options)
    with monkeypatch.context() as patch:
        stop_at(patch, CrossLingualTrainer, 4)
        with pytest.raises(KeyboardInterrupt):
            train(made, data, tmp_path / "run", model=make_model(hidden_size=width), **options)
    other = recipe(data__teacher__model=str(teacher), data__teacher__max_length=8, **projection)
    with pytest.raises(ValueError, match=r"--resume must repeat .*recipe\.data\.teacher\.max_length"):
        train(other, data, tmp_path / "run", model=make_model(hidden_size=width), resume=True)
    train(made, data, tmp_path / "run", model=make_model(hidden_size=width), resume=True, **options)
    undisturbed, run = (SentenceTransformer(str(tmp_path / name)) for name in ("whole", "run"))
    assert [type(module) for module in run] == [type(module) for module in undisturbed]
    assert isinstance(run[-1], Normalize) != bool(projection)
    torch.testing.assert_close(run.state_dict(), undisturbed.state_dict())
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


def teacher_of(matrix: torch.Tensor, folder: Path) -> TeacherVectors:
    return TeacherVectors(rows_of(matrix), "target", folder, "0" * 64, {"model": "a teacher"})


@pytest.mark.parametrize(("length", "learns", "normalized"), [
    (1.0, True, True),
    (3.0, True, False),
    (1.0, False, False),  # the losses project its embeddings
])  # fmt: skip
def test_a_student_normalizes_where_its_teacher_does(
    length: float, learns: bool, normalized: bool, make_model: Any, tmp_path: Path
) -> None:
    student = make_model(hidden_size=16)
    matrix = length * F.normalize(torch.randn(40, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    rows = [str(row) for row in range(40)]
    pairs = Dataset.from_dict({"source": rows, "target": rows})
    taught = teacher_of(matrix, tmp_path).add_to(pairs, student=student if learns else None)
    torch.testing.assert_close(labels_of(taught), matrix)
    lengths = np.linalg.norm(student.encode(["Hallo.", "Good night."]), axis=1)
    assert np.allclose(lengths, 1.0, atol=1e-5) is normalized


def test_teachers_students_and_data_that_do_not_fit(teacher: Path, data: Any, make_model: Any, tmp_path: Path) -> None:
    rows = data["vi-en"]
    faults: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"data__teacher__model": None}, {}, "learn from a teacher, an encoder: got none; .*--teacher"),
        ({f"losses__{MSE}__projection_dim": 7}, {}, "projection_dim must be the teacher's 24 dimensions.* got 7"),
        ({"data__teacher__model": "nowhere/at-all"}, {}, "nowhere/at-all"),
        ({"data__teacher__prompt_name": "passage"}, {}, "passage"),
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
        made = recipe(**{"data__teacher__model": str(teacher), **changes})
        good: dict[str, Any] = {"recipe": made, "data": data, "model": make_model(), "cache": tmp_path / "cache"}
        with pytest.raises(ValueError, match=error):
            train(out=tmp_path / "run", **{**good, **options})
    assert not (tmp_path / "run").exists()


def labels_of(dataset: Dataset) -> torch.Tensor:
    return torch.tensor(dataset.with_format(None)["label"][:])


@pytest.mark.parametrize("reads", ["target", "source", "both"])
@pytest.mark.parametrize("width", [24, 16])
def test_the_column_has_the_teachers_vectors(
    reads: Any, width: int, teacher: Path, data: Any, make_model: Any, tmp_path: Path
) -> None:
    """In every row: of a student with the teacher's dimensions and of one with fewer, which get directions of PCA."""
    pairs = data["vi-en"]
    student = make_model(hidden_size=width)
    taught = add_teacher_vectors(pairs, str(teacher), reads=reads, student=student, cache=tmp_path / "cache")
    assert taught.column_names == [*pairs.column_names, "label"]
    assert taught.select_columns(pairs.column_names).with_format(None)[:] == pairs[:]
    model = SentenceTransformer(str(teacher))
    columns = ["source", "target"] if reads == "both" else [reads]
    expected = torch.stack([model.encode(pairs[name][:], convert_to_tensor=True) for name in columns], dim=1).cpu()
    if width < 24:
        texts = dict.fromkeys(text for row in zip(*(pairs[name] for name in columns)) for text in row)
        vectors = model.encode([*texts], convert_to_tensor=True).double().cpu()
        directions = torch.linalg.svd(vectors, full_matrices=False).Vh[:width].T.float()
        projected = F.normalize(expected @ directions, dim=-1)
        # A direction's sign is arbitrary; dot products are not.
        labels = labels_of(taught).reshape(-1, width)
        torch.testing.assert_close(
            labels @ labels.T, (rows := projected.reshape(-1, width)) @ rows.T, rtol=0, atol=1e-4
        )
    else:
        torch.testing.assert_close(labels_of(taught), expected.squeeze(1), rtol=0, atol=1e-6)
    assert isinstance(student[-1], Normalize)  # as its teacher does
    assert pa.types.is_float32(taught.data.schema.field("label").type.value_type) or reads == "both"


@pytest.mark.parametrize("name", ["CrossLingualTrainer", "SentenceTransformerTrainer"])
@pytest.mark.parametrize("reads", ["target", "both"])
def test_both_trainers_learn_from_the_column(
    name: str, reads: Any, teacher: Path, data: Any, make_model: Any, tmp_path: Path
) -> None:
    """MSE at the first step, recomputed from the model's and the teacher's embeddings; and it falls."""
    trainers: dict[str, Any] = {kind.__name__: kind for kind in (CrossLingualTrainer, SentenceTransformerTrainer)}
    student = make_model(hidden_size=24)
    pairs = data["vi-en"].select_columns(["source", "target"])
    taught = add_teacher_vectors(pairs, str(teacher), reads=reads, student=student, cache=tmp_path / "cache")
    first, of_target = ([*student.encode(pairs[column][:])] for column in ("source", "target"))
    vectors = {column: SentenceTransformer(str(teacher)).encode(pairs[column][:]) for column in ("source", "target")}
    source_labels = vectors["source"] if reads == "both" else vectors["target"]
    expected = (np.mean((first - source_labels) ** 2) + np.mean((of_target - vectors["target"]) ** 2)) / 2
    args = SentenceTransformerTrainingArguments(
        str(tmp_path / "run"),
        max_steps=8,
        per_device_train_batch_size=24,
        learning_rate=1e-2,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = trainers[name](model=student, args=args, train_dataset=taught, loss=MSELoss(student))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[0] == pytest.approx(expected, rel=1e-3) and losses[-1] < losses[0]


def test_labels_are_files_and_are_made_once(
    teacher: Path, data: Any, make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten million vectors would not fit into memory. Rows can be chosen, saved and mapped as any others."""
    pairs = data["vi-en"]
    cache = tmp_path / "cache"
    complete = add_teacher_vectors(pairs, str(teacher), cache=cache)
    assert any(Path(file["filename"]).parent == cache for file in complete.cache_files)
    monkeypatch.setattr(teaching, "encode", None)  # whatever would encode now, fails
    monkeypatch.setattr(teaching, "teacher_labels", None)
    again = add_teacher_vectors(pairs, str(teacher), cache=cache)
    assert torch.equal(labels_of(again), labels_of(complete))
    assert torch.equal(labels_of(complete.select([3, 1])), labels_of(complete)[[3, 1]])
    lengths = complete.map(lambda row: {"length": len(row["label"])}, remove_columns=["label"])
    assert lengths["length"][:].tolist() == [24] * len(pairs)
    complete.save_to_disk(str(tmp_path / "saved"))
    assert torch.equal(labels_of(Dataset.load_from_disk(str(tmp_path / "saved"))), labels_of(complete))


def test_labels_are_read_as_tensors_and_formats_are_kept(teacher: Path, data: Any, tmp_path: Path) -> None:
    """As lists of numbers, 128 labels of 384 dimensions took 25 ms; and negatives next to them made them lists."""
    pairs = data["vi-en"]
    taught = add_teacher_vectors(pairs, str(teacher), cache=tmp_path)
    with_negatives = add_hard_negatives(taught, SentenceTransformer(str(teacher)))
    for part in (
        taught,
        with_negatives,
        with_negatives.select([3]),
        next(iter(with_negatives.to_iterable_dataset().batch(2))),
    ):
        label = part["label"][0]
        assert isinstance(label, torch.Tensor) and label.dtype == torch.float32
    assert isinstance(with_negatives[0]["source"], str) and with_negatives.column_names[-2:] == ["label", "negative_1"]
    arrays = add_teacher_vectors(pairs.with_format("numpy", columns=["target"]), str(teacher), cache=tmp_path)
    assert arrays.format["type"] == "numpy" and set(arrays[0]) == {"target", "label"}


def test_damaged_labels_are_made_again(teacher: Path, data: Any, tmp_path: Path, caplog: Any) -> None:
    pairs = data["vi-en"]
    cache = tmp_path / "cache"
    intact = labels_of(add_teacher_vectors(pairs, str(teacher), cache=cache))
    for path in cache.glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:-40])
    assert torch.equal(labels_of(add_teacher_vectors(pairs, str(teacher), cache=cache)), intact)
    assert caplog.text.count("is damaged: it is made again") == 2


def test_rows_and_students_have_labels_of_their_own(teacher: Path, data: Any, make_model: Any, tmp_path: Path) -> None:
    """Equal texts share a vector, an order of rows is kept, and another prompt or student is another file."""
    pairs = data["vi-en"]
    cache = tmp_path / "cache"
    model = SentenceTransformer(str(teacher))
    intact = labels_of(add_teacher_vectors(pairs, model, cache=cache))
    order = [5, 5, 0, *range(10, 24)]
    assert torch.equal(labels_of(add_teacher_vectors(pairs.select(order), model, cache=cache)), intact[order])
    for prompt in ("", "passage: "):
        plain = labels_of(add_teacher_vectors(pairs, model, prompt=prompt, cache=cache))
        expected = torch.tensor(model.encode(pairs["target"][:], prompt=prompt))
        torch.testing.assert_close(plain, expected, rtol=0, atol=1e-6)
        assert not torch.allclose(plain, intact, atol=1e-3)
    assert torch.equal(labels_of(add_teacher_vectors(pairs, model, prompt_name="query", cache=cache)), intact)
    fewer = labels_of(add_teacher_vectors(pairs, model, dim=8, cache=cache))
    torch.testing.assert_close(fewer.norm(dim=1), torch.ones(len(pairs)))
    assert fewer.shape == (len(pairs), 8)
    student = make_model(hidden_size=8)
    assert torch.equal(labels_of(add_teacher_vectors(pairs, model, student=student, cache=cache)), fewer)


TWO = Dataset.from_dict({"source": ["Es regnet.", "Ich weiß."], "target": ["It rains.", "I know."]})


@pytest.mark.parametrize(("dataset", "options", "error"), [
    (TWO.to_iterable_dataset(), {}, "a teacher reads all text before training: got a stream"),
    (DatasetDict({"train": TWO}), {}, "expected a data set of pairs, got DatasetDict"),
    (TWO.rename_column("target", "en"), {}, "reads the text columns target: got source, en, without target; rename"),
    (TWO.rename_column("source", "de"), {"reads": "both"}, "source and target: got de, target, without source"),
    (TWO, {"reads": "english"}, "reads must be one of target, source, both: got 'english'"),
    (TWO.add_column("label", [0, 1]), {}, "has labels already, in label; .*remove_columns"),
    (TWO.add_column("score", [0.5, 1.0]), {}, "has labels already, in score"),
    (TWO.select([]), {}, "reads text in every row of target: got an empty data set"),
    (Dataset.from_dict({"source": ["a"], "target": ["b"]}).map(lambda row: {"target": None},
        features=TWO.features), {}, "got a row without"),
    (TWO, {"dim": 8, "student": "any"}, "those of student= or dim=: got both, dim=8"),
    (TWO, {"cache": __file__}, "must be a folder"),
])  # fmt: skip
def test_errors_come_before_the_teacher_is_loaded(dataset: Any, options: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        add_teacher_vectors(dataset, "nowhere/at-all", **options)


def test_dimensions_that_the_teacher_does_not_have(teacher: Path, data: Any, make_model: Any, tmp_path: Path) -> None:
    pairs = data["vi-en"]
    options: dict[str, Any] = {"cache": tmp_path}
    with pytest.raises(ValueError, match="a student of 32 dimensions .* got vectors of 24 .*projection_dim=24"):
        add_teacher_vectors(pairs, str(teacher), student=make_model(hidden_size=32), **options)
    with pytest.raises(ValueError, match="a label of 32 dimensions .* choose at most 24"):
        add_teacher_vectors(pairs, str(teacher), dim=32, **options)
    with pytest.raises(ValueError, match="a label of 16 dimensions .* of 8 texts"):
        add_teacher_vectors(pairs.select(range(8)), str(teacher), dim=16, **options)
    with pytest.raises(ValueError, match="a label of 0 dimensions"):
        add_teacher_vectors(pairs, str(teacher), dim=0, **options)


def test_an_interrupted_call_resumes_with_the_texts_it_lacks(
    teacher: Path, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the third of six files: the first two are not encoded again, and the labels are the same."""
    pairs = data["vi-en"]
    undisturbed = labels_of(add_teacher_vectors(pairs, str(teacher), cache=tmp_path / "whole"))
    monkeypatch.setattr(sentence_vectors, "FILE_TEXTS", 4)
    counts: list[int] = []
    encode = teaching.encode

    def counted(model: Any, texts: Any, **options: Any) -> Any:
        if len(counts) == 2:
            counts.append(0)
            raise KeyboardInterrupt
        counts.append(len(texts))
        return encode(model, texts, **options)

    monkeypatch.setattr(teaching, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        add_teacher_vectors(pairs, str(teacher), cache=tmp_path / "run")
    resumed = add_teacher_vectors(pairs, str(teacher), cache=tmp_path / "run")
    assert counts[:3] == [4, 4, 0] and sum(counts[3:]) == len(set(pairs["target"])) - 8
    torch.testing.assert_close(labels_of(resumed), undisturbed, rtol=0, atol=1e-6)
