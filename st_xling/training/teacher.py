"""Teachers: another model's vectors as a column of labels, computed once and read by row while training.

:func:`add_teacher_vectors` adds the column in one step; recipes take two, :func:`encode_by_teacher` and
:meth:`TeacherVectors.add_to`, since they record the teacher before the student is loaded. The vectors are cached (see
:mod:`st_xling.training.sentence_vectors`), so that a killed run resumes with the first thousands of texts that it
lacks, and other runs with the same teacher and text compute nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from torch import Tensor

from st_xling.data.pairs import append_columns
from st_xling.data.text_cells import column_texts, text_columns
from st_xling.models import load_encoder
from st_xling.models.backbones import normalizes
from st_xling.models.encoding import encode, own_prompt, prompt_text
from st_xling.models.sidecar import card_terms, model_fingerprint
from st_xling.training.options import TeacherOptions
from st_xling.training.sentence_vectors import CachedVectors, cache_folder, cached_vectors, check_cache
from st_xling.utils import distributed
from st_xling.utils.io import is_intact, record_hash
from st_xling.utils.options import check_choice
from st_xling.utils.signature import name_of

logger = logging.getLogger(__name__)

Reads = Literal["target", "source", "both"]

OUTPUT = "output"
LABEL = "label"
LABEL_COLUMNS = ("label", "labels", "score", "scores")
"""Columns of which sentence-transformers' trainer takes the first that a data set has for its labels."""
_ROWS = 4096


def add_teacher_vectors(
    dataset: Dataset,
    teacher: SentenceTransformer | str,
    *,
    reads: Reads = "target",
    student: SentenceTransformer | None = None,
    dim: int | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    cache: str | Path | None = None,
) -> Dataset:
    """Add a teacher's vectors as the column ``label``, which ``MSELoss`` and ``EmbedDistillLoss`` learn from.

    Vectors and labels are files in the cache's folder that are mapped into memory: a column takes ``4 * rows * dim``
    bytes on disk, twice that where both texts are read. A call that was interrupted resumes with the first 20,480
    texts that it lacks; another call with the same teacher and texts encodes nothing. Of several processes that train
    together, the main one encodes; all must call this function, not within ``main_process_first``, and share the
    folder.

    Args:
        dataset: Pairs with ``source`` and ``target``, in memory or on disk; no stream.
        teacher: Model to learn from, or the Hub id or folder of one. Load it by
            :func:`~st_xling.models.load_encoder` to choose a revision or its dimensions.
        reads: Column whose vectors are the labels of both sentences: ``"target"`` or ``"source"``; ``"both"``: each
            sentence has its own vector, for a teacher that knows both languages.
        student: Model that will learn. The labels then have its dimensions, the directions in which the teacher's
            vectors are longest, and length 1 if it normalizes its embeddings. A student that does not, with a teacher
            whose vectors have length 1, gets a ``Normalize`` appended: it would otherwise unlearn what it knows while
            it shrinks them. ``None``: the labels are the teacher's vectors, for losses with a ``projection_dim``.
        dim: Number of dimensions, in place of a student; labels of a teacher whose vectors have length 1 have it, too.
        prompt: Text before each text that the teacher reads; ``None``: its own; ``""``: none.
        prompt_name: One of the teacher's own prompts, instead.
        cache: Folder of the cache; ``None``: one next to downloaded models.

    Returns:
        ``dataset`` with the column ``label``: float32. *Shape of each row:* ``(dim,)``; of both columns ``(2, dim)``.
        If ``dataset`` has no format, this one's is ``"torch"``: a batch is read six times as fast as lists of numbers.

    Raises:
        TypeError: No data set.
        ValueError: A stream, missing or empty columns, a label that is there already; both a student and ``dim``; more
            dimensions than the teacher has, or fewer texts than dimensions that are to be chosen.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> from st_xling.models import tiny_encoder
        >>> pairs = parallel_phrases("de", "en", size=20).select_columns(["source", "target"])
        >>> teacher = tiny_encoder(pairs["target"][:], vocabulary=200, hidden_size=16)
        >>> taught = add_teacher_vectors(pairs, teacher, cache="vectors")
        >>> taught.column_names, taught[0]["label"].shape
        (['source', 'target', 'label'], torch.Size([16]))
    """
    if student is not None and dim is not None:
        raise ValueError(f"the labels' dimensions are those of student= or dim=: got both, dim={dim}; name one.")

    def load() -> SentenceTransformer:
        return load_encoder(teacher) if isinstance(teacher, str) else teacher

    vectors = encode_by_teacher(
        dataset,
        load,
        reads=reads,
        prompt=prompt,
        prompt_name=prompt_name,
        cache=cache,
    )
    return vectors.add_to(dataset, student=student, dim=dim)


