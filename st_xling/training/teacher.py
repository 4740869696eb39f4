"""Teachers: another model's vectors as labels, computed once and read by row while training.

They are cached (see :mod:`st_xling.training.sentence_vectors`), so that a killed run resumes with the first thousands
of texts that it lacks, and other runs with the same teacher and text compute nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Normalize
from torch import Tensor

from st_xling.data.text_columns import column_texts
from st_xling.models import load_encoder
from st_xling.models.backbone import normalizes
from st_xling.models.encode import encode
from st_xling.models.sidecar import card_terms, model_fingerprint
from st_xling.training.options import TeacherOptions
from st_xling.training.sentence_vectors import CachedVectors, cached_vectors
from st_xling.utils import distributed
from st_xling.utils.signature import name_of

logger = logging.getLogger(__name__)

OUTPUT = "output"
_ROWS = 4096


def load_teacher(options: TeacherOptions) -> Any:
    """Load the teacher that a recipe names."""
    given = {key: value for key, value in asdict(options).items() if key not in ("model", "reads")}
    given = {key: value for key, value in given.items() if value not in (None, False)}  # a prompt "" is none
    if options.model is None:
        raise ValueError(
            "the recipe's losses learn from a teacher, an encoder: got none; name it by teacher.model (--teacher)."
        )
    return load_encoder(options.model, **given)


def teacher_vectors(
    recipe: Any, teacher: Any, folder: str | Path | None, pairs: Any
) -> tuple[CachedVectors | None, dict[str, Any]]:
    """Encode the texts of ``pairs`` that a recipe's teacher reads; of several processes, the main one does.

    Args:
        recipe: With ``teacher``, its options, and ``taught``, the losses that learn from it.
        teacher: A loaded one, in place of the recipe's.
        folder: Folder of the cache; ``None``: one next to downloaded models.
        pairs: The training data.

    Returns:
        The vectors, and under ``teacher`` a description of the model; ``None`` and nothing without a teacher.

    Raises:
        ValueError: No teacher; a model that cannot be loaded.
    """
    if not recipe.taught:
        return None, {}
    options, texts = recipe.teacher, list(dict.fromkeys(column_texts(pairs, *columns_read(recipe.teacher.reads))))

    def fill() -> dict[str, str]:
        model = load_teacher(options) if teacher is None else teacher
        name = (options.model if teacher is None else name_of(teacher)) or ""
        described = {"model": name or "a loaded model", "fingerprint": model_fingerprint(model)}
        read(described["fingerprint"], lambda part: {OUTPUT: encode(model, part)})
        license = card_terms(name).get("license") if name else None
        return {**described, "license": license} if license else described

    def read(fingerprint: str, encode: Any = None) -> CachedVectors:
        vectors, _ = cached_vectors(texts, [OUTPUT], encode, fingerprint=fingerprint, folder=folder)
        return vectors[OUTPUT]

    described = distributed.run_on_main(fill)
    vectors = read(described["fingerprint"])
    return vectors, {"teacher": {**described, "fingerprint": described["fingerprint"][:16]}}


def teacher_labels(
    rows: Sequence[Mapping[str, Any]],
    *,
    vectors: CachedVectors,
    reads: str,
    directions: Tensor | None = None,
    unit: bool = False,
) -> Tensor:
    """Return the labels of a batch: the teacher's vectors, as the student is to learn them.

    Args:
        rows: Of the training data.
        vectors: Of all texts that the teacher reads.
        reads: The column of these texts, or ``"both"``.
        directions: What they are projected on, where the student has fewer dimensions. *Shape:* ``(teacher, student)``
        unit: Whether they are scaled to length 1, as a student that normalizes has them.

    Returns:
        *Shape:* ``(batch, dim)``; of both columns ``(batch, 2, dim)``
    """
    columns = [vectors.of([row[name] for row in rows]) for name in columns_read(reads)]
    labels = columns[0] if len(columns) == 1 else torch.stack(columns, dim=1)
    if directions is not None:
        labels = labels @ directions
    return F.normalize(labels, dim=-1) if unit else labels


def columns_read(reads: str) -> tuple[str, ...]:
    """The columns that :attr:`TeacherOptions.reads` names."""
    return ("source", "target") if reads == "both" else (reads,)


def vectors_for(student: Any, rows: CachedVectors, recipe: Any) -> Callable[[Sequence[Mapping[str, Any]]], Tensor]:
    """Choose the labels in the student's dimensions, or, where the losses project the student's, in their own.

    Of vectors of length 1 a student learns directions: one that does not normalize its own gets a ``Normalize``, in
    place, or it would unlearn what it knows while it shrinks them.

    Args:
        student: To be trained.
        rows: The teacher's vectors.
        recipe: With ``taught``, the losses that learn from them, and their options.

    Raises:
        ValueError: A student with more dimensions and no projection; a projection to others than the teacher's; fewer
            texts than dimensions that are left.
    """
    dim, own, losses, reads = rows.dim, student.get_embedding_dimension(), recipe.taught, recipe.teacher.reads
    projections = {name: options.get("projection_dim") for name, options in losses.items()}
    if any(projections.values()):
        if wrong := [name for name, size in projections.items() if size != dim]:
            raise ValueError(
                f"losses.{wrong[0]}.projection_dim must be the teacher's {dim} dimensions, in each loss that learns "
                f"from it: got {projections[wrong[0]]}."
            )
        return partial(teacher_labels, vectors=rows, reads=reads)
    if own > dim or dim > own > len(rows):
        have = f"the teacher's vectors have {dim} dimensions, of {len(rows):,} texts" if own <= dim else f"{dim}"
        raise ValueError(
            f"a student of {own} dimensions learns at most as many from its teacher: got {have}; train a projection, "
            f"losses.{next(iter(losses))}.projection_dim={dim}."
        )
    if not normalizes(student) and torch.allclose(rows[:1000].norm(dim=1), torch.ones(()), atol=1e-2):
        logger.info("the teacher's vectors have length 1: the student's are normalized, too")
        student.append(Normalize())
    unit = normalizes(student)
    if own == dim:
        return partial(teacher_labels, vectors=rows, reads=reads, unit=unit)
    directions, share = principal_directions(rows, own)
    logger.info("the teacher's %d dimensions are reduced to %d, with %.1f %% of its squares", dim, own, 100 * share)
    return partial(teacher_labels, vectors=rows, reads=reads, directions=directions, unit=unit)


def principal_directions(rows: CachedVectors, dim: int) -> tuple[Tensor, float]:
    """The directions in which vectors are longest, by PCA about the origin, so that dot products are kept best.

    Args:
        rows: Vectors. *Shape:* ``(texts, teacher)``
        dim: Directions, most important first.

    Returns:
        float32, orthonormal columns. *Shape:* ``(teacher, dim)``. And their share of the vectors' squared lengths.
    """
    squares = torch.zeros(rows.dim, rows.dim, dtype=torch.float64)
    for start in range(0, len(rows), _ROWS):
        block = rows[np.arange(start, min(start + _ROWS, len(rows)))].double()
        squares += block.T @ block
    values, vectors = torch.linalg.eigh(squares)  # ascending
    best = vectors[:, -dim:].flip(1)
    largest = best.gather(0, best.abs().argmax(dim=0, keepdim=True))  # a direction's sign is arbitrary: made positive
    return (best * largest.sign()).float(), float(values[-dim:].sum() / values.sum())
