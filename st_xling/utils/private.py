"""Private parts of other libraries that have no public way, each with a canary test in ``tests/utils/test_private.py``.

A canary fails first when a new version of the library moves or changes such a part.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluate import EvaluationModule


def dataclass_fields(package: str, module: str) -> list[str]:
    """Names of the annotated attributes of all classes in another package's module, which is read and not imported.

    The training arguments of transformers and sentence-transformers can so be checked before torch is loaded.

    Args:
        package: Such as ``"transformers"``.
        module: Path of the module in it, such as ``"training_args.py"``.
    Returns:
        The names in order; empty if there is no such file.
    Example:
        >>> "logging_steps" in dataclass_fields("transformers", "training_args.py")
        True
    """
    spec = find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    paths = [path for folder in folders if (path := Path(folder) / module).is_file()]
    names: list[str] = []
    for path in paths[:1]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        lines = [line for part in classes for line in part.body if isinstance(line, ast.AnnAssign)]
        names = [line.target.id for line in lines if isinstance(line.target, ast.Name)]
    return names


def discard_rows(module: EvaluationModule) -> None:
    """Forget the rows that an ``evaluate`` module has collected, with their types, its file and its lock.

    Args:
        module: Module whose rows were refused before ``compute``, which would forget them itself.
    """
    writer: Any = module.writer
    module.writer = module.buf_writer = module.selected_feature_format = None
    if writer is not None:
        writer.stream.close()
    if module.filelock is not None:
        Path(module.cache_file_name).unlink(missing_ok=True)
        module.filelock.release()
        module.filelock = module.cache_file_name = None
