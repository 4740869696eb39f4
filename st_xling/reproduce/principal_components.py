"""Translations on their first two principal components: DAP's figure 1 of token states, mBERT-SF's figure 7 of vectors.

python -m st_xling.reproduce.principal_components my-encoder --data de-en=pairs.tsv --of tokens --json points.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from st_xling.utils.io import write_json
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PointKind = Literal["tokens", "sentences"]


class PrincipalComponents(NamedTuple):
    """Vectors of two languages on the first two principal components of both together.

    Attributes:
        source: *Shape:* ``(vectors, 2)``
        target: *Shape:* ``(other vectors, 2)``
        variance: Share of the variance that the two components have, in [0, 1].
        distance: Distance of the two languages' means in all dimensions, by the root mean square distance of all
            vectors from their common mean: near 0 where the languages are not apart.
    """

    source: np.ndarray
    target: np.ndarray
    variance: float
    distance: float


def fit_principal_components(source: np.ndarray, target: np.ndarray) -> PrincipalComponents:
    """Project the vectors of two languages.

    Args:
        source: Vectors of one language. *Shape:* ``(vectors, dim)``
        target: Vectors of the translations. *Shape:* ``(other vectors, dim)``

    Example:
        >>> shown = fit_principal_components(np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([[3.0, 1.0], [3.0, -1.0]]))
        >>> shown.variance, shown.source[:, 0].tolist()
        (1.0, [-1.5, -1.5])
    """
    states = np.concatenate([source, target]).astype(np.float64)
    centered = states - states.mean(axis=0)
    variances, directions = np.linalg.eigh(centered.T @ centered)
    top = directions[:, :-3:-1]
    # A direction has no sign: the greatest coordinate is made positive, so that pictures of one model agree.
    top = top * np.sign(top[np.abs(top).argmax(axis=0), range(top.shape[1])])
    points = centered @ top
    spread = float(np.sqrt((centered**2).sum(axis=1).mean()))
    distance = float(np.linalg.norm(source.mean(axis=0, dtype=float) - target.mean(axis=0, dtype=float)))
    variance = float(variances[-2:].sum() / variances.sum())
    return PrincipalComponents(points[: len(source)], points[len(source) :], variance, distance / spread)


def vectors(
    model: SentenceTransformer, texts: tuple[list[str], list[str]], languages: Sequence[str | None], *, of: PointKind
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of both sides: states of all tokens but the special ones, or one of each sentence.

    Args:
        model: The encoder; one that is centered by language encodes each side by its language.
        texts: Source and target sentences.
        languages: Their languages.
        of: ``"tokens"`` or ``"sentences"``.
    """
    from st_xling.models.normalization import encode_by_language

    check_choice("of", of, PointKind)
    if of == "sentences":
        source, target = encode_by_language(model, texts, languages)
        return source, target
    sides = []
    for side in texts:
        states: Any = model.encode(side, output_value="token_embeddings")
        sides.append(np.concatenate([row[1:-1].float().cpu().numpy() for row in states]))  # without CLS and SEP
    return sides[0], sides[1]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command_line = argparse.ArgumentParser(
        prog="python -m st_xling.reproduce.principal_components",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command_line.add_argument("model", help="Hub id or folder of an encoder")
    command_line.add_argument("--data", required=True, metavar="SPEC", help="pairs, as train --data takes them")
    command_line.add_argument("--of", choices=("tokens", "sentences"), required=True, help="what a point is")
    command_line.add_argument(
        "--pairs", type=int, default=100, help="first pairs of the data that are shown (default: 100)"
    )
    command_line.add_argument("--layer", type=int, help="use the states of this layer")
    command_line.add_argument("--pooling", choices=("mean", "cls"), help="pooling over tokens")
    command_line.add_argument("--json", type=Path, required=True, help="file for the points")
    return command_line


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = parser().parse_args(arguments)
    from st_xling.data import load_data_specs
    from st_xling.data.spec import data_name
    from st_xling.models import load_encoder
    from st_xling.models.view import model_options
    from st_xling.utils.signature import sha8, sign

    data = load_data_specs([options.data], split="test")
    rows = next(iter(data.values()))[: options.pairs]
    texts = (list(rows["source"]), list(rows["target"]))
    languages = [rows[f"{side}_language"][0] for side in ("source", "target")]
    settings = {"layer": options.layer, "pooling": options.pooling}
    encoder = load_encoder(options.model, **{name: value for name, value in settings.items() if value is not None})
    components = fit_principal_components(*vectors(encoder, texts, languages, of=options.of))
    signature = sign(
        "principal-components",
        of=options.of,
        n=len(texts[0]),
        languages=languages,
        model=model_options(encoder),
        data=f"{data_name([options.data], split='test')}@{sha8(texts)}",
    )
    points = {"source": components.source.round(4).tolist(), "target": components.target.round(4).tolist()}
    content = {"of": options.of, "languages": languages, "points": points}
    shares = {"variance": components.variance, "distance": components.distance}
    write_json(options.json, {"components": {**content, **shares}, "signature": signature})


if __name__ == "__main__":
    main()
