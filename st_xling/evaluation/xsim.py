"""xsim of an encoder over several languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from st_xling.evaluation.base import SignedEvaluator
from st_xling.mining.xsim import xsim
from st_xling.utils.signature import sha8
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class XsimReport:
    """Error rates, fractions in [0, 1]; lower is better.

    Attributes:
        errors: Language → (to English, from English), or whatever the two languages of its pairs are.
        signature: What the error rates depend on besides the model.
    """

    errors: dict[str, tuple[float, float]]
    signature: str

    @property
    def mean(self) -> tuple[float, float]:
        """Macro averages of both directions."""
        count = len(self.errors)
        return sum(to for to, _ in self.errors.values()) / count, sum(back for _, back in self.errors.values()) / count

    def table(self) -> str:
        """One row a language, then the average; percent with two decimals."""
        rows = [[name, 100 * to, 100 * back] for name, (to, back) in {**self.errors, "all": self.mean}.items()]
        return format_table(["language", "to en %", "from en %"], rows, decimals=2, summary=1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        errors = {**self.errors, "all": self.mean}
        return {
            "xsim": {name: {"to_en_error": to, "from_en_error": back} for name, (to, back) in errors.items()},
            "signature": self.signature,
        }


def xsim_by_language(
    model: SentenceTransformer,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    margin: str = "ratio",
    k: int = 4,
    name: str = "pairs",
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> XsimReport:
    """Encode aligned texts and count, both ways, whose best match by margin is not their translation.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        pairs: Language to aligned texts, the language first and English second.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        k: Neighbours that make up a sentence's neighbourhood.
        name: Of the data, for the signature.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding.
    Raises:
        ValueError: Without pairs, or as :func:`~st_xling.mining.xsim`, naming the language.
    """
    if not pairs:
        raise ValueError("pairs must hold at least one language: got none; pass e.g. {'deu': (german, english)}.")
    errors = {}
    encoder = SignedEvaluator("mean_error", name="xsim", batch_size=batch_size, show_progress_bar=show_progress_bar)
    for language, columns in pairs.items():
        source, target = encoder.encode_columns(model, columns, (language, "eng"))
        try:
            to_english = xsim(source, target, margin=margin, k=k).error_rate
            errors[language] = (to_english, xsim(target, source, margin=margin, k=k).error_rate)
        except ValueError as error:
            raise ValueError(f"{language}: {error}") from error
    signature = encoder.sign(
        "xsim",
        languages=pairs,
        direction="both",
        margin=margin,
        k=k,
        ties="index",
        data=f"{name}@{sha8([[language, *map(list, columns)] for language, columns in pairs.items()])}",
    )
    return XsimReport(errors, signature)
