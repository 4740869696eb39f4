"""Base of the metrics, which stay usable after a refused call."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import evaluate

from st_xling.utils.private import discard_rows


def _check_given(**inputs: Any) -> None:
    """Raise ``ValueError`` if an input is missing."""
    if missing := [name for name, value in inputs.items() if value is None]:
        raise ValueError(f"expected {' and '.join(inputs)}: got no {' and no '.join(missing)}; pass both by name.")


class RecoveringMetric(evaluate.Metric, ABC):
    """A metric for ``evaluate`` that can be called again after rows that it refused.

    ``evaluate`` chooses the types of columns by the first rows, and keeps them when it then refuses these rows, so that
    valid rows of other types are refused, too.
    """

    @abstractmethod  # evaluate takes the first metric in a module that is not abstract
    def _info(self):
        """Return description, features and citation."""

    def compute(self, *, predictions=None, references=None, **options):
        """Evaluate these rows and those that were added, as evaluate's metrics do.

        Raises:
            ValueError: If one of both is missing, or if there are no rows.
        """
        # evaluate answers a missing side with a TypeError about None.
        if predictions is not None or references is not None or not len(self):
            _check_given(predictions=predictions, references=references)
            if not len(predictions) and not len(references) and not len(self):
                raise ValueError("predictions and references must have at least one row: got none.")
        return super().compute(predictions=predictions, references=references, **options)

    def add_batch(self, *, predictions=None, references=None, **others):
        """Add rows to what compute() evaluates, as evaluate's metrics do."""
        _check_given(predictions=predictions, references=references)
        if not len(predictions) and not len(references):
            return
        with self._forgetting_refused_rows():
            super().add_batch(predictions=predictions, references=references, **others)

    def add(self, *, prediction=None, reference=None, **others):
        """Add a row to what compute() evaluates, as evaluate's metrics do."""
        _check_given(prediction=prediction, reference=reference)
        with self._forgetting_refused_rows():
            super().add(prediction=prediction, reference=reference, **others)

    @contextmanager
    def _forgetting_refused_rows(self) -> Iterator[None]:
        """Forget the types of rows that evaluate refuses inside the block."""
        has_rows = len(self) > 0  # rows that were accepted by earlier calls stay
        try:
            yield
        except Exception:
            if not has_rows:
                discard_rows(self)
            raise
