"""The table of orderings in ``hub_cards/README.md``: made of the pages, each row with one of five words."""

import re

import pytest

from tests.hub_cards import orderings
from tests.hub_cards.orderings import Ordering

#: What a status begins with; after a colon a reason follows.
WORDS = (
    *("shown", "shown, not after correction", "not shown", "not shown (one seed)"),
    *("reversed", "reversed, not after correction", "cannot show at this size"),
)


def test_the_table_is_made_of_the_pages() -> None:
    """The table was typed: it said +25.0 where the page says +24.9, and "yes" where nothing survives correction."""
    index = orderings.INDEX.read_text(encoding="utf-8")
    assert orderings.with_orderings(index) == index, "make it again: python -m tests.hub_cards.orderings"
    rows = re.findall(r"^\| .* \|$", orderings.markdown(), re.MULTILINE)
    results = [row.rpartition(" | ")[2].removesuffix(" |") for row in rows if not row.startswith(("| ordering", "| :"))]
    assert len(results) == len(orderings.orderings()) > 30
    assert {result.partition(":")[0] for result in results} <= {*WORDS}
    assert all(result.partition(": ")[2] for result in results if result.startswith("cannot show"))


def test_a_status_follows_from_the_figures() -> None:
    def status(difference: float, p: float | None, corrected: float | None, **reasons: str) -> str:
        facts = {"cannot_show": "", "not_shown": "", "is_counted": False} | reasons
        return Ordering("", "", "page", "mlm", 3, None, difference, p, **facts).status(corrected)

    assert status(1.0, 0.001, 0.04) == "shown"
    assert status(-1.0, 0.001, 0.04) == "reversed"
    assert status(1.0, 0.04, 0.8) == "shown, not after correction"
    assert status(-1.0, 0.04, 0.8) == "reversed, not after correction"
    assert status(1.0, 0.05, 1.0) == status(-1.0, 0.3, 1.0) == "not shown"
    assert status(9.0, None, None) == "not shown (one seed)"
    assert status(1.0, 0.001, 0.04, cannot_show="too few rows") == "cannot show at this size: too few rows"
    with pytest.raises(ValueError, match="a reason"):
        Ordering("", "", "", "", 0, 1.0, None, None, "", "", False).status(None)


def test_values_are_those_of_the_page() -> None:
    """Read where the page tests a difference, where it tests its opposite, and where it has the two rows only."""
    assert orderings.read_difference("amber-mlm", "2", "MLM + TLM", "MLM", "Tatoeba") == (0.1, 0.64, None)
    opposite = orderings.read_difference("amber-mlm", "2", "MLM + TLM", "MLM + TLM + WA", "Tatoeba")
    assert opposite == (0.2, 0.35, None)
    some_seeds = orderings.read_difference("dap-mlm", "1", "DAP", "TR + TLM", "4 languages → en")
    assert some_seeds == (1.2, 0.053, 3)
    one_seed = orderings.read_difference("xpr-e5-small-4-5", "3", "XPI + mixed", "mixed", "acc@1")
    assert one_seed == (35.8, None, None)
    untested = orderings.read_difference("xpr-e5-small", "3", "XPI + merged", "XPI + cascade", "MRR")
    # Means 67.0 ± 2.4 and 65.8 ± 3.1 over three seeds: t = 1.2 / sqrt((2.4² + 3.1²) / 3) = 0.53 at 3.8 degrees.
    assert untested == (pytest.approx(1.2), pytest.approx(0.625, abs=0.005), 3)
    with pytest.raises(ValueError, match="'merge'"):
        orderings.read_difference("xpr-e5-small", "3", "XPI + merged", "merge", "MRR")
