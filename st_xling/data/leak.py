"""Leak check: does the training data hold the text that a model is evaluated by?"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from st_xling._version import __version__
from st_xling.data.pairs import PairSets
from st_xling.data.read import load_data_specs
from st_xling.data.retrieval.retrieval_set import load_retrieval_specs
from st_xling.data.spec import split_spec, unique_name
from st_xling.data.test_sets import read_bucc, read_tatoeba
from st_xling.data.texts_by_language import load_texts
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.tables import format_table
from st_xling.utils.terminal import progress_bar
from st_xling.utils.text import home_path, plain_or_packed, unpacked_ending, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.text_cells import Hashes

logger = logging.getLogger(__name__)

Texts: TypeAlias = "Dataset | IterableDataset | tuple[Iterable[str], Iterable[str]] | Iterable[str]"
"""Pairs (a data set with ``source`` and ``target``, or two aligned lists), or sentences of one language."""

BATCH_ROWS = 10_000
SHOWN_EXAMPLES = 5

TRAINING = "training"
EVALUATION = "evaluation"
"""Names of single sets in a report."""


class SideLeak(NamedTuple):
    """Overlap of one side of an evaluation set with the training data.

    Attributes:
        rows: Sentences (or pairs) of the evaluation set, repetitions included.
        leaked: Of these, in the training data.
    """

    rows: int
    leaked: int

    @property
    def share(self) -> float:
        """Leaked rows by all rows, in [0, 1]."""
        return self.leaked / self.rows

    def __str__(self) -> str:
        return f"{self.leaked:,} ({100 * self.share:.1f} %)"


@dataclass(frozen=True)
class LeakReport:
    """Texts that training and evaluation data share.

    Attributes:
        sets: Evaluation set → side (``"source"``, ``"target"`` and ``"pair"``, both sides in one training row; or
            ``"text"``) → how much of it.
        train_rows: Training set → its rows.
        leaked_rows: Training set → its rows, counted from 0, of which a side is in an evaluation set. Ascending.
        examples: The first few of these, as text.
        signature: What was compared, and how.
        dropped: The leaked rows were dropped from the training data.
    """

    sets: dict[str, dict[str, SideLeak]]
    train_rows: dict[str, int]
    leaked_rows: dict[str, Sequence[int]] = field(repr=False)
    examples: Sequence[str]
    signature: str
    dropped: bool = False

    @property
    def leaking(self) -> list[str]:
        """Names of the evaluation sets of which the training data hold anything."""
        return [name for name, sides in self.sets.items() if any(side.leaked for side in sides.values())]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the rows, for JSON."""
        sets: dict[str, dict[str, Any]] = {}
        for name, sides in self.sets.items():
            sets[name] = {kind: {**side._asdict(), "share": round(side.share, 6)} for kind, side in sides.items()}
        train = {name: {"rows": rows, "leaked": len(self.leaked_rows[name])} for name, rows in self.train_rows.items()}
        return {"sets": sets, "train": train, "dropped": self.dropped, "signature": self.signature}

    def table(self) -> str:
        """Return one line for each evaluation set that leaks, examples, and what it means for the training rows."""
        rows = []
        for name in self.leaking:
            sides = self.sets[name]
            first = next(iter(sides.values()))  # the source, or sentences of one language
            rows.append([name, first.rows, first, sides.get("target"), sides.get("pair")])
        lines = [f"text in both training and evaluation data: {len(rows)} of {len(self.sets)} evaluation sets"]
        if rows:
            lines.append(format_table(("evaluation set", "rows", "source", "target", "both"), rows))
            lines += [f"  e.g. {example}" for example in self.examples]
        done = "dropped" if self.dropped else "in question"
        for name, leaked in self.leaked_rows.items():
            if leaked:
                lines.append(f"{name}: {len(leaked):,} of {self.train_rows[name]:,} training rows {done}")
        return "\n".join([*lines, self.signature])


class LeakError(ValueError):
    """Training and evaluation data share text, and that was not to be."""