@dataclass(frozen=True)
class TeacherVectors:
    """A teacher's vectors of the texts of a data set, in files that are mapped into memory.

    Attributes:
        vectors: Vector of each text.
        reads: Column of the texts, or ``"both"``.
        folder: Folder of the cache.
        fingerprint: Fingerprint of the teacher, with its prompt.
        description: ``model``, the first digits of its ``fingerprint``, and its ``license`` where its card has one.
    """

    vectors: CachedVectors = field(repr=False)
    reads: Reads
    folder: Path
    fingerprint: str
    description: Mapping[str, str]

    @property
    def dim(self) -> int:
        """Number of dimensions of the teacher's vectors."""
        return self.vectors.dim

    @property
    def have_length_1(self) -> bool:
        """True if the first thousand vectors have length 1, as those of a model that normalizes."""
        return torch.allclose(self.vectors[:1000].norm(dim=1), torch.ones(()), atol=1e-2)

    def can_have(self, dim: int) -> bool:
        """Return whether labels of so many dimensions can be made: the vectors' own, or fewer that PCA can choose."""
        return dim == self.dim or (dim < self.dim and dim <= len(self.vectors))

    def add_to(
        self, dataset: Dataset, *, student: SentenceTransformer | None = None, dim: int | None = None
    ) -> Dataset:
        """Add the column ``label`` to the data set whose texts were encoded; see :func:`add_teacher_vectors`.

        Args:
            dataset: Data set whose texts were encoded.
            student: Model that will learn.
            dim: Number of dimensions, in place of a student.

        Raises:
            ValueError: More dimensions than the teacher has, or fewer texts than dimensions that are to be chosen.
        """
        _check_pairs(dataset, self.reads)
        if student is not None:
            dim = int(student.get_embedding_dimension() or 0)
            self._check_dim(dim, "a student", "let the loss project its embeddings, by projection_dim={0}, with no")
            if self.have_length_1 and not normalizes(student):
                logger.info("the teacher's vectors have length 1: the student's are normalized, too")
                student.append(Normalize())
            unit = normalizes(student)
        elif dim is not None:
            self._check_dim(dim, "a label", "choose at most {0}, or leave out")
            unit = self.have_length_1
        else:
            unit = False
        directions = None
        if dim is not None and dim < self.dim:
            directions, share = principal_directions(self.vectors, dim)
            logger.info(
                "the teacher's %d dimensions are reduced to %d, with %.1f %% of its squares", self.dim, dim, 100 * share
            )
        labels = self._label_column(dataset, directions, unit)
        taught = append_columns(dataset, labels)
        return taught if dataset.format["type"] is not None else taught.with_format("torch")

    def _label_column(self, dataset: Dataset, directions: torch.Tensor | None, unit: bool) -> Dataset:
        """Write the labels of all rows into a file of the cache, unless it is there, and map it into memory."""
        columns = columns_read(self.reads)
        dim = self.dim if directions is None else directions.shape[1]
        texts = dataset.select_columns(list(columns))
        digest = hashlib.sha256(f"{self.fingerprint} {self.reads} {dim} {unit}".encode())
        for text in column_texts(texts, *columns):
            digest.update(f"{text}\0".encode("utf-8", "surrogatepass"))
        key = digest.hexdigest()

        def labels_of(rows: list[dict[str, str]]) -> Tensor:
            return teacher_labels(rows, vectors=self.vectors, reads=self.reads, directions=directions, unit=unit)

        return write_labels(texts, labels_of, folder=self.folder, key=key)

    def _check_dim(self, dim: int, whose: str, remedy: str) -> None:
        if dim < 1:
            raise ValueError(f"labels have at least 1 dimension: got {whose} of {dim} dimensions.")
        if not self.can_have(dim):
            texts = f", of {len(self.vectors):,} texts" if dim <= self.dim else ""
            raise ValueError(
                f"{whose} of {dim} dimensions learns at most as many from its teacher: got vectors of {self.dim} "
                f"dimensions{texts}; {remedy.format(self.dim)} student= and dim=."
            )


