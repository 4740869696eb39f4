"""Options of search and of encoding: checked when they are made, passed whole, and named where one is passed alone."""

import subprocess
import sys
from typing import Any

import pytest

from st_xling.mining import EncodingOptions, SearchOptions, align_texts, encode, mine_texts, plan_mining, score_texts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1: got k=0; 4 is the usual choice"),
        ({"margin": "mean"}, "margin must be one of ratio, distance, absolute: got 'mean'"),
        ({"retrieval": "best"}, "retrieval must be one of max, intersect, forward, backward: got 'best'"),
        ({"method": "fast"}, "method must be one of exact, approximate, auto, or faiss: .* got 'fast'"),
        ({"memory_mib": 0}, "memory_mib must be at least 1: got 0"),
    ],
)
def test_search_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchOptions(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1: got 0"),
        ({"dtype": "float64"}, "dtype must be one of float32, float16, int8: got 'float64'"),
        ({"engine": "spark"}, "engine must be one of local, ray: got 'spark'"),
    ],
)
def test_encoding_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncodingOptions(**options)


def test_options_load_nothing_slow() -> None:
    """A command checks its options before torch is imported, which takes seconds."""
    script = (
        "import sys\n"
        "from st_xling.mining import EncodingOptions, SearchOptions\n"
        "SearchOptions(k=8), EncodingOptions(batch_size=64)\n"
        "assert not {'torch', 'numpy', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("function", [mine_texts, plan_mining, score_texts])
def test_an_option_of_the_search_that_is_passed_alone(function: Any) -> None:
    """``mine_texts(..., k=8)`` is an error that names where ``k`` belongs."""
    name = function.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) has no argument 'k': pass search=SearchOptions\(k=\.\.\.\)"):
        function("a.de", "a.en", k=8)
    with pytest.raises(TypeError, match=r"'memory_mb'; did you mean search=SearchOptions\(memory_mib=\.\.\.\)\?"):
        function("a.de", "a.en", memory_mb=8)


@pytest.mark.parametrize("function", [mine_texts, plan_mining, score_texts, align_texts, encode])
def test_an_option_of_the_encoder_that_is_passed_alone(function: Any) -> None:
    option = r"encoding=EncodingOptions\(batch_size=\.\.\.\)"
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) has no argument 'batch_size': pass {option}"):
        function("a", "b", batch_size=8)
    with pytest.raises(TypeError, match=rf"has no argument 'bach_size'; did you mean {option}\?"):
        function("a", "b", bach_size=8)


def test_options_of_another_type() -> None:
    """A dictionary had ended in an AttributeError about a ``dict``, after both texts were read."""
    with pytest.raises(TypeError, match=r"mine_texts\(\) takes search=SearchOptions\(\.\.\.\): got dict"):
        mine_texts("a.de", "a.en", "out.tsv", search={"k": 8})  # type: ignore[arg-type]