def leaks(
    train: Texts | Mapping[str, Texts], evaluation: Texts | Mapping[str, Texts], *, progress: bool = False
) -> LeakReport:
    """Find the sentences of the evaluation sets that occur, on either side, in the training sets.

    Two texts are the same if their :func:`~st_xling.data.text_cells.leak_key` is: NFKC, case folded, letters, marks
    and numbers only. Near duplicates are not found. The evaluation sets' 64-bit hashes are held in memory, the training
    text is read once, in batches; some chance match has a probability of (training x evaluation texts) / 2^64.

    Args:
        train: Pairs or sentences, or name → these. A single set is called ``training`` in the report.
        evaluation: Pairs or sentences, or name → these; a single set is called ``evaluation``. A pair counts as leaked
            when one training row has both its sides.
        progress: Show a bar on stderr, once it has taken two seconds.

    Returns:
        How much is shared, the signature of the check, and the training rows in question.

    Raises:
        ValueError: If there is no training or evaluation set, or an empty one; a data set without ``source`` and
            ``target``; a path or a spec in place of text.

    Example:
        >>> report = leaks({"de-en": (["Hallo!"], ["Hello!"])}, {"dev": ["HELLO", "Bye"]})
        >>> report.sets["dev"]["text"].leaked
        1
    """
    import numpy as np

    from st_xling.data.text_cells import NORMALISATION, find_sorted, text_hashes

    train = _by_name(train, TRAINING)
    evaluation = _by_name(evaluation, EVALUATION)
    if not train or not evaluation:
        raise ValueError(f"expected training and evaluation sets, got {len(train)} and {len(evaluation)}; name both.")
    evaluation_digest = hashlib.sha256()
    evaluation_hashes = _hash_evaluation(evaluation, evaluation_digest)
    # Sentences are looked for on either side. Hashes of pairs are other numbers, so that one list has both.
    all_hashes: list[Hashes] = []
    for sides in evaluation_hashes.values():
        all_hashes += sides.values()
    wanted = np.unique(np.concatenate(all_hashes))

    # The training text, read once.
    train_digest = hashlib.sha256()
    matches = [wanted[:0]]
    train_rows: dict[str, int] = {}
    leaked_rows: dict[str, Sequence[int]] = {}
    examples: list[str] = []
    with progress_bar(desc="leak check", unit="rows", delay=2, show=progress) as bar:
        for name, texts in train.items():
            rows = 0
            leaked: list[int] = []
            for batch in _column_batches(texts):
                is_leaked = np.zeros(len(batch[0]), bool)
                for hashes in _name_sides(list(map(text_hashes, batch)), train_digest).values():
                    _, is_wanted = find_sorted(wanted, hashes)
                    matches.append(np.unique(hashes[is_wanted]))
                    is_leaked |= is_wanted
                batch_rows = np.flatnonzero(is_leaked).tolist()
                for row in batch_rows[: SHOWN_EXAMPLES - len(examples)]:
                    examples.append(f"{name} row {rows + row + 1}: {batch[0][row][:70]}")
                leaked += [rows + row for row in batch_rows]
                rows += len(is_leaked)
                bar.update(len(is_leaked))
            if rows == 0:
                raise ValueError(f"training set {name!r} has no sentences; check its file, or leave it out.")
            train_rows[name] = rows
            leaked_rows[name] = leaked

    shared = np.concatenate(matches)
    sets: dict[str, dict[str, SideLeak]] = {}
    for name, sides in evaluation_hashes.items():
        sets[name] = {}
        for side, hashes in sides.items():
            sets[name][side] = SideLeak(len(hashes), int(np.isin(hashes, shared).sum()))
    signature = (
        f"leak|key:{NORMALISATION}|match:exact|train:{_short_list(train)}@{train_digest.hexdigest()[:8]}"
        f"|data:{_short_list(evaluation)}@{evaluation_digest.hexdigest()[:8]}|st-xling:{__version__}"
    )
    return LeakReport(sets, train_rows, leaked_rows, examples, signature)


def _hash_evaluation(evaluation: Mapping[str, Any], digest: Any) -> dict[str, dict[str, Hashes]]:
    """Return name → side → hashes of the evaluation sets, and add these to the digest."""
    import numpy as np

    from st_xling.data.text_cells import text_hashes

    hashes_by_name = {}
    for name, texts in evaluation.items():
        batches = [list(map(text_hashes, batch)) for batch in _column_batches(texts)]
        if not batches:
            raise ValueError(f"evaluation set {name!r} has no sentences; check its file, or leave it out.")
        columns = [np.concatenate(column_batches) for column_batches in zip(*batches)]
        hashes_by_name[name] = _name_sides(columns, digest)
    return hashes_by_name


