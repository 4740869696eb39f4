"""The reference: every public name has an example that runs; its pages build, are linked, and can be searched."""

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / ".docs"
PAGES = sorted((DOCS / "api").glob("*.md"))
PACKAGES = sorted(set(re.findall(r"(?m)^\.\. public:: (\S+)$", "\n".join(page.read_text("utf-8") for page in PAGES))))
PROMPTS = re.compile(r"(?m)^ *(?:>>>|\.\.\.) (.*)$")


def code(text: str) -> str:
    """Return the code of the examples that are not skipped."""
    return "\n".join(line for line in PROMPTS.findall(text) if "+SKIP" not in line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a page are one session, in a separate folder."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8").replace("```", "\n")
    session = doctest.DocTestParser().get_doctest(text, {"__name__": "page"}, page.stem, str(page), 0)
    assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session).failed


def test_all_packages_have_a_page() -> None:
    root = DOCS.parent / "st_xling"
    listed = [path.parent for path in root.rglob("*/__init__.py") if "__all__" in path.read_text("utf-8")]
    packages = {".".join(path.relative_to(DOCS.parent).parts) for path in listed}
    assert packages <= {*PACKAGES}  # transfer is a module


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_have_examples(package: str) -> None:
    """In their docstrings, or on a page."""
    on_pages = code("\n".join(page.read_text("utf-8") for page in PAGES))
    module = import_module(package)
    names = [name for name in module.__all__ if not re.search(rf"\b{name}\b", on_pages)]
    assert [name for name in names if not code(getattr(module, name).__doc__ or "")] == []


def test_fields_of_signatures_are_explained() -> None:
    """Those of every signature that a page or card shows."""
    explained = set(re.findall(r"`([\w-]+)`", (DOCS / "signatures.md").read_text("utf-8")))
    shown = [*DOCS.parent.glob("hub_cards/**/*.md"), *DOCS.parent.glob("st_xling/docs/**/*.md")]
    signatures = re.findall(r"[a-z_]+(?:\|[^|`\n]+)+\|st-xling:", "\n".join(page.read_text("utf-8") for page in shown))
    assert len(signatures) > 50
    fields: set[str] = set()
    for signature in signatures:
        _, *parts, _ = signature.split("|")  # the metric, its fields, the version
        fields |= {part.partition(":")[0] for part in parts}
    assert fields - explained == set()


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="pip install -e '.[docs]'")
    out = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "trees", DOCS, out]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(out).as_posix(): path.read_text("utf-8") for path in out.rglob("*.html")}
    expected = {
        "api/mining.html": ['id="st_xling.mining.filters.copy"', 'href="mining/mined_pairs.html"'],
        "api/mining/mined_pairs.html": ['id="st_xling.mining.mine"'],
        "api/mining/calibration.html": ['id="st_xling.mining.calibrate"', 'id="example"'],
        "api/reranking/pair_scorer.html": ['id="st_xling.reranking.rerank"'],
        "commands.html": ["st-xling evaluate tatoeba", "--target-precision"],
        "recipes.html": ["dap-released", "translation_ranking", "keep_duplicates_apart"],
        "data_specs.html": ["phrasebook", "columns"],
        "filters.html": ["copy", "0.85"],
        "signatures.html": ["tatoeba", "ties"],
        "guide/publish.html": ["hub_cards"],
    }
    for page, texts in expected.items():
        assert all(text in pages[page] for text in texts), page
    index = (out / "searchindex.js").read_text("utf-8")
    assert all(
        term in index for term in ("mine_texts", "best_threshold", "api/losses/koleo_loss", "TranslationRankingLoss")
    )
