"""Cases of the metrics, worked out by hand; ``options`` go to ``compute``."""

from typing import Any


def mined(*pairs):
    return [{"source_id": source, "target_id": target, "score": score} for source, target, score in pairs]


def gold(*pairs):
    return [{"source_id": source, "target_id": target} for source, target in pairs]


CASES: dict[str, list[dict[str, Any]]] = {
    "bucc_mining": [
        {  # the threshold keeps what scores as much as itself
            "predictions": [mined(("s1", "t1", 1.3), ("s2", "t9", 1.1))],
            "references": [gold(("s1", "t1"))],
            "options": {"threshold": 1.3},
            "result": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "n_mined": 1, "threshold_source": "given"},
        },
        {  # the best threshold lies midway between 1.5 and 1.25
            "predictions": [mined((1, 1, 1.5), (2, 9, 1.25))],
            "references": [gold((1, 1))],
            "options": {"threshold": "tune"},
            "result": {"f1": 1.0, "thresholds": [1.375], "threshold_source": "tuned on this gold"},
        },
        {  # the best threshold of the training part keeps one pair, a wrong one
            "predictions": [mined(("a", "b", 1.25), ("e", "f", 2.0))],
            "references": [gold(("a", "b"))],
            "options": {
                "train_predictions": [mined(("a", "b", 1.5), ("c", "d", 1.25))],
                "train_references": [gold(("a", "b"))],
            },
            "result": {"thresholds": [1.375], "n_mined": 1, "n_correct": 0, "threshold_source": "train"},
        },
    ],
    "tatoeba": [
        {  # both sources find target 0, which is right once: F1 of class 0 is 2/3, of class 1 0
            "predictions": [[1.0, 0.0], [0.8, 0.6]],
            "references": [[1.0, 0.1], [-1.0, 1.0]],
            "options": {"k": 1, "margin": "absolute"},
            "result": {"source_to_target_accuracy": 0.5, "source_to_target_f1": 1 / 3, "xsim_error": 0.5},
        }
    ],
    "xpr_ranking": [
        {  # relevant at ranks 1 and 4 of 4: average precision (1 + 2/4) / 2
            "predictions": [[4.0, 3.0, 2.0, 1.0]],
            "references": [[1, 0, 0, 1]],
            "result": {"mrr": 1.0, "map": 0.75},
        },
        {  # a query without anything relevant is skipped
            "predictions": [[0.5, 0.1], [0.5, 0.1]],
            "references": [[0, 0], [1, 0]],
            "result": {"acc@1": 1.0, "mrr": 1.0, "n_without_relevant": 1},
        },
    ],
}
