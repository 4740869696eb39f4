"""Zero-shot transfer: an encoder is fine-tuned on English, and evaluated in every language.

- ``tasks``: XNLI, PAWS-X, POS and PAN-X: readers, labels, measures, the papers' fine-tuning
- ``data``: ``xx=FILE`` → training and test rows
- ``classifiers``: a class for a pair of sentences, or a tag for each word: training and prediction
- ``scores``: accuracy, the F1 of runs of tags and of entities
- ``run``: :func:`transfer`, all of it, with its report
"""

from st_xling.training.transfer.data import TransferData, load_transfer_data
from st_xling.training.transfer.run import TransferReport, transfer
from st_xling.training.transfer.scores import label_scores, run_f1, span_f1
from st_xling.training.transfer.tasks import LIKE, TASKS, FineTuning, TransferTask, fine_tuning

__all__ = [
    "LIKE",
    "TASKS",
    "FineTuning",
    "TransferData",
    "TransferReport",
    "TransferTask",
    "fine_tuning",
    "label_scores",
    "load_transfer_data",
    "run_f1",
    "span_f1",
    "transfer",
]