def _name_sides(hashes: Sequence[Hashes], digest: Any) -> dict[str, Hashes]:
    """Name the hashes of one column or two, and add them to the digest; of two also return those of the pairs."""
    from st_xling.data.text_cells import pair_hashes

    for column in hashes:
        digest.update(column.astype("<u8").tobytes())
    if len(hashes) == 1:
        return {"text": hashes[0]}
    return {"source": hashes[0], "target": hashes[1], "pair": pair_hashes(*hashes)}


def drop_leaks(
    train: PairSets, against: LeakReport | Texts | Mapping[str, Texts], *, progress: bool = False
) -> PairSets:
    """Drop the training rows of which a side is in the evaluation data.

    What evaluates the model stays as it is. The number of dropped rows is logged.

    Args:
        train: A data set or a stream of pairs, or name → these.
        against: Evaluation data as :func:`leaks` takes them, such as from :func:`load_evaluation_specs`; or the report
            of :func:`leaks` on the same training data.
        progress: Show a bar on stderr, once it has taken two seconds.

    Returns:
        The other rows, in their order: a data set or a stream, or name → these, as ``train`` is.

    Raises:
        TypeError: ``train`` is no data set.
        ValueError: If nothing of a data set would be left; else as :func:`leaks`.

    Example:
        >>> from datasets import Dataset
        >>> pairs = Dataset.from_dict({"source": ["Hallo!", "Ja."], "target": ["Hello!", "Yes."]})
        >>> drop_leaks(pairs, ["HELLO", "Bye"])["target"][:]
        ['Yes.']
    """
    by_name = _by_name(train, TRAINING)
    for name, dataset in by_name.items():
        if not hasattr(dataset, "select_columns"):
            raise TypeError(
                f"rows are dropped from data sets: got {type(dataset).__name__} for {name!r}; wrap lists by "
                "Dataset.from_dict."
            )
    report = against if isinstance(against, LeakReport) else leaks(by_name, against, progress=progress)
    if unknown := [name for name in by_name if name not in report.train_rows]:
        raise ValueError(
            f"the leak report must be of these training data: got one of {', '.join(report.train_rows)}, without "
            f"{', '.join(unknown)}; make it anew, by leaks()."
        )
    kept: dict[str, Any] = {}
    for name, dataset in by_name.items():
        rows = report.train_rows[name]
        leaked = set(report.leaked_rows[name])
        if len(leaked) == rows:
            raise ValueError(
                f"every row of {name!r} has a side in the evaluation data: nothing is left to train on; check that it "
                "is not the evaluation set itself, or leave it out."
            )
        if not leaked:
            kept[name] = dataset
            continue
        logger.info("%s: %s of %s rows dropped, which are in evaluation data", name, f"{len(leaked):,}", f"{rows:,}")
        if hasattr(dataset, "select"):
            kept[name] = dataset.select([row for row in range(rows) if row not in leaked])
        else:  # a stream
            kept[name] = dataset.filter(lambda _, row, leaked=leaked: row not in leaked, with_indices=True)
    result: Any = kept if isinstance(train, Mapping) else kept[TRAINING]
    return result


def _by_name(texts: Any, name: str) -> Mapping[str, Any]:
    """Return texts by name: those of a single set under ``name``."""
    if isinstance(texts, (str, Path)):
        raise ValueError(
            f"expected text to compare, got {str(texts)!r}; read it first, such as by load_evaluation_specs([…])."
        )
    return texts if isinstance(texts, Mapping) else {name: texts}


def refuse_leaks(report: LeakReport) -> None:
    """Raise :class:`LeakError` if anything is shared."""
    if report.leaking:
        listed = ", ".join(report.leaking[:4])
        if len(report.leaking) > 4:
            listed += ", …"
        raise LeakError(
            f"training data must not hold evaluation text: {len(report.leaking)} of {len(report.sets)} evaluation sets "
            f"share some ({listed}); drop the training rows in question, or evaluate by other text."
        )


def _column_batches(texts: Any) -> Iterator[list[list[str]]]:
    """Yield batches of one column of sentences, or of two aligned ones."""
    if hasattr(texts, "select_columns"):
        names = texts.column_names  # None: of a stream that does not know them
        if names is not None and not {"source", "target"} <= set(names):
            raise ValueError(
                f"the leak check reads the columns source and target: got {', '.join(names) or 'none'}; rename them: "
                "dataset.rename_columns({…}), or pass the texts of one language as a list."
            )
        for batch in texts.select_columns(["source", "target"]).with_format(None).iter(batch_size=BATCH_ROWS):
            yield [batch["source"], batch["target"]]
        return
    has_two = isinstance(texts, (tuple, list)) and len(texts) == 2
    is_aligned = has_two and not any(isinstance(side, str) for side in texts)  # two lists, not two sentences
    columns = [iter(side) for side in texts] if is_aligned else [iter(texts)]
    while any(batch := [list(islice(column, BATCH_ROWS)) for column in columns]):
        yield batch


