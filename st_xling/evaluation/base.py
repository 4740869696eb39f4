"""Base class of the evaluators: calls, encoding, signatures. Evaluators keep nothing of the models they evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
from sentence_transformers.base.evaluation import BaseEvaluator

from st_xling.evaluation.results import UNNAMED, EvaluationResult
from st_xling.models.encoding import Role
from st_xling.models.normalization import encode_by_language, language_routes
from st_xling.models.view import model_options
from st_xling.utils.languages import match_language
from st_xling.utils.signature import SignaturePart, sign

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class EvaluatorOptions(TypedDict, total=False):
    """Options that all evaluators of encoders share, see :class:`SignedEvaluator`."""

    name: str | None
    data_name: str | None
    batch_size: int | None
    show_progress_bar: bool


@dataclass(frozen=True)
class ModelUse:
    """How a model is used in an evaluation, for the signature of the result.

    Attributes:
        options: Prompt, layer, type and so on, see :func:`~st_xling.models.view.model_options`.
        joint_mean: True if the model is centered by language, and some text is centered by the joint mean.
        by_language: True if some text is centered by its language's own mean.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    joint_mean: bool = False
    by_language: bool = False

    @classmethod
    def of(cls, model: Any, languages: Sequence[str | None], *, retrieval: bool = False) -> ModelUse:
        """Describe how ``model`` encodes text.

        Args:
            model: An encoder.
            languages: Languages of the text; ``None``: not known.
            retrieval: True if queries and passages are distinguished.
        """
        routes = language_routes(model)
        matches = [match_language(code or "", routes) for code in languages]
        return cls(
            options=model_options(model, retrieval=retrieval),
            joint_mean=bool(routes) and None in matches,
            by_language=any(matches),
        )


#: Nothing is known of the model, or there is none.
NO_MODEL = ModelUse()


def sign_use(*names: str, data: str, use: ModelUse, **parts: SignaturePart) -> str:
    """Return the signature of a metric of a model that is used in this way.

    Args:
        names: See :func:`~st_xling.utils.signature.sign`.
        data: Name and digits of the data.
        use: How the model is used.
        parts: The rest by key, in order.
    """
    center = "joint" if use.joint_mean else None
    return sign(*names, **parts, center=center, data=data, model=use.options)


class SignedEvaluator(BaseEvaluator):
    """An evaluator whose results carry a signature; subclasses define :meth:`sign` and :meth:`measure`.

    It keeps nothing of the models that it evaluates: one evaluator can evaluate several models, each result has the
    signature of its model, and :attr:`identity` does not change.

    Args:
        primary: The metric to choose checkpoints by, without the prefix; subclasses know it.
        name: Prefix of the metrics; by default :attr:`task`.
        data_name: Name of the data in the signature and on cards; by default ``name``, and ``"unnamed"`` without one.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding or scoring.
    """

    #: Name of the task, such as ``"bucc"``.
    task: ClassVar[str]
    #: Title of the task on sentence-transformers' card, where the class would be named after a benchmark.
    title: ClassVar[str]
    #: Set only on a copy that is a key of a model's card: the evaluator, and the signature of that model's result.
    _card_entry_of: SignedEvaluator | None = None
    _card_signature: str | None = None

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
        self.store_metrics_in_model_card_data(model, result.metrics, epoch, steps, signature=result.signature)
        return result.metrics

    def evaluate(self, model: Any) -> EvaluationResult:
        """Evaluate a model and return metrics, rows and signature, without storing them anywhere."""
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
        self, model: Any, metrics: dict[str, Any], epoch: int = -1, step: int = -1, *, signature: str | None = None
    ) -> None:
        """Store the metrics for sentence-transformers' card of ``model``, under the name of the data.

        The card shows the name of an evaluator as that of a data set; ours, unless it was given one, is called like its
        task, such as ``bucc``. It asks for the signature when it is written, when the evaluator may have evaluated
        another model. So its key is a copy of the evaluator, the same one for all calls with this model.

        Args:
            model: The evaluated model.
            metrics: Its metrics.
            epoch: Epoch; -1 outside training.
            step: Step of the training.
            signature: Signature of the metrics; by default :attr:`identity`.
        """
        card_keys = model.model_card_data.eval_results_dict or {}
        entry = next((key for key in card_keys if getattr(key, "_card_entry_of", None) is self), None)
        if entry is None:
            entry = copy(self)
            entry._card_entry_of = self
            if self.name == self.task:
                entry.name = self.data_name
                entry.primary_metric = self._rename_after_data(str(self.primary_metric))
        entry._card_signature = signature

        if self.name == self.task:
            metrics = {self._rename_after_data(key): value for key, value in metrics.items()}
        model.model_card_data.set_evaluation_metrics(entry, metrics, epoch, step)

    def _rename_after_data(self, metric: str) -> str:
        """Return the name of a metric with the name of the data in place of the evaluator's."""
        return f"{self.data_name}{metric.removeprefix(self.name)}"

    def sign(self, use: ModelUse) -> str:
        """Return the signature: everything that a metric depends on besides the model, if it is used in this way."""
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """Signature of data and measures without any model; an evaluation does not change it."""
        return self.sign(NO_MODEL)

    def encode_columns(
        self,
        model: SentenceTransformer,
        columns: Sequence[Sequence[str]],
        languages: Sequence[str | None],
        *,
        role: Role = "text",
    ) -> list[np.ndarray]:
        """Compute the embeddings of each column, each distinct text encoded once. *Shape:* ``(texts, dim)`` each

        Args:
            model: The encoder; if it is centered by language, each column is centered by its language's mean.
            columns: Texts.
            languages: Language of each column; ``None``: not known.
            role: ``"query"`` or ``"document"``: as ``encode_query`` and ``encode_document`` embed.
        """
        return encode_by_language(
            model,
            columns,
            languages,
            role=role,
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress_bar,
        )

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        return {"signature": self.identity if self._card_signature is None else self._card_signature}
