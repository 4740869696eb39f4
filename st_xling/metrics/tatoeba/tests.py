"""Cases worked out by hand; ``options`` go to ``compute``."""

test_cases = [
    {
        "predictions": [[1.0, 0.0], [0.0, 1.0]],
        "references": [[2.0, 0.1], [0.1, 2.0]],
        "options": {"k": 1},
        "result": {"accuracy": 1.0, "source_to_target_f1": 1.0, "target_to_source_f1": 1.0, "xsim_error": 0.0},
    },
    {
        "predictions": [[1.0, 0.0], [0.0, 1.0]],
        "references": [[0.0, 1.0], [1.0, 0.0]],
        "options": {"k": 1},
        "result": {"accuracy": 0.0, "source_to_target_f1": 0.0, "target_to_source_f1": 0.0, "xsim_error": 1.0},
    },
    {  # both sources find target 0, which is right once: F1 of class 0 is 2/3, of class 1 0
        "predictions": [[1.0, 0.0], [0.8, 0.6]],
        "references": [[1.0, 0.1], [-1.0, 1.0]],
        "options": {"k": 1, "margin": "absolute"},
        "result": {"source_to_target_accuracy": 0.5, "source_to_target_f1": 1 / 3, "xsim_error": 0.5},
    },
]
