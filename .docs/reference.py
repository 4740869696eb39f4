"""The pages of the public names: one for each idea, such as a loss with its function, with an example that runs."""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, get_origin

from torch import nn

HERE = Path(__file__).resolve().parent

#: Packages in the order of layers; a name that several list is described where it comes first.
PACKAGES = [
    "data",
    "data.phrasebook",
    "data.retrieval",
    "models.slim",
    "models",
    "losses",
    "training",
    "training.cross_lingual_transfer",
    "mining",
    "reranking",
    "evaluation",
    "evaluation.compare",
    "metrics",
    "hub",
    "reproduce",
]

#: Titles of pages with more than three names whose module's name says too little.
TITLES = {
    "alignment": "Words and documents, aligned",
    "base": "Sums and base classes",
    "cosines": "Accuracy from embeddings",
    "leak": "Leak check",
    "measures": "Measures of rankings and pairs",
    "pools": "Candidate pools",
    "push": "Push a model",
    "results": "Saved results",
    "run": "Comparison of encoders",
    "strategies": "Stages of training, and pools",
}

MOST_NAMES_IN_TITLE = 3

# Names of files, and of the folders that an example makes.
FILE = re.compile(r"[\w.-]+\.(?:tsv|csv|jsonl?|parquet|txt|html|store|trec|de|en)")
FOLDER = re.compile(
    r"""\.save(?:_pretrained)?\("([\w-]+)"\)|Path\("([\w-]+)[/\w]*"\)\.mkdir|"(my-[\w-]+)"|"([\w-]+)/"""
)


def definition_of(value: Any, package: str, name: str) -> tuple[str, str]:
    """Return module and qualified name of a class, function or class method; else ``package`` and ``name``.

    A class method belongs to the class through which it was read, not to the one that defines it.
    """
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):
        return owner.__module__, f"{owner.__qualname__}.{value.__name__}"
    return getattr(value, "__module__", package), getattr(value, "__qualname__", name)


def homes() -> dict[str, tuple[str, Any]]:
    """``package.name`` of every public name → the public name under which it is described, and its value."""
    values: dict[str, tuple[str, Any]] = {}
    first_names: dict[tuple[str, str], str] = {}
    for package in [f"st_xling.{name}" for name in PACKAGES]:
        module = import_module(package)
        for name in module.__all__:
            public_name = f"{package}.{name}"
            value = getattr(module, name)
            # The attributes of a type's alias are those of the type itself.
            definition = (package, name) if get_origin(value) else definition_of(value, package, name)
            home = first_names.setdefault(definition, public_name)
            values[public_name] = home, value
    return values


HOMES = homes()


def ideas(package: str) -> dict[str, list[str]]:
    """Return the names that a package describes, by the module that defines them; constants come last."""
    groups: dict[str, list[str]] = {}
    constants = []
    for name in import_module(package).__all__:
        full = f"{package}.{name}"
        home, value = HOMES[full]
        if home != full:
            continue
        module = definition_of(value, "", "")[0]
        if module.startswith("st_xling."):
            groups.setdefault(module.rpartition(".")[2], []).append(name)
        else:
            constants.append(name)
    if constants:
        groups["constants"] = constants
    return groups


def title_of(idea: str, names: list[str]) -> str:
    """Return the title of a page: its names, if they are few."""
    if len(names) <= MOST_NAMES_IN_TITLE:
        return ", ".join(names)
    return TITLES.get(idea, idea.replace("_", " ").capitalize())


def comment(package: str, name: str) -> str:
    """Return the comment above or the docstring below the definition of a constant."""
    from sphinx.pycode import ModuleAnalyzer

    docs = ModuleAnalyzer.for_module(package).find_attr_docs().get(("", name))
    if docs is None:
        tree = ast.parse(Path(str(import_module(package).__file__)).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                return comment(str(node.module), name)
        return ""
    return " ".join(docs).strip()


def summary(package: str, names: list[str]) -> str:
    """Return the first sentence of the name that a page is about: a module of torch, a function, or the first."""
    values = {name: HOMES[f"{package}.{name}"][1] for name in names}
    modules = [name for name, value in values.items() if isinstance(value, type) and issubclass(value, nn.Module)]
    functions = [name for name, value in values.items() if callable(value) and not isinstance(value, type)]
    return first_sentence(package, [*modules, *functions, *names][0])


def first_sentence(package: str, name: str) -> str:
    """Return the first line of a name's docstring, or of a constant's comment."""
    value = HOMES[f"{package}.{name}"][1]
    is_object = isinstance(value, type) or callable(value)
    text = str(value.__doc__ or "") if is_object else comment(package, name)
    sentence = " ".join(text.strip().partition("\n\n")[0].split())
    # A reference is looked up from the docstring that has it, not from a list.
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"``\1``", sentence)


