"""Options of mining two texts, of scoring a file of pairs and of planning either: each declared and documented once."""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from st_xling._version import __version__
from st_xling.mining.deduplication import DistinctText
from st_xling.mining.filters import FILTERS, FilterOptions, NeighborCounts, PairFilters
from st_xling.mining.mine import check_choice
from st_xling.mining.search.approximate import FAISS, check_factory
from st_xling.mining.search.exact import Neighbours, check_k
from st_xling.mining.search.find import check_search, choose_method, find_neighbours
from st_xling.mining.search.shards import tasks_of
from st_xling.mining.store import check_dtype
from st_xling.mining.thresholds import AUTO, PUBLISHED
from st_xling.mining.vectors import (
    Encoder,
    GivenEmbeddings,
    VectorMakers,
    embeddings_of,
    model_names,
    vectors_from,
    ways,
)
from st_xling.utils.cosines import Embeddings
from st_xling.utils.devices import check_device
from st_xling.utils.loaded import name_of
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder, work_path

logger = logging.getLogger(__name__)

#: Names that ``format`` may take.
PAIR_FORMATS = ("tsv", "jsonl")

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True, eq=False)
class MiningConfig:
    """Options of :func:`~st_xling.mining.mine_texts`, :func:`~st_xling.mining.score_texts` and ``plan_mining``.

    Attributes:
        model: What embeds a text without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, ``.npy`` file or array with a row for each line of the source text.
        target_embeddings: The same of the target text.
        text_format: ``"lines"``, ``"bucc"`` or ``"jsonl"``; see :class:`~st_xling.mining.MiningText`.
        errors: ``"strict"`` or ``"replace"``, for bytes that are not UTF-8.
        batch_size: Most sentences of a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``.
        prompt: Put before every sentence, such as ``"query: "``.
        k: Neighbours that make up a sentence's neighbourhood.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        retrieval: ``"max"``, ``"intersect"``, ``"forward"`` or ``"backward"``; see :func:`~st_xling.mining.mine`.
        threshold: Minimum score of the kept pairs; all are kept by default. ``"published"``: that of the model's
            ``mining.json`` for the languages that ``filters`` name, or an error that names what differs (see
            :func:`~st_xling.mining.thresholds.match_published_threshold`). ``"auto"``, the default of the command
            line: the same, but all pairs are kept if none matches; ignored with ``calibrate_with``. Languages that are
            not named are identified from a sample of sentences. A resumed run keeps its threshold.
        calibrate_with: File of known translations from elsewhere, from which the threshold is estimated.
        target_precision: Estimated precision that the threshold must reach; by default that of the best estimated F1.
        rescore: A cross-encoder of one label, or the Hub id or folder of one: scores the pairs that were mined, source
            before target, and puts them in that order; a pair's margin score stays beside.
        rescore_threshold: Keep pairs that the cross-encoder scores at least this, after its activation; the others are
            rejects, for the reason ``rescore``.
        rescore_dtype: Type in which a cross-encoder that is loaded computes; by default that in which it was saved.
        filters: Enabled filters; by default all for mining, none for scoring, where every line has its score.
        rejects: File for the pairs that filters and the cross-encoder reject, as JSON lines.
        format: ``"tsv"`` or ``"jsonl"``, of the pairs.
        method: As for :func:`~st_xling.mining.search.find.find_neighbours`.
        index: Folder where the indexes of an approximate search are kept and found again; by default in the work.
        engine: As for :func:`~st_xling.mining.search.find.find_neighbours`.
        device: Where to embed and search; by default a GPU where there is one.
        memory_mib: Bound on the memory of one block of the search, in MiB.
        shard_rows: As for :func:`~st_xling.mining.search.find.find_neighbours`.
        save_seconds: Time between two saves of the search.
        work: Folder of the work; by default ``OUT.work``, or for a stream one that does not outlive the call.
        keep_work: Leave it when all is done.
        progress: Show bars on stderr.
    """

    model: Any = None
    source_embeddings: str | Path | np.ndarray | None = None
    target_embeddings: str | Path | np.ndarray | None = None
    text_format: str = "lines"
    errors: str = "strict"
    batch_size: int | None = None
    dtype: str = "float32"
    prompt: str | None = None
    k: int = 4
    margin: str = "ratio"
    retrieval: str = "max"
    threshold: float | str | None = None
    calibrate_with: str | Path | None = None
    target_precision: float | None = None
    rescore: Any = None
    rescore_threshold: float | None = None
    rescore_dtype: str | None = None
    filters: FilterOptions | None = None
    rejects: str | Path | None = None
    format: str = "tsv"
    method: str = "exact"
    index: str | Path | None = None
    engine: str = "local"
    device: str | None = None
    memory_mib: int = 256
    shard_rows: int | None = None
    save_seconds: float = 60.0
    work: str | Path | None = None
    keep_work: bool = False
    progress: bool = False

    @property
    def active_filters(self) -> FilterOptions:
        """The filters that are set, otherwise all."""
        return self.filters or FilterOptions()

    @property
    def place(self) -> str:
        """Device to embed and search on."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def looks_up(self) -> bool:
        """Whether a published threshold is looked for; a calibration comes before one that may be missing."""
        return isinstance(self.threshold, str) and (self.threshold != AUTO or self.calibrate_with is None)

    @property
    def number(self) -> float | None:
        """The threshold, where it is a number."""
        return None if isinstance(self.threshold, str) else self.threshold

    @property
    def search(self) -> dict[str, Any]:
        """Options of every search of this call."""
        names = ("k", "memory_mib", "shard_rows", "save_seconds", "progress")
        return {"device": self.place, **{name: getattr(self, name) for name in names}}

    def check(self) -> None:
        """Raise for what should not wait for an encoder or a search."""
        check_choice(margin=self.margin, threshold=self.number, retrieval=self.retrieval)
        self._check_threshold()
        for name in ("rescore_threshold", "rescore_dtype"):
            if self.rescore is None and getattr(self, name) is not None:
                raise ValueError(f"{name} needs rescore (--rescore): the cross-encoder that it is for.")
        if self.rescore_threshold is not None and not np.isfinite(self.rescore_threshold):
            raise ValueError(f"rescore_threshold must be a finite number: got {self.rescore_threshold}.")
        if self.index is not None and self.method == "exact":
            raise ValueError("index (--index) is for approximate search: got method 'exact'; leave one of them out.")
        if self.format not in PAIR_FORMATS:
            raise ValueError(f"format must be one of {', '.join(PAIR_FORMATS)}: got {self.format!r}.")
        check_search(self.method, self.engine)
        tasks_of(self.k, self.k, k=self.k, method=self.method, shard_rows=self.shard_rows)  # raises for shards below k
        check_dtype(self.dtype)
        for name in ("batch_size", "memory_mib"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1: got {name}={getattr(self, name)}.")
        if self.device is not None:
            check_device(self.device)

    def _check_threshold(self) -> None:
        if isinstance(self.threshold, str) and self.threshold not in (AUTO, PUBLISHED):
            raise ValueError(
                f"threshold must be a number, {AUTO!r}, {PUBLISHED!r} or None: got {self.threshold!r}; {PUBLISHED!r} "
                "is the model's own for the two languages."
            )
        if self.calibrate_with is None and self.target_precision is not None:
            raise ValueError("target_precision needs calibrate_with (--calibrate): a file of known translations.")
        if self.calibrate_with is not None and self.threshold not in (None, AUTO):
            raise ValueError("threshold and calibrate_with both set the threshold: choose one of them.")
        if self.calibrate_with is not None and self.model is None:
            raise ValueError(
                "calibrate_with needs the model (--model): known translations must be embedded like the text."
            )
        if self.target_precision is not None and not 0 < self.target_precision <= 1:
            raise ValueError(f"target_precision must lie in (0, 1]: got {self.target_precision}.")
        if self.threshold == PUBLISHED and name_of(self.model) is None:
            kind = "none" if self.model is None else f"a loaded {type(self.model).__name__}"
            raise ValueError(f"threshold 'published' needs the folder or the Hub id of a model (--model): got {kind}.")

    def check_files(self, out: Output, inputs: Sequence[Any]) -> None:
        """Raise if a result would replace an input or another result; what is no path is passed over."""
        read = [
            *inputs,
            name_of(self.model),
            self.source_embeddings,
            self.target_embeddings,
            self.calibrate_with,
            self.rescore,
        ]
        check_outputs(
            {"out": out, "rejects": self.rejects},
            read,
            folders={"work": work_path(out, self.work), "index": self.index},
        )

    def vector_makers(self, rows: dict[str, int]) -> tuple[VectorMakers, dict[str, Encoder]]:
        """What gives the vectors of texts of so many rows, see :func:`vectors_from`; of a dim that can be indexed."""
        makers, encoders = vectors_from(
            self.model,
            {"source": self.source_embeddings, "target": self.target_embeddings},
            rows,
            languages={
                "source": self.active_filters.source_language,
                "target": self.active_filters.target_language,
            },
            embeds=self.calibrate_with is not None,
            **{name: getattr(self, name) for name in ("batch_size", "dtype", "prompt", "engine")},
            device=self.place,
        )
        for maker in makers.values() if self.method.startswith(FAISS) else ():
            check_factory(self.method.removeprefix(FAISS), maker.dim)
        if named := {side: one.language for side, one in encoders.items() if one.language}:
            words = ", ".join(f"{side} {language}" for side, language in named.items())
            logger.info("text is centered by the mean of its language: %s", words)
        return makers, encoders

    def search_folders(self, folder: Path, method: str) -> dict[str, Any]:
        """Where in a work folder a search keeps its state, each method its own, and its indexes."""
        way = hashlib.sha256(f"{method} {self.shard_rows}".encode()).hexdigest()[:8]
        name = "search" if method == "exact" else f"search-{way}"
        return {"state_folder": folder / name, "index_folder": Path(self.index or folder / "indexes")}

    def written(self, folder: ResumableFolder) -> Path:
        """Where the pairs are written first."""
        return folder.path / f"pairs.{self.format}"

    @contextmanager
    def working(
        self, command: str, out: Output, hashes: Mapping[str, str], makers: VectorMakers
    ) -> Iterator[ResumableFolder]:
        """The work folder; when the block ends well, pairs and rejects go where they are wanted, and the work goes.

        Args:
            command: What is done.
            out: Where the pairs go.
            hashes: Of the texts, by name.
            makers: What gives the vectors.
        """
        # What embeddings and search depend on: other options may change while the work is resumed.
        task: dict[str, Any] = {"command": command, "k": self.k}
        task |= {f"{name} text": sha256 for name, sha256 in hashes.items()}
        for side, maker in makers.items():
            task |= {f"{side} {name}": value for name, value in maker.settings.items()}
        with work_folder(out, self.work, task) as folder:
            yield folder
            deliver(self.written(folder), out)
            if self.rejects is not None:
                deliver(folder.path / REJECTS, self.rejects)
            if not self.keep_work:
                folder.remove()

    def embed(
        self, texts: Mapping[str, DistinctText], makers: VectorMakers, folder: ResumableFolder
    ) -> tuple[tuple[Embeddings, Embeddings], str]:
        """Vectors of the distinct sentences of both texts, and the method to search them by."""
        source, target = (
            embeddings_of(text, makers[name], folder.path / name, progress=self.progress)
            for name, text in texts.items()
        )
        shape = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
        return (source, target), choose_method(self.method, *shape)

    def find(
        self, embeddings: tuple[Embeddings, Embeddings], method: str, folder: ResumableFolder, filters: FilterOptions
    ) -> tuple[tuple[Neighbours, Neighbours], PairFilters]:
        """Neighbors in both directions, and the filters with their counts; a search that was stopped resumes."""
        options = {**self.search, **self.search_folders(folder.path, method)}
        forward, backward = find_neighbours(*embeddings, method=method, engine=self.engine, **options)
        return (forward, backward), PairFilters(filters, counts=NeighborCounts.of(forward, backward))

    def signature(
        self,
        command: str,
        makers: VectorMakers,
        filters: PairFilters,
        *,
        method: str,
        threshold: str | None = None,
        choice: Sequence[str] = (),
        texts: Sequence[str],
    ) -> str:
        """One line that says what was done with what.

        Args:
            command: What was done.
            makers: What gave the vectors.
            filters: The filters that ran.
            method: By which neighbours were searched.
            threshold: What to say of it; by default the number.
            choice: Further words on how pairs were chosen.
            texts: Names and hashes.
        """
        number = "none" if self.number is None else f"{self.number:g}"
        words = [
            *(command, f"model:{model_names(makers)}", *(f"{name}:{value}" for name, value in ways(makers).items())),
            *(f"margin:{self.margin}", f"k:{self.k}", *choice),
            f"method:{method}" + (f"|shard_rows:{self.shard_rows}" if self.shard_rows and method != "exact" else ""),
            f"filters:{filters.signature}",
            *(f"threshold:{threshold or number}", "duplicates:merged", *texts, f"st-xling:{__version__}"),
        ]
        return "|".join(words)


def check_vectors(texts: Mapping[str, tuple[Sequence[str], DistinctText]], makers: VectorMakers, k: int) -> None:
    """Raise for what can be wrong with text and embeddings, before a work folder is made and anything is embedded.

    Args:
        texts: Sentences by row, and the distinct ones, by name.
        makers: What gives their vectors.
        k: Neighbours.
    Raises:
        ValueError: If a store is damaged or of another text, or ``k`` above the number of distinct sentences.
    """
    for name, (rows, _) in texts.items():
        maker = makers[name]
        if isinstance(maker, GivenEmbeddings):
            maker.check(rows)
    sources, targets = (len(distinct) for _, distinct in texts.values())
    check_k(k, sources, targets, kind="distinct ")


def rejection_lines(rejected: Mapping[str, int]) -> list[str]:
    """Number of pairs that each filter rejected, for a reader; empty if there are none."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.items() if reason in FILTERS)
    return [f"rejected by filters: {reasons}"] if reasons else []


