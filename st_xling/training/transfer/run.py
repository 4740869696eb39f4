"""One transfer run: an encoder, fine-tuned on English, judged in every language.

=================================  ==============================================================================
``model.safetensors``, …           the fine-tuned model, a stock ``CrossEncoder`` or ``AutoModelForTokenClassification``
``results.json``                   figures with their signature
``predictions/xx.tsv``             true and predicted labels of each language
``training/``                      what is needed to go on, see :class:`~st_xling.training.run_folder.RunFolder`
=================================  ==============================================================================
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder
from tqdm.auto import tqdm

from st_xling._version import __version__
from st_xling.data.classified_pairs import ClassifiedPairs
from st_xling.data.conllu import TaggedSentences
from st_xling.models.load import st_model
from st_xling.training.run import TrainingInterrupted
from st_xling.training.run_folder import EndReplaced, RunFolder
from st_xling.training.saving import write_log
from st_xling.training.transfer.fine_tune import fine_tune
from st_xling.training.transfer.heads import WordTagger, pair_classifier, word_tagger
from st_xling.training.transfer.label_sets import label_rows
from st_xling.training.transfer.predict import cut_pairs, predict_pairs, predict_tags
from st_xling.training.transfer.prediction_files import read_predictions, write_predictions
from st_xling.training.transfer.report import TransferReport, transfer_signature
from st_xling.training.transfer.scores import label_scores
from st_xling.training.transfer.tagging_rows import tagging_rows
from st_xling.training.transfer.tasks import FineTuning
from st_xling.training.transfer.transfer_data import TransferData
from st_xling.utils.io import write_json

if TYPE_CHECKING:
    from datasets import Dataset

Model = CrossEncoder | WordTagger


def transfer(
    encoder: str,
    data: TransferData,
    out: str | Path,
    *,
    options: FineTuning | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> TransferReport:
    """Fine-tune ``encoder`` on the training rows and judge it by each language's test rows.

    Args:
        encoder: Hub id or folder: a ``SentenceTransformer``, of which the transformer is taken, or a bare transformer.
        data: From :func:`load_transfer_data`.
        out: Folder of the run.
        options: How to fine-tune; ``None``: as the papers do, see :data:`TASKS`.
        resume: Go on where a run in ``out`` was stopped, in training or among the languages.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.
    Raises:
        ValueError: An occupied folder, another run to resume, no such encoder, a length that it does not reach.
        NotFiniteError: A loss that is no longer a number.
        TrainingInterrupted: Ctrl-C.
    """
    options = options or data.task.options
    with RunFolder(out, resume=resume, overwrite=overwrite, start=encoder) as folder:
        make = pair_classifier if data.task.kind == "pairs" else word_tagger
        model: Model = make(encoder, data.task.labels, max_length=options.max_length, seed=options.seed)
        signature = transfer_signature(data, options, _max_length(model))
        manifest = _manifest(encoder, data, options, command)
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
        try:
            trained = folder.read_manifest().get("trained")
            if trained is None:
                for language in data.test:  # of another model
                    (folder.path / "predictions" / f"{language}.tsv").unlink(missing_ok=True)
                trained = _train(model, data, options, folder, checkpoint)
                folder.write_manifest({**folder.read_manifest(), "trained": trained})
            else:
                model = (
                    st_model(CrossEncoder, str(folder.path))
                    if data.task.kind == "pairs"
                    else WordTagger.load(folder.path)
                )
            languages = {language: _judge(model, data, language, folder.path) for language in data.test}
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint(compare=False)) from stop
        report = TransferReport(data.task, languages, tuple(data.train), signature, trained)
        write_json(folder.path / "results.json", {"transfer": report.as_dict()})
        folder.finish()
    return report


def _train(
    model: Model, data: TransferData, options: FineTuning, folder: RunFolder, checkpoint: Path | None
) -> dict[str, Any]:
    rows, cut = _training_rows(model, data)
    callbacks = [EndReplaced(folder)]
    figures = fine_tune(
        model, rows, options, folder.training, checkpoint=checkpoint, name=data.task.name, callbacks=callbacks
    )
    write_log(folder, figures.pop("history"))
    folder.save_model(model, also=[f"predictions/{language}.tsv" for language in data.test])
    return {"rows": sum(map(len, data.train.values())), **figures, **cut}


def _training_rows(model: Model, data: TransferData) -> tuple[Dataset, dict[str, int]]:
    """What the trainer reads, and how many rows are longer than the model reads."""
    from datasets import Dataset, concatenate_datasets

    parts, count = [], 0
    ids = {label: number for number, label in enumerate(data.task.labels)}
    for rows in data.train.values():
        if isinstance(rows, ClassifiedPairs):
            assert isinstance(model, CrossEncoder)
            labels = [ids[label] for label in rows.labels]
            parts.append(Dataset.from_dict({"first": rows.first, "second": rows.second, "label": labels}))
            count += cut_pairs(model, rows)
        else:
            assert isinstance(model, WordTagger)
            tokens = tagging_rows(model.tokenizer, rows.words)
            parts.append(tokens.dataset(rows.tags, ids))
            count += tokens.split
    name = _longer(data)
    _tell(f"train {','.join(data.train)}", name, count, sum(map(len, data.train.values())), _max_length(model))
    return concatenate_datasets(parts), {name: count}


def _judge(model: Model, data: TransferData, language: str, folder: Path) -> dict[str, Any]:
    """Figures of one language, from its predictions where they were already made."""
    rows, path = data.test[language], folder / "predictions" / f"{language}.tsv"
    gold, name = label_rows(rows), _longer(data)
    if isinstance(rows, ClassifiedPairs):
        assert isinstance(model, CrossEncoder)
        count = cut_pairs(model, rows)
        predicted = None if path.is_file() else predict_pairs(model, rows, data.task.labels, language)
    else:
        assert isinstance(model, WordTagger)
        tokens = tagging_rows(model.tokenizer, rows.words, name=language)
        count, predicted = tokens.split, None if path.is_file() else predict_tags(model, tokens, language)
    if predicted is None:
        predicted = read_predictions(path, rows)
    else:
        write_predictions(path, rows, predicted)
    _tell(language, name, count, len(rows), _max_length(model))
    scores = label_scores(gold, predicted, f1=data.task.f1)
    figures: dict[str, Any] = {measure: scores[measure] for measure in data.task.measures}
    figures |= {"rows": len(rows), "labels": sum(map(len, gold)), name: count}
    if isinstance(rows, TaggedSentences):
        figures["unseen_tags"] = data.unseen.get(language, {})
    return {**figures, "in_training": data.in_training[language]}


def _longer(data: TransferData) -> str:
    return "cut" if data.task.kind == "pairs" else "read_in_pieces"


def _tell(side: str, what: str, count: int, rows: int, max_length: int) -> None:
    if count:
        share = 100 * count / rows
        done = "cut" if what == "cut" else "read in pieces"
        tqdm.write(
            f"{side}: {count:,} of {rows:,} rows ({share:.1f} %) are longer than {max_length} tokens and are {done}.",
            file=sys.stderr,
        )


def _max_length(model: Model) -> int:
    return int(model.tokenizer.model_max_length) if isinstance(model, WordTagger) else int(model.max_seq_length or 0)


def _manifest(encoder: str, data: TransferData, options: FineTuning, command: str | None) -> dict[str, Any]:
    return {
        "task": data.task.name,
        "encoder": encoder,
        "data": data.as_dict(),
        "hold_out": None if data.hold_out is None else [data.hold_out, data.hold_out_seed],
        "options": dataclasses.asdict(options),
        "version": __version__,
        "command": command,
    }
