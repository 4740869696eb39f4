"""All guards together: order, switches, batches, and what reaches the rejects file."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from st_xling.mining import MinedPairs
from st_xling.mining.guards import REASONS, GuardOptions, NeighbourCounts, PairGuards, Reject, RejectsFile, Verdict
from tests.mining.guards.batches import candidates

BAD = {
    "copy": ("Guten Tag!", "guten tag"),
    "near_copy": ("Serug, Nahor, Tarah und Lot,", "Serug, Nahor, Terah und Lot,"),
    "length_ratio": ("Ja. " * 20, "Yes, of course, we all agree with that. " * 12),
    "numbers": ("Ich habe 3 Bücher.", "I have 4 books."),
    "language": ("Les enfants mangent des pommes rouges dans le jardin.", "They are eating apples in the garden."),
}
GOOD = [
    ("Der Hund schläft unter dem Tisch.", "The dog is sleeping under the table."),
    ("Ja, gern.", "Yes, please."),
]
PAIRS = [*GOOD, *BAD.values()]
OPTIONS = GuardOptions(source_language="de", target_language="en", hub=None)


def test_each_bad_pair_gets_its_reason_whatever_the_batches_and_order():
    guards = PairGuards(OPTIONS)
    stay, rejects = guards.check(candidates(*PAIRS))
    assert stay.tolist() == [True] * 2 + [False] * 5
    assert [(reject.reason, reject.source, reject.target) for reject in rejects] == [(k, *v) for k, v in BAD.items()]
    assert [(reject.source_index, reject.score) for reject in rejects][:2] == [(2, 1.98), (3, 1.97)]
    assert (guards.rejected, guards.idle) == (dict.fromkeys(BAD, 1), {})
    sources, targets = zip(*PAIRS[::-1])
    pairs = MinedPairs(np.ones(7), np.arange(7), np.arange(7))
    singly: list[Reject] = []
    allowed = [guards.allowed(pairs.select([row]), sources, targets, singly.append)[0] for row in range(7)]
    assert allowed == stay.tolist()[::-1]
    assert [(one.reason, one.verdict) for one in singly[::-1]] == [(one.reason, one.verdict) for one in rejects]


@pytest.mark.parametrize("off", BAD)
def test_each_guard_can_be_switched_off(off):
    reasons = [reject.reason for reject in PairGuards(OPTIONS.with_flags(off=[off])).check(candidates(*PAIRS))[1]]
    # A copy is near enough to one to be caught by the next guard.
    assert off not in reasons and len(reasons) == len(BAD) - (off != "copy")


def test_hub_comes_first_and_idles_without_counts(caplog):
    guards = PairGuards(GuardOptions(language=None), counts=NeighbourCounts(np.array([500]), np.array([1]), 4))
    assert guards.check(candidates(("Ja", "ja")))[1][0].reason == "hub"
    assert not caplog.text
    assert PairGuards(GuardOptions(language=None)).idle == {"hub": "nobody counted neighbours"}
    assert "nobody counted neighbours" in caplog.text


def test_flags():
    counts = NeighbourCounts(np.zeros(1), np.zeros(1), 4)
    everything = GuardOptions(source_language="de", target_language="en")
    assert tuple(guard.reason for guard in everything.build(counts=counts)[0]) == REASONS
    assert GuardOptions().with_flags(off=["all"]).build() == ([], {})
    options = GuardOptions().with_flags(limits=["length_ratio=3", "near-copy=.9", "hub=5"], off=["hub", "copy"])
    assert (options.length_ratio, options.near_copy, options.hub, options.copy) == (3.0, 0.9, None, False)
    with pytest.raises(ValueError) as error:
        GuardOptions().with_flags(limits=["lenght_ratio=2", "numbers=3", "hub=many", "hub"], off=["copies"])
    for part in (
        "did you mean 'length_ratio'?",
        "numbers has no limit",
        "'hub=many': write hub=NUMBER",
        "'copies'",
    ):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="length_ratio must be above 1"):
        GuardOptions().with_flags(limits=["length_ratio=0"]).build()


def test_rejects_file(tmp_path):
    path = tmp_path / "folder" / "rejects.jsonl"
    with RejectsFile(path) as rejects:
        for reject in PairGuards(OPTIONS).check(candidates(*PAIRS))[1]:
            rejects.write(reject)
        assert not path.exists()
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["reason"] for record in records] == list(BAD)
    assert list(records[0]) == ["reason", "value", "limit", "score", "source_ids", "target_ids", "source", "target"]
    assert records[3]["value"] == {"source": ["3"], "target": ["4"]}
    assert (records[2]["source_ids"], records[2]["limit"]) == ([4], 2.5)
    assert [entry.name for entry in path.parent.iterdir()] == ["rejects.jsonl"]


@pytest.mark.parametrize("text", ['"quoted" \\ tab\t', "a\u2028b\u2029c\x85d\x7f", "line\nend\r", "ไทย 🙂 e\u0301"])
def test_lines_are_one_line_and_round_trip(text, tmp_path):
    with RejectsFile(tmp_path / "r") as rejects:
        rejects.write(
            Reject("numbers", Verdict(1.0, None), float("-inf"), 3, 4, text, "b"), source_ids=["de-1", "de-9"]
        )
    (line,) = (tmp_path / "r").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    assert (record["source"], record["score"]) == (text, None)
    assert (record["source_ids"], record["target_ids"]) == (["de-1", "de-9"], [4])
    assert "ไทย" not in text or "ไทย" in line


def test_rejects_go_into_a_pipe_and_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "rejects.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with RejectsFile(pipe):
            pass
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    path.write_text("old\n")
    with pytest.raises(OSError, match=r"No space left on device: .*rejects\.jsonl"), RejectsFile(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert path.read_text() == "old\n" and sorted(tmp_path.iterdir()) == [pipe, path]
