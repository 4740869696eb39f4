"""Public names that a package imports on first use (PEP 562), so that importing the package itself stays fast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for the names that a package imports under ``if TYPE_CHECKING:``.

    Type checkers, which read that block (``import mine as mine`` makes a name public), and users then see the same
    names, and each is in one list. What is imported from the package itself is one of its modules.

    Args:
        package: Its ``__name__``.
        file: Its ``__file__``.
    """
    blocks = [node.body for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    modules = {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = modules[name]
        if module == package:
            return import_module(f"{package}.{original}")
        return getattr(import_module(module), original)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return __getattr__, __dir__, sorted(modules)
