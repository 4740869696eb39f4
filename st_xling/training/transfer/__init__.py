"""Zero-shot transfer: an encoder is fine-tuned on English, and judged in every language.

``tasks``             XNLI, PAWS-X, POS and PAN-X: readers, labels, measures, the papers' fine-tuning
``transfer_data``     ``xx=FILE`` → training and test rows; one split shared out into two
``label_sets``        do all languages have the labels that are trained?
``heads``             encoder → the host's classifier of pairs, or tagger of words
``tagging_rows``      words → token ids whose first sub-words carry the tags
``fine_tune``         the host libraries' trainers
``predict``           rows → labels; ``prediction_files``: on disk
``scores``            accuracy, the F1 of runs of tags and of entities
``report``            the table and the signature
``run``               :func:`transfer`, all of it
"""

from st_xling.training.transfer.report import TransferReport
from st_xling.training.transfer.run import transfer
from st_xling.training.transfer.scores import label_scores, run_f1, span_f1
from st_xling.training.transfer.tasks import LIKE, TASKS, FineTuning, TransferTask, fine_tuning
from st_xling.training.transfer.transfer_data import TransferData, load_transfer_data

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
