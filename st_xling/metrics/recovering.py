"""Base of the metrics, which stay usable after a refused call."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import evaluate

from st_xling.utils.private import discard_rows


class RecoveringMetric(evaluate.Metric, ABC):
    """A metric for ``evaluate`` that can be called again after rows that it refused.

    ``evaluate`` chooses the types of columns by the first rows, and keeps them when it then refuses these rows, so that
    valid rows of other types are refused, too.
    """

    @abstractmethod  # evaluate takes the first metric in a module that is not abstract
    def _info(self):
        """Return description, features and citation."""

    def add_batch(self, *, predictions=None, references=None, **others):
        """Add rows to what compute() evaluates, as evaluate's metrics do."""
        with self._forgetting_refused_rows():
            super().add_batch(predictions=predictions, references=references, **others)

    def add(self, *, prediction=None, reference=None, **others):
        """Add a row to what compute() evaluates, as evaluate's metrics do."""
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
