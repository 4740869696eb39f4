"""Cases worked out by hand; ``options`` go to ``compute``."""

test_cases = [
    {
        "predictions": [[0.9, 0.2, 0.4], [0.1, 0.8]],
        "references": [[0, 0, 1], [0, 1]],
        "result": {"acc@1": 0.5, "acc@10": 1.0, "mrr": 0.75, "map": 0.75},
    },
    {  # relevant at ranks 1 and 4 of 4: average precision (1 + 2/4) / 2
        "predictions": [[4.0, 3.0, 2.0, 1.0]],
        "references": [[1, 0, 0, 1]],
        "result": {"mrr": 1.0, "map": 0.75},
    },
    {  # all alike: the relevant one comes last
        "predictions": [[0.5, 0.5]],
        "references": [[1, 0]],
        "result": {"acc@1": 0.0, "mrr": 0.5},
    },
    {  # nothing relevant counts as nothing found
        "predictions": [[0.5, 0.1], [0.5, 0.1]],
        "references": [[0, 0], [1, 0]],
        "options": {"no_relevant": "zero"},
        "result": {"acc@1": 0.5, "mrr": 0.5, "n_without_relevant": 1},
    },
]
