"""Options: the choices that the library and the command line share, and checks that name what is wrong with a value."""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
import logging
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from st_xling.utils.terminal import first_line

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])

#: Type to compute in.
Dtype = Literal["float32", "float16", "bfloat16"]
#: Type of matrix products, the rest as loaded.
Autocast = Literal["bfloat16", "float16"]
#: Library that runs a transformer.
Backend = Literal["torch", "openvino"]
#: How token states become the embedding of a sentence.
Pooling = Literal["mean", "cls", "max"]
#: How embeddings are centered: by the mean of each language, by one of all languages, or not.
Center = Literal["per_language", "joint", "none"]
#: Network of an adapter.
Network = Literal["linear", "tanh", "relu", "two-layer"]

#: How a cosine is compared with those of the neighbors.
Margin = Literal["ratio", "distance", "absolute"]
#: Which candidates become pairs.
Retrieval = Literal["max", "intersect", "forward", "backward"]
#: Where work runs: in this process, or on the workers of a Ray cluster.
Engine = Literal["local", "ray"]
#: Type in which embeddings are stored.
StoreDtype = Literal["float32", "float16", "int8"]

#: Lines of a text: sentences, ``id TAB sentence``, or JSON objects with ``id`` and ``text``.
TextFormat = Literal["lines", "bucc", "jsonl"]
#: Format of pairs.
PairFormat = Literal["tsv", "jsonl", "tmx"]
#: Format of aligned documents.
AlignmentFormat = Literal["tsv", "jsonl", "tmx", "vecalign"]

#: Types of options as messages name them.
_TYPE_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null (None)",
}


def check_number(name: str, value: float | None, *, least: float | None = None, allow_infinity: bool = False) -> None:
    """Raise ``ValueError`` for a number that is not finite or is below the least; ``None`` passes.

    Args:
        name: Name of the argument.
        value: Its value.
        least: Smallest value.
        allow_infinity: Infinity passes; NaN, to which no number compares, never does.
    """
    if value is None or (allow_infinity and math.isinf(value)):
        return
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number: got {value}.")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}: got {value}.")


def check_by_name(name: str, value: Any, instead: str) -> None:
    """Raise ``TypeError`` unless a value is a mapping, such as of languages to their texts.

    Args:
        name: Name of the argument.
        value: Its value.
        instead: What to pass.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping from names: got {type(value).__name__}; pass {instead}.")


def check_listed(name: str, value: Any, kind: type, instead: str) -> None:
    """Raise ``TypeError`` unless a value is a sequence whose first elements are of a class.

    Args:
        name: Name of the argument.
        value: Its value.
        kind: Class of the elements.
        instead: What to pass.
    """
    is_sequence = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if not is_sequence or isinstance(value, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be a list of {kind.__name__}: got {type(value).__name__}; pass {instead}.")
    for element in itertools.islice(value, 1):
        if not isinstance(element, kind):
            got = f"{type(value).__name__} of {type(element).__name__}"
            raise TypeError(f"{name} must be a list of {kind.__name__}: got {got}; pass {instead}.")


def helpful_arguments(function: Function, explain: Callable[[str, Any], str | None] | None = None) -> Function:
    """Let an unknown keyword, and a positional argument that must be named, raise ``TypeError`` with the right name.

    Python's own message names neither the nearest keyword nor what to pass instead. Options in a dataclass that is a
    default, such as ``search=SearchOptions()``, are named, too: ``k=8`` is an error that names
    ``search=SearchOptions(k=...)``.

    Args:
        function: Function to wrap.
        explain: Returns, for an unknown keyword and its value, where it belongs instead; ``None`` if it is unknown
            there, too.
    """
    parameters = inspect.signature(function).parameters
    positional = [name for name, entry in parameters.items() if entry.kind is entry.POSITIONAL_OR_KEYWORD]
    named = [name for name in parameters if name not in positional]
    option_classes: dict[str, Any] = {
        name: type(entry.default) for name, entry in parameters.items() if is_dataclass(entry.default)
    }
    passed_in: dict[str, str] = {}
    for name, kind in option_classes.items():
        passed_in |= {field.name: f"{name}={kind.__name__}({field.name}=...)" for field in fields(kind)}

    def hint_at(name: str, value: Any) -> str:
        where = explain(name, value) if explain is not None else None
        if where is None and name in passed_in:
            where = f"pass {passed_in[name]}"
        if where is not None:
            return f": {where}"
        names = [*parameters, *passed_in]
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        if close and close[0] in passed_in:
            return f"; did you mean {passed_in[close[0]]}?"
        return nearest_name(name, names)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in sorted(kwargs.keys() - parameters.keys()):
            raise TypeError(f"{function.__name__}() has no argument {name!r}{hint_at(name, kwargs[name])}")
        for name, kind in option_classes.items():
            if not isinstance(kwargs.get(name, parameters[name].default), kind):
                got = type(kwargs[name]).__name__
                raise TypeError(f"{function.__name__}() takes {name}={kind.__name__}(...): got {got}")
        if len(args) > len(positional):
            raise TypeError(
                f"{function.__name__}() takes {', '.join(positional)}; pass other arguments by name, such as "
                f"{named[0]}=...: got {len(args)} without a name"
            )
        return function(*args, **kwargs)

    return cast(Function, checked)


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``, a ``Literal`` type or a collection."""
    choices = get_args(choices) or choices
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}: got {value!r}.")


