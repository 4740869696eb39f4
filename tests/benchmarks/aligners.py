"""Document alignment by language, next to Vecalign and Bertalign on the same vectors: strict and lax F1.

Text: of the folder that ``ST_XLING_DATA`` names, the documents of ``documents`` (technical ones, with English) and of
``sentence_alignment`` (Text+Berg, German and French, as Vecalign and Bertalign are evaluated on). Scores count all
documents of a language together; lines without a partner count for precision alone, as in Vecalign's evaluation.

All three have groups of at most ``--max-size`` sentences of both sides, and the vectors of one encoder. The peers take
those of all groups; st-xling encodes a part of them, as ``align-documents`` does. Everything else is the default of
each. ``--vectors`` keeps the vectors in a file, from which they are read the next time; ``--table`` writes all figures
as JSON.

The peers are in an environment of their own, whose Python ``--peers`` names; one that is not there is left out::

    python -m venv peers
    peers/bin/pip install numba torch "vecalign @ git+https://github.com/thompsonb/vecalign@f3726275"
    peers/bin/pip install --no-deps --ignore-requires-python bertalign==2.0.1
    python -m tests.benchmarks.aligners --peers peers/bin/python

The gold of the technical documents has neighboring lines without a partner as one group, which none of the three
writes; ``--lines-alone`` counts them one by one, as Text+Berg's gold does.

``--cross-validate`` aligns with other prices, too, each lower and higher, and says what each technical document scores
with those that are best on all others and Text+Berg's dev document.

Vecalign is compiled, for which a C compiler is needed. Bertalign asks for Python 3.12 and an encoder; its kernels,
which is all that is used here, need neither.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, encoder_folder, log, main
from tests.benchmarks.thresholds import embed

PEERS = ("vecalign", "bertalign")
TEXT_BERG = ("dev", "test0", "test1", "test2", "test3")
PAD = "PAD"
POINT = 0.01
# Other values of each price, of which one is changed at a time.
OTHER_PRICES = {
    "NUMBERS": (0.0, 0.2, 0.5, 0.8),
    "UNPAIRED": (0.38, 0.48),
    "GAP": (0.3, 0.5),
    "MERGE": (0.2, 0.25),
    "LENGTH": (0.3, 0.5),
}
KINDS = ("strict", "lax")
RATES = ("precision", "recall", "f1")


class Document(NamedTuple):
    """A document and its translation, a sentence per line.

    Attributes:
        name: Name of the document.
        label: Row of the table to which it belongs.
        source: Lines of the document.
        target: Lines of its translation.
        gold: Groups of lines that belong together.
    """

    name: str
    label: str
    source: list[str]
    target: list[str]
    gold: list[tuple[tuple[int, ...], tuple[int, ...]]]


Groups = dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]]
"""Groups of lines by document."""


def read_documents(folder: Path) -> Iterator[Document]:
    """Read the documents with their gold groups."""
    from st_xling.evaluation.alignment import read_groups

    for gold in sorted((folder / "documents").glob("*/gold")):
        name = gold.parent.name
        # zh_CN and zh are both in simplified characters.
        language = name.rsplit(".", 1)[1].replace("_CN", "")
        yield Document(name, language, lines(gold.parent / "en"), lines(gold.parent / "xx"), read_groups(gold))
    for name in TEXT_BERG:
        files = folder / "sentence_alignment" / name
        label = "Text+Berg, dev" if name == "dev" else "Text+Berg, tests"
        gold = read_groups(files.with_suffix(".defr"))
        yield Document(name, label, lines(files.with_suffix(".de")), lines(files.with_suffix(".fr")), gold)


def with_lines_alone(document: Document) -> Document:
    """Return a document whose lines without a partner are each a gold group of its own."""
    gold: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for source, target in document.gold:
        if source and target:
            gold.append((source, target))
        else:
            gold += [((row,), ()) for row in source]
            gold += [((), (row,)) for row in target]
    return document._replace(gold=gold)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def quick_document() -> Document:
    from st_xling.data.phrasebook import parallel_phrases

    phrases = parallel_phrases("de", size=30)
    gold = [((row,), (row,)) for row in range(len(phrases["source"]))]
    return Document("phrasebook", "de", list(phrases["source"]), list(phrases["target"]), gold)


class Vectors:
    """Unit vectors of all groups of neighboring sentences of some documents, by their text."""

    def __init__(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        if len(texts) != len(vectors):
            raise ValueError(f"expected {len(texts):,} saved vectors, those of these documents; got {len(vectors):,}.")
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def of(self, texts: Iterable[str]) -> np.ndarray:
        return self._vectors[[self._rows[text] for text in texts]]


def align(document: Document, vectors: Vectors, max_size: int) -> tuple[list[Any], int]:
    """Align a document as st-xling does; also returns the number of texts that are encoded for it."""
    from st_xling.mining.documents import (
        MAX_ROUNDS,
        DocumentSide,
        align_sides,
        single_spans,
        span_texts,
        spans_to_encode,
    )

    texts = (document.source, document.target)
    singles = [single_spans(sentences) for sentences in texts]
    spans: list[list[Any]] = [[], []]
    for _ in range(MAX_ROUNDS):
        sides = []
        for sentences, single, several in zip(texts, singles, spans):
            sentence_vectors = vectors.of(span_texts(sentences, single))
            span_vectors = vectors.of(span_texts(sentences, several))
            sides.append(DocumentSide.partly_encoded(sentences, sentence_vectors, several, span_vectors, max_size))
        wanted = spans_to_encode(*sides, max_size=max_size)
        if not any(wanted):
            break
        for several, more in zip(spans, wanted):
            several += more
    groups = [(group.source, group.target) for group in align_sides(*sides, max_size=max_size)]
    return groups, sum(map(len, [*singles, *spans]))


def cross_validated(documents: Sequence[Document], vectors: Vectors, max_size: int) -> dict[str, dict[str, float]]:
    """Return the scores of technical documents with the prices that are best on all others and Text+Berg's dev one."""
    from st_xling.mining import documents as prices

    chosen_on = [document for document in documents if not document.name.startswith("test")]
    aligned: dict[str, Groups] = {"as they are": {doc.name: align(doc, vectors, max_size)[0] for doc in chosen_on}}
    for price, values in OTHER_PRICES.items():
        usual = getattr(prices, price)
        for value in values:
            setattr(prices, price, value)
            aligned[f"{price} {value:g}"] = {doc.name: align(doc, vectors, max_size)[0] for doc in chosen_on}
        setattr(prices, price, usual)
    best: Groups = {}
    held_back = [document for document in chosen_on if document.name not in TEXT_BERG]
    for document in held_back:
        others = [other for other in chosen_on if other is not document]
        f1 = {name: sum(score(others, groups)[kind]["f1"] for kind in KINDS) for name, groups in aligned.items()}
        chosen = max(f1, key=f1.__getitem__)
        log(f"{document.name}: {chosen}")
        best[document.name] = aligned[chosen][document.name]
    return score(held_back, best)


