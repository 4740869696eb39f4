"""One training run of a retriever, from its sources to a saved model: what ``st-xling train ir`` calls."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from tqdm.auto import tqdm
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from st_xling._version import __version__
from st_xling.data.text_columns import column_texts
from st_xling.models import load_encoder, tiny_encoder
from st_xling.training import processes
from st_xling.training.arguments import total_steps, training_arguments
from st_xling.training.build import build_loss, scheduled_weights
from st_xling.training.leak_check import OnLeak
from st_xling.training.mixture import mix
from st_xling.training.prepare import check_tiny, model_name
from st_xling.training.progress import StderrProgress
from st_xling.training.retriever.encoders import ROUTES, has_routes, separate_encoders
from st_xling.training.retriever.leaks import check_query_leaks
from st_xling.training.retriever.recipe import RetrievalRecipe
from st_xling.training.retriever.sources import RetrievalSources, batch_rows, join_sources
from st_xling.training.retriever.terms import TermByTermLoss
from st_xling.training.retriever.trainer import RetrievalTrainer
from st_xling.training.run import TrainingResult, dev_data, run_trainer
from st_xling.training.run_folder import RunFolder
from st_xling.training.saving import save_run
from st_xling.training.texts import TextReport, report_texts

if TYPE_CHECKING:
    from st_xling.data.leak import Texts


def train_retrieval(
    recipe: RetrievalRecipe,
    sources: RetrievalSources,
    out: str | Path,
    *,
    model: str | SentenceTransformer = "tiny",
    tiny: Mapping[str, Any] | None = None,
    evaluator: BaseEvaluator | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> TrainingResult:
    """Train a retriever and save it: a stock model for ``encode_query`` and ``encode_document``.

    Args:
        recipe: Terms and options, from :func:`load_retrieval_recipe`.
        sources: Queries with their passages, and what the recipe's other terms look at. An epoch is as long as the
            query-passage pairs; the others are cycled beside them.
        out: Folder of the run, see :class:`~st_xling.training.run_folder.RunFolder`.
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small encoder built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Judges the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Texts that will judge the model later; like the evaluator's queries, they are looked for.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Go on from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Data that do not fit the recipe, an occupied folder, a model or option that does not fit; shared
            text, if it is to fail; several processes.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny, model)
    processes.require_one("retrievers")
    sources.check(recipe)
    with RunFolder(out, resume=resume, overwrite=overwrite, start=model) as folder:
        sources, leak = check_query_leaks(sources, evaluator, evaluation, on_leak=on_leak)
        manifest = {
            "version": __version__,
            "command": command,
            "recipe": recipe.as_dict(),
            "model": model_name(model),
            "tiny": tiny,
            "data": sources.manifest(),
            "dev": dev_data(evaluator),
            "processes": 1,
        }
        checkpoint = folder.claim(manifest)
        progress = StderrProgress(recipe.name)
        encoder, texts = _encoder(recipe, sources, model, tiny, checkpoint)
        trainer = _trainer(recipe, sources, encoder, folder, evaluator, progress)
        folder.begin(manifest)
        result = run_trainer(trainer, folder, progress, checkpoint, texts)
        save_run(result.model, folder, history=result.history, figures=result.figures(), leak=leak)
    return result


def _encoder(
    recipe: RetrievalRecipe,
    sources: RetrievalSources,
    model: str | SentenceTransformer,
    tiny: dict[str, Any],
    checkpoint: Path | None,
) -> tuple[SentenceTransformer, tuple[TextReport, TextReport]]:
    """The model to train, and what queries and passages are like."""
    options = recipe.model
    if checkpoint is not None:
        encoder = load_encoder(str(checkpoint))
        encoder.model_card_data.base_model = None if model == "tiny" else model_name(model)
    elif not isinstance(model, str):
        encoder = model
    elif model != "tiny":
        encoder = load_encoder(model, pooling=options.pooling, max_length=options.max_length)  # type: ignore[arg-type]
    else:
        shape: dict[str, Any] = {"seed": recipe.training.seed, **tiny}
        for key, value in (("pooling", options.pooling), ("max_length", options.max_length)):
            if value is not None:
                shape.setdefault(key, value)
        parts = [mix(data) for data in (sources.queries, sources.parallel, sources.others) if data]
        encoder = tiny_encoder((text for part in parts for text in column_texts(part, "source", "target")), **shape)
        encoder.model_card_data.base_model = None
    queries, passages = (
        report_texts(
            encoder.tokenizer,
            column_texts(mix(sources.queries), side),
            max_length=encoder.max_seq_length,
            description=name,
            progress=True,
            total=sources.rows,
        )
        for side, name in (("source", "queries"), ("target", "passages"))
    )
    for report, name in ((queries, "queries"), (passages, "passages")):
        if report.truncated:
            tqdm.write(
                f"{report.truncated:,} of {report.texts:,} {name} are longer than {encoder.max_seq_length} tokens and "
                f"are cut; the longest has {report.longest}. Raise model.max_length to keep more.",
                file=sys.stderr,
            )
    if recipe.retrieval.encoders == "separate":
        encoder = separate_encoders(encoder)
    elif has_routes(encoder):
        raise ValueError("this model has separate encoders: got retrieval.encoders 'shared'; take 'separate'.")
    return encoder, (queries, passages)


def _trainer(
    recipe: RetrievalRecipe,
    sources: RetrievalSources,
    encoder: SentenceTransformer,
    folder: RunFolder,
    evaluator: BaseEvaluator | None,
    progress: StderrProgress,
) -> RetrievalTrainer:
    names = [name for loss in recipe.losses for name in sources.columns(loss)]
    chosen = {
        loss: {**given, "columns": [names.index(name) for name in sources.columns(loss)]}
        for loss, given in recipe.losses.items()
    }
    total = build_loss(dataclasses.replace(recipe, losses=chosen), encoder, token_ids=[set(), set()])
    loss = TermByTermLoss(encoder, total.term_list())
    weights = scheduled_weights(recipe, loss)
    # The epochs of a stream are not known to the host, so they are counted out here.
    options = dataclasses.replace(recipe.training, max_steps=total_steps(recipe.training, sources.rows))
    metric = None if evaluator is None else f"eval_{evaluator.primary_metric}"
    arguments = training_arguments(options, folder.training, rows=None, best_metric=metric)
    arguments.per_device_train_batch_size = batch_rows(recipe)
    if has_routes(encoder):
        arguments.router_mapping = {name: ROUTES.get(name, "document") for name in names}
    trainer = RetrievalTrainer(
        model=encoder,
        args=arguments,
        train_dataset=join_sources(sources, recipe),
        loss=loss,
        evaluator=evaluator,
        callbacks=[progress] if weights is None else [progress, weights],
        one_by_one=recipe.retrieval.gradients == "one_by_one",
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    return trainer
