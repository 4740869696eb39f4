"""Post-processing fitted on text, with what every step does to translation retrieval, saved as a stock model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.util import quantize_embeddings

from st_xling._version import __version__
from st_xling.data import load_data_specs
from st_xling.data.holdout import hold_out
from st_xling.evaluation.precision import PrecisionEvaluator
from st_xling.models import load_encoder
from st_xling.models.centring import Centre, centred_model, encode_once, language_tasks, saved_centring
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.postprocessing import Postprocessing, fit_postprocessing
from st_xling.models.sidecar import card_terms
from st_xling.models.slim.slim_model import SlimFolder
from st_xling.models.view import model_options
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table

#: File of the ranges that int8 vectors are made with, in the model's folder.
INT8_RANGES = "int8_ranges.json"
_BEFORE, _INT8 = "as it was", "int8"


@dataclass(frozen=True)
class PostprocessReport:
    """What came of it.

    Attributes:
        source: Hub id, or name of the folder.
        fingerprint: Eight hex digits of the source.
        card: What the source's own card says of licence and base model.
        stages: Step → accuracy by pair of languages, from the first to the second and back, fractions in [0, 1].
        sizes: Step → bytes of a vector.
        texts: Texts of each language that the steps were fitted on.
        signature: What the accuracies depend on besides the source.
        command: Which gives the same again.
    """

    source: str
    fingerprint: str
    card: dict[str, str]
    stages: dict[str, dict[str, tuple[float, float]]]
    sizes: dict[str, int]
    texts: dict[str, int]
    signature: str
    command: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``results.json["postprocess"]`` and ``--json``."""
        stages = {
            name: {"bytes": self.sizes[name], "accuracy": {pair: list(ways) for pair, ways in pairs.items()}}
            for name, pairs in self.stages.items()
        }
        return {
            "source": self.source,
            "source_fingerprint": self.fingerprint,
            "source_card": self.card,
            "texts": self.texts,
            "stages": stages,
            "signature": self.signature,
            **({} if self.command is None else {"command": self.command}),
            "version": __version__,
        }

    def table(self) -> str:
        """One row a step, each with those before it; accuracy in percent."""
        pairs = list(self.stages[_BEFORE])
        head = ["after", *(f"{pair} {arrow}" for pair in pairs for arrow in ("->", "<-")), "mean", "bytes a vector"]
        rows: list[list[Any]] = []
        for name, accuracies in self.stages.items():
            values = [100 * value for pair in pairs for value in accuracies[pair]]
            rows.append([name, *values, sum(values) / len(values), self.sizes[name]])
        return format_table(head, rows)