class Stages(dict[str, dict[str, float]]):
    """What each stage of a run took, in order: ``seconds``, and for those that choose pairs, how many ``pairs`` came
    to it and how many of these it ``removed``."""

    @contextmanager
    def timed(self, name: str) -> Iterator[dict[str, float]]:
        """Time a block; what it removes may be noted in the result."""
        self[name] = {"seconds": 0.0}
        started = time.perf_counter()
        yield self[name]
        self[name]["seconds"] = time.perf_counter() - started

    def lines(self) -> list[str]:
        """For a reader."""
        words = [
            f"{name} {stage['seconds']:.2f} s"
            + (f" (removed {stage['removed']:,} of {stage['pairs']:,})" if "pairs" in stage else "")
            for name, stage in self.items()
        ]
        return [f"stages: {', '.join(words)}"]


def takes_options(*, without: Sequence[str] = ()) -> Callable[[_Function], _Function]:
    """Give a function that ends in ``**options`` the signature with :class:`MiningConfig`'s fields in their place.

    Args:
        without: Fields that it does not take.
    """

    def decorate(function: _Function) -> _Function:
        own = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
        shared = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields(MiningConfig)
            if field.name not in without and field.name not in {one.name for one in own}
        ]
        signature = inspect.Signature([*own, *shared])

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            for name in options.keys() - signature.parameters.keys():
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*arguments, **options)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
