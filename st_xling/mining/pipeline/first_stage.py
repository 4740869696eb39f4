"""Choose the sentences of two texts that are embedded, by what a static encoder finds: the first of two stages."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.first_stage import (
    Background,
    JoinedColumns,
    StackedRows,
    cut_for_share,
    draw_background,
    fit_margins,
    sentence_chances,
)
from st_xling.mining.margins import pair_scorer
from st_xling.mining.options import EncodingOptions, FirstStageOptions, SearchOptions
from st_xling.mining.pipeline.work import neighbor_search, search_name
from st_xling.mining.search.find import choose_method
from st_xling.mining.store import EmbeddingStore
from st_xling.mining.vectors import published_name
from st_xling.utils.cosines import Embeddings
from st_xling.utils.resumable import ResumableFolder

if TYPE_CHECKING:  # it loads sentence-transformers, which is slow to import
    from st_xling.mining.encoding import Encoder

logger = logging.getLogger(__name__)

#: Share of the sentences that are embedded first; more only if the estimated recall is too low.
FIRST_SHARE = 0.15

#: Share from which on all sentences are embedded: the others would save little.
MOST_SHARE = 0.6

#: Background of a text at most, in sentences. From 200,000, twice as many cost 5 % more and gave the same best F1.
MOST_BACKGROUND = 10_000

# Least and largest growth of the share from one round to the next.
_LEAST_GROWTH = 1.25
_MOST_GROWTH = 2.0

_SIDES = ("source", "target")


@dataclass(frozen=True, eq=False)
class Selection:
    """Sentences of both texts that were chosen, with their embeddings.

    Attributes:
        name: Name of a folder for what depends on the choice.
        rows: Numbers of the chosen distinct sentences of source and target, ascending.
        embeddings: Embeddings of these.
        backgrounds: Random others of each text; ``None`` if all of its sentences were chosen.
        encoded: Number of sentences that the encoder read.
        share: Share of the sentences that were chosen.
        cut: Least chance of a chosen sentence.
    """

    name: str
    rows: tuple[np.ndarray, np.ndarray]
    embeddings: tuple[Embeddings, Embeddings]
    backgrounds: tuple[Background | None, Background | None]
    encoded: int
    share: float
    cut: float


@dataclass(frozen=True, kw_only=True)
class FirstStageReport:
    """What the first stage chose.

    Attributes:
        model: Name and hash of the static encoder, or of several.
        encoded: Number of sentences of both texts that the encoder read, with the background.
        sentences: Number of distinct sentences of both texts.
        rounds: How often sentences were chosen.
        recall: Estimated share of the pairs that were not lost; ``None`` if there were too few to tell.
        wanted_recall: The recall to reach; ``None`` if the share was given.
        background: Share of the sentences that are embedded at random.
        seed: Seed of this choice.
    """

    model: str
    encoded: int
    sentences: int
    rounds: int
    recall: float | None
    wanted_recall: float | None
    background: float
    seed: int

    @property
    def share(self) -> float:
        """Share of the sentences that the encoder read."""
        return self.encoded / self.sentences

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {**asdict(self), "share": self.share}

    def line(self) -> str:
        """Describe the report in a sentence."""
        text = f"first stage: {self.encoded:,} of {self.sentences:,} sentences ({self.share:.1%}) embedded"
        if self.encoded == self.sentences:
            return f"{text}; among fewer, more pairs would be lost than wanted"
        if self.recall is None:
            return f"{text}; too few pairs were found to estimate how many were lost"
        return f"{text}; about {self.recall:.1%} of the pairs are kept, estimated from their static margins"

    def sign(self) -> str:
        """Return the part of the signature."""
        parts = [self.model, f"background:{self.background:g}", f"seed:{self.seed}", f"encoded:{self.share:.3f}"]
        if self.wanted_recall is not None:
            parts.insert(1, f"recall:{self.wanted_recall:g}")
        if self.recall is not None:
            parts.append(f"estimated_recall:{self.recall:.3f}")
        return f"first_stage:{','.join(parts)}"


class FirstStage:
    """First of two stages of mining: a static encoder tells which sentences the encoder reads.

    Args:
        options: Its options.
        statics: The static encoders, loaded.
        texts: Distinct sentences, by side.
        encoders: Encoders of the second stage, by side.
        search: Options of the search.
        encoding: Options of the encoder, with a device.
        folder: Work folder, in which all that was computed is kept.
        progress: Show progress bars on stderr.
    """

    def __init__(
        self,
        options: FirstStageOptions,
        statics: list[Encoder],
        texts: Mapping[str, UniqueSentences],
        encoders: Mapping[str, Encoder],
        search: SearchOptions,
        encoding: EncodingOptions,
        folder: ResumableFolder,
        *,
        progress: bool,
    ) -> None:
        self.options = options
        self.texts = texts
        self.encoders = encoders
        self.search = search
        self.encoding = encoding
        self.folder = folder.path / "first-stage"
        self.progress = progress
        self.statics = statics
        self.sentences = sum(map(len, texts.values()))
        self._stores: dict[str, list[EmbeddingStore]] = {side: [] for side in _SIDES}
        # Row among the stores of each sentence; -1 where it was not embedded yet. *Shape:* ``(sentences of a side,)``
        self._stored_at = {side: np.full(len(text), -1) for side, text in texts.items()}

    def select(self, mine: Callable[[Selection], tuple[np.ndarray, np.ndarray]]) -> tuple[Selection, FirstStageReport]:
        """Choose sentences until enough of the pairs are kept.

        Args:
            mine: Mines a selection; returns the sources and the targets of the pairs, numbered as in the texts.
        """
        self._read_texts()
        self._draw_backgrounds()
        wanted = self.options.recall if self.options.share is None else None
        cut = cut_for_share(self.chances, self.options.share or FIRST_SHARE)
        rounds = 0
        while True:
            rounds += 1
            selection = self._embed(cut)
            recall, next_cut = self._estimate_recall(selection, mine(selection))
            logger.info("%s", self._describe_round(selection, recall))
            is_enough = wanted is None or selection.share == 1 or (recall is not None and recall >= wanted)
            if is_enough:
                break
            cut = self._next_cut(selection, next_cut)
        report = FirstStageReport(
            model="+".join(published_name(static.identity) for static in self.statics),
            encoded=selection.encoded,
            sentences=self.sentences,
            rounds=rounds,
            recall=recall,
            wanted_recall=wanted,
            background=self.options.background,
            seed=self.options.seed,
        )
        return selection, report

    def _read_texts(self) -> None:
        """Embed both texts by the static encoders, and search them in each other."""
        vectors: list[Embeddings] = []
        for side, text in self.texts.items():
            stores: list[Embeddings] = []
            for number, static in enumerate(self.statics, 1):
                path = self.folder / f"{side}-static-{number}"
                stores.append(static.encode_sentences(text, path, locate=text.place, progress=self.progress))
            vectors.append(stores[0] if len(stores) == 1 else JoinedColumns(stores))
        source, target = vectors
        method = self.search.method
        if method == "exact":  # of the second stage
            method = "auto"
        method = choose_method(method, int(source.shape[0]), int(target.shape[0]), int(source.shape[1]))
        search = SearchOptions(k=self.search.k, method=method, memory_mib=self.search.memory_mib)
        find_neighbors = neighbor_search(search, self.encoding, progress=self.progress)
        state_folder = self.folder / search_name(method)
        forward, backward = find_neighbors(source, target, k=search.k, state_folder=state_folder)
        self.chances = (sentence_chances(forward, backward), sentence_chances(backward, forward))
        self.static_margins = pair_scorer(source, target, forward, backward, "ratio")

    def _draw_backgrounds(self) -> None:
        """Draw the random sentences of each text."""
        self.drawn: dict[str, np.ndarray] = {}
        for number, (side, text) in enumerate(self.texts.items()):
            self.drawn[side] = draw_background(
                len(text), self.options.background, most=MOST_BACKGROUND, seed=2 * self.options.seed + number
            )

    def _embed(self, cut: float) -> Selection:
        """Embed the sentences whose chance reaches a cut, and the background, as far as they are not yet embedded."""
        rows: list[np.ndarray] = []
        embeddings: list[Embeddings] = []
        backgrounds: list[Background | None] = []
        for side, chances in zip(_SIDES, self.chances):
            chosen = np.flatnonzero(chances >= cut)
            # The search needs so many, however far away.
            if len(chosen) < self.search.k:
                chosen = np.sort(np.argsort(-chances, kind="stable")[: self.search.k])
            others = np.setdiff1d(self.drawn[side], chosen)
            # A few sentences that no random one stands for: their part of the neighborhoods would be missing.
            if not len(others) and self.options.background:
                chosen = np.arange(len(chances))
            self._embed_side(side, np.union1d(chosen, others))
            rows.append(chosen)
            embeddings.append(self._embeddings_of(side, chosen))
            background = None
            if len(others):
                weight = (len(chances) - len(chosen)) / len(others)
                background = Background(self._embeddings_of(side, others), weight)
            backgrounds.append(background)
        source_rows, target_rows = rows
        digest = hashlib.sha256(source_rows.tobytes() + b"-" + target_rows.tobytes()).hexdigest()
        return Selection(
            name=f"selection-{digest[:12]}",
            rows=(source_rows, target_rows),
            embeddings=(embeddings[0], embeddings[1]),
            backgrounds=(backgrounds[0], backgrounds[1]),
            encoded=sum(int((stored >= 0).sum()) for stored in self._stored_at.values()),
            share=(len(source_rows) + len(target_rows)) / self.sentences,
            cut=cut,
        )

    def _embed_side(self, side: str, wanted: np.ndarray) -> None:
        """Embed sentences of a side that have no embeddings yet, in a store of their own."""
        stored_at = self._stored_at[side]
        missing = wanted[stored_at[wanted] < 0]
        if not len(missing):
            return
        # Named by its content: a run that chooses others, since its threshold is another, does not meet this one.
        digest = hashlib.sha256(missing.tobytes()).hexdigest()
        text = self.texts[side].subset(missing)
        path = self.folder / f"{side}-{digest[:12]}"
        store = self.encoders[side].encode_sentences(text, path, locate=text.place, progress=self.progress)
        stored_at[missing] = sum(other.rows for other in self._stores[side]) + np.arange(len(missing))
        self._stores[side].append(store)

    def _embeddings_of(self, side: str, rows: np.ndarray) -> Embeddings:
        """Return the embeddings of sentences that were embedded."""
        return StackedRows([*self._stores[side]], self._stored_at[side][rows])

    def _estimate_recall(
        self, selection: Selection, pairs: tuple[np.ndarray, np.ndarray]
    ) -> tuple[float | None, float | None]:
        """Estimate the recall of a selection from its pairs, and the cut that would reach the one that is wanted.

        Returns:
            Both; ``None`` if there are too few pairs.
        """
        if selection.share == 1:
            return 1.0, None
        fit = fit_margins(self.static_margins(*pairs), selection.cut)
        if fit is None:
            return None, None
        return fit.recall(selection.cut), fit.cut(self.options.recall)

    def _next_cut(self, selection: Selection, cut: float | None) -> float:
        """Return the cut of the next round: the estimated one, within limits of how the share may grow."""
        share = _MOST_GROWTH * selection.share
        if cut is not None:
            estimated = float(np.mean(np.concatenate(self.chances) >= cut))
            share = min(max(estimated, _LEAST_GROWTH * selection.share), share)
        if share > MOST_SHARE:
            return -math.inf
        return cut_for_share(self.chances, share)

    def _describe_round(self, selection: Selection, recall: float | None) -> str:
        kept = "too few pairs to tell how many are kept"
        if recall is not None:
            kept = f"about {recall:.1%} of the pairs are kept"
        return f"first stage: {selection.encoded:,} of {self.sentences:,} sentences embedded, {kept}"


def static_encoders(options: FirstStageOptions, encoding: EncodingOptions) -> list[Encoder]:
    """Load the static encoders, on the device of the run."""
    from st_xling.mining.encoding import Encoder  # slow to import

    static_encoding = EncodingOptions(dtype="float16", device=encoding.device, engine=encoding.engine)
    return [Encoder(model, static_encoding) for model in options.models]
