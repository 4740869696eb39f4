"""Whether the processor computes in bfloat16, and who is warned where it does not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.models.pair_scorer import PairScorer
from st_xling.training.arguments import TrainingOptions, training_arguments
from st_xling.utils import options
from st_xling.utils.options import cpu_has_bfloat16, warn_of_slow_bfloat16

TEXTS = ["Der Hund schläft.", "The dog sleeps."]


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


@pytest.mark.parametrize("kind", ["training", "encoder", "cross-encoder"])
def test_whoever_computes_in_it_warns(facts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    def run(low: bool) -> None:
        if kind == "training":
            training_arguments(TrainingOptions(bf16=low, max_steps=1), tmp_path / "run", rows=8)
        elif kind == "encoder":
            load_encoder(str(tmp_path / "encoder"), dtype="bfloat16" if low else None, device="cpu")
        else:
            PairScorer(tiny_cross_encoder(TEXTS, vocabulary=60), autocast="bfloat16" if low else None)

    tiny_encoder(TEXTS, vocabulary=60, hidden_size=16).save(str(tmp_path / "encoder"))
    caplog.set_level(logging.WARNING, logger="st_xling")
    run(low=False)
    assert not [message for message in caplog.messages if "bfloat16" in message]
    run(low=True)
    assert [message for message in caplog.messages if "ten times slower" in message]
