"""Private API of other libraries that has no public counterpart.

Each function has a canary test in ``tests/utils/test_private.py``, which fails first when a new version of the library
moves or changes what it uses, and says what depends on it. The tests also watch the two private methods of
transformers' trainer that ours override: ``_run_epoch`` and ``_load_from_checkpoint``.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gettext
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset
    from evaluate import EvaluationModule
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from torch import Tensor, nn
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

Module = TypeVar("Module", bound="nn.Module")


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
    file = _package_file(package, module)
    if file is None:
        return []
    names: list[str] = []
    for definition in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(definition, ast.ClassDef):
            for line in definition.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    names.append(line.target.id)
    return names


def _package_file(package: str, module: str) -> Path | None:
    """Find a file of an installed package without importing it."""
    spec = find_spec(package)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder) / module
        if path.is_file():
            return path
    return None


def attention_implementation(config: PreTrainedConfig) -> str | None:
    """Return the implementation of attention of a transformers model, such as ``"sdpa"``, by its configuration."""
    return getattr(config, "_attn_implementation", None)


@contextlib.contextmanager
def with_attention(config: PreTrainedConfig, implementation: str) -> Iterator[None]:
    """Compute attention in another way within the block.

    ``set_attn_implementation`` of a model is public, but checks all of its modules, and may load a kernel.

    Args:
        config: Configuration that the attention modules read.
        implementation: Such as ``"eager"``.
    """
    before = config._attn_implementation
    config._attn_implementation = implementation
    try:
        yield
    finally:
        config._attn_implementation = before


def encodes_in_several_processes(model: Any) -> bool:
    """Return whether sentence-transformers' trainer has set up ``encode`` of a model to use all of its processes."""
    return getattr(model, "_distributed_inference", None) is not None


def fingerprint(dataset: Dataset) -> str:
    """Return the fingerprint of a data set: of its content and all that was done to it."""
    return dataset._fingerprint


def forget_card(model: SentenceTransformer) -> None:
    """Let a model get a new card when it is saved, in place of the one that it was loaded with."""
    model._model_card_text = None


def initialize(model: PreTrainedModel, part: nn.Module) -> None:
    """Initialize a module as ``model`` initializes one of this kind.

    ``initialize_weights`` is public, but initializes the whole model.

    Args:
        model: Gives the rules.
        part: A module without children, changed in place.
    """
    model._init_weights(part)


def plural_function(rule: str) -> Callable[[int], int]:
    """Return the function of a rule of gettext for plural forms, such as ``n != 1``: from a number to its form.

    Raises:
        ValueError: For a rule that is none.
    """
    compile_rule: Callable[[str], Callable[[int], int]] = gettext.c2py
    return compile_rule(rule)


def replace_backend(tokenizer: PreTrainedTokenizerFast, backend: Tokenizer) -> None:
    """Replace the ``backend_tokenizer`` of a tokenizer, a property that can be read but not set."""
    tokenizer._tokenizer = backend


def shallow_copy(module: Module) -> Module:
    """Return a copy of a module that shares everything with it, but whose children can be replaced.

    ``copy.copy`` shares the table of children as well.
    """
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied


def uncompiled(module: Module) -> Module:
    """Return the module inside the wrapper that ``torch.compile`` puts around it, or the module itself."""
    return getattr(module, "_orig_mod", module)


def with_features(stream: IterableDataset) -> IterableDataset:
    """Return a stream that knows its columns; where they are not known, it looks at the first rows."""
    if stream.features is not None:
        return stream
    return stream._resolve_features()


def discard_rows(module: EvaluationModule) -> None:
    """Forget the rows that an ``evaluate`` module has collected, with their types, its file and its lock.

    Args:
        module: Module whose rows were refused before ``compute``, which would forget them itself.
    """
    writer: Any = module.writer
    module.writer = None
    module.buf_writer = None
    module.selected_feature_format = None
    if writer is not None:
        writer.stream.close()
    if module.filelock is not None:
        Path(module.cache_file_name).unlink(missing_ok=True)
        module.filelock.release()
        module.filelock = None
        module.cache_file_name = None


def onednn_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute ``states @ weight.T + bias`` of float32 tensors on a CPU by oneDNN, without gradients.

    torch has it for the code that ``torch.compile`` writes. Its public functions use oneDNN only for tensors in a
    special layout, whose conversion takes as long as the product.

    Args:
        states: *Shape:* ``(…, in)``
        weight: Of any strides. *Shape:* ``(out, in)``
        bias: *Shape:* ``(out,)``

    Returns:
        *Shape:* ``(…, out)``

    Raises:
        AttributeError: This build of torch has no oneDNN.
    """
    import torch

    return torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