def nearest_name(key: str, valid_keys: Iterable[str]) -> str:
    """Return the end of an error message: the valid key closest to ``key``, or all of them."""
    keys = list(valid_keys)
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; it is one of {', '.join(keys)}"


def check_option(value: Any, hint: Any, name: str) -> None:
    """Raise ``ValueError`` if the annotation ``hint`` excludes the value.

    Checked are numbers, booleans, text and ``Literal`` choices.
    """
    kinds = kinds_of(hint)
    if not all(get_origin(kind) is Literal or kind in _TYPE_WORDS for kind in kinds):
        return
    from huggingface_hub.dataclasses import type_validator

    try:
        type_validator(name, value, hint)
    except TypeError as error:
        choices = [f"one of {', '.join(map(repr, get_args(kind)))}" for kind in kinds if kind not in _TYPE_WORDS]
        types_in_words = [_TYPE_WORDS[kind] for kind in kinds if kind in _TYPE_WORDS]
        raise ValueError(f"{name} must be {' or '.join(choices + types_in_words)}: got {value!r}.") from error


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the hint itself."""
    if get_origin(hint) in (Union, types.UnionType):
        return get_args(hint)
    return (hint,)


@functools.cache
def option_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function's options; none where some are names that only a type checker sees."""
    try:
        return get_type_hints(function)
    except NameError:
        return {}


def require(package: str, purpose: str, *, extra: str = "retrieval") -> Any:
    """Import a package, or raise ``ValueError`` that tells how to install it.

    Args:
        package: Its import name, such as ``"ir_measures"``.
        purpose: Task that needs it.
        extra: Our extra that installs it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ValueError(_missing(package, purpose, extra)) from error


def check_installed(package: str, purpose: str, *, extra: str) -> None:
    """Raise unless a package is installed; it is not imported, which may take seconds.

    Args:
        package: Its import name, such as ``"peft"``.
        purpose: Task that needs it.
        extra: Our extra that installs it.

    Raises:
        ValueError: If it is missing; says how to install it.
    """
    if find_spec(package) is None:
        raise ValueError(_missing(package, purpose, extra))


def _missing(package: str, purpose: str, extra: str) -> str:
    return f'{purpose} needs {package}, which is not installed: pip install "st-xling[{extra}]".'


def check_device(name: str) -> None:
    """Raise unless this machine and this build of PyTorch have the device.

    Args:
        name: PyTorch's name of it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.

    Raises:
        ValueError: For a name that is none, or a device that is not there.
    """
    import torch

    try:
        torch.zeros(1, device=torch.device(name))
    except Exception as error:  # AssertionError, RuntimeError or NotImplementedError, by device
        devices = ["cpu"]
        devices += [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        if torch.backends.mps.is_available():
            devices.append("mps")
        raise ValueError(
            f"device must be one of this machine's ({', '.join(devices)}): got {name!r} ({first_line(error)})."
        ) from error
