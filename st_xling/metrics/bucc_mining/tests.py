"""Cases worked out by hand; ``options`` go to ``compute``."""


def _mined(*pairs):
    return [{"source_id": source, "target_id": target, "score": score} for source, target, score in pairs]


def _gold(*pairs):
    return [{"source_id": source, "target_id": target} for source, target in pairs]


test_cases = [
    {  # one of two mined pairs is right, one of two gold pairs is found
        "predictions": [_mined(("s1", "t1", 1.3), ("s2", "t9", 1.1))],
        "references": [_gold(("s1", "t1"), ("s3", "t3"))],
        "result": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "n_mined": 2, "n_gold": 2, "n_correct": 1},
    },
    {  # the threshold keeps what scores as much as itself
        "predictions": [_mined(("s1", "t1", 1.3), ("s2", "t9", 1.1))],
        "references": [_gold(("s1", "t1"))],
        "options": {"threshold": 1.3},
        "result": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "n_mined": 1, "threshold_source": "given"},
    },
    {  # the best threshold lies midway between 1.5 and 1.25
        "predictions": [_mined((1, 1, 1.5), (2, 9, 1.25))],
        "references": [_gold((1, 1))],
        "options": {"threshold": "tune"},
        "result": {"f1": 1.0, "thresholds": [1.375], "threshold_source": "tuned on this gold"},
    },
    {  # two corpora, one mined perfectly and one not at all
        "predictions": [_mined(("s1", "t1", 1.0)), []],
        "references": [_gold(("s1", "t1")), _gold(("s1", "t1"), ("s2", "t2"))],
        "result": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "n_mined": 1, "n_gold": 3, "n_correct": 1},
    },
]
