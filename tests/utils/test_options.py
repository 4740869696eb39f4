"""Options: types by their annotations."""

from typing import Any, Literal

import pytest

from st_xling.utils.options import check_option


def test_types_of_options() -> None:
    cases: list[Any] = [(int, 3, True, "a whole number"), (float | None, None, "x", "a number or null")]
    cases += [(Literal["a", "b"] | bool, "b", "c", "one of 'a', 'b' or true or false")]
    for hint, good, bad, words in cases:
        check_option(good, hint, "k")
        with pytest.raises(ValueError, match=f"k must be {words}.*: got {bad!r}"):
            check_option(bad, hint, "k")
