"""The layers: a package imports only those before it; no circles among modules; public names, loaded on first use."""

import ast
import inspect
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import st_xling

LAYERS = [
    "utils",
    "data",
    "models",
    "losses",
    "training",
    "mining",
    "reranking",
    "evaluation",
    "metrics",
    "hub",
    "reproduce",
    "cli",
]
ROOT = Path(st_xling.__file__).parent
MODULES = {
    ".".join(["st_xling", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imported(file: Path, *, at_once: bool = False) -> set[str]:
    """Modules of the package that a file imports anywhere; ``at_once``: those that are loaded with it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    later = (ast.FunctionDef, ast.If) if at_once else ()
    names: set[str] = set()
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, later):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} imports relatively; modules are named in full"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    names = {name if name in MODULES else name.rpartition(".")[0] for name in names if name.startswith("st_xling.")}
    assert names <= MODULES.keys(), f"{file} imports {names - MODULES.keys()}, which are not there"
    return names


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_those_before_it(layer: str) -> None:
    later = {*LAYERS[LAYERS.index(layer) + 1 :], *(() if layer == "cli" else ("demo",))}
    for file in sorted((ROOT / layer).rglob("*.py")):
        packages = {name.split(".")[1] for name in imported(file) if "." in name}
        assert not packages & later, f"{file} imports {packages & later}"


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in ROOT.iterdir() if any(path.glob("*.py"))}
    assert folders == set(LAYERS)


@pytest.mark.parametrize("package", ["", *LAYERS])
def test_no_module_imports_itself_through_others(package: str) -> None:
    """As modules are loaded; inside a package also through imports in functions and for type checkers."""
    graph = {
        name: imported(path, at_once=not package) - {name}
        for name, path in MODULES.items()
        if name.startswith(f"st_xling.{package}") and not (package and path.name == "__init__.py")
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("package", sorted(name for name, path in MODULES.items() if path.name == "__init__.py"))
def test_public_names_are_there_and_found_by_completion(package: str) -> None:
    """And none is the name of a module of its package, which would hide it once that module is imported."""
    module = import_module(package)
    names = getattr(module, "__all__", [])
    assert all(hasattr(module, name) for name in names)
    assert set(names) <= set(dir(module))
    hidden = {name for name in names if f"{package}.{name}" in MODULES and not inspect.ismodule(getattr(module, name))}
    assert not hidden


@pytest.mark.slow
def test_the_package_has_all_packages() -> None:
    """Packages, also right after ``import st_xling``, and nothing under a wrong name."""
    everything: dict[str, object] = {}
    exec("from st_xling import *", everything)
    assert everything.keys() >= set(st_xling.__all__) >= set(LAYERS) - {"utils", "cli"}
    assert all(everything[name] is getattr(st_xling, name) for name in st_xling.__all__)
    with pytest.raises(AttributeError, match="'st_xling' has no attribute 'nothing'"):
        getattr(st_xling, "nothing")  # noqa: B009
    subprocess.run([sys.executable, "-c", "import st_xling; st_xling.losses.make"], check=True, timeout=60)


@pytest.mark.slow
def test_type_checkers_see_the_names(tmp_path: Path) -> None:
    """Each as what it is, through mypy, which reads what a run of it in this checkout has kept."""
    from mypy.api import run

    names = ", ".join(name for name in st_xling.__all__)
    script = tmp_path / "script.py"
    script.write_text(f"from st_xling import {names}\nreveal_type(training.recipe_names)\n")
    output, _, _ = run(["--config-file", str(ROOT.parent / "setup.cfg"), str(script)])
    assert "error:" not in output, output
    assert "str | None" in output
    assert "list[" in output


@pytest.mark.parametrize("package", ["st_xling", *(f"st_xling.{layer}" for layer in LAYERS)])
def test_importing_a_package_is_light(package: str) -> None:
    heavy = "{'torch', 'transformers', 'sentence_transformers', 'datasets', 'numpy'}"
    script = (
        f"import sys, time; start = time.process_time(); import {package}; assert time.process_time() - start < 0.1;"
        f"assert not {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_name_is_loaded_on_first_use() -> None:
    script = "import sys, st_xling; st_xling.mining.mine; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
