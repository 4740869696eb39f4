"""Small trials that tell what embedding and searching cost on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from st_xling.mining.blocks import block_sizes
from st_xling.mining.neighbours import neighbours
from st_xling.mining.text_encoder import Encoder

_SIDE_OF_A_TRIAL = 2048
_SENTENCES_OF_A_TRIAL = 256


def search_seconds(sources: int, targets: int, dim: int, *, k: int, device: str, memory_mib: int) -> float:
    """Expected seconds of an exact search: each product has its price, and each row."""
    side = _SIDE_OF_A_TRIAL
    blocks = block_sizes(min(sources, side), min(targets, side), dim, memory_mib=memory_mib, device=device)
    rows, columns = blocks.rows, blocks.columns
    a_product = _product_trial(rows, columns, dim, device) / (rows * columns)
    random = np.random.default_rng(0)
    pair = [random.standard_normal((count, dim), dtype=np.float32) for count in (rows, columns)]
    seconds = _timed(lambda: neighbours(*pair, k=min(k, rows, columns), device=device, memory_mib=memory_mib))
    a_row = max(0.0, seconds - a_product * rows * columns) / (rows + columns)
    return a_product * sources * targets + a_row * (sources + targets)


def _product_trial(rows: int, columns: int, dim: int, device: str) -> float:
    """Seconds for a block of products and a look at each from either side."""
    one, other = torch.rand(rows, dim, device=device), torch.rand(columns, dim, device=device)
    out = torch.empty(rows, columns, device=device)

    def trial() -> None:
        torch.mm(one, other.T, out=out)
        out.amax(dim=1)
        out.amax(dim=0).sum().item()  # waits for a GPU

    return min(_timed(trial) for _ in range(4))


def embedding_trial(sentences: list[str], encoder: Encoder) -> tuple[float, int]:
    """Seconds a sentence, and the vectors' dim."""
    from st_xling.mining.encode_workers import embed

    sample = sentences[:: max(1, len(sentences) // _SENTENCES_OF_A_TRIAL)][:_SENTENCES_OF_A_TRIAL] or ["."]
    options = {"batch_size": encoder.options.batch_size, "prompt": encoder.options.prompt}
    dim = int(embed(encoder.model, sample[:8], options, encoder.options.device).shape[1])
    return _timed(lambda: embed(encoder.model, sample, options, encoder.options.device)) / len(sample), dim


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
