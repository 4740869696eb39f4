"""Two gloo processes of half a batch each are one process with the whole: values, gradients, heads.

``python -m tests.losses.test_two_processes FOLDER RANK`` computes one half and writes
``FOLDER/rankN.safetensors``: for each case its value and the gradient of every parameter, under ``case|name``.
"""

import contextlib
import copy
import datetime
import faulthandler
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from st_xling import losses
from st_xling.losses import token_inputs
from st_xling.losses.base import CrossLingualLoss
from tests import reference
from tests.conftest import PAIRS
from tests.processes import run_together

Results = dict[str, Tensor]

#: After so long a process ends itself, whoever started it.
SECONDS = 120

# Rows 1 and 6, one in each process, share their target text.
SOURCES = [source for source, _ in PAIRS]
TARGETS = [PAIRS[1][1] if row == 6 else target for row, (_, target) in enumerate(PAIRS)]
OTHERS = [SOURCES[(row + 3) % 8] for row in range(8)]
TEXTS = (SOURCES, TARGETS, OTHERS, SOURCES[::-1], TARGETS[::-1])

TR = losses.TranslationRankingLoss
RTL = losses.RepresentationTranslationLoss
TLM = losses.TranslationLanguageModelingLoss
WA = losses.WordAlignmentLoss
SEMA = losses.SemanticContrastiveLoss
LANG = losses.LanguageContrastiveLoss
IR = losses.InBatchRankingLoss
SF = losses.SiameseContrastiveLoss


@dataclass(frozen=True)
class Case:
    """How a loss is built, the columns it reads, how the rows are shared out, and how often gradients accumulate."""

    loss: Callable[[Any], CrossLingualLoss]
    columns: int = 2
    sizes: tuple[int, int] = (4, 4)
    labeled: bool = False
    accumulate: int = 1
    languages: bool = False

    def rows(self, rank: int | None) -> slice:
        """Of one process, or of both."""
        first = self.sizes[0]
        both = sum(self.sizes)
        return slice(0, both) if rank is None else slice(0, first) if rank == 0 else slice(first, both)


def dap(model: Any) -> CrossLingualLoss:
    return TR(model, margin=0.3) + 0.5 * RTL(model, layers=1)


def mexma(model: Any) -> CrossLingualLoss:
    hidden = losses.CrossUnmaskingLoss(model, layers=1).eval()  # its head has dropout
    return hidden + losses.EmbeddingDistanceLoss(model, distance="squared") + 0.01 * losses.KoleoLoss(model)


def retrieval(model: Any) -> CrossLingualLoss:
    return IR(model).on(0, 1) + 0.01 * SEMA(model).on(2, 3) + 0.001 * LANG(model).on(2, 3, 4)


def everything(model: Any) -> CrossLingualLoss:
    return dap(model) + TLM(model) + WA(model) + SEMA(model) + LANG(model) + IR(model) + SF(model, margin=3.0)


def cached(build: Callable[[Any], CrossLingualLoss], size: int = 2) -> Callable[[Any], CrossLingualLoss]:
    return lambda model: losses.CachedLoss(build(model), mini_batch_size=size)


def cached_tokens(build: Callable[[Any], CrossLingualLoss]) -> Callable[[Any], CrossLingualLoss]:
    """Processes then differ in their number of mini-batches."""
    return lambda model: losses.CachedLoss(build(model), mini_batch_num_tokens=40)


def first_words(model: Any) -> list[int]:
    """Token ids of the first four targets that no other target has: with them alone, one process scores nothing."""
    ids = [set(row) for row in model.tokenizer(TARGETS, add_special_tokens=False).input_ids]
    return sorted(set().union(*ids[:4]) - set().union(*ids[4:]))


CASES = {
    "tr one way": Case(lambda model: TR(model, bidirectional=False)),
    "tr unequal": Case(TR, sizes=(5, 3)),
    "tr projection": Case(lambda model: TR(model, projection=True), sizes=(5, 3)),
    "tr hard negatives": Case(lambda model: TR(model, hard_negatives=True), columns=4, sizes=(5, 3)),
    "ir unequal": Case(IR, columns=3, sizes=(2, 6)),
    "semacl unequal": Case(SEMA, sizes=(3, 5)),
    "langcl unequal": Case(LANG, columns=3, sizes=(7, 1)),
    "siamese worst": Case(lambda model: SF(model, margin=3.0)),
    "siamese average": Case(lambda model: SF(model, margin=3.0, negatives="average"), sizes=(6, 2)),
    # Of two pairs the only negative is the other process's.
    "siamese random": Case(lambda model: SF(model, margin=3.0, negatives="random"), sizes=(1, 1)),
    "siamese parallel": Case(lambda model: SF(model, negatives="none"), sizes=(5, 3)),
    "siamese labels": Case(lambda model: SF(model, margin=3.0), labeled=True, sizes=(5, 3)),
    "rtl tied": Case(lambda model: RTL(model, tied=True), sizes=(5, 3)),
    "rtl both": Case(lambda model: RTL(model, direction="both", languages=["xx", "en"]), languages=True),
    "rtl one-sided": Case(lambda model: RTL(model, target_vocabulary=first_words(model))),
    "mlm": Case(lambda model: TLM(model, objective="mlm"), sizes=(3, 5)),
    "dap unequal": Case(dap, sizes=(5, 3)),
    "dap accumulated": Case(dap, accumulate=2),
    "mexma": Case(mexma, sizes=(5, 3)),
    "cached mexma": Case(cached(mexma), sizes=(6, 2)),
    "everything": Case(everything),
    "cached dap unequal": Case(cached(dap), sizes=(5, 3)),
    "cached dap accumulated": Case(cached(dap), accumulate=2),
    "cached projection": Case(cached(lambda model: TR(model, projection=True)), sizes=(6, 2), accumulate=2),
    "cached tr, by tokens": Case(cached_tokens(TR), sizes=(6, 2)),
    "cached tr, once in one process": Case(cached(TR, 4), sizes=(6, 2)),
    "cached dap, by tokens": Case(cached_tokens(dap), sizes=(7, 1)),
    "cached retrieval": Case(cached(retrieval), columns=5),
    "cached everything": Case(cached(everything, 4), sizes=(6, 2)),
}


