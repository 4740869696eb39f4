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
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

# Names of the stages before the first step and after the last one; steps name those between them.
_ORIGINAL = "as it was"
_INT8 = "int8"


def postprocess_table(content: Mapping[str, Any]) -> str:
    """Format the result of :func:`postprocess`: a row for each step, which includes those before it; in percent."""
    stages = content["stages"]
    pairs = list(stages[_ORIGINAL]["accuracy"])
    directions: list[str] = []
    for pair in pairs:
        directions += [f"{pair} ->", f"{pair} <-"]
    rows: list[list[Any]] = []
    for name, stage in stages.items():
        values: list[float] = []
        for pair in pairs:
            values += [100 * accuracy for accuracy in stage["accuracy"][pair]]
        rows.append([name, *values, sum(values) / len(values), stage["bytes"]])
    return format_table(["after", *directions, "mean", "bytes a vector"], rows)


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
        out: Folder of the new model, which sentence-transformers loads without st-xling; with ``int8`` also
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
        options: Options of :func:`~st_xling.models.load_encoder`.

    Returns:
        ``results.json["postprocess"]``: the source, its license and base model; ``texts``, the number of texts of each
        language that the steps were fitted on; ``stages``, step → ``"bytes"`` of a vector, and ``"accuracy"`` by pair
        of languages, from the first to the second and back, fractions in [0, 1]; signature and command.

    Raises:
        ValueError: Text of unknown languages for means of each, too little text, a folder that may not be written to,
            and as :func:`~st_xling.models.normalization.fit_postprocessing`.
    """
    with model_folder(out, model, "postprocess", overwrite=overwrite) as folder:
        fitting_pairs, held_out = _read_pairs(data, evaluate_on, skip_bad_lines=skip_bad_lines)
        encoder = load_encoder(model, **options)
        if encoder.truncate_dim is not None:
            raise ValueError(f"dimensions are chosen by --dim: got a model cut to {encoder.truncate_dim}.")
        texts = _texts_by_language(fitting_pairs.values())
        if UNKNOWN in texts and (center == "per_language" or remove_languages):
            raise ValueError("each language's own mean needs the languages of the text: name them (de-en=PATH).")

        # Steps are fitted on vectors without the model's own centering, if it has one.
        own_centering = normalization.find_centering(encoder)
        uncentered = normalization.apply_centering(encoder, None)
        columns = normalization.encode_by_language(
            uncentered, [*texts.values()], list(texts), batch_size=batch_size, show_progress_bar=progress
        )
        vectors = {code: torch.from_numpy(column) for code, column in zip(texts, columns)}
        keeps_centering = center is None or (center == "none" and own_centering is None)
        centering = own_centering if keeps_centering else center
        has_steps = centering is not None or remove_languages or whiten or dim is not None
        steps: normalization.Postprocessing | None = None
        result = encoder
        if has_steps or not int8:  # without any, fitting raises an error
            steps = normalization.fit_postprocessing(
                torch.cat([*vectors.values()]),
                _languages_of_rows(vectors),
                center=centering,
                remove_languages=remove_languages,
                whiten=whiten,
                dim=dim,
            )
            result = steps.apply(encoder)

        evaluator = PrecisionEvaluator(held_out, at=[1], name="", batch_size=batch_size, show_progress_bar=progress)
        stages = _encode_stages(evaluator, encoder, uncentered, steps)
        ranges: np.ndarray | None = None
        if int8:
            ranges = _find_ranges(vectors, steps)
            last_stage = list(stages.values())[-1]
            stages[_INT8] = [np.asarray(quantize_embeddings(side, "int8", ranges=ranges)) for side in last_stage]
        content = _report_content(model, encoder, texts, evaluator, stages, ",".join(held_out))
        if command is not None:
            content["command"] = command
        content["version"] = __version__
        result.model_card_data.base_model = None if Path(model).is_dir() else model

        def finish(path: Path) -> None:
            if ranges is not None:
                (path / "int8_ranges.json").write_text(json.dumps(ranges.tolist()) + "\n", encoding="utf-8")
            if complete is not None:
                complete(path)

        write_model(folder, result, model, content, finish)
        return content


def _read_pairs(
    data: Sequence[str], evaluate_on: Sequence[str], *, skip_bad_lines: bool
) -> tuple[dict[str, Dataset], dict[str, Dataset]]:
    """Read the pairs to fit the steps on, and those to evaluate on, which are held out if none are named."""
    pairs = load_data_specs(data, skip_bad_lines=skip_bad_lines, identify=True)
    if evaluate_on:
        held_out = load_data_specs(evaluate_on, split="test", skip_bad_lines=skip_bad_lines, identify=True)
    else:
        pairs, held_out = hold_out(pairs, pairs=500, share=0.2)
        held_out = {name: rows for name, rows in held_out.items() if len(rows)}
    if not held_out:
        raise ValueError("no pairs could be held out to evaluate on: give more text, or other pairs with --eval.")
    return pairs, held_out


def _texts_by_language(datasets: Iterable[Dataset]) -> dict[str, list[str]]:
    """Collect the texts of both sides of all pairs."""
    texts: dict[str, list[str]] = {}
    for dataset in datasets:
        for side in ("source", "target"):
            for text, code in zip(dataset[side][:], dataset[f"{side}_language"][:]):
                texts.setdefault(code, []).append(text)
    return texts


def _languages_of_rows(vectors: Mapping[str, torch.Tensor]) -> list[str]:
    """Return the language of each row of all vectors, one language after the other."""
    codes: list[str] = []
    for code, rows in vectors.items():
        codes += [code] * len(rows)
    return codes


def _encode_stages(
    evaluator: PrecisionEvaluator,
    encoder: SentenceTransformer,
    uncentered: SentenceTransformer,
    steps: normalization.Postprocessing | None,
) -> dict[str, list[np.ndarray]]:
    """Embed the evaluator's texts as the model is, and as it is after each step: stage → vectors of each side."""
    columns, languages = evaluator.columns()
    stages = {_ORIGINAL: evaluator.encode_columns(encoder, columns, languages)}
    if steps is None:
        return stages
    sides = stages[_ORIGINAL]
    if normalization.find_centering(encoder) is not None:
        sides = evaluator.encode_columns(uncentered, columns, languages)
    for side, language in zip(sides, languages):
        for name, vectors in steps.stages(torch.from_numpy(side), language).items():
            stages.setdefault(name, []).append(vectors.numpy())
    return stages


