"""What contributors read and run: the workflow, hooks and CONTRIBUTING are those of the code as it is."""

import configparser
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.test_layers import LAYERS

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"


def test_the_workflow_calls_the_script_that_everybody_runs() -> None:
    """On the oldest Python that the package allows, too."""
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111, "can be executed"
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    oldest = setup["options"]["python_requires"].removeprefix(">=")
    assert oldest in job["strategy"]["matrix"]["python"]


def test_hooks_run_the_tools_of_the_script() -> None:
    """With the version that is installed for the tests, so that a commit which a hook lets pass passes there."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for hook in hooks:
        tool = hook["entry"].split()[0]
        assert re.search(rf"^{tool} ?", script, re.MULTILINE) or tool == "pytest", f"{tool} is not part of .ci/run"
        assert shutil.which(tool), f"{tool} is part of the extra test"
        assert hook["language"] == "system"


def test_contributors_see_the_order_of_the_packages() -> None:
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert " → ".join(LAYERS) in text


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.md")), ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8").replace("\n", " "))
    missing = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_forms_of_issues_can_be_read(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form["blank_issues_enabled"] is True
        return
    assert {"name", "description", "body"} <= form.keys()
    assert all(field["attributes"]["label"] for field in form["body"])
