"""Translation retrieval from embeddings: P@1 both ways, mteb's weighted F1, xsim error.

Similarity search on aligned sentences, as on Tatoeba: does each sentence's embedding find that of its translation among
all sentences of the other side, by cosine? Row i of the predictions translates row i of the references.
"""

import inspect
from numbers import Number

import datasets
import evaluate
import numpy as np

from st_xling.metrics.recovering import RecoveringMetric
from st_xling.mining.mined_pairs import xsim
from st_xling.utils.cosines import nearest, weighted_f1
from st_xling.utils.signature import sign

_CITATION = """\
@article{artetxe2019massively,
    title = {Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual Transfer and Beyond},
    author = {Artetxe, Mikel and Schwenk, Holger},
    journal = {Transactions of the Association for Computational Linguistics},
    volume = {7},
    year = {2019}
}
"""


class Tatoeba(RecoveringMetric):
    """One row a sentence pair; see the module's card.

    Args:
        predictions: Embeddings of the source sentences, one vector a row.
        references: Embeddings of their translations, row by row. Both are held in float32.
        margin: What xsim scores neighbors by: "ratio", "distance" or "absolute" (plain cosine).
        k: Neighbors that make up a sentence's neighborhood for xsim; lowered to the number of rows where there
            are fewer.

    Returns:
        source_to_target_accuracy, target_to_source_accuracy, accuracy: P@1 each way and their mean, fractions
            in [0, 1].
        source_to_target_f1, target_to_source_f1: mteb's weighted F1 each way; mteb's own figure is the first.
        xsim_error: share of source rows whose best target by margin is not their own, in [0, 1]. Lower is better.
        n_pairs: rows.
        signature: what the results depend on.

    Examples:
        >>> tatoeba = evaluate.load("tatoeba")
        >>> results = tatoeba.compute(predictions=[[1.0, 0.1], [0.2, 1.0]], references=[[0.9, 0.0], [0.0, 0.5]], k=1)
        >>> results["accuracy"], results["source_to_target_f1"], results["xsim_error"]
        (1.0, 1.0, 0.0)
    """

    def _info(self):
        info = evaluate.MetricInfo(
            module_type="metric",
            description=__doc__,
            citation=_CITATION,
            inputs_description=inspect.getdoc(type(self)),
            features=datasets.Features(
                {"predictions": [datasets.Value("float32")], "references": [datasets.Value("float32")]}
            ),
        )
        # The constructor refuses formats for lists, yet the data set behind it has them, and Python lists of floats
        # would take eight times the memory.
        info.format = "numpy"
        return info

    def add_batch(self, *, predictions=None, references=None, **others):
        """Add sentence pairs to what compute() evaluates, as evaluate's metrics do."""
        # evaluate answers labels with the names of Arrow types.
        for name, rows in (("predictions", predictions), ("references", references)):
            if rows is not None and len(rows) and isinstance(rows[0], Number):
                raise ValueError(
                    f"{name} must be embeddings, a vector for each sentence such as [[0.1, 0.9], [0.8, 0.2]]: got "
                    f"{rows[0]!r} for a sentence; pass model.encode(sentences)."
                )
        super().add_batch(predictions=predictions, references=references, **others)

    def _compute(self, predictions, references, *, margin="ratio", k=4):
        _check_matrix(predictions, "predictions")
        _check_matrix(references, "references")
        source = predictions
        target = references
        forward = nearest(source, target)
        backward = nearest(target, source)
        rows = np.arange(len(source))
        to_target = float(np.mean(forward == rows))
        to_source = float(np.mean(backward == rows))
        neighbors = min(k, len(source))
        return {
            "source_to_target_accuracy": to_target,
            "target_to_source_accuracy": to_source,
            "accuracy": (to_target + to_source) / 2,
            "source_to_target_f1": weighted_f1(forward),
            "target_to_source_f1": weighted_f1(backward),
            "xsim_error": xsim(source, target, margin=margin, k=neighbors).error_rate,
            "n_pairs": len(source),
            "signature": sign(
                "tatoeba",
                pairs=len(source),
                direction="both",
                ties="index",
                f1="weighted(mteb)",
                xsim=f"{margin},k={neighbors}",
            ),
        }


def _check_matrix(rows, name):
    if rows.ndim != 2:
        raise ValueError(
            f"{name} must be vectors of one length: got {len(rows)} rows that are none, or of several lengths."
        )
