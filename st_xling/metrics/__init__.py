"""Metrics for Hugging Face ``evaluate``, thin over ``st_xling.evaluation`` and ``st_xling.mining``.

- ``bucc_mining``: precision, recall and F1 of mined pairs
- ``tatoeba``: translation retrieval from embeddings: P@1, mteb's weighted F1, xsim error
- ``xpr_ranking``: acc@k, MRR, MAP and nDCG of ranked candidates
- ``shims``: what makes ``evaluate.load`` know these names

Each is a folder as ``evaluate`` expects it. After ``import st_xling``, ``evaluate.load("bucc_mining")``
finds it by name; ``evaluate.load(st_xling.metrics.path("bucc_mining"))`` by path, without asking the network first.
"""

from pathlib import Path

#: Names for ``evaluate.load``.
NAMES = ("bucc_mining", "tatoeba", "xpr_ranking")

__all__ = ["NAMES", "path"]


def path(name: str) -> str:
    """Folder of a metric, for ``evaluate.load``.

    Args:
        name: One of :data:`NAMES`.
    Returns:
        Absolute path.
    Raises:
        ValueError: On an unknown name.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}: got {name!r}.")
    return str(Path(__file__).resolve().parent / name)
