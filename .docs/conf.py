"""The reference. With ``pip install 'st-xling[docs]'``, from a checkout: ``sphinx-build -W --keep-going .docs OUT``."""

from __future__ import annotations

import builtins
import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
os.environ.setdefault("COLUMNS", "100")

import reference  # noqa: E402
import tables  # noqa: E402
from docutils import nodes  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.util.docutils import SphinxDirective  # noqa: E402

from st_xling import __version__  # noqa: E402

project = "st-xling"
author = "the st-xling contributors"
release = __version__
copyright = author
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosectionlabel",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
html_theme = "furo"
html_title = f"st-xling {release}"
html_static_path = ["static"]
html_css_files = ["tables.css"]
smartquotes = False  # straight quotes and two hyphens, as a shell wants them
exclude_patterns = ["pictures"]
nitpicky = True
reference.write_pages()

myst_enable_extensions = ["substitution"]
myst_substitutions = tables.tables()
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are shown as they were saved; tests run them
autosectionlabel_prefix_document = True
# Cells that run commands are no Python.
suppress_warnings = ["autosectionlabel.*", "misc.highlighting_failure", "mystnb.unknown_mime_type"]

autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Source", "Requirements", "Inputs", "Relations"]


class Public(SphinxDirective):
    """``.. public:: PACKAGE``: what it is for, and a line for each page of what its ``__all__`` lists."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        folder = package.partition(".")[2]
        toctree = [".. toctree::", "   :hidden:", ""]
        lines = [f".. py:module:: {package}", "", str(import_module(package).__doc__).partition("\n\n")[0], ""]
        for idea, names in reference.ideas(package).items():
            title = reference.title_of(idea, names)
            toctree.append(f"   {folder}/{idea}")
            listed = ""
            if title != ", ".join(names):
                listed = f" (``{'``, ``'.join(names)}``)"
            lines.append(f"- :doc:`{title} <{folder}/{idea}>`{listed}: {reference.summary(package, names)}")
        elsewhere = []
        for name in import_module(package).__all__:
            full = f"{package}.{name}"
            home = reference.HOMES.get(full, (full,))[0]
            if home != full:
                elsewhere.append(f":py:obj:`{name} <{home}>`")
        if elsewhere:
            lines += ["", f"Described elsewhere: {', '.join(elsewhere)}."]
        return self.parse_text_to_nodes("\n".join([*lines, "", *toctree]))


def leave_out(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Fields of named tuples have no text of their own; the class's docstring has it."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field number") else None


def look_up(target: str, scopes: list[str]) -> Any:
    """Return the value of a name in the first of some modules or classes that has it, else as a full name."""
    for name in [*(f"{scope}.{target}" for scope in scopes), target]:
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            try:
                value: Any = import_module(".".join(parts[:cut]))
                for part in parts[cut:]:
                    value = getattr(value, part)
                return value
            except (ImportError, AttributeError):
                continue
    return getattr(builtins, target, None)


def scopes_of(node: Any) -> list[str]:
    """Return the scopes in which a reference is looked up: its class and module, from the inside out."""
    module = node.get("py:module") or ""
    class_name = node.get("py:class") or ""
    sources: list[str] = []
    while node is not None and not sources:
        sources = re.findall(r"docstring of ([\w.]+)", str(node.source))
        node = node.parent
    scopes = []
    if sources:
        parts = sources[0].split(".")
        scopes += [".".join(parts[:cut]) for cut in range(len(parts), 1, -1)]
    if module:
        scopes += [f"{module}.{class_name}", module]
    # Then the modules that define them, which import what their docstrings mention.
    return [*scopes, *(getattr(look_up(scope, []), "__module__", module) for scope in scopes)]


def resolve(app: Sphinx, env: Any, node: Any, text: nodes.Node) -> nodes.Node | None:
    """What is public under another name becomes a link, what is not public its name; what does not exist fails."""
    if node.get("refdomain") != "py":
        return None
    value = look_up(node["reftarget"], scopes_of(node))
    for home, public in reference.HOMES.values():
        # Values without a module are never the same: the defaults differ.
        if value is not None and reference.definition_of(value, "", "") == reference.definition_of(public, "?", ""):
            target = node.deepcopy()
            target["refspecific"] = False
            return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", home, target, text)
    # In signatures there are also type variables, and names that are imported for type checkers alone.
    return text if value is not None or not isinstance(text, nodes.literal) else None


def shapes(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """``*Shape:*`` would end the name of a type, as napoleon reads what is returned."""
    lines[:] = [re.sub(r"\*([A-Z][^*:]+):\*", r"*\1*", line) for line in lines]


def first_screen() -> str:
    """Return README's first screen: what it is, how to install it, a picture, and mining in two minutes."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8").partition("\n## Fine-tune")[0]
    text = re.sub(r"(?m)^\[Guide\].*\n(\[.*\n)?\n", "", text)  # links to what the page itself lists
    return text.replace("](st_xling/docs/pictures/", "](pictures/").replace("](st_xling/docs/", "](/")


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.strip()).lower().replace(" ", "-")


def heading_of(page: str, anchor: str) -> str:
    """Return the text of a heading of a page, by its anchor.

    Raises:
        ValueError: If the page has no such heading.
    """
    text = (HERE / f"{page.lstrip('/')}.md").read_text(encoding="utf-8")
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        if slug(heading) == anchor:
            return heading.replace("`", "")
    raise ValueError(f"{page} has no heading {anchor}")


def with_references(text: str, page: str) -> str:
    """Return Markdown whose links between pages are references, and other relative links names of files.

    MyST would follow the symbolic links of this folder, and look for the pages in the package.
    """
    folder = f"/{page}".rpartition("/")[0]

    def reference(link: re.Match[str]) -> str:
        words, target, ending, anchor = link.groups()
        if "hub_cards/" in target or ".github/" in target:
            return f"{words} (`{target.lstrip('./')}{ending}` of a checkout)"
        # The folders as they are here, not in a checkout.
        target = re.sub(r"^(?:\.\./)*(?:st_xling/docs|\.docs|(notebooks))/", r"/\1/", target)
        name = os.path.normpath(target if target.startswith("/") else f"{folder}/{target}").replace("//", "/")
        words = words.replace("`", "")
        if anchor:
            return f"{{ref}}`{words} <{name.lstrip('/')}:{heading_of(name, anchor[1:])}>`"
        return f"{{doc}}`{words} <{name}>`"

    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https:)([^)#]+)(\.md|\.ipynb)(#[^)]*)?\)", reference, text)
    # Folders, and files that have no page.
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./){2,}([^)#]+)\)", r"\1 (`\2` of a checkout)", text)


def links(app: Sphinx, page: str, content: list[str]) -> None:
    """Let the links of a page, or of a notebook's text, lead to pages."""
    text = content[0]
    if not text.startswith("{\n"):
        content[0] = with_references(text.replace("{{ first_screen }}", first_screen()), page)
        return
    notebook = json.loads(text)
    notebook["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = with_references("".join(cell["source"]), page)
    content[0] = json.dumps(notebook)


def setup(app: Sphinx) -> None:
    app.add_directive("public", Public)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", shapes, priority=400)  # before napoleon
    app.connect("missing-reference", resolve)
    app.connect("source-read", links)