def _find_ranges(vectors: Mapping[str, torch.Tensor], steps: normalization.Postprocessing | None) -> np.ndarray:
    """Return the least and the greatest value of each dimension after the last step. *Shape:* ``(2, dim)``"""
    last_vectors = dict(vectors)
    if steps is not None:
        for code, rows in vectors.items():
            last_vectors[code] = list(steps.stages(rows, code).values())[-1]
    matrix = torch.cat([*last_vectors.values()]).numpy()
    return np.stack([matrix.min(axis=0), matrix.max(axis=0)])


def _report_content(
    model: str,
    encoder: SentenceTransformer,
    texts: Mapping[str, Sequence[str]],
    evaluator: PrecisionEvaluator,
    stages: Mapping[str, Sequence[np.ndarray]],
    data_name: str,
) -> dict[str, Any]:
    """Return the report of :func:`postprocess`, without command and version."""
    accuracies: dict[str, dict[str, Any]] = {}
    for name, sides in stages.items():
        accuracies[name] = {"bytes": int(sides[0][0].nbytes), "accuracy": _measure_accuracy(evaluator.pairs, sides)}
    signature = sign(
        "postprocess",
        steps=[name.replace(", ", "-").replace(" ", "-") for name in list(stages)[1:]],
        fitted_on=sha8(texts),
        pairs=evaluator.pairs,
        direction="both",
        ties="index",
        model=model_options(encoder),
        data=f"{data_name}@{sha8(evaluator.pairs)}",
    )
    return {
        "source": Path(model).resolve().name if Path(model).is_dir() else model,
        "source_fingerprint": model_fingerprint(encoder)[:8],
        "source_card": card_terms(model),
        "texts": {code: len(texts_of_language) for code, texts_of_language in texts.items()},
        "stages": accuracies,
        "signature": signature,
    }


def _measure_accuracy(pairs: Iterable[str], sides: Sequence[np.ndarray]) -> dict[str, list[float]]:
    """Return the accuracy of each pair of languages, forward and back, from vectors of all sides in order."""
    floats = [side.astype(np.float32) for side in sides]
    accuracies: dict[str, list[float]] = {}
    for pair, source, target in zip(pairs, floats[::2], floats[1::2]):
        forward, backward = precision_at(source, target, at=[1])
        accuracies[pair] = [forward[1], backward[1]]
    return accuracies