def write_vectors(document: Document, vectors: Vectors, max_size: int, path: Path) -> None:
    """Write the vectors and lengths of all groups of a document, as ``aligner_peers`` reads them."""
    arrays = {}
    for side, sentences in (("source", document.source), ("target", document.target)):
        by_size = []
        for size in range(1, max_size):
            padding = [PAD] * (size - 1)
            joined = [" ".join(sentences[start : start + size]) for start in range(len(sentences) - size + 1)]
            by_size.append((padding + joined)[: len(sentences)])
        arrays[side] = np.array([vectors.of(texts) for texts in by_size], dtype=np.float32)
        arrays[f"{side}_bytes"] = np.array([[len(text.encode()) for text in texts] for texts in by_size])
    np.savez(path, **arrays)


def align_by_peer(python: str, peer: str, folder: Path, max_size: int) -> tuple[Groups | None, str]:
    """Return the groups that a peer finds, and its version; ``None`` and the reason if it is not there."""
    script = Path(__file__).with_name("aligner_peers.py")
    command = [python, "-I", str(script), peer, str(folder), str(max_size)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{peer} failed:\n{ran.stderr[-2000:]}")
    answer = json.loads(ran.stdout.splitlines()[-1])
    if "missing" in answer:
        return None, f"not installed in the environment of {python}: {answer['missing']}"
    groups: Groups = {}
    for name, found in answer["groups"].items():
        groups[name] = [(tuple(source), tuple(target)) for source, target in found]
    return groups, answer["version"]


def score(documents: Sequence[Document], groups: Groups) -> dict[str, dict[str, float]]:
    from st_xling.evaluation.alignment import document_scores

    return document_scores([groups[document.name] for document in documents], [document.gold for document in documents])


def rows_of_table(documents: Sequence[Document]) -> dict[str, list[Document]]:
    """Return the documents of each row: of each language, of all technical documents, and of Text+Berg."""
    rows: dict[str, list[Document]] = {}
    for document in sorted(documents, key=lambda document: document.label):
        rows.setdefault(document.label, []).append(document)
    technical = [document for document in documents if document.name not in TEXT_BERG]
    all_of_them = {f"all {len(technical)} documents": technical}
    text_berg = {label: rows.pop(label) for label in list(rows) if label.startswith("Text+Berg")}
    return {**rows, **all_of_them, **text_berg}


def print_table(table: dict[str, dict[str, Any]], aligners: Sequence[str]) -> None:
    """Print precision, recall and F1 of each row and aligner in percent."""
    heads = [f"{kind} {rate}" for kind in KINDS for rate in ("P", "R", "F1")]
    print(f"| documents | aligner | {' | '.join(heads)} |\n{'| --- ' * (2 + len(heads))}|")
    for label, scores in table.items():
        for aligner in aligners:
            cells = [f"{100 * scores[aligner][kind][rate]:.1f}" for kind in KINDS for rate in RATES]
            print(f"| {label} | {aligner} | {' | '.join(cells)} |")
    print()


def measure(
    run: Run,
    *,
    max_size: int = 5,
    model: str | None = None,
    prompt: str = "query: ",
    dtype: str = "float32",
    peers: str | None = None,
    vectors: str | None = None,
    table: str | None = None,
    lines_alone: bool = False,
    cross_validate: bool = False,
) -> Iterator[Ratio]:
    from st_xling._version import __version__
    from st_xling.mining.documents import overlap_texts
    from st_xling.models import load_encoder, tiny_encoder
    from st_xling.utils.signature import sha8

    documents = [quick_document()] if run.quick else list(read_documents(data_folder()))
    if lines_alone:
        documents = [with_lines_alone(document) for document in documents]
    overlaps = [
        overlap_texts(lines, max_size) for document in documents for lines in (document.source, document.target)
    ]
    texts = list(dict.fromkeys([PAD, *chain.from_iterable(overlaps)]))
    saved = Path(vectors) if vectors else None
    encoder: Any = None
    if run.quick:
        encoder = tiny_encoder(texts[:60], vocabulary=300, hidden_size=32, layers=1)
    elif saved is None or not saved.is_file():
        encoder = load_encoder(encoder_folder(model), device="cpu", dtype=dtype)
    log(f"{len(documents)} documents, {len(texts):,} groups")
    group_vectors = Vectors(texts, embed(encoder, texts, prompt, saved))

    groups: dict[str, Groups] = {"st-xling": {}}
    versions = {"st-xling": __version__}
    encoded = 0
    for document in documents:
        groups["st-xling"][document.name], count = align(document, group_vectors, max_size)
        encoded += count
    sentences = sum(len(document.source) + len(document.target) for document in documents)
    log(f"st-xling encodes {encoded:,} texts for {sentences:,} sentences")
    missing = dict.fromkeys(PEERS, "name the Python of its environment (--peers)")
    if peers:
        with tempfile.TemporaryDirectory() as temporary:
            for document in documents:
                write_vectors(document, group_vectors, max_size, Path(temporary, f"{document.name}.npz"))
            for peer in PEERS:
                found, version_or_reason = align_by_peer(peers, peer, Path(temporary), max_size)
                if found is None:
                    missing[peer] = version_or_reason
                else:
                    del missing[peer]
                    groups[peer] = found
                    versions[peer] = version_or_reason

    scores: dict[str, dict[str, Any]] = {}
    for label, rows in rows_of_table(documents).items():
        scores[label] = {aligner: score(rows, found) for aligner, found in groups.items()}
    print_table(scores, list(groups))
    gold = sha8([[document.name, document.source, document.target, document.gold] for document in documents])
    encoder_name = Path(model or os.environ.get("ST_XLING_E5", "")).name
    tools = "|".join(f"{name}:{version}" for name, version in versions.items())
    encoded_by = f"encoder:{encoder_name}|prompt:{prompt!r}|dtype:{dtype}"
    signature = f"aligners|documents:{gold}|max_size:{max_size}|{encoded_by}|{tools}"
    print(f"{signature}\n")
    if table:
        by_document = {}
        for document in documents:
            by_document[document.name] = {aligner: score([document], found) for aligner, found in groups.items()}
        content = {"signature": signature, "rows": scores, "documents": by_document}
        Path(table).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    if cross_validate:
        rates = cross_validated(documents, group_vectors, max_size)
        print(f"cross-validated: strict F1 {rates['strict']['f1']:.3f}, lax F1 {rates['lax']['f1']:.3f}\n")
    for peer in PEERS:
        if peer in missing:
            yield Ratio(f"{peer}: F1", peer, [], note=f"skipped: {missing[peer]}")
            continue
        for label, aligners in scores.items():
            for kind in KINDS:
                f1, peer_f1 = aligners["st-xling"][kind]["f1"], aligners[peer][kind]["f1"]
                # Not worse by more than a point.
                least = (peer_f1 - POINT) / max(peer_f1, POINT)
                yield Ratio(f"{label}, {peer}: {kind} F1", "its F1", f1 / max(peer_f1, POINT), at_least=least)


if __name__ == "__main__":
    main(measure, quick={"prompt": ""})
