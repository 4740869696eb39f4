"""The threshold that mining takes from its model's ``mining.json``; once taken, it stays for the work begun with it."""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from st_xling.mining.thresholds.fitting import Fit, Sought, fitting_threshold
from st_xling.mining.thresholds.published import PublishedThreshold, published_thresholds
from st_xling.mining.vectors import GivenEmbeddings, VectorMakers
from st_xling.utils.io import read_json_object, write_json

#: Words that ``threshold`` may be: take one that fits if there is one, or insist on it.
AUTO, PUBLISHED = "auto", "published"

_FILE = "published.json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TakenThreshold:
    """A published threshold that pairs were kept from.

    Attributes:
        model: Whose it is.
        pair: Languages under which it stands there, possibly the other way round.
        published: The threshold, with what it is known to yield.
    """

    model: str
    pair: str
    published: PublishedThreshold

    def line(self) -> str:
        """For a reader."""
        figures = [(name, getattr(self.published, name)) for name in ("precision", "recall")]
        known = [f"{name} {value:.3f}" for name, value in figures if value is not None]
        yielded = f"; it yielded {', '.join(known)}" if known else ""
        return f"threshold {self.published.threshold:.4f} of {self.model} for {self.pair}{yielded}"


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """Where a threshold is looked for, and which one.

    Attributes:
        how: :data:`AUTO` or :data:`PUBLISHED`.
        model: Hub id or folder; a loaded model has no thresholds with it.
        sought: What is to be mined, ``None`` where its languages are not known.
        progress: Say on stderr what was found.
    """

    how: str
    model: Any
    sought: Sought | None
    progress: bool

    def check(self) -> None:
        """Raise for what should not wait for the encoder."""
        if self.how not in (AUTO, PUBLISHED):
            raise ValueError(
                f"threshold must be a number, {AUTO!r}, {PUBLISHED!r} or None: got {self.how!r}; {PUBLISHED!r} is the "
                "model's own for the two languages."
            )
        if self.how == PUBLISHED and not isinstance(self.model, str):
            kind = "none" if self.model is None else f"a loaded {type(self.model).__name__}"
            raise ValueError(f"threshold 'published' needs the folder or the Hub id of a model (--model): got {kind}.")
        if self.how == PUBLISHED and self.sought is None:
            raise ValueError(
                "threshold 'published' needs the languages of both sides: name them (--source-language and "
                "--target-language, or source_language and target_language of GuardOptions)."
            )

    def taken(self, makers: VectorMakers, work: Path) -> TakenThreshold | None:
        """The threshold that this work was begun with; else the one that holds now, if any does.

        What is taken is noted in ``work``: a model's file may change before the same call goes on.

        Args:
            makers: What gives the vectors: a store knows its prompt.
            work: Folder of the work.
        Raises:
            ValueError: If the model's file is broken, or there is none that holds where one was insisted on.
        """
        if not isinstance(self.model, str):
            return None
        if self.sought is None:
            self._tell_of_languages()
            return None
        prompts = {_prompt(maker, self.sought.prompt) for maker in makers.values()}
        one = prompts.pop() if len(prompts) == 1 else "another on each side"
        sought = replace(self.sought, prompt=one)
        asked = {"model": self.model, **asdict(sought)}
        fit, since = _noted(work / _FILE, asked), " (as when this work was begun)"
        if fit is None or (fit.threshold is None and self.how == PUBLISHED):
            fit, since = fitting_threshold(published_thresholds(self.model), sought), ""
            if fit.threshold is None and self.how == PUBLISHED:
                raise ValueError(
                    f"threshold 'published' needs a threshold of {self.model} that holds for this: {fit.why_not}; give "
                    "a number, or calibrate with known translations."
                )
            write_json(work / _FILE, {"asked": asked, "fit": asdict(fit)}, indent=1)
        if fit.threshold is None:
            self._tell_why_not(fit, since)
            return None
        taken = TakenThreshold(model=self.model, pair=fit.pair, published=fit.threshold)
        if self.progress:
            tqdm.write(f"{taken.line()}{since}", file=sys.stderr)
        return taken

    def _tell_why_not(self, fit: Fit, since: str) -> None:
        told = f"no threshold of {self.model} is taken: {fit.why_not}{since}; all pairs are kept"
        if fit.differs:
            logger.warning(told)
        elif self.progress:
            tqdm.write(told, file=sys.stderr)

    def _tell_of_languages(self) -> None:
        found = published_thresholds(self.model)
        if found and self.progress:
            tqdm.write(
                f"{self.model} has thresholds for {', '.join(found)}; to have one taken, name the languages of both "
                "sides (--source-language, --target-language)",
                file=sys.stderr,
            )


def _prompt(maker: Any, own: str | None) -> str | None:
    """Before the sentences of a side; of a LASER file nobody knows, so there is none."""
    if not isinstance(maker, GivenEmbeddings):
        return own
    return None if maker.store is None else maker.store.manifest.header.settings.get("prompt")


def _noted(path: Path, asked: dict[str, Any]) -> Fit | None:
    if not path.is_file():
        return None
    remedy = "delete it to have the threshold looked for again"
    found = read_json_object(path, remedy=remedy)
    try:
        if found["asked"] != asked:
            return None
        threshold = found["fit"]["threshold"]
        return Fit(**{**found["fit"], "threshold": None if threshold is None else PublishedThreshold(**threshold)})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: expected the threshold that this work was begun with, got {error!r}; {remedy}."
        ) from None
