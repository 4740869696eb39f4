"""Token states before and after a training: what is kept of the start, and the picture that is drawn at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers.base.modules import Transformer

from st_xling.evaluation.token_picture import draw_token_points, token_points, token_states

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

SENTENCES = 100
PICTURE = "pictures/token_states.png"

_FILE = "token_states.safetensors"


class TrainingPicture:
    """Draws the token states of the same parallel sentences before and after a training.

    The points of the start lie in the run's ``training`` folder until then, so that a run that is resumed has them too.

    Args:
        data: Name → pairs, such as development pairs; up to :data:`SENTENCES` of the first are shown.
        recipe: Its name, for the title.
    """

    def __init__(self, data: Mapping[str, Any], recipe: str) -> None:
        first = next(iter(data.values()), None)
        shown = [] if first is None else list(first.select(range(min(SENTENCES, len(first)))))
        self.sides = tuple([row[side] for row in shown] for side in ("source", "target"))
        self.languages = (shown[0]["source_language"], shown[0]["target_language"]) if shown else ("source", "target")
        self.recipe = recipe

    def begin(self, model: SentenceTransformer, training: Path) -> None:
        """Keep how ``model`` starts, in the folder ``training``."""
        from safetensors.torch import save_file

        if self._can_draw(model):
            names = ("source", "target")
            save_file({name: side.contiguous() for name, side in zip(names, self._points(model))}, training / _FILE)

    def end(self, model: SentenceTransformer, folder: Path) -> Path | None:
        """Draw into the run's ``folder``, and forget the start; ``None`` where nothing of it was kept."""
        from safetensors.torch import load_file

        kept = folder / "training" / _FILE
        if not (kept.is_file() and self._can_draw(model)):
            return None
        before = load_file(kept)
        panels = {"before": (before["source"], before["target"]), f"after {self.recipe}"[:40]: self._points(model)}
        picture = draw_token_points(panels, folder / PICTURE, languages=self.languages)
        kept.unlink()
        return picture

    def _can_draw(self, model: SentenceTransformer) -> bool:
        return bool(self.sides[0]) and isinstance(model[0], Transformer)

    def _points(self, model: SentenceTransformer) -> tuple[Tensor, Tensor]:
        was_training = model.training
        source, target = (token_states(model, side) for side in self.sides)
        model.train(was_training)
        return token_points(source, target)