def postprocess(
    model: str,
    data: Sequence[str],
    out: str | Path,
    *,
    centre: Centre | None = None,
    remove_languages: bool = False,
    whiten: bool = False,
    dim: int | None = None,
    int8: bool = False,
    evaluate_on: Sequence[str] = (),
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    batch_size: int | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Any,
) -> PostprocessReport:
    """Fit post-processing on parallel text, evaluate each step on other text, and save the model.

    Args:
        model: Hub id or folder; it is not touched.
        data: Specs of parallel text, as training takes it. At most 500 pairs and a fifth of each are held out, unless
            there is ``evaluate_on``.
        out: Folder of the new model, which sentence-transformers loads alone; with ``int8`` also
            ``int8_ranges.json``: least and greatest value of each dimension, the ``ranges`` of sentence-transformers'
            ``quantize_embeddings``.
        centre: ``None``: the centring that the model has, if any.
        remove_languages: As for :func:`~st_xling.models.postprocessing.fit_postprocessing`.
        whiten: Likewise.
        dim: Likewise.
        int8: Whether to calibrate.
        evaluate_on: Specs of text to evaluate on.
        skip_bad_lines: Leave faulty lines out, with a warning.
        overwrite: Replace an earlier model of this kind in ``out``.
        batch_size: Most texts of a batch.
        progress: Show bars on stderr.
        command: To be recorded in the report.
        complete: Called with the new folder before it takes its place, such as to write the card.
        options: Of :func:`~st_xling.models.load_encoder`.
    Raises:
        ValueError: Text of unknown languages for means of each, too little text, a folder that may not be written to,
            and as :func:`~st_xling.models.postprocessing.fit_postprocessing`.
    """
    with SlimFolder(Path(out), model, overwrite=overwrite, key="postprocess") as folder:
        read = load_data_specs(data, skip_bad_lines=skip_bad_lines)
        if evaluate_on:
            held = load_data_specs(evaluate_on, split="test", skip_bad_lines=skip_bad_lines)
        else:
            read, held = hold_out(read, pairs=500, share=0.2)
            held = {name: part for name, part in held.items() if len(part)}
        if not held:
            raise ValueError("no pairs could be held out to evaluate on: give more text, or other pairs with --eval.")
        encoder = load_encoder(model, **options)
        if encoder.truncate_dim is not None:
            raise ValueError(f"dimensions are chosen by --dim: got a model cut to {encoder.truncate_dim}.")
        if centre == "none" and saved_centring(encoder) is None:
            centre = None
        own = saved_centring(encoder) if centre is None else None
        bare = centred_model(encoder, None)
        by_language: dict[str, list[str]] = {}
        for part in read.values():
            for side in ("source", "target"):
                for text, code in zip(part[side][:], part[f"{side}_language"][:]):
                    by_language.setdefault(code, []).append(text)
        languages = [code for code, own_texts in by_language.items() for _ in own_texts]
        if UNKNOWN in languages and (centre == "per_language" or remove_languages):
            raise ValueError("each language's own mean needs the languages of the text: name them (de-en=PATH).")
        encoding: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": progress}
        tasks, _ = language_tasks(bare, list(by_language))
        vectors = encode_once(bare, [*by_language.values()], tasks=tasks, **encoding)
        fitted = torch.from_numpy(np.concatenate(vectors).astype(np.float32))
        if centre is None and own is None and int8 and dim is None and not (remove_languages or whiten):
            steps = None
        else:
            steps = fit_postprocessing(
                fitted,
                languages,
                centre=own if centre is None else centre,
                remove_languages=remove_languages,
                whiten=whiten,
                dim=dim,
            )
        result = encoder if steps is None else steps.apply(encoder)
        evaluator = PrecisionEvaluator(held, at=[1], name="", **encoding)
        columns, codes = evaluator.columns()
        plain = before = evaluator.encode_columns(encoder, columns, codes)
        if saved_centring(encoder) is not None:
            plain = evaluator.encode_columns(bare, columns, codes)
        after: dict[str, list[np.ndarray]] = {_BEFORE: before}
        for column, code in zip(plain, codes):
            stages = {} if steps is None else steps.stages(torch.from_numpy(np.asarray(column)), code)
            for name, stage in stages.items():
                after.setdefault(name, []).append(stage.numpy())
        if int8:
            last = after[list(after)[-1]]
            final = fitted.numpy() if steps is None else _final(steps, fitted, languages)
            ranges = np.stack([final.min(axis=0), final.max(axis=0)])
            after[_INT8] = [np.asarray(quantize_embeddings(each, "int8", ranges=ranges)) for each in last]
        accuracies = {}
        for name, sides in after.items():
            floats = [np.asarray(each, dtype=np.float32) for each in sides]
            metrics = evaluator.judge(dict(zip(evaluator.pairs, zip(floats[::2], floats[1::2]))))
            accuracies[name] = {
                pair: (metrics[f"{pair}_source_to_target_p@1"], metrics[f"{pair}_target_to_source_p@1"])
                for pair in evaluator.pairs
            }
        is_folder = Path(model).is_dir()
        report = PostprocessReport(
            source=Path(model).resolve().name if is_folder else model,
            fingerprint=model_fingerprint(encoder)[:8],
            card=card_terms(model),
            stages=accuracies,
            sizes={name: int(sides[0][0].nbytes) for name, sides in after.items()},
            texts={code: len(own_texts) for code, own_texts in by_language.items()},
            signature=sign(
                "postprocess",
                steps=[name.replace(", ", "-").replace(" ", "-") for name in list(after)[1:]],
                fitted_on=sha8(by_language),
                pairs=evaluator.pairs,
                direction="both",
                ties="index",
                model=model_options(encoder),
                data=f"{','.join(held)}@{sha8(evaluator.pairs)}",
            ),
            command=command,
        )
        result.model_card_data.base_model = None if is_folder else model

        def finish(path: Path) -> None:
            if int8:
                (path / INT8_RANGES).write_text(json.dumps(ranges.tolist()) + "\n", encoding="utf-8")
            if complete is not None:
                complete(path)

        folder.write(result, report.as_dict(), finish)
        return report


def _final(steps: Postprocessing, vectors: torch.Tensor, languages: Sequence[str]) -> np.ndarray:
    """Each language's vectors after all steps; those of a language stand together."""
    parts = []
    for code in dict.fromkeys(languages):
        own = vectors[torch.tensor([other == code for other in languages])]
        parts.append(list(steps.stages(own, code).values())[-1].numpy())
    return np.concatenate(parts)
