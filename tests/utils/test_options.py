"""Options: types by their annotations, and processors that compute in bfloat16."""

from typing import Any, Literal

import pytest

from st_xling.utils.options import check_option, cpu_has_bfloat16, warn_of_slow_bfloat16


def test_types_of_options() -> None:
    cases: list[Any] = [(int, 3, True, "a whole number"), (float | None, None, "x", "a number or null")]
    cases += [(Literal["a", "b"] | bool, "b", "c", "one of 'a', 'b' or true or false")]
    for hint, good, bad, words in cases:
        check_option(good, hint, "k")
        with pytest.raises(ValueError, match=f"k must be {words}.*: got {bad!r}"):
            check_option(bad, hint, "k")


@pytest.mark.parametrize(
    ("facts", "known"), [({"avx2": True}, False), ({"avx2": True, "amx_bf16": True}, True), ({}, None)]
)
def test_only_processors_that_lack_bfloat16_are_warned_of(
    facts: dict[str, bool], known: bool | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: facts, raising=False)
    assert cpu_has_bfloat16() is known
    warn_of_slow_bfloat16("cuda")
    assert not caplog.messages
    warn_of_slow_bfloat16("cpu")
    assert ("slower than float32" in caplog.text) == (known is False)
