"""Slim models: from a model and text of some languages to a folder, with a report that compares both models."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data.texts_by_language import language_texts
from st_xling.models.encoding import encode
from st_xling.models.load import cast_to_saved_dtype
from st_xling.models.sidecar import card_terms, model_fingerprint, model_folder, write_model
from st_xling.models.view import EncoderLoadingOptions, load_encoder, model_options
from st_xling.models.vocabulary import model_size, slim_encoder
from st_xling.utils.languages import canonical_code, match_language
from st_xling.utils.signature import sign
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Cosine from which two embeddings count as the same.
SAME = 0.9999

#: Rows, drawn from all sources alike, that the models are compared on; a pair of translations is one row.
PARITY_ROWS = 500

__all__ = ["SlimReport", "model_size", "parity", "slim_encoder", "slim_model"]


@dataclass(frozen=True)
class SlimReport:
    """Result of :func:`slim_model`.

    Attributes:
        content: ``results.json["slim"]``: the source, its license and base model, the languages; in ``report`` the
            number of counted texts, sizes, and parity on a sample of these texts; signature and command.
    """

    content: dict[str, Any]

    def table(self) -> str:
        """Format sizes and parity as plain text."""
        report = self.content["report"]
        rows = []
        for name, size in report["size"].items():
            remaining_percent = 100 * size["after"] / size["before"]
            rows.append([name, size["before"], size["after"], remaining_percent])
        texts = [f"{language} {count:,}" for language, count in report["texts"].items()]
        parity = report["parity"]
        lines = [
            format_table(["", "before", "after", "left, %"], rows),
            "",
            f"texts counted: {', '.join(texts)}",
            f"same embeddings as before: {100 * parity['same_share']:.1f} % of {parity['texts']} texts",
            f"cosines: mean {parity['cosine_mean']:.5f}, least {parity['cosine_min']:.5f}",
            self.content["signature"],
        ]
        return "\n".join(lines)


def slim_model(
    model: str,
    texts: Sequence[str],
    out: str | Path,
    *,
    languages: Sequence[str],
    min_count: int = 1,
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    batch_size: int | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Unpack[EncoderLoadingOptions],
) -> SlimReport:
    """Cut a model's vocabulary to the tokens of some languages, compare, and save.

    Args:
        model: Hub id or folder, which is not changed.
        texts: Specs, see :func:`~st_xling.data.texts_by_language.language_texts`. Each is read once.
        out: Folder of the slim model.
        languages: Languages that the text must cover; text of others is ignored.
        min_count: Drop tokens that occur less often.
        skip_bad_lines: Skip faulty lines, with a warning.
        overwrite: Replace an earlier slim model in ``out``.
        batch_size: Maximum batch size; chosen for the device by default.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the folder of the slim model before it is moved to its place, such as to write the card.
        options: See :func:`~st_xling.models.load_encoder`; a ``layer``, a ``dtype`` or a prompt is saved with the slim
            model.

    Raises:
        ValueError: For a language without text, a folder that may not be written to, and as
            :func:`~st_xling.models.slim.slim_encoder`.
    """
    with model_folder(out, model, "slim", overwrite=overwrite) as folder:
        encoder = cast_to_saved_dtype(load_encoder(model, **options))
        corpus = _SampledTexts(texts, languages, skip_bad_lines)
        slim = slim_encoder(encoder, corpus, min_count=min_count, progress=progress)

        before = model_size(encoder)
        after = model_size(slim)
        report = {
            "texts": dict(corpus.counts),
            "size": {name: {"before": before[name], "after": after[name]} for name in before},
            "parity": parity(encoder, slim, corpus.sample, batch_size=batch_size, show_progress_bar=progress),
        }
        signature = sign(
            "slim",
            f"languages:{','.join(corpus.languages)}",
            f"min-count:{min_count}",
            model=model_options(encoder),
            data=corpus.digest.hexdigest()[:8],
        )
        is_folder = Path(model).is_dir()
        content: dict[str, Any] = {
            "source": Path(model).resolve().name if is_folder else model,
            "source_fingerprint": model_fingerprint(encoder)[:8],
            "source_card": card_terms(model),
            # As the Hub names it (adapter, finetune, merge or quantized): the same model in less space, not trained.
            "relation": "quantized",
            "langs": corpus.languages,
            "report": report,
            "signature": signature,
        }
        if command is not None:
            content["command"] = command
        content["version"] = __version__
        slim.model_card_data.base_model = None if is_folder else model
        write_model(folder, slim, model, content, complete)
        return SlimReport(content)


def parity(
    before: SentenceTransformer,
    after: SentenceTransformer,
    texts: Sequence[str],
    *,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> dict[str, Any]:
    """Compare an encoder with the one that it was made from.

    Args:
        before: The source.
        after: The encoder made from it.
        texts: Texts of any language.
        batch_size: Maximum batch size; chosen for the device by default.
        show_progress_bar: Show a bar while encoding.

    Returns:
        ``texts``: number of distinct ones. ``cosine_mean``, ``cosine_min``: of a text's two embeddings. ``same_share``:
        share of cosines of at least 0.9999.
    """
    distinct = list(dict.fromkeys(texts))
    old = encode(before, distinct, batch_size=batch_size, show_progress_bar=show_progress_bar).astype(np.float64)
    new = encode(after, distinct, batch_size=batch_size, show_progress_bar=show_progress_bar).astype(np.float64)
    lengths = np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)
    cosines = (old * new).sum(axis=1) / lengths
    return {
        "texts": len(distinct),
        "cosine_mean": float(cosines.mean()),
        "cosine_min": float(cosines.min()),
        "same_share": float((cosines >= SAME).mean()),
    }


class _SampledTexts:
    """The texts of some languages, one after the other, with a sample of the rows that were read.

    Attributes:
        languages: Languages as the user spells them.
        counts: Number of texts of each language.
        digest: Hash of all texts, in order.
        sample: Texts of sampled rows, of each source as many.
    """

    def __init__(self, specs: Sequence[str], languages: Sequence[str], skip_bad_lines: bool) -> None:
        self.languages = list(dict.fromkeys(code.strip() for code in languages if code.strip()))
        if not self.languages:
            raise ValueError("languages are needed: got none; name those that the model shall keep, such as de,en.")
        self._specs = specs
        self._skip_bad_lines = skip_bad_lines
        #: Language of the data → as the user spells it; ``None``: another language.
        self._names: dict[str, str | None] = {}
        self.digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.sample: list[str] = []

    def __iter__(self) -> Iterator[str]:
        sample_size = -(-PARITY_ROWS // max(1, len(self._specs)))
        for seed, spec in enumerate(self._specs):
            generator = random.Random(seed)
            sample: list[list[tuple[str, str]]] = []
            rows = map(self._select_languages, language_texts(spec, skip_bad_lines=self._skip_bad_lines))
            for number, texts in enumerate(filter(None, rows), 1):
                self.digest.update(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                # Reservoir sampling: each row so far is in the sample with the same probability.
                if len(sample) < sample_size:
                    sample.append(texts)
                elif (index := generator.randrange(number)) < sample_size:
                    sample[index] = texts
                for language, text in texts:
                    self.counts[language] += 1
                    yield text
            for sampled_texts in sample:
                self.sample += [text for _, text in sampled_texts]
        self._check_languages()

    def _check_languages(self) -> None:
        counted = {canonical_code(name) for name in self.counts}
        missing = [code for code in self.languages if canonical_code(code) not in counted]
        if missing:
            ignored = {code for code, name in self._names.items() if name is None}
            available = sorted({*self.counts} | ignored)
            raise ValueError(
                f"every language must have text: got none of {', '.join(missing)} (there is text of: "
                f"{', '.join(available) or 'none'}); add text of it, or remove it from --languages."
            )

    def _select_languages(self, row: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Select the texts of a row in one of the languages, which is named as the user spells it."""
        selected = []
        for code, text in row:
            if code not in self._names:
                self._names[code] = match_language(code, self.languages)
            name = self._names[code]
            if name and text.strip():
                selected.append((name, text))
        return selected
