"""Fit post-processing on text, evaluate translation retrieval after each step, and save a stock model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.util import quantize_embeddings

from st_xling._version import __version__
from st_xling.data import load_data_specs
from st_xling.data.holdout import hold_out
from st_xling.evaluation.tatoeba import PrecisionEvaluator
from st_xling.models import load_encoder, normalization
from st_xling.models.sidecar import card_terms, model_fingerprint, model_folder, write_model
from st_xling.models.view import EncoderLoadingOptions, model_options
from st_xling.utils.cosines import precision_at
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import Center
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BEFORE, _INT8 = "as it was", "int8"


def postprocess_table(content: Mapping[str, Any]) -> str:
    """Format the result of :func:`postprocess`: a row for each step, which includes those before it; in percent."""
    stages = content["stages"]
    pairs = list(stages[_BEFORE]["accuracy"])
    head = ["after", *(f"{pair} {arrow}" for pair in pairs for arrow in ("->", "<-")), "mean", "bytes a vector"]
    rows: list[list[Any]] = []
    for name, stage in stages.items():
        values = [100 * value for pair in pairs for value in stage["accuracy"][pair]]
        rows.append([name, *values, sum(values) / len(values), stage["bytes"]])
    return format_table(head, rows)


def postprocess(
    model: str,
    data: Sequence[str],
    out: str | Path,
    *,
    center: Center | None = None,
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
    **options: Unpack[EncoderLoadingOptions],
) -> dict[str, Any]:
    """Fit post-processing on parallel text, evaluate each step on other text, and save the model.

    Args:
        model: Hub id or folder, which is not changed.
        data: Specs of parallel text, as training takes it. At most 500 pairs and a fifth of each are held out, unless
            ``evaluate_on`` is given.
        out: Folder of the new model, which sentence-transformers loads alone; with ``int8`` also
            ``int8_ranges.json``: least and greatest value of each dimension, the ``ranges`` of sentence-transformers'
            ``quantize_embeddings``.
        center: ``None`` keeps the centering that the model has, if any.
        remove_languages: See :func:`~st_xling.models.normalization.fit_postprocessing`.
        whiten: Likewise.
        dim: Likewise.
        int8: Calibrate int8 vectors.
        evaluate_on: Specs of text to evaluate on.
        skip_bad_lines: Skip faulty lines, with a warning.
        overwrite: Replace an earlier model of this kind in ``out``.
        batch_size: Maximum number of texts of a batch.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the new folder before it is moved to ``out``, such as to write the card.
        options: Of :func:`~st_xling.models.load_encoder`.
    Returns:
        ``results.json["postprocess"]``: the source, its license and base model; ``texts``, the number of texts of each
        language that the steps were fitted on; ``stages``, step → ``"bytes"`` of a vector, and ``"accuracy"`` by pair
        of languages, from the first to the second and back, fractions in [0, 1]; signature and command.
    Raises:
        ValueError: Text of unknown languages for means of each, too little text, a folder that may not be written to,
            and as :func:`~st_xling.models.normalization.fit_postprocessing`.
    """
    with model_folder(out, model, "postprocess", overwrite=overwrite) as folder:
        read = load_data_specs(data, skip_bad_lines=skip_bad_lines, identify=True)
        if evaluate_on:
            held = load_data_specs(evaluate_on, split="test", skip_bad_lines=skip_bad_lines, identify=True)
        else:
            read, held = hold_out(read, pairs=500, share=0.2)
            held = {name: part for name, part in held.items() if len(part)}
        if not held:
            raise ValueError("no pairs could be held out to evaluate on: give more text, or other pairs with --eval.")
        encoder = load_encoder(model, **options)
        if encoder.truncate_dim is not None:
            raise ValueError(f"dimensions are chosen by --dim: got a model cut to {encoder.truncate_dim}.")
        texts: dict[str, list[str]] = {}
        for part in read.values():
            for side in ("source", "target"):
                for text, code in zip(part[side][:], part[f"{side}_language"][:]):
                    texts.setdefault(code, []).append(text)
        if UNKNOWN in texts and (center == "per_language" or remove_languages):
            raise ValueError("each language's own mean needs the languages of the text: name them (de-en=PATH).")
        own, bare = normalization.find_centering(encoder), normalization.apply_centering(encoder, None)
        columns = normalization.encode_by_language(
            bare, [*texts.values()], list(texts), batch_size=batch_size, show_progress_bar=progress
        )
        fitted = {code: torch.from_numpy(column) for code, column in zip(texts, columns)}
        steps, result = None, encoder
        wanted = own if center is None or (center == "none" and own is None) else center
        if wanted is not None or remove_languages or whiten or dim is not None or not int8:
            steps = normalization.fit_postprocessing(
                torch.cat([*fitted.values()]),
                [code for code, own_texts in texts.items() for _ in own_texts],
                center=wanted,
                remove_languages=remove_languages,
                whiten=whiten,
                dim=dim,
            )
            result = steps.apply(encoder)
        evaluator = PrecisionEvaluator(held, at=[1], name="", batch_size=batch_size, show_progress_bar=progress)
        held_columns, codes = evaluator.columns()
        stages = {_BEFORE: evaluator.encode_columns(encoder, held_columns, codes)}
        if steps is not None:
            plain = stages[_BEFORE] if own is None else evaluator.encode_columns(bare, held_columns, codes)
            for column, code in zip(plain, codes):
                for name, vectors in steps.stages(torch.from_numpy(column), code).items():
                    stages.setdefault(name, []).append(vectors.numpy())
        ranges = np.empty(0)
        if int8:
            if steps is not None:
                fitted = {code: list(steps.stages(each, code).values())[-1] for code, each in fitted.items()}
            final = torch.cat([*fitted.values()]).numpy()
            ranges = np.stack([final.min(axis=0), final.max(axis=0)])
            last = list(stages.values())[-1]
            stages[_INT8] = [np.asarray(quantize_embeddings(side, "int8", ranges=ranges)) for side in last]
        is_folder = Path(model).is_dir()
        content = {
            "source": Path(model).resolve().name if is_folder else model,
            "source_fingerprint": model_fingerprint(encoder)[:8],
            "source_card": card_terms(model),
            "texts": {code: len(own_texts) for code, own_texts in texts.items()},
            "stages": {
                name: {"bytes": int(sides[0][0].nbytes), "accuracy": _accuracy(evaluator.pairs, sides)}
                for name, sides in stages.items()
            },
            "signature": sign(
                "postprocess",
                steps=[name.replace(", ", "-").replace(" ", "-") for name in list(stages)[1:]],
                fitted_on=sha8(texts),
                pairs=evaluator.pairs,
                direction="both",
                ties="index",
                model=model_options(encoder),
                data=f"{','.join(held)}@{sha8(evaluator.pairs)}",
            ),
            **({} if command is None else {"command": command}),
            "version": __version__,
        }
        result.model_card_data.base_model = None if is_folder else model

        def finish(path: Path) -> None:
            if int8:
                (path / "int8_ranges.json").write_text(json.dumps(ranges.tolist()) + "\n", encoding="utf-8")
            if complete is not None:
                complete(path)

        write_model(folder, result, model, content, finish)
        return content


def _accuracy(pairs: Iterable[str], sides: Sequence[np.ndarray]) -> dict[str, list[float]]:
    floats = [side.astype(np.float32) for side in sides]
    both = zip(floats[::2], floats[1::2])
    return {pair: [way[1] for way in precision_at(*one, at=[1])] for pair, one in zip(pairs, both)}
