"""Options: types by their annotations, and processors that compute in bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from st_xling.utils import options
from st_xling.utils.options import check_option, cpu_has_bfloat16, warn_of_slow_bfloat16


@pytest.mark.parametrize(
    ("hint", "good", "bad", "words"),
    [
        (int, 3, True, "a whole number"),
        (float | None, None, "x", "a number or null"),
        (Literal["a", "b"] | bool, "b", "c", "one of 'a', 'b' or true or false"),
        (list[int] | None, "anything", None, ""),
    ],
)
def test_types_of_options(hint: Any, good: Any, bad: Any, words: str) -> None:
    check_option(good, hint, "k")
    if words:
        with pytest.raises(ValueError, match=f"k must be {words}.*: got {bad!r}"):
            check_option(bad, hint, "k")


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux says of the processor: one without bfloat16."""
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: AMD EPYC\nflags\t\t: fpu sse2 avx avx2\n", encoding="utf-8")
    monkeypatch.setattr(options, "_CPU_FACTS", path)
    return path


@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16", "bf16"])
def test_flags(facts: Path, flag: str) -> None:
    assert cpu_has_bfloat16() is False
    facts.write_text(f"flags : fpu {flag} sse2\n", encoding="utf-8")
    assert cpu_has_bfloat16() is True
    facts.unlink()  # not Linux
    assert cpu_has_bfloat16() is None


def test_only_processors_that_lack_it_are_warned_of(facts: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_slow_bfloat16("cuda")
    assert not caplog.messages
    warn_of_slow_bfloat16("cpu")
    assert len(caplog.messages) == 1 and "slower than float32" in caplog.messages[0]
    facts.write_text("flags : amx_bf16\n", encoding="utf-8")
    warn_of_slow_bfloat16("cpu")
    assert len(caplog.messages) == 1