def _short_list(names: Iterable[str]) -> str:
    listed = list(names)
    return ",".join(listed) if len(listed) <= 4 else f"{listed[0]}+{len(listed) - 1}"


def load_evaluation_specs(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Texts]:
    """Load the texts of all evaluation sets that the specs name.

    Args:
        specs: Each a folder of ``tatoeba.xxx-eng.xxx`` files; a prefix of BUCC files (``zh-en.test``, next to
            ``zh-en.test.gold``), or a folder of such; ``xx=DIR`` or ``xx=phrasebook``, a retrieval set, of which the
            queries are read; a ``.txt`` file (also packed), one sentence a line, or ``xx=FILE``, text of one language;
            or what ``--data`` takes. Of a phrasebook the test split is read where the spec names none.
        skip_bad_lines: Drop faulty lines of pair files, with a warning, instead of raising.

    Returns:
        Name → pairs, or sentences of one language. Each side of a BUCC set is one of its own, as are its gold pairs.

    Raises:
        ValueError: For a malformed spec, or faulty lines; as ``load_data_specs``, ``read_tatoeba`` and ``read_bucc``.
        FileNotFoundError: If nothing is there.
    """
    loaded: dict[str, Texts] = {}
    for spec in specs:
        for name, texts in _load_evaluation_spec(spec, skip_bad_lines=skip_bad_lines).items():
            loaded[unique_name(name, loaded)] = texts
    return loaded


def _load_evaluation_spec(spec: str, *, skip_bad_lines: bool) -> Mapping[str, Texts]:
    """Load the texts that one spec names, by the first layout that fits."""
    parsed = split_spec(spec)
    path = home_path(parsed.location)
    is_named = len(parsed.languages) == 1
    if path.is_dir() and any(path.glob("tatoeba.*-eng.*")):
        return {f"tatoeba {code}": pairs for code, pairs in read_tatoeba(path).items()}
    if gold_files := _gold_files(path):
        texts: dict[str, Texts] = {}
        for gold_file in gold_files:
            texts |= _bucc_texts(gold_file)
        return texts
    if is_named and (parsed.is_phrasebook or path.is_dir()):
        (retrieval_set,) = load_retrieval_specs([spec])
        queries = retrieval_set.queries.items()
        return {f"{retrieval_set.language}, queries {code}": list(texts.values()) for code, texts in queries}
    is_text = is_named or unpacked_ending(path) == ".txt"
    if path.is_file() and len(parsed.languages) < 2 and is_text:
        named_spec = spec if is_named else f"{UNKNOWN}={spec}"
        text = load_texts(named_spec, skip_bad_lines=skip_bad_lines)
        return {Path(unpacked_name(path)).stem: text["source"][:]}
    return load_data_specs([spec], split="test", skip_bad_lines=skip_bad_lines, every_label=True)


def _gold_files(path: Path) -> list[Path]:
    """Return the gold files of a folder, or the one of a prefix."""
    if path.is_dir():
        return sorted(gold for gold in path.rglob("*-*.gold*") if unpacked_name(gold).endswith(".gold"))
    return list(filter(Path.is_file, [plain_or_packed(path.with_name(f"{path.name}.gold"))]))


def _bucc_texts(gold: Path) -> dict[str, Texts]:
    prefix = unpacked_name(gold).removesuffix(".gold")
    corpus = read_bucc(gold.with_name(prefix))
    texts: dict[str, Texts] = {
        f"{prefix} {corpus.source_language}": corpus.source,
        f"{prefix} {corpus.target_language}": corpus.target,
    }
    if corpus.gold:
        sources = dict(zip(corpus.source_ids, corpus.source))
        targets = dict(zip(corpus.target_ids, corpus.target))
        gold_sources = [sources[source_id] for source_id, _ in corpus.gold]
        gold_targets = [targets[target_id] for _, target_id in corpus.gold]
        texts[f"{prefix} gold"] = (gold_sources, gold_targets)
    return texts
