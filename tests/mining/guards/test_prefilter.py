"""The guard of static embeddings: cosines by definition, in any batches; a look-up, not an encoder."""

from __future__ import annotations

import pytest

from st_xling.mining.guards import GuardOptions, PairGuards, PrefilterGuard
from st_xling.models import tiny_encoder
from tests.mining.guards.batches import candidates, static_model, verdicts

PAIRS = [
    ("Hund Katze", "cat dog", 1.0),
    ("Hund Hund Katze", "dog cat", 3 / 10**0.5),
    ("Hund Katze", "house dog", 0.5),
    ("Haus", "cat", 0.0),
    ("Pferd", "cat", None),  # of a text without a known word nothing is known
]


def test_turns_down_what_is_far_apart(tmp_path):
    model = static_model()
    model.save_pretrained(str(tmp_path / "static"))
    for source in (model, str(tmp_path / "static")):
        guard = PrefilterGuard(source, limit=0.6)
        texts = [pair[:2] for pair in PAIRS]
        together = verdicts(guard, *texts)
        assert together == [verdicts(PrefilterGuard(model, limit=0.6), pair)[0] for pair in texts]
        for verdict, (*_, cosine) in zip(together, PAIRS):
            if cosine is None or cosine >= 0.6:
                assert verdict is None
            else:
                assert verdict == (pytest.approx(cosine, abs=1e-4), 0.6)


def test_it_is_one_of_the_guards_and_off_without_a_model():
    options = GuardOptions(prefilter_model=static_model(), language=None, hub=None)
    guards = PairGuards(options.with_flags(limits=["prefilter=0.6"]))
    assert [reject.reason for reject in guards.check(candidates(*[pair[:2] for pair in PAIRS]))[1]] == ["prefilter"] * 2
    stage = guards.stages["prefilter"]
    assert (stage["pairs"], stage["removed"], guards.rejected) == (5, 2, {"prefilter": 2}) and stage["seconds"] > 0
    assert GuardOptions().signature() == GuardOptions(prefilter_model=None, prefilter=0.5).signature()
    assert options.signature().endswith(",numbers,prefilter=0.2")
    assert "prefilter" not in options.with_flags(off=["prefilter"]).signature()


def test_what_cannot_be(tmp_path):
    with pytest.raises(ValueError, match=r"must lie in \(-1, 1\): got 1"):
        PrefilterGuard(static_model(), limit=1)
    with pytest.raises(ValueError, match="must be a model of static embeddings: got a Transformer"):
        PrefilterGuard(tiny_encoder(["Ein Satz."] * 9, vocabulary=40))
    with pytest.raises(ValueError, match="no encoder could be loaded"):
        GuardOptions(prefilter_model=str(tmp_path)).build()