def compute(case: Case, model: Any, rank: int | None = None, *, wrap: bool = False) -> dict[str, Tensor]:
    """The value and all gradients, of the second of two steps: DDP tells of what it misses when it begins the next."""
    wrapped: Any = DistributedDataParallel(model, find_unused_parameters=True) if wrap else model
    torch.manual_seed(0)  # a new vocabulary head is drawn
    loss = case.loss(model).double()
    move_to(loss, model, wrapped)
    rows = case.rows(rank)
    value = torch.zeros(())
    for _ in range(2):
        loss.zero_grad()
        for step in range(case.accumulate):
            columns = [model.preprocess(texts[rows]) for texts in TEXTS[: case.columns]]
            if case.languages:
                for number, column in enumerate(columns):
                    column["language"] = torch.full((len(column["input_ids"]),), number)
            labels = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0])[rows] if case.labeled else None
            last = step + 1 == case.accumulate
            with contextlib.nullcontext() if not wrap or last else wrapped.no_sync():
                output = loss(columns, labels)
                value = sum(output.values()) if isinstance(output, dict) else output
                ((step + 1) * value).backward()
    named = {name.replace("module.", ""): part for name, part in loss.named_parameters()}
    gradients = {name: part.grad.clone() for name, part in named.items() if part.grad is not None}
    return {"value": value.detach().clone(), **gradients}


def move_to(loss: nn.Module, model: nn.Module, wrapped: nn.Module) -> None:
    """Hand the wrapped model to the loss and its terms, as ST's trainer does."""
    for part in loss.modules():
        if getattr(part, "model", None) is model and isinstance(part, CrossLingualLoss):
            part.model = wrapped


def main(folder: Path, rank: int) -> None:
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2, timeout=limit)
    model = small_model()
    results: Results = {f"model|{name}": weight.detach().clone() for name, weight in model.named_parameters()}
    for name, case in CASES.items():
        results |= {f"{name}|{key}": part for key, part in compute(case, copy.deepcopy(model), rank, wrap=True).items()}
    save_file(results, folder / f"rank{rank}.safetensors")


def small_model() -> Any:
    from st_xling.models import tiny_encoder

    texts = [text for pair in PAIRS for text in pair]
    shape: dict[str, Any] = {"vocabulary": 300, "hidden_size": 16, "heads": 2, "dropout": 0.0, "max_length": 24}
    return tiny_encoder(texts, **shape).to("cpu").double().train()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    """What both processes found, for all cases: one start pays for all."""
    folder = tmp_path_factory.mktemp("two")
    commands = [["-m", "tests.losses.test_two_processes", str(folder), str(rank)] for rank in range(2)]
    ended = run_together(commands, folder, seconds=SECONDS + 10)
    assert [process.status for process in ended] == [0, 0], "\n".join(process.stderr for process in ended)
    return [load_file(folder / f"rank{rank}.safetensors") for rank in range(2)]


def of(results: Results, name: str) -> Results:
    return {key.partition("|")[2]: part for key, part in results.items() if key.partition("|")[0] == name}


@pytest.mark.parametrize("name", CASES)
def test_two_processes_are_one_with_all_rows(name: str, ranks: list[Results], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_inputs, "mask_tokens", reference.every_third)  # draws differ between one and two
    expected = compute(CASES[name], small_model())
    assert any(float(part.abs().max()) > 0 for key, part in expected.items() if key != "value")
    for results in ranks:
        actual = of(results, name)
        assert actual["value"].item() == pytest.approx(expected["value"].item(), rel=1e-9)
        assert expected.keys() <= actual.keys()  # DDP gives zeros to what is left out
        for key, gradient in actual.items():
            wanted = expected.get(key, torch.zeros_like(gradient))
            torch.testing.assert_close(gradient, wanted, rtol=1e-7, atol=1e-11)


def test_a_tiny_encoder_is_the_same_in_every_process(ranks: list[Results]) -> None:
    """Built when the group was there, it failed in every process but the first, in which alone transformers saves."""
    expected = {name: weight.detach() for name, weight in small_model().named_parameters()}
    for results in ranks:
        torch.testing.assert_close(of(results, "model"), expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["tr one way", "ir unequal", "siamese worst", "mlm", "cached everything"])
def test_a_half_is_not_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the equality above would show little: the mean of the halves' losses is another number."""
    monkeypatch.setattr(token_inputs, "mask_tokens", reference.every_third)
    values = [compute(CASES[name], small_model(), rank)["value"].item() for rank in (None, 0, 1)]
    assert (values[1] + values[2]) / 2 != pytest.approx(values[0], rel=1e-6)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    token_inputs.mask_tokens = reference.every_third  # type: ignore[assignment]
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]))
    # Not by destroying the group: torch joins gloo's thread while it holds the GIL, which that thread may be waiting
    # for, to let go of its last piece of work. DDP's reducer as the group's last holder does it, on a busy machine.
    sys.stdout.flush()
    os._exit(0)
