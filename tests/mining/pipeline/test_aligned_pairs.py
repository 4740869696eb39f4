"""Neighboring pairs of a document are joined: none is lost, and none across text that is no pair."""

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.pipeline.aligned_pairs import AlignedTexts, CheckedGroup, merge_groups

SIZES = st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from([None, None, None, "copy"]))
UNPAIRED_SIZES = st.sampled_from([(1, 0, "no partner"), (0, 1, "no partner")])


@given(st.lists(SIZES | UNPAIRED_SIZES, max_size=12), st.integers(1, 40))
def test_all_is_there_in_order_and_nothing_is_skipped(sizes: list[tuple[int, int, str | None]], max_chars: int) -> None:
    """A paragraph that skips a line on one side teaches a model to leave lines out."""
    groups: list[CheckedGroup] = []
    source_rows = target_rows = 0
    for number, (sources, targets, problem) in enumerate(sizes):
        source = tuple(range(source_rows, source_rows + sources))
        target = tuple(range(target_rows, target_rows + targets))
        groups.append(CheckedGroup(source, target, 1 / (1 + number * 7 % 5), problem))
        source_rows += sources
        target_rows += targets
    texts = AlignedTexts(["ab" * (row % 3 + 1) for row in range(source_rows)], ["xyz"] * target_rows)
    merged = merge_groups(groups, texts, max_chars)

    assert list(chain.from_iterable(group.source for group in merged)) == list(range(source_rows))
    assert list(chain.from_iterable(group.target for group in merged)) == list(range(target_rows))
    assert [group for group in merged if group.problem] == [group for group in groups if group.problem]
    for group in merged:
        parts = [part for part in groups if {*part.source} & {*group.source} or {*part.target} & {*group.target}]
        assert group.score == min(part.score for part in parts)
        assert len(parts) == 1 or max(map(len, texts.texts(group))) <= max_chars
    # As long as there is room: no two neighbors could still be joined.
    for first, second in pairwise(merged):
        if first.problem is None and second.problem is None:
            following = next(part for part in groups if part.source[:1] == second.source[:1] and part.source)
            joined = CheckedGroup(first.source + following.source, first.target + following.target, 0.0)
            assert max(map(len, texts.texts(joined))) > max_chars