def write_labels(
    texts: Dataset, labels_of: Callable[[list[dict[str, str]]], Tensor], *, folder: Path, key: str
) -> Dataset:
    """Write the labels of all rows into a file of a cache, unless it is there, and map it into memory.

    Of several processes that train together, the main one writes.

    Args:
        texts: Texts of each row.
        labels_of: Returns the labels of some rows. *Shape:* ``(rows, dim)`` or ``(rows, columns, dim)``
        folder: Folder of the cache.
        key: Hash of everything that the labels depend on.

    Returns:
        A data set of the column ``label``.
    """

    def label(table: pa.Table) -> pa.Table:
        labels = labels_of(table.to_pylist())
        cells = pa.array(labels.numpy().ravel())
        for size in reversed(labels.shape[1:]):
            cells = pa.FixedSizeListArray.from_arrays(cells, size)
        return pa.table({LABEL: cells})

    path = folder / f"{key[:32]}.arrow"

    def write() -> None:
        intact = is_intact(path)
        _map_labels(texts, label, path, key, from_cache=intact)
        if not intact:
            record_hash(path)

    distributed.run_on_main(write)
    return _map_labels(texts, label, path, key, from_cache=True)


def _map_labels(
    texts: Dataset, label: Callable[[pa.Table], pa.Table], path: Path, key: str, *, from_cache: bool
) -> Dataset:
    labels = texts.with_format("arrow").map(
        label,
        batched=True,
        batch_size=_ROWS,
        remove_columns=texts.column_names,
        desc="labels",
        new_fingerprint=key,
        cache_file_name=str(path),
        load_from_cache_file=from_cache,
    )
    return labels.with_format(None)


def encode_by_teacher(
    dataset: Dataset,
    load: Callable[[], SentenceTransformer],
    *,
    reads: Reads = "target",
    prompt: str | None = None,
    prompt_name: str | None = None,
    cache: str | Path | None = None,
    check: Callable[[str], None] | None = None,
) -> TeacherVectors:
    """Encode the texts that a teacher reads; of several processes that train together, the main one does.

    Args:
        dataset: Pairs with ``source`` and ``target``.
        load: Returns the teacher; only the main process calls it.
        reads: Column of the texts, or ``"both"``.
        prompt: Text before each text; ``None``: the teacher's own; ``""``: none.
        prompt_name: One of the teacher's own prompts, instead.
        cache: Folder of the cache; ``None``: one next to downloaded models.
        check: Called with the teacher's fingerprint before it encodes; raises an error for another one than expected.

    Raises:
        TypeError, ValueError: As :func:`add_teacher_vectors`.
    """
    check_choice("reads", reads, Reads)
    _check_pairs(dataset, reads)
    check_cache(cache)
    texts = list(dict.fromkeys(column_texts(dataset, *columns_read(reads))))
    if not texts or None in texts:
        got = "an empty data set" if not texts else "a row without"
        raise ValueError(f"a teacher reads text in every row of {' and '.join(columns_read(reads))}: got {got}.")

    def fill() -> dict[str, str]:
        model = load()
        read_prompt = prompt_text(model, prompt, prompt_name)
        if read_prompt == own_prompt(model):
            read_prompt = None
        fingerprint = model_fingerprint(model)
        if read_prompt is not None:
            fingerprint = hashlib.sha256(f"{fingerprint} {read_prompt}".encode()).hexdigest()
        name = name_of(model) or ""
        described = {"model": name or "a loaded model", "fingerprint": fingerprint}
        if check is not None:
            check(fingerprint)

        def vectors_of(block: list[str]) -> dict[str, np.ndarray]:
            return {OUTPUT: encode(model, block, prompt=read_prompt)}

        cached_vectors(texts, [OUTPUT], vectors_of, fingerprint=fingerprint, folder=cache)
        license = card_terms(name).get("license") if name else None
        return {**described, "license": license} if license else described

    distributed.init_distributed()
    described = distributed.run_on_main(fill)
    fingerprint = described["fingerprint"]
    vectors, _ = cached_vectors(texts, [OUTPUT], _encode_nothing, fingerprint=fingerprint, folder=cache)
    description = {**described, "fingerprint": fingerprint[:16]}
    return TeacherVectors(vectors[OUTPUT], reads, cache_folder(cache), fingerprint, description)


