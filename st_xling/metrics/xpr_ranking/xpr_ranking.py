"""acc@k, MRR, MAP and nDCG of ranked candidates, as in cross-lingual passage re-ranking.

Ranking with binary relevance: one row is one query with the scores of its own candidates and their labels. Top-k
accuracy, mean reciprocal rank and mean average precision.
"""

import inspect

import datasets
import evaluate

from st_xling.evaluation.measures import ranking_scores
from st_xling.metrics.recovering import RecoveringMetric
from st_xling.utils.signature import sign

_CITATION = """\
@article{chen2020crosslingual,
    title = {Cross-Lingual Passage Re-Ranking With Alignment Augmented Multilingual {BERT}},
    author = {Chen, Dongmei and Zhang, Sheng and Zhang, Xin and Yang, Kaijing},
    journal = {IEEE Access},
    year = {2020},
    doi = {10.1109/ACCESS.2020.3041605}
}
"""


class XprRanking(RecoveringMetric):
    """One row a query; see the module's card.

    Args:
        predictions: For each query, a list of its candidates' scores; higher is better.
        references: For each query, a list of labels, 1 for relevant and 0 for not, in the same order.
        ks: The k of acc@k.

    Returns:
        acc@1, acc@10 (as in ks), mrr, map, ndcg@10: fractions in [0, 1].
        n_queries, n_without_relevant: counts; queries without a relevant candidate are skipped in the means.
        signature: what the results depend on.

    Examples:
        >>> xpr_ranking = evaluate.load("xpr_ranking")
        >>> results = xpr_ranking.compute(predictions=[[0.9, 0.2, 0.4], [0.1, 0.8]], references=[[0, 0, 1], [0, 1]])
        >>> results["acc@1"], results["mrr"], results["map"]
        (0.5, 0.75, 0.75)
    """

    def _info(self):
        return evaluate.MetricInfo(
            module_type="metric",
            description=__doc__,
            citation=_CITATION,
            inputs_description=inspect.getdoc(type(self)),
            features=datasets.Features(
                {"predictions": [datasets.Value("float64")], "references": [datasets.Value("int64")]}
            ),
        )

    def _compute(self, predictions, references, *, ks=(1, 10)):
        results = ranking_scores(predictions, references, ks=ks).as_dict()
        signature = sign("xpr_ranking", queries=len(predictions), cutoff="none", ties="pessimistic", no_relevant="skip")
        return {**results, "signature": signature}
