"""bfloat16 where it is faster: a measurement, whatever the processor's flags say."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from st_xling.utils import precision
from st_xling.utils.precision import bfloat16_speedup, prefers_bfloat16, warn_of_slow_bfloat16


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    bfloat16_speedup.cache_clear()
    yield
    bfloat16_speedup.cache_clear()


def test_a_processor_that_emulates_bfloat16_is_found_out_whatever_its_flags_say() -> None:
    """A Xeon with ``avx512_bf16`` and no AMX searched at 0.65 of the speed of float32, for a flag had decided.

    oneDNN can be told to do without the instructions; the flags stay. Other tests may disturb one measurement, so there
    are up to three.
    """
    flags = "print(torch.cpu.get_capabilities().get('avx512_bf16'), prefers_bfloat16(), bfloat16_speedup() < 0.95)"
    code = f"import torch; from st_xling.utils.precision import *; torch.set_num_threads(1); {flags}"
    without = {"DNNL_MAX_CPU_ISA": "AVX512_CORE", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    command = [sys.executable, "-c", code]
    decisions = []
    for _ in range(3):
        run = subprocess.run(command, env=os.environ | without, capture_output=True, text=True, check=True)
        decisions.append(run.stdout.split()[1:])
        if decisions[-1] == ["False", "True"]:
            return
    pytest.fail(f"bfloat16 was never found to be slower: {decisions}")


def test_it_is_measured_once_and_changes_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    state, products, mm = torch.get_rng_state(), [], torch.mm

    def counted(first: torch.Tensor, second: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        products.append(first.dtype)
        return mm(first, second, out=out)

    monkeypatch.setattr(torch, "mm", counted)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = bfloat16_speedup("cpu")
    assert set(products) == {torch.float32, torch.bfloat16}
    count = len(products)
    assert bfloat16_speedup("cpu") == first > 0 and len(products) == count
    assert torch.equal(torch.get_rng_state(), state)


def test_a_device_without_bfloat16_does_not_prefer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(device: str, dtype: torch.dtype) -> float:
        raise TypeError(f"{device} has no {dtype}")

    monkeypatch.setattr(precision, "_fastest_product", refuse)
    assert bfloat16_speedup("mps") == 0.0 and not prefers_bfloat16("mps")


@pytest.mark.parametrize(
    ("seconds", "prefers", "warned"),
    [
        (1.0, True, ""),
        (2.6, True, ""),
        (2.8, False, ""),
        (4.4, False, ""),
        (4.6, False, "at 0.87 "),
        (8.0, False, "at 0.5 "),
    ],
)
def test_only_devices_that_are_slower_are_warned_of(
    seconds: float, prefers: bool, warned: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = {torch.float32: 4.0, torch.bfloat16: seconds}
    monkeypatch.setattr(precision, "_fastest_product", lambda device, dtype: times[dtype])
    warn_of_slow_bfloat16("cuda")
    assert prefers_bfloat16("cuda") == prefers
    assert ("this device (cuda) multiplies" in caplog.text) == bool(warned) and warned in caplog.text
