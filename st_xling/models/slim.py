"""Slim models: from a model and text of some languages to a folder, with a report that compares both models."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data.language_texts import language_texts
from st_xling.models import load_encoder
from st_xling.models.encode import encode
from st_xling.models.load import cast_to_saved_dtype
from st_xling.models.sidecar import card_terms, model_fingerprint, model_folder, write_model
from st_xling.models.view import model_options
from st_xling.models.vocabulary import model_size, slim_encoder, token_ids
from st_xling.utils.languages import canonical_code, match_language
from st_xling.utils.signature import sign
from st_xling.utils.tables import format_table

RELATION = "quantized"
"""Relation of the slim model to its source, as the Hub names it (adapter, finetune, merge or quantized): the same model
in less space, not trained."""

SAME = 0.9999
"""Cosine from which two embeddings count as the same."""

__all__ = ["SlimReport", "model_size", "parity", "slim_encoder", "slim_model"]


@dataclass(frozen=True)
class SlimReport:
    """Result of :func:`slim_model`.

    Attributes:
        content: ``results.json["slim"]``: the source, its license and base model, the languages; in ``report`` the
            number of counted texts, sizes, and parity on a sample of the text that was ``counted``, and on ``other``
            text, if there is any; signature and command.
    """

    content: dict[str, Any]

    def table(self) -> str:
        """Format sizes and parity as plain text."""
        report, whens = self.content["report"], ("before", "after")
        rows = []
        for name, size in report["size"].items():
            label, unit = ("weights and tokenizer, MB", 1e6) if name == "bytes" else (name, 1)
            values = [size[when] / unit if unit > 1 else size[when] for when in whens]
            rows.append([label, *values, 100 * size["after"] / size["before"]])
        cosines = []
        for text, each in report["parity"].items():
            unknown = [f"{100 * each['unknown_share'][when]:.3f}" for when in whens]
            rows.append([f"unknown tokens, {text} text, %", *unknown, None])
            values = [f"{each[name]:.5f}" for name in ("cosine_mean", "cosine_min")]
            cosines.append([f"{text} text", each["texts"], *values, 100 * each["same_share"]])
        head = ["cosine to the old embedding", "texts", "mean", "least", "same, %"]
        counted = ", ".join(f"{language} {count:,}" for language, count in report["texts"].items())
        tables = [format_table(["", *whens, "left, %"], rows), format_table(head, cosines)]
        return "\n".join(["\n\n".join(tables), "", f"texts counted: {counted}", self.content["signature"]])


def slim_model(
    model: str,
    texts: Sequence[str],
    out: str | Path,
    *,
    languages: Sequence[str],
    parity_texts: Sequence[str] = (),
    parity_rows: int = 500,
    min_count: int = 1,
    keep: Iterable[str] = (),
    seed: int = 0,
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    batch_size: int | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Any,
) -> SlimReport:
    """Cut a model's vocabulary to the tokens of some languages, compare, and save.

    Args:
        model: Hub id or folder, which is not changed.
        texts: Specs, see :func:`~st_xling.data.language_texts.language_texts`. Each is read once.
        out: Folder of the slim model.
        languages: Languages that the text must cover; text of others is ignored.
        parity_texts: Specs of other text to compare the models on.
        parity_rows: Number of rows, drawn from all sources alike, that the models are compared on; a pair of
            translations is one row.
        min_count: Drop tokens that occur less often.
        keep: Tokens, words or texts whose tokens are kept.
        seed: Seed of the rows to compare.
        skip_bad_lines: Skip faulty lines, with a warning.
        overwrite: Replace an earlier slim model in ``out``.
        batch_size: Maximum batch size; chosen for the device by default.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the folder of the slim model before it is moved to its place, such as to write the card.
        options: Options of :func:`~st_xling.models.load_encoder`; the slim model keeps a ``layer``, a ``dtype`` or a
            prompt as its own.
    Raises:
        ValueError: For a language without text, a folder that may not be written to, and as
            :func:`~st_xling.models.slim.slim_encoder`.
    """
    if parity_rows < 1:
        raise ValueError(f"parity_rows must be 1 or more: got {parity_rows}; 500 is the default.")
    with model_folder(out, model, "slim", overwrite=overwrite) as folder:
        encoder = cast_to_saved_dtype(load_encoder(model, **options))
        counted = _Text(texts, languages, parity_rows, seed, skip_bad_lines)
        slim = slim_encoder(encoder, counted, min_count=min_count, keep=keep, progress=progress)
        compared = {"counted": counted}
        if parity_texts:
            compared["other"] = _Text(parity_texts, languages, parity_rows, seed, skip_bad_lines, covers_all=False)
            for _ in compared["other"]:
                pass
        is_folder = Path(model).is_dir()
        before, after = model_size(encoder), model_size(slim)
        content: dict[str, Any] = {
            "source": Path(model).resolve().name if is_folder else model,
            "source_fingerprint": model_fingerprint(encoder)[:8],
            "source_card": card_terms(model),
            "relation": RELATION,
            "langs": counted.languages,
            "report": {
                "texts": dict(counted.counts),
                "size": {name: {"before": before[name], "after": after[name]} for name in before},
                "parity": {
                    name: parity(encoder, slim, text.sample, batch_size=batch_size, show_progress_bar=progress)
                    for name, text in compared.items()
                },
            },
            "signature": sign(
                "slim",
                f"languages:{','.join(counted.languages)}",
                f"min-count:{min_count}",
                f"parity-rows:{parity_rows}",
                seed=seed,
                parity=compared["other"].sha8 if parity_texts else None,
                model=model_options(encoder),
                data=counted.sha8,
            ),
            **({} if command is None else {"command": command}),
            "version": __version__,
        }
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
        share of cosines of at least 0.9999. ``unknown_share``: share of unknown tokens, ``before`` and ``after``.
    Raises:
        ValueError: If there is no text.
    """
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    unknown, vectors = {}, []
    for when, model in (("before", before), ("after", after)):
        numbers = [number for ids in token_ids(model.tokenizer, distinct) for number in ids]
        unknown[when] = numbers.count(model.tokenizer.unk_token_id) / max(1, len(numbers))
        encoded = encode(model, distinct, batch_size=batch_size, show_progress_bar=show_progress_bar)
        vectors.append(encoded.astype(np.float64))
    old, new = vectors
    cosines = (old * new).sum(axis=1) / (np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1))
    return {
        "texts": len(distinct),
        "cosine_mean": float(cosines.mean()),
        "cosine_min": float(cosines.min()),
        "same_share": float((cosines >= SAME).mean()),
        "unknown_share": unknown,
    }


