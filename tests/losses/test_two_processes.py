"""Two gloo processes of half a batch each are one process with the whole: values, gradients, heads."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from st_xling.losses import translation_language_modeling
from tests.losses.spread_cases import ALONE, CASES, SECONDS, compute, hide_some, small_model
from tests.processes import run_together

Results = dict[str, Tensor]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    """What both processes found, for all cases: one start pays for all."""
    folder = tmp_path_factory.mktemp("two")
    commands = [["-m", "tests.losses.spread_cases", str(folder), str(rank)] for rank in range(2)]
    ended = run_together(commands, folder, seconds=SECONDS + 10)
    assert [process.status for process in ended] == [0, 0], "\n".join(process.stderr for process in ended)
    return [load_file(folder / f"rank{rank}.safetensors") for rank in range(2)]


def of(results: Results, name: str) -> Results:
    return {key.partition("|")[2]: part for key, part in results.items() if key.partition("|")[0] == name}


@pytest.mark.parametrize("name", CASES)
def test_two_processes_are_one_with_all_rows(name: str, ranks: list[Results], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_language_modeling, "mask_tokens", hide_some)
    expected = compute(CASES[name], small_model())
    assert any(float(part.abs().max()) > 0 for key, part in expected.items() if key != "value")
    for results in ranks:
        found = of(results, name)
        assert found["value"].item() == pytest.approx(expected["value"].item(), rel=1e-9)
        assert expected.keys() <= found.keys()  # DDP gives zeros to what is left out
        for key, gradient in found.items():
            wanted = expected.get(key, torch.zeros_like(gradient))
            torch.testing.assert_close(
                gradient, wanted, rtol=1e-7, atol=1e-11, msg=lambda text, key=key: f"{key}: {text}"
            )


def test_without_gathering_every_process_ranks_its_own(ranks: list[Results]) -> None:
    halves = [compute(ALONE, small_model(), rank) for rank in range(2)]
    for rank, results in enumerate(ranks):
        found = of(results, "alone")
        assert found["value"].item() == pytest.approx(halves[rank]["value"].item(), rel=1e-9)
        for key in halves[0].keys() - {"value"}:
            torch.testing.assert_close(found[key], (halves[0][key] + halves[1][key]) / 2, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("name", ["tr", "ir", "langcl others", "siamese worst", "rtl", "mlm", "cached everything"])
def test_a_half_is_not_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the equality above would show little: the mean of the halves' losses is another number."""
    monkeypatch.setattr(translation_language_modeling, "mask_tokens", hide_some)
    values = [compute(CASES[name], small_model(), rank)["value"].item() for rank in (None, 0, 1)]
    assert (values[1] + values[2]) / 2 != pytest.approx(values[0], rel=1e-6)


def test_the_shared_text_matters() -> None:
    """The mask has something to do: without it, rows 1 and 6, in different processes, would be negatives."""
    values = [compute(CASES[name], small_model())["value"].item() for name in ("tr", "tr duplicates")]
    assert values[0] != pytest.approx(values[1], rel=1e-6)
