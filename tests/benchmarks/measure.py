"""What the benchmarks share: an encoder of a given shape on random text, and figures of a fresh process."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch


@dataclass(frozen=True)
class Shape:
    """An encoder and a batch: by default multilingual BERT (12 layers of 768) on full rows of 32 tokens.

    Attributes:
        target_vocabulary: Ids that the text is drawn from, which is also what DAP's softmax ranges over.
    """

    layers: int = 12
    hidden: int = 768
    vocabulary: int = 119_547
    target_vocabulary: int = 30_000
    tokens: int = 32
    batch: int = 32

    def encoder(self) -> Any:
        """Random weights, under mean pooling, with dropout."""
        from transformers import BertConfig, BertModel
        from transformers.utils.logging import disable_progress_bar

        from st_xling.models import tiny_encoder

        disable_progress_bar()
        text = ["a b c d e f g h"] * 4
        model = tiny_encoder(text, vocabulary=64, hidden_size=24, layers=1, max_length=self.tokens)
        torch.manual_seed(0)
        heads = max(1, self.hidden // 64)
        sizes = {"hidden_size": self.hidden, "intermediate_size": 4 * self.hidden, "num_attention_heads": heads}
        model[0].model = BertModel(BertConfig(vocab_size=self.vocabulary, num_hidden_layers=self.layers, **sizes))
        model[1].embedding_dimension = self.hidden
        return model.train()

    def columns(self, model: Any, rows: int | None = None, *, seed: int = 0) -> list[dict[str, torch.Tensor]]:
        """Source and target of random ids without padding. *Shape of each:* ``(rows, tokens)``"""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(10, self.target_vocabulary, (2, rows or self.batch, self.tokens), generator=generator)
        ids[:, :, 0], ids[:, :, -1] = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
        return [{"input_ids": side.clone(), "attention_mask": torch.ones_like(side)} for side in ids]


QUICK = Shape(layers=2, hidden=64, vocabulary=2_000, target_vocabulary=500, tokens=16, batch=8)
"""To see that a benchmark runs; its figures say nothing."""


def backward(value: torch.Tensor | dict[str, torch.Tensor]) -> None:
    """The backward pass of a loss, or of a sum's components."""
    (torch.stack(list(value.values())).sum() if isinstance(value, dict) else value).backward()


def resident() -> float:
    """MiB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def peak() -> float:
    """The most MiB that this process has held."""
    # Not getrusage: a child begins with its parent's peak, and this parent holds models.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 2**10


def apart(module: str, words: Sequence[str]) -> Any:
    """What ``python -m module *words`` prints last, as JSON: figures of a process of its own."""
    command = [sys.executable, "-m", module, *words]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def spread(ratios: Sequence[float]) -> str:
    """Median and range: ``1.32 (1.30-1.35)``."""
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
