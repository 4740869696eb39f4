#!/usr/bin/env bash
# transformers 5.23.0, accelerate 1.15.0, torch 2.13.0, Python 3.11: resuming keeps the score of a missing checkpoint.
#
# Expected: load_best_model_at_end=True ends with the best checkpoint that there is, and state.best_metric is its score.
# Seen: where the best checkpoint's folder is gone (moved, pruned, lost with a disk), a line says that it is ignored, and
# best_model_checkpoint becomes None. But best_metric stays: later checkpoints that are worse than the missing one are
# never chosen, not even the best of them. The run ends with its last weights and the score of others.
#
# Output:
#   best_metric 1.0 of step 1, whose checkpoint is gone; best_model_checkpoint None
#   loss at the end 16.0, of the best checkpoint since 4.0
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q transformers==5.23.0 accelerate==1.15.0 torch==2.13.0
cd "$folder"
cat >script.py <<'PYTHON'
import shutil
import sys

import torch
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback


class Drift(torch.nn.Module):
    """Every step adds 1 to the weight; the loss of an evaluation is its square: 1, 4, 9, 16."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x, labels=None):
        return {"loss": -self.weight if self.training else self.weight.square(), "logits": x}


def train(steps, **options):
    common = {"per_device_train_batch_size": 1, "learning_rate": 1.0, "lr_scheduler_type": "constant"}
    common |= {"optim": "sgd", "max_grad_norm": 0.0, "eval_strategy": "steps", "eval_steps": 1, "save_steps": 1}
    common |= {"load_best_model_at_end": True, "report_to": "none", "use_cpu": True, "disable_tqdm": True}
    rows = [{"x": torch.zeros(1), "labels": torch.zeros(1)}] * 8
    arguments = TrainingArguments("run", max_steps=steps, **common)
    trainer = Trainer(Drift(), arguments, train_dataset=rows, eval_dataset=rows[:1])
    trainer.remove_callback(PrinterCallback)
    trainer.train(**options)
    return trainer


train(2)
shutil.rmtree("run/checkpoint-1")
trainer = train(4, resume_from_checkpoint="run/checkpoint-2")
state = trainer.state
step, best, at_end = state.best_global_step, state.best_model_checkpoint, float(trainer.model.weight) ** 2
print(f"best_metric {state.best_metric} of step {step}, whose checkpoint is gone; best_model_checkpoint {best}")
print(f"loss at the end {at_end}, of the best checkpoint since 4.0")
sys.exit(0 if (state.best_metric, step, best, at_end) == (1.0, 1, None, 16.0) else 1)
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py 2>errors || { cat errors; exit 1; }