def directives(package: str, name: str) -> list[str]:
    """Return the lines that describe a name."""
    full = f"{package}.{name}"
    value = HOMES[full][1]
    if isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return [f".. auto{kind}:: {full}", "   :members:", ""]
    if callable(value) and get_origin(value) is None:
        return [f".. autofunction:: {full}", ""]
    shown = repr(value) if len(repr(value)) < 300 else f"{type(value).__name__} of {len(value)}"
    return [f".. py:data:: {full}", f"   :value: {shown}", "", f"   {comment(package, name)}", ""]


def has_example(value: Any) -> bool:
    """Return whether the docstring of an object, or of one of its methods, has an example that runs."""
    texts = [str(value.__doc__)]
    if isinstance(value, type):
        texts += [str(member.__doc__) for member in vars(value).values()]
    lines = "\n".join(texts).splitlines()
    return any(">>>" in line and "+SKIP" not in line for line in lines)


def names_used(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement reads."""
    nodes = list(ast.walk(statement))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    if isinstance(statement, ast.FunctionDef):
        return read - names_stored(nodes) - {node.arg for node in nodes if isinstance(node, ast.arg)}
    return read


def names_stored(nodes: list[ast.AST]) -> set[str]:
    """Return the variables that are assigned."""
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def names_made(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in statement.names}
    return names_stored(list(ast.walk(statement))) - {"_"}


def paths(statement: ast.stmt, folders: set[str]) -> set[str]:
    """Return the files and folders that a statement names; two that name the same write and read it.

    Args:
        statement: Of a session.
        folders: Names of folders of the session, which look like any other text.
    """
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {word for word in re.split(r"[=,?/]", node.value) if word in folders or FILE.fullmatch(word)}
    return found


def example_of(names: list[str], page: str) -> str:
    """Return the part of a page's session that shows the names: what mentions them, and what that needs.

    Args:
        names: Public names.
        page: Markdown whose examples are one session, from the first to the last.
    """
    examples = doctest.DocTestParser().get_examples(page.replace("```", "\n"))
    statements = [ast.parse(example.source).body[0] for example in examples]
    folders = set(chain(*FOLDER.findall(page))) - {""}
    mentions = re.compile(rf"\b({'|'.join(names)})\b")
    kept = {number for number, example in enumerate(examples) if mentions.search(example.source)}
    for number in sorted(kept):  # then the first line that shows the result
        for later in range(number + 1, len(examples)):
            if examples[later].want and names_used(statements[later]) & names_made(statements[number]):
                kept.add(later)
                break
    needed: set[str] = set()
    files: set[str] = set()
    for number in reversed(range(len(examples))):
        statement = statements[number]
        if number in kept or names_made(statement) & needed or paths(statement, folders) & files:
            kept.add(number)
            needed = (needed - names_made(statement)) | (names_used(statement) - set(dir(builtins)))
            files |= paths(statement, folders)
    lines = []
    for number in sorted(kept):
        first, *others = examples[number].source.splitlines()
        lines.append(f">>> {first}")
        lines += [f"... {line}" for line in others]
        lines += examples[number].want.splitlines()
    return "\n".join(lines)


def package_pages() -> Iterator[tuple[str, str]]:
    """Yield each public package with the text of the page that lists it."""
    for path in sorted((HERE / "api").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for package in re.findall(r"(?m)^\.\. public:: (\S+)$", text):
            yield package, text


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path below ``api`` and the text of each idea's page."""
    for package, listing in package_pages():
        for idea, names in ideas(package).items():
            lines = [f"# {title_of(idea, names)}", "", "```{eval-rst}", f".. py:currentmodule:: {package}", ""]
            for name in names:
                lines += directives(package, name)
            lines += ["```", ""]
            unshown = [name for name in names if not has_example(HOMES[f"{package}.{name}"][1])]
            if len(unshown) == len(names):
                lines += ["## Example", "", "```python", example_of(names, listing), "```", ""]
            yield f"{package.partition('.')[2]}/{idea}.md", "\n".join(lines)


def write_pages() -> None:
    """Write the pages that changed, and remove those of names that are gone."""
    written = set()
    for name, text in pages():
        path = HERE / "api" / name
        written.add(path)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in (HERE / "api").glob("*/*.md"):
        if path not in written:
            path.unlink()
