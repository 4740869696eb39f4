"""``hub_cards/README.md``: which cards there are, and the commands that made them."""

from __future__ import annotations

from collections.abc import Iterable

from tests.hub_cards.runs import CardRun

_HEAD = """\
# Cards of every recipe

The model card of each recipe that `st-xling train` knows, as training and evaluation leave it in the model's folder.
The runs are small (seconds on one core, encoders of 32 dimensions from random weights) and need no files, since the
embedded phrasebook is the text. Their figures show that the parts work together; they rank no recipes. Two learn
little: `langcl` takes the language out of embeddings and, alone, does nothing to bring translations together; and
cross-encoders without a pretrained encoder stay at chance in so few steps (the right one of 10 candidates is first in
10 %; MRR 29 %).

"""

_COMMANDS = """\

## Commands

Paste them in order in an empty folder; each run's card is then `README.md` of its folder. `--keep` puts the figures
into the card; a card's own commands are without, and print the same figures.
"""

_MADE = """
## How they are made

`python -m tests.hub_cards.make`, in the root of the repository, runs all commands and writes this folder. A test runs
them too, and compares with what lies here. Figures and versions of libraries may differ there (`masked` in
`tests/hub_cards/masking.py` says exactly what), all else may not. Time and machine are blanked out (`…`) here, so that
the same machine writes the same bytes. Of pictures, only those of [dap](dap.md) are kept here.
"""


def listing(runs: Iterable[CardRun]) -> str:
    """The whole text."""
    runs = list(runs)
    rows = ["| recipe | card | model | made by | judged by |", "| :--- | :--- | :--- | :--- | :--- |"]
    rows += [_row(run) for run in runs]
    return _HEAD + "\n".join(rows) + "\n" + _COMMANDS + "".join(map(_block, runs)) + _MADE


def _row(run: CardRun) -> str:
    made = " ".join(run.makes.split()[:3] if " train " in run.makes else run.makes.split()[:2])
    judged = ", ".join(f"`{command.split()[2]}`" for command in run.evaluations)
    return f"| `{run.recipe}` | [{run.name}]({run.name}.md) | {run.what} | [`{made}`](#{run.name}) | {judged} |"


def _block(run: CardRun) -> str:
    after = f"\nIn the folder in which `my-{run.after}` was made:\n" if run.after else ""
    return f"\n### {run.name}\n{after}\n```bash\n" + "\n".join(run.commands) + "\n```\n"
