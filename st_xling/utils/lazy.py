"""Names of a package that are imported on first use.

All packages name what they offer in one way: under ``if TYPE_CHECKING:``, as plain imports (``import mine as mine``
makes a name public for type checkers). Importing a package then loads nothing, as torch takes seconds to load. The
library ``lazy-loader`` does the same from a second file, ``__init__.pyi``, but only for names of modules inside the
package; ours also offer names of packages below them.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    The names are those that its file imports under ``if TYPE_CHECKING:``, so that type checkers and users see the same.
    A name that is imported from the package itself is one of its modules.

    Args:
        package: Its ``__name__``.
        file: Its ``__file__``.
    """
    sources: dict[str, tuple[str, str]] = {}  # public name → module, and the name there
    for statement in _type_checking_imports(file):
        for alias in statement.names:
            sources[alias.asname or alias.name] = (str(statement.module), alias.name)

    def __getattr__(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = sources[name]
        if module == package:
            return import_module(f"{package}.{original}")
        return getattr(import_module(module), original)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *sources})

    return __getattr__, __dir__, sorted(sources)


def _type_checking_imports(file: str) -> list[ast.ImportFrom]:
    """Read the ``from … import …`` statements under ``if TYPE_CHECKING:`` of a Python file."""
    imports: list[ast.ImportFrom] = []
    for block in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            imports += [statement for statement in block.body if isinstance(statement, ast.ImportFrom)]
    return imports
