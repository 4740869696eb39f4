"""All guards together: order, switches, streams, and what reaches the rejects file."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from st_xling.mining import MinedPairs
from st_xling.mining.guards import (
    REASONS,
    Candidate,
    GuardOptions,
    NeighbourCounts,
    PairGuards,
    Reject,
    RejectsFile,
    Verdict,
    candidate_batches,
    reject_line,
)
from tests.mining.guards.batches import candidates

BAD = {
    "copy": ("Guten Tag!", "guten tag"),
    "near_copy": ("Serug, Nahor, Tarah und Lot,", "Serug, Nahor, Terah und Lot,"),
    "length_ratio": ("Ja. " * 20, "Yes, of course, we all agree with that. " * 12),
    "numbers": ("Ich habe 3 Bücher.", "I have 4 books."),
    "language": ("Les enfants mangent des pommes rouges dans le jardin.", "They are eating apples in the garden."),
}
LANGUAGES = {"source_language": "de", "target_language": "en"}


@pytest.fixture
def stream(pairs):
    german = [
        ("Der Hund schläft unter dem Tisch.", "The dog is sleeping under the table."),
        ("Ja, gern.", "Yes, please."),
    ]
    return candidates(*german, *BAD.values())


def test_each_bad_pair_gets_its_reason(stream):
    rejects = []
    guards = PairGuards(GuardOptions(**LANGUAGES, hub=None))
    kept = list(guards.filter(stream, on_reject=rejects.append))
    assert kept == stream[:2]
    assert [reject.reason for reject in rejects] == list(BAD)
    assert [reject.candidate for reject in rejects] == stream[2:]
    assert guards.counts == {"kept": 2, **dict.fromkeys(BAD, 1)}
    assert guards.idle == {}


@pytest.mark.parametrize("off", BAD)
def test_each_guard_can_be_switched_off(off, stream):
    options = GuardOptions(**LANGUAGES, hub=None).with_flags(off=[off])
    rejects = []
    list(PairGuards(options).filter(stream, on_reject=rejects.append))
    reasons = [reject.reason for reject in rejects]
    assert off not in reasons
    # A copy is near enough to one to be caught by the next guard.
    assert len(reasons) == len(BAD) - (off != "copy")


def test_batches_and_order_change_nothing(stream):
    def outcome(rows, size):
        rejects = []
        kept = list(
            PairGuards(GuardOptions(**LANGUAGES, hub=None)).filter(rows, on_reject=rejects.append, batch_pairs=size)
        )
        return sorted(kept), sorted((reject.candidate, reject.reason, str(reject.verdict)) for reject in rejects)

    expected = outcome(stream, 8192)
    assert all(outcome(stream, size) == expected for size in (1, 2, 3))
    assert outcome(stream[::-1], 4) == expected
    with pytest.raises(ValueError, match="batch_pairs must be at least 1: got 0"):
        list(candidate_batches([], batch_pairs=0))


def test_mined_pairs(stream):
    scores = np.array([candidate.score for candidate in stream])
    rows = np.arange(len(stream))
    pairs = MinedPairs(scores, rows, rows[::-1].copy())
    sources = [candidate.source for candidate in stream]
    targets = [candidate.target for candidate in stream][::-1]
    for size in (2, 8192):
        guards = PairGuards(GuardOptions(**LANGUAGES, hub=None))
        kept = guards.filter_mined(pairs, sources, targets, batch_pairs=size)
        assert kept.source_indices.tolist() == [0, 1]
        assert kept.target_indices.tolist() == [6, 5]
        assert kept.scores.tolist() == scores[:2].tolist()
    nothing = pairs.select(rows[:0])
    assert len(PairGuards(GuardOptions(hub=None)).filter_mined(nothing, sources, targets)) == 0


def test_hub_comes_first_and_idles_without_counts(caplog):
    counts = NeighbourCounts(np.array([500]), np.array([1]), 4)
    rejects = []
    guards = PairGuards(GuardOptions(language=None), counts=counts)
    assert list(guards.filter(candidates(("Ja", "ja")), on_reject=rejects.append)) == []
    assert rejects[0].reason == "hub"
    assert not caplog.text
    assert PairGuards(GuardOptions(language=None)).idle == {"hub": "nobody counted neighbours"}
    assert "nobody counted neighbours" in caplog.text


def test_everything_is_on_by_default_and_can_be_off():
    counts = NeighbourCounts(np.zeros(1), np.zeros(1), 4)
    assert tuple(guard.reason for guard in GuardOptions(**LANGUAGES).build(counts=counts)[0]) == REASONS
    assert GuardOptions().with_flags(off=["all"]).build() == ([], {})


def test_flags():
    options = GuardOptions().with_flags(limits=["length_ratio=3", "near-copy=.9", "hub=5"], off=["hub", "copy"])
    assert (options.length_ratio, options.near_copy, options.hub, options.copy) == (3.0, 0.9, None, False)
    assert GuardOptions().with_flags() == GuardOptions()
    with pytest.raises(ValueError) as error:
        GuardOptions().with_flags(limits=["lenght_ratio=2", "numbers=3", "hub=many", "hub"], off=["copies"])
    for part in ("did you mean 'length_ratio'?", "numbers has no limit", "'hub=many': write hub=NUMBER", "'copies'"):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="length_ratio must be above 1"):
        GuardOptions().with_flags(limits=["length_ratio=0"]).build()


def test_rejects_file(tmp_path, stream):
    path = tmp_path / "folder" / "rejects.jsonl"
    guards = PairGuards(GuardOptions(**LANGUAGES, hub=None))
    with RejectsFile(path) as rejects:
        list(guards.filter(stream, on_reject=rejects.write))
        assert not path.exists()
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["reason"] for record in records] == list(BAD)
    assert list(records[0]) == ["reason", "value", "limit", "score", "source_ids", "target_ids", "source", "target"]
    assert records[3]["value"] == {"source": ["3"], "target": ["4"]}
    assert (records[2]["source_ids"], records[2]["limit"]) == ([4], 2.5)
    assert [entry.name for entry in path.parent.iterdir()] == ["rejects.jsonl"]


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "rejects.jsonl"
    path.write_text("old\n")
    with pytest.raises(RuntimeError), RejectsFile(path) as rejects:
        rejects.write(Reject("copy", Candidate("a", "a", 1.0, 0, 0), Verdict(1.0, None)))
        raise RuntimeError
    assert path.read_text() == "old\n"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "text", ['"quoted" \\ tab\t', "a\u2028b\u2029c\x85d\x7f", "\ud800 lone", "line\nend\r", "ไทย 🙂 e\u0301"]
)
def test_lines_are_one_line_and_round_trip(text):
    reject = Reject("numbers", Candidate(text, "b", float("-inf"), np.int64(3), np.int64(4)), Verdict(1.0, None))
    line = reject_line(reject, source_ids=["de-1", "de-9"])
    assert len(line.splitlines()) == 1
    line.encode("utf-8")
    record = json.loads(line)
    assert (record["source"], record["score"]) == (text, None)
    assert (record["source_ids"], record["target_ids"]) == (["de-1", "de-9"], [4])
    assert "ไทย" not in text or "ไทย" in line


def test_rejects_go_into_a_pipe_not_over_it(tmp_path: Path) -> None:
    pipe = tmp_path / "rejects"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with RejectsFile(pipe):
            pass
    finally:
        os.close(reader)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_full_disk_names_the_file_of_rejects(tmp_path: Path) -> None:
    with pytest.raises(
        OSError, match=r"No space left on device: .*rejects\.jsonl .*Make room and run the same command"
    ):
        with RejectsFile(tmp_path / "rejects.jsonl"):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())