def _encode_nothing(texts: list[str]) -> dict[str, np.ndarray]:
    raise AssertionError(f"{len(texts)} texts should have been encoded by the main process")


def _check_pairs(dataset: Any, reads: Reads) -> None:
    """Raise an error for what is no data set of pairs, or has labels already."""
    if not isinstance(dataset, Dataset):
        if hasattr(dataset, "take"):
            raise ValueError(
                "a teacher reads all text before training: got a stream; load it whole, such as by load_pairs(…) "
                "without stream=True."
            )
        raise TypeError(
            f"expected a data set of pairs, got {type(dataset).__name__}; call add_teacher_vectors for each of "
            "several, and wrap lists by Dataset.from_dict."
        )
    names = text_columns(dataset)
    if missing := [name for name in columns_read(reads) if name not in names]:
        raise ValueError(
            f"a teacher reads the text columns {' and '.join(columns_read(reads))}: got {', '.join(names) or 'none'}, "
            f"without {' and '.join(missing)}; rename them: dataset.rename_columns({{…}})."
        )
    if taken := [name for name in LABEL_COLUMNS if name in dataset.column_names]:
        raise ValueError(
            f"the data set has labels already, in {taken[0]}; to replace them by the teacher's vectors, remove the "
            f"column first: dataset.remove_columns({taken})."
        )


def load_teacher(options: TeacherOptions) -> SentenceTransformer:
    """Load the teacher that a recipe names."""
    if options.model is None:
        raise ValueError(
            "the recipe's losses learn from a teacher, an encoder: got none; name it by data.teacher.model (--teacher)."
        )
    return load_encoder(
        options.model,
        max_length=options.max_length,
        revision=options.revision,
        prompt=options.prompt,
        prompt_name=options.prompt_name,
        truncate_dim=options.truncate_dim,
        trust_remote_code=options.trust_remote_code,
    )


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
        rows: Rows of the training data.
        vectors: Vectors of all texts that the teacher reads.
        reads: The column of these texts, or ``"both"``.
        directions: What they are projected on, where the student has fewer dimensions. *Shape:* ``(teacher, student)``
        unit: Whether they are scaled to length 1, as a student that normalizes has them.

    Returns:
        *Shape:* ``(batch, dim)``; of both columns ``(batch, 2, dim)``
    """
    columns: list[Tensor] = []
    for name in columns_read(reads):
        texts = [row[name] for row in rows]
        columns.append(vectors.of(texts))
    labels = columns[0] if len(columns) == 1 else torch.stack(columns, dim=1)
    if directions is not None:
        labels = labels @ directions
    return F.normalize(labels, dim=-1) if unit else labels


def columns_read(reads: str) -> tuple[str, ...]:
    """The columns that ``reads`` names."""
    return ("source", "target") if reads == "both" else (reads,)


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
    # A direction's sign is arbitrary: its largest component is made positive.
    largest = best.gather(0, best.abs().argmax(dim=0, keepdim=True))
    directions = (best * largest.sign()).float()
    share = float(values[-dim:].sum() / values.sum())
    return directions, share
