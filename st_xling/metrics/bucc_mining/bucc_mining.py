"""Precision, recall and F1 of mined sentence pairs, as at the BUCC shared task.

Bitext mining: scored pairs of sentence ids against gold pairs. Pairs that score at least a threshold are mined; the
results are the precision, recall and F1 of these, and the result names the source of the threshold. One row is one
whole corpus, such as a language pair; several rows are evaluated one by one and averaged.
"""

import inspect

import datasets
import evaluate

from st_xling.evaluation.measures import judge_pairs, row_thresholds
from st_xling.metrics.recovering import RecoveringMetric
from st_xling.utils.signature import sha8, sign

_CITATION = """\
@inproceedings{zweigenbaum2018overview,
    title = {Overview of the Third {BUCC} Shared Task: Spotting Parallel Sentences in Comparable Corpora},
    author = {Zweigenbaum, Pierre and Sharoff, Serge and Rapp, Reinhard},
    booktitle = {Proceedings of the 11th Workshop on Building and Using Comparable Corpora},
    year = {2018}
}
"""


def _features(id_type):
    # A list of structs must be written [{...}]: Sequence({...}) would mean a struct of lists.
    ids = {"source_id": datasets.Value(id_type), "target_id": datasets.Value(id_type)}
    return datasets.Features({"predictions": [{**ids, "score": datasets.Value("float64")}], "references": [ids]})


class BuccMining(RecoveringMetric):
    """One row a corpus; see the module's card.

    Args:
        predictions: For each corpus, its candidate pairs as [{"source_id": ..., "target_id": ..., "score": ...}]. Ids
            are all strings or all integers.
        references: For each corpus, all its gold pairs as [{"source_id": ..., "target_id": ...}].
        threshold: One number for all corpora, a list with one for each, or "tune": each corpus gets the threshold of
            highest F1 on the very gold it is then evaluated by, which flatters it, as the result notes. By default
            every prediction counts as mined.
        train_predictions: Candidate pairs of other corpora, row by row as predictions: the threshold of highest F1 on
            them is applied. Instead of threshold.
        train_references: Their gold.
        language_pairs: Names of the rows, such as ["de-en", "fr-en"].

    Returns:
        precision, recall, f1: fractions in [0, 1], averaged over the rows.
        n_mined, n_gold, n_correct: counts, summed over the rows.
        thresholds: one number a row, fit to be passed as threshold; None where every prediction counts.
        threshold_source: "given", "train", "tuned on this gold" or "none".
        rows: the same for each row, with language_pair.
        signature: what the results depend on.

    Examples:
        >>> bucc_mining = evaluate.load("bucc_mining")
        >>> mined = [{"source_id": "de-1", "target_id": "en-7", "score": 1.3},
        ...          {"source_id": "de-2", "target_id": "en-4", "score": 1.1}]
        >>> gold = [{"source_id": "de-1", "target_id": "en-7"}, {"source_id": "de-3", "target_id": "en-3"}]
        >>> results = bucc_mining.compute(predictions=[mined], references=[gold], threshold=1.2)
        >>> results["precision"], results["recall"], results["n_mined"]
        (1.0, 0.5, 1)
    """

    def _info(self):
        return evaluate.MetricInfo(
            module_type="metric",
            description=__doc__,
            citation=_CITATION,
            inputs_description=inspect.getdoc(type(self)),
            features=[_features("string"), _features("int64")],
            reference_urls=["https://comparable.limsi.fr/bucc2018/bucc2018-task.html"],
        )

    def add_batch(self, *, predictions=None, references=None, **others):
        """Add corpora to what compute() evaluates, as evaluate's metrics do."""
        # evaluate answers a missing or an additional key with a bare KeyError.
        super().add_batch(
            predictions=_without_other_keys(predictions, "predictions"),
            references=_without_other_keys(references, "references"),
            **others,
        )

    def add(self, *, prediction=None, reference=None, **others):
        """Add a corpus to what compute() evaluates, as evaluate's metrics do."""
        if prediction is not None and reference is not None:
            prediction = _without_other_keys([prediction], "predictions")[0]
            reference = _without_other_keys([reference], "references")[0]
        super().add(prediction=prediction, reference=reference, **others)

    def _compute(
        self,
        predictions,
        references,
        *,
        threshold=None,
        train_predictions=None,
        train_references=None,
        language_pairs=None,
    ):
        names = list(language_pairs or map(str, range(len(predictions))))
        if len(names) != len(predictions) or len(set(names)) < len(names):
            raise ValueError(f"language_pairs must name each of {len(predictions)} rows once: got {names}.")
        gold = [frozenset(map(_ids, row)) for row in references]
        if language_pairs is None and len(set(gold)) < len(gold):
            raise ValueError(
                "each row is a whole corpus: got rows of the same references; put all predictions of a corpus into one "
                "row, or name the rows with language_pairs."
            )
        judged = _judge_rows(predictions, references, names)
        train = None
        if train_predictions is not None or train_references is not None:
            train = _judge_rows(
                _without_other_keys(train_predictions, "train_predictions") or [],
                _without_other_keys(train_references, "train_references") or [],
                [f"train {name}" for name in names],
            )
        thresholds, source = row_thresholds(judged, threshold=threshold, train=train)
        rows = []
        for name, pairs, limit in zip(names, judged, thresholds):
            row = {"language_pair": name, **pairs.at(limit), "threshold_source": source}
            rows.append({**row, "threshold": None if source == "none" else limit})
        results = {}
        for key in ("precision", "recall", "f1"):
            results[key] = sum(row[key] for row in rows) / len(rows)
        for key in ("n_mined", "n_gold", "n_correct"):
            results[key] = sum(row[key] for row in rows)
        data = f"gold@{sha8([sorted(pairs) for pairs in gold])}"
        return {
            **results,
            "thresholds": [row["threshold"] for row in rows],
            "threshold_source": source,
            "rows": rows,
            "signature": sign(
                "bucc_mining", pairs=names, threshold=source, duplicates="error", average="macro", data=data
            ),
        }


def _without_other_keys(rows, name):
    """Return rows whose pairs have their ids and, of predictions, their scores, but no other keys."""
    keys = ["source_id", "target_id"]
    if "predictions" in name:
        keys.append("score")
    if rows is None or not len(rows):
        return rows
    stripped = []
    try:
        for pairs in rows:
            stripped.append([{key: pair[key] for key in keys} for pair in pairs])
        return stripped
    except (KeyError, TypeError):
        example = ", ".join(f"{key!r}: ..." for key in keys)
        raise ValueError(f"{name} must be a list of pairs [{{{example}}}, ...] for each corpus.") from None


def _judge_rows(predictions, references, names):
    if not len(predictions) == len(references) == len(names):
        raise ValueError(
            f"expected predictions and references for {len(names)} rows ({', '.join(names)}): got {len(predictions)} "
            f"and {len(references)}; pass one list of pairs a corpus."
        )
    judged = []
    for name, row, gold in zip(names, predictions, references):
        try:
            scored = ((*_ids(pair), pair["score"]) for pair in row)
            judged.append(judge_pairs(scored, map(_ids, gold)))
        except ValueError as error:
            raise ValueError(f"row {name}: {error}") from error
    return judged


def _ids(pair):
    return pair["source_id"], pair["target_id"]
