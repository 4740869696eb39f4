"""Cards of recorded runs, byte by byte; and, slowly, that ``hub_cards/`` is what the commands give."""

import re

import pytest
from huggingface_hub import ModelCard

from st_xling.hub import card_text
from tests.hub_cards import make
from tests.hub_cards.golden import KINDS, golden_card, recorded

RUNS = make.listed_runs()
AGAIN = "make them again: python -m tests.hub_cards.make"


def committed(name: str) -> str:
    return (make.CARDS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_card_of_a_recorded_run(kind, tmp_path):
    text = card_text(recorded(kind, tmp_path))
    assert text == golden_card(kind).read_text(encoding="utf-8"), f"{AGAIN} --recorded"
    assert "\n\n\n" not in text


def test_the_hub_reads_the_cards():
    row = r"(?m)^\| \[(.+?)\]\(\1\.md\) \| .+? \| (.+?) \| \[`(.+?)`\]\(#\1\) \|$"
    rows = re.findall(row, (make.CARDS / "README.md").read_text(encoding="utf-8"))
    assert [name for name, *_ in rows] == list(RUNS)
    assert {path.stem for path in make.CARDS.glob("*.md")} == {*RUNS, "README"}, AGAIN
    for name, result, makes in rows:
        first = RUNS[name][0]
        assert first.startswith(f"{makes} ") and first.endswith(f" --out my-{name}")
        assert make.headline(committed(name)) == result, AGAIN
        text = committed(name)
        assert all(f"\n{command.removesuffix(' --keep')}\n" in text for command in RUNS[name])
        assert len(text.split("---\n")[1].splitlines()) <= 60
        assert ModelCard(text, ignore_metadata_errors=False).data.eval_results
        links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
        assert links and all((make.CARDS / link).read_bytes().startswith(b"\x89PNG") for link in links)
        cost = text.partition("### Cost")[2].partition("\n## ")[0]
        assert not re.search(r"\| (time.*|machine) \| [^…]", cost)
        assert not re.search(r"(?<![\w:/])/(tmp|home|root|Users|work)/", text)


@pytest.mark.slow
def test_cards_are_what_their_commands_give_and_a_stranger_gets_the_same(tmp_path):
    (tmp_path / "ours").mkdir()
    cards = make.make_models(tmp_path / "ours")
    for name, card in cards.items():
        assert make.masked(committed(name)) == make.masked(make.as_committed(name, card)), f"{name}: {AGAIN}"
    for name in ("dap", "ir-semacl-langcl"):  # the commands as the card shows them, pasted elsewhere
        (tmp_path / name).mkdir()
        commands = re.findall(r"^st-xling (?:train|evaluate) .*$", cards[name], flags=re.MULTILINE)
        for command in sorted(commands, key=lambda command: " train " not in command):
            if " train " not in command:
                command += " --keep"
            make.run_command(command, tmp_path / name)
        again = (tmp_path / name / f"my-{name}" / "README.md").read_text(encoding="utf-8")
        assert make.as_committed(name, again) == make.as_committed(name, cards[name])
