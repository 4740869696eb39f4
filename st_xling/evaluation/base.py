"""Base class of the evaluators: calls, encoding, signatures."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sentence_transformers.base.evaluation import BaseEvaluator

from st_xling.evaluation.results import UNNAMED, EvaluationResult
from st_xling.models.encode import Role
from st_xling.models.normalization import encode_columns, language_tasks
from st_xling.models.view import model_options
from st_xling.utils.signature import sign

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SignedEvaluator(BaseEvaluator):
    """An evaluator whose metrics carry a signature; subclasses define it, and what is measured: :meth:`measure`.

    Args:
        primary: The metric to choose checkpoints by, without the prefix; subclasses know it.
        name: Prefix of the metrics; by default :attr:`task`.
        data_name: Name of the data in the signature and on cards; by default ``name``, and ``"unnamed"`` without one.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding or scoring.
    """

    #: What is evaluated, in a word.
    task: ClassVar[str]
    #: The same on sentence-transformers' card, where the class would be named after a benchmark.
    title: ClassVar[str]
    #: This evaluator as sentence-transformers' card lists it, see :meth:`store_metrics_in_model_card_data`.
    _listed: SignedEvaluator | None = None

    def __init__(
        self,
        primary: str,
        *,
        name: str | None = None,
        data_name: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.name: str = self.task if name is None else name
        # Never the task: it is called like a benchmark, whose sentences these need not be.
        self.data_name: str = data_name or name or UNNAMED
        self.show_progress_bar = show_progress_bar
        self.primary_metric = f"{self.name}_{primary}" if self.name else primary
        #: For the signature: how the model evaluated last was used, see ``st_xling.models.view.model_options``.
        self.model_options: dict[str, str] = {}
        #: For the signature: the model is centered by language, and some text was centered by the joint mean.
        self.joint_mean = False
        #: Some text was centered by its language's own mean.
        self.by_language = False

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model; see the class for the keys.

        Args:
            model: Anything with sentence-transformers' ``model_card_data``, and ``encode`` or what a cross-encoder has.
            output_path: Not used: the trainer logs all metrics.
            epoch: Epoch for the card; -1 outside training.
            steps: Steps within the epoch; -1 at its end.
        """
        result = self.evaluate(model)
        self.store_metrics_in_model_card_data(model, result.metrics, epoch, steps)
        return result.metrics

    def evaluate(self, model: Any) -> EvaluationResult:
        """Evaluate a model and return metrics, rows and signature, without storing them anywhere."""
        self.joint_mean = self.by_language = False
        result = self.measure(model)
        return replace(result, metrics=self.prefix_name_to_metrics(result.metrics, self.name))

    def measure(self, model: Any) -> EvaluationResult:
        """Evaluate ``model``; metrics are without the evaluator's name before them.

        There is a row for each label, so that the head of the table fits any set of languages.
        """
        raise NotImplementedError

    @property
    def description(self) -> str:
        """Title of the task on sentence-transformers' card."""
        return self.title

    def store_metrics_in_model_card_data(
        self, model: Any, metrics: dict[str, Any], epoch: int = -1, step: int = -1
    ) -> None:
        """Store the metrics for sentence-transformers' card, under the name of the data.

        That card shows the name of an evaluator as that of a data set; ours, unless it was given one, is called like
        its task, such as ``bucc``.
        """
        if self.name != self.task:
            return super().store_metrics_in_model_card_data(model, metrics, epoch, step)
        listed = copy(self) if self._listed is None else self._listed
        vars(listed).update({**vars(self), "name": self.data_name, "_listed": None})
        self._listed = listed  # one object for all calls: the card has an entry for each
        renamed = {f"{self.data_name}{key.removeprefix(self.name)}": value for key, value in metrics.items()}
        listed.primary_metric = f"{self.data_name}{str(self.primary_metric).removeprefix(self.name)}"
        return super(SignedEvaluator, listed).store_metrics_in_model_card_data(model, renamed, epoch, step)

    @property
    def signature(self) -> str:
        """All that a metric depends on besides the model."""
        raise NotImplementedError

    def sign(self, *names: str, data: str, **parts: Any) -> str:
        """Return a signature with :attr:`model_options`, see :func:`~st_xling.utils.signature.sign`."""
        return sign(*names, **parts, center="joint" if self.joint_mean else None, data=data, model=self.model_options)

    def encode_columns(
        self,
        model: SentenceTransformer,
        columns: Sequence[Sequence[str]],
        languages: Sequence[str | None],
        *,
        role: Role = "text",
    ) -> list[np.ndarray]:
        """Embeddings of each column, each distinct text encoded once. *Shape:* ``(texts, dim)`` each

        Args:
            model: Encodes; one that is centered by language, each column by its language's mean.
            columns: Texts.
            languages: Of each column; ``None``: not known.
            role: ``"query"`` or ``"document"``: as ``encode_query`` and ``encode_document`` embed.
        """
        self.model_options = model_options(model, retrieval=role != "text")
        tasks, joint = language_tasks(model, languages)
        self.joint_mean |= joint
        self.by_language |= any(tasks)
        return encode_columns(
            model, columns, tasks=tasks, role=role, batch_size=self.batch_size, show_progress_bar=self.show_progress_bar
        )

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        return {"signature": self.signature}