class _Text:
    """The texts of some languages, one after the other, with a sample of the rows that were read.

    Attributes:
        languages: Languages as the user spells them.
        counts: Number of texts of each language.
        sample: Texts of sampled rows, of each source as many.
    """

    def __init__(
        self,
        specs: Sequence[str],
        languages: Sequence[str],
        rows: int,
        seed: int,
        skip_bad_lines: bool,
        *,
        covers_all: bool = True,
    ) -> None:
        self.languages = list(dict.fromkeys(code.strip() for code in languages if code.strip()))
        if not self.languages:
            raise ValueError("languages are needed: got none; name those that the model shall keep, such as de,en.")
        self._specs, self._skip_bad_lines = specs, skip_bad_lines
        self._covers_all, self._seed, self._each = covers_all, seed, -(-rows // max(1, len(specs)))
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.sample: list[str] = []

    @property
    def sha8(self) -> str:
        """Hash of all texts, in order."""
        return self._digest.hexdigest()[:8]

    def __iter__(self) -> Iterator[str]:
        known: dict[str, str | None] = {}  # code → as the user spells it; None: another language
        for seed, spec in enumerate(self._specs, start=self._seed):
            draw, number = random.Random(seed), 0
            sample: list[tuple[tuple[str, str], ...]] = []
            for row in language_texts(spec, skip_bad_lines=self._skip_bad_lines):
                known.update({code: match_language(code, self.languages) for code, _ in row if code not in known})
                texts = tuple((name, text) for code, text in row if (name := known[code]) and text.strip())
                if not texts:
                    continue
                self._digest.update(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                number += 1
                if len(sample) < self._each:
                    sample.append(texts)
                elif (place := draw.randrange(number)) < self._each:
                    sample[place] = texts
                for language, text in texts:
                    self.counts[language] += 1
                    yield text
            self.sample += [text for row in sample for _, text in row]
        found = {canonical_code(name) for name in self.counts}
        missing = [code for code in self.languages if canonical_code(code) not in found]
        if missing and (self._covers_all or not found):
            there = sorted({*self.counts, *(code for code, name in known.items() if name is None)})
            raise ValueError(
                f"every language must have text: got none of {', '.join(missing)} (there is text of: "
                f"{', '.join(there) or 'none'}); add text of it, or remove it from --languages."
            )
