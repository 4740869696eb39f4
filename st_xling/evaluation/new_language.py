"""Add a language to an encoder: look how it is read, grow the vocabulary, train, and test what became of the others."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from datasets import Dataset, concatenate_datasets
from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data import load_data_specs
from st_xling.data.holdout import FEWEST_PAIRS, hold_out
from st_xling.evaluation.compare import ComparisonData, compare_models, load_comparison_data
from st_xling.evaluation.compare.run import ModelSpec
from st_xling.evaluation.compare.statistics import MEAN
from st_xling.evaluation.tatoeba import TatoebaEvaluator
from st_xling.models import load_encoder
from st_xling.models.grow import check_can_grow, grow_vocabulary
from st_xling.models.merge import merge_encoders
from st_xling.models.sidecar import card_terms, model_fingerprint, model_folder, write_model
from st_xling.models.tokenization import MOST_TEXTS, TokenizationReport, compare_tokenization
from st_xling.models.view import EncoderLoadingOptions, model_options
from st_xling.models.vocabulary import Vocabulary
from st_xling.training.encoder import train
from st_xling.training.new_rows import rows_recipe, train_new_rows
from st_xling.training.recipe import Recipe, load_recipe
from st_xling.training.replay import load_kept_texts
from st_xling.training.run_folder import RunFolder, is_complete, save_folder
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.languages import canonical_language, match_language, short_code
from st_xling.utils.options import check_installed
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

TrainedWeights = Literal["rows", "all"]

#: Names of the two models in the comparison.
BEFORE = "before"
AFTER = "after"

#: Share of the last training in the weights, where it has pairs of the new language alone.
MERGED_SHARE = 0.4

_GROWTH = "growth.json"


@dataclass(frozen=True)
class AddingOptions:
    """How a language is added.

    Attributes:
        pieces: Number of pieces to learn for a language that the tokenizer cannot read; 0: none.
        min_count: Drop learned pieces that the text uses less often.
        train: ``"rows"``: the rows of new pieces alone, so that no other text is read differently; ``"all"``: then all
            weights. ``None``: ``"all"`` if there is text of the old languages, or no pieces are added.
        recipe: Recipe that trains all weights on the pairs, next to replayed text.
        merge: Share of the weights that this training gives; the rest is of those before it. 1: they stay as trained.
            ``None``: 1 next to pairs of old languages, and 0.4 without.
        rows_settings: Settings of the recipe of new rows, dotted key → value.
        settings: Settings of ``recipe``, likewise.

    Example:
        >>> how = AddingOptions(min_count=2)
        >>> how.trains_all(grows=True, old_text=False), how.trains_all(grows=True, old_text=True)
        (False, True)
        >>> how.merged_share(old_pairs=False)
        0.4
    """

    pieces: int = 8000
    min_count: int = 3
    train: TrainedWeights | None = None
    recipe: str = "realign"
    merge: float | None = None
    rows_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def trains_all(self, *, grows: bool, old_text: bool) -> bool:
        """Return whether all weights are trained.

        Args:
            grows: Pieces are added.
            old_text: There are pairs of old languages to train on, or text on which the model stays close to what it
                was.
        """
        if self.train is None:
            return old_text or not grows
        return self.train == "all"

    def merged_share(self, *, old_pairs: bool) -> float:
        """Return the share of the weights that the training of all of them gives.

        Args:
            old_pairs: It has pairs of old languages. Without them, a model fits the new ones too closely.
        """
        if self.merge is not None:
            return self.merge
        return 1.0 if old_pairs else MERGED_SHARE


@dataclass(frozen=True)
class AddedLanguage:
    """Result of :func:`add_language`.

    Attributes:
        content: ``results.json["add-language"]``: the source, its license and base model; the language; under
            ``tokenization`` how it is read, before and after; ``pieces`` that were added, and their ``origins``;
            ``stages`` of training; ``accuracy``, a row a language; signature and command.

    Example:
        >>> row = {"language": "am-en", "before": 0.02, "after": 0.75, "difference": 0.73, "interval": (0.68, 0.78)}
        >>> added = AddedLanguage({"accuracy": [{**row, "p": 0.0001, "is_mean": False}], "signature": "tatoeba|…"})
        >>> print(added.table())
        accuracy, %  before  after            difference      p
        am-en           2.0   75.0  +73.0 (+68.0 to +78.0)  0.000
        tatoeba|…
    """

    content: dict[str, Any]

    def table(self) -> str:
        """Format accuracy before and after as plain text."""
        return "\n".join([accuracy_table(self.content["accuracy"]), self.content["signature"]])


def accuracy_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format the accuracy of languages before and after, in percent, with tested differences."""
    cells = []
    for row in rows:
        low, high = row["interval"]
        cells.append(
            [
                row["language"],
                100 * row["before"],
                100 * row["after"],
                f"{100 * row['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})",
                f"{row['p']:.3f}",
            ]
        )
    summary = sum(row["is_mean"] for row in rows)
    return format_table(["accuracy, %", "before", "after", "difference", "p"], cells, summary=summary)


@dataclass(frozen=True)
class NewLanguagePairs:
    """Pairs of a new language, its sentences first, and text to test by.

    Attributes:
        language: Code of the language, as the user spells it.
        train: Pairs to learn from.
        dev: Pairs to choose checkpoints by; empty if there are too few.
        test: Test text of the new language and of others.
    """

    language: str
    train: Dataset
    dev: Dataset
    test: ComparisonData

    @property
    def test_code(self) -> str:
        """Code of the language in the test text."""
        return canonical_language(self.language)


def read_new_language(
    language: str, data: Sequence[str], evaluate_on: Sequence[str], *, skip_bad_lines: bool = False
) -> NewLanguagePairs:
    """Read the pairs of a new language, and the test text.

    Args:
        language: Code of the language.
        data: Specs of parallel text, of the language and one that the model reads.
        evaluate_on: Specs of test text of the new language and of others, each with English. Empty: pairs of the new
            language that are held out of ``data``.
        skip_bad_lines: Skip faulty lines, with a warning.

    Raises:
        ValueError: Pairs without the language, or too few.
        FileNotFoundError: A path that does not exist.
    """
    parts = load_data_specs(data, skip_bad_lines=skip_bad_lines, identify=True)
    pairs = concatenate_datasets([_put_first(language, name, part) for name, part in parts.items()])
    train_pairs, dev = hold_out(pairs, fewest=FEWEST_PAIRS)
    if evaluate_on:
        test = load_comparison_data(evaluate_on)
    elif len(dev):
        sides = (dev["source"][:], dev["target"][:])
        test = ComparisonData(pairs={canonical_language(language): sides}, name="held-out")
    else:
        raise ValueError(
            f"the language needs text to be tested on: got {len(pairs):,} pairs of {language}, too few to hold some "
            "out; give test text (--eval), or more pairs."
        )
    if canonical_language(language) not in test.pairs:
        raise ValueError(
            f"test text of {language} is needed: got {', '.join(test.pairs) or 'none'}; add some with --eval."
        )
    return NewLanguagePairs(language, train_pairs, dev, test)


def read_old_pairs(
    language: str, data: Sequence[str], *, most: int, seed: int = 0, skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Read pairs of languages that the model reads already, a like number of each.

    Args:
        language: Code of the new language, which they do not have.
        data: Specs of parallel text; none give no pairs.
        most: Maximum number of pairs in all, such as there are of the new language; at least one of each.
        seed: Seed of the pairs that are drawn.
        skip_bad_lines: Skip faulty lines, with a warning.

    Returns:
        Name of the pair of languages → pairs.

    Raises:
        ValueError: Pairs of the new language.
        FileNotFoundError: A path that does not exist.
    """
    if not data:
        return {}
    parts = load_data_specs(data, skip_bad_lines=skip_bad_lines, identify=True)
    drawn: dict[str, Dataset] = {}
    for name, pairs in parts.items():
        codes = {*pairs.unique("source_language"), *pairs.unique("target_language")}
        if any(match_language(code, [language]) for code in codes):
            raise ValueError(f"pairs of old languages are needed: got {name}; those of {language} belong to --data.")
        size = min(len(pairs), max(1, most // len(parts)))
        drawn[name] = pairs.shuffle(seed=seed).select(range(size))
    return drawn


def _put_first(language: str, name: str, pairs: Dataset) -> Dataset:
    """Exchange the sides of pairs whose second is in the new language."""
    columns = {"source": "target", "target": "source"}
    columns |= {f"{old}_language": f"{new}_language" for old, new in columns.items()}
    sides = [set(pairs.unique(f"{side}_language")) for side in ("source", "target")]
    matches = [all(match_language(code, [language]) for code in codes) for codes in sides]
    if matches == [False, True]:
        # By way of other names: the new ones are taken until the old ones are gone.
        pairs = pairs.rename_columns({old: f"_{old}" for old in columns})
        return pairs.rename_columns({f"_{old}": new for old, new in columns.items()})
    if matches != [True, False]:
        raise ValueError(
            f"pairs of {language} and another language are needed: got {name} with {sorted(sides[0])} and "
            f"{sorted(sides[1])}; name the languages before the file, as in {language}-en=PATH."
        )
    return pairs


def diagnose_language(model: SentenceTransformer, pairs: NewLanguagePairs) -> TokenizationReport:
    """Compare how a model's tokenizer reads the new language with how it reads the others of the test text.

    Args:
        model: An encoder on a transformer with a fast tokenizer.
        pairs: From :func:`read_new_language`.
    """
    new = (pairs.train["source"][:], pairs.train["target"][:])
    texts = {pairs.language: new}
    for code, sides in pairs.test.pairs.items():
        if code != pairs.test_code:
            texts[code] = sides
    return compare_tokenization(model.tokenizer, pairs.language, texts)


def sign_diagnosis(model: SentenceTransformer, pairs: NewLanguagePairs) -> str:
    """Return the signature of :func:`diagnose_language`."""
    data = sha8([pairs.train["source"][:], pairs.train["target"][:], pairs.test.sha8["pairs"]])
    return sign("tokenization", language=pairs.language, texts=MOST_TEXTS, model=model_options(model), data=data)


def add_language(
    model: str,
    language: str,
    data: Sequence[str],
    out: str | Path,
    *,
    old_data: Sequence[str] = (),
    keep_like: Sequence[str] = (),
    evaluate_on: Sequence[str] = (),
    how: AddingOptions = AddingOptions(),
    skip_bad_lines: bool = False,
    overwrite: bool = False,
    cache: str | Path | None = None,
    batch_size: int | None = None,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Unpack[EncoderLoadingOptions],
) -> AddedLanguage:
    """Add a language to an encoder, test it and the others before and after, and save a stock model.

    Each stage is kept in ``out/training/stages``, from which the same call resumes:

    1. ``start``: the model, with new pieces if its tokenizer cannot read the language
       (:func:`~st_xling.models.grow.grow_vocabulary`);
    2. ``rows``: the rows of these pieces are trained, all else frozen
       (:func:`~st_xling.training.new_rows.train_new_rows`);
    3. ``all``: all weights are trained, on pairs of ``old_data`` besides the new ones, and next to text of
       ``keep_like``, on which the model shall stay as it was; by default only with either of them, or if no
       pieces were added;
    4. ``merged``: these weights are mixed with those before, at the share ``how.merge``
       (:func:`~st_xling.models.merge_encoders`); by default only without ``old_data``;
    5. ``comparison``: accuracy of translation retrieval before and after, with paired tests.

    Args:
        model: Hub id or folder, which is not changed.
        language: Code of the new language.
        data: Specs of parallel text, of the language and one that the model reads.
        out: Folder of the new model.
        old_data: Specs of parallel text of languages that the model reads already, which it learns besides the new
            pairs: at most as many, see :func:`read_old_pairs`.
        keep_like: Specs of text of the old languages, see :func:`~st_xling.training.load_kept_texts`.
        evaluate_on: Specs of test text of the new language and of others, each with English; see
            :func:`read_new_language`.
        how: How it is added.
        skip_bad_lines: Skip faulty lines, with a warning.
        overwrite: Replace an earlier model of this kind in ``out``.
        cache: Folder of the vectors that are learned from; ``None``: one next to downloaded models.
        batch_size: Maximum batch size of the evaluation; chosen for the device by default.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the folder of the new model before it is moved to its place, such as to write the card.
        options: See :func:`~st_xling.models.load_encoder`.

    Raises:
        ValueError: Pairs without the language, no test text of it, nothing that could be trained, ``old_data`` where
            only rows are, a folder that may not be written to.
        TrainingInterrupted: Ctrl-C.

    Example:
        >>> from st_xling.data.phrasebook import phrase_sentences
        >>> from st_xling.models import tiny_encoder
        >>> english = phrase_sentences("en", size=100)
        >>> tiny_encoder(english, vocabulary=200, hidden_size=16).save_pretrained("english")
        >>> how = AddingOptions(min_count=1, rows_settings={"arguments.max_steps": 2})
        >>> tests = ["phrasebook:de,zh?split=test&size=10"]
        >>> added = add_language("english", "zh", ["phrasebook:zh?size=60"], "both", evaluate_on=tests, how=how)
        >>> [*added.content["stages"]], added.content["pieces"] > 0
        (['rows'], True)
    """
    share = how.merged_share(old_pairs=bool(old_data))
    if not 0 < share <= 1:
        raise ValueError(f"--merge must be above 0, and 1 at most: got {share}.")
    if old_data and how.train == "rows":
        raise ValueError(
            f"pairs of old languages are for the training of all weights: got --old-data {old_data[0]} with "
            "--train rows; leave out one of both."
        )
    recipe_of_rows = rows_recipe(how.rows_settings)
    recipe = load_recipe(how.recipe, overrides=dict(how.settings))
    with model_folder(out, model, "add-language", overwrite=overwrite) as folder:
        pairs = read_new_language(language, data, evaluate_on, skip_bad_lines=skip_bad_lines)
        old_pairs = read_old_pairs(
            language, old_data, most=len(pairs.train), seed=recipe.arguments.seed, skip_bad_lines=skip_bad_lines
        )
        kept_texts = load_kept_texts(keep_like, skip_bad_lines=skip_bad_lines)
        encoder = load_encoder(model, **options)
        report = diagnose_language(encoder, pairs)
        logger.info("%s", report.reason)
        grows = report.needs_pieces and how.pieces > 0
        if grows:
            _check_can_grow(encoder, report, kept_texts)
        trains_all = how.trains_all(grows=grows, old_text=bool(old_pairs or kept_texts))
        if not grows and not trains_all:
            raise ValueError(
                f"only the rows of new pieces are to be trained, and there are none: {report.reason} Train all weights."
            )
        task = {
            "model": model_fingerprint(encoder),
            "language": language,
            "data": sha8([pairs.train["source"][:], pairs.train["target"][:]]),
            "test": pairs.test.sha8["pairs"],
            "old_data": sha8({name: [part["source"][:], part["target"][:]] for name, part in old_pairs.items()}),
            "keep_like": sha8(kept_texts),
            "how": dataclasses.asdict(how),
        }
        merges = trains_all and share < 1
        if merges:
            check_installed("mergekit", "merging a trained model with its start (all but --merge 1)", extra="merge")
        folder.write_record()  # so that the folder is known by it if the work is interrupted
        with _stages(folder.path / "training" / "stages", task, overwrite=overwrite) as stages:
            # A tokenizer that has the characters of the language may get more pieces of those that old text lacks.
            old_texts = None if report.is_unknown else list(itertools.chain.from_iterable(kept_texts.values()))
            growth = _make_start(stages.path, encoder, pairs, how, grows=grows, old_texts=old_texts, progress=progress)
            training = _Training(pairs, old_pairs, kept_texts, data, old_data, cache=cache, command=command)
            last = stages.path / "start"
            trained: dict[str, Any] = {}
            if grows:
                last = training.train_rows(recipe_of_rows, last, stages.path / "rows", growth, teacher=encoder)
                trained["rows"] = _training_facts(last)
            manifest_of = last
            if trains_all:
                start = last
                last = training.train_all(recipe, start, stages.path / "all")
                trained["all"] = _training_facts(last)
                manifest_of = last
                if merges:
                    last = _merge(start, last, stages.path / "merged", share)
                    trained["merged"] = {"share": share}

            specs = [ModelSpec(BEFORE, model, options), ModelSpec(AFTER, str(last))]
            comparison = compare_models(
                specs,
                pairs.test,
                tasks=["tatoeba"],
                out=stages.path / "comparison",
                batch_size=batch_size,
                show_progress_bar=progress,
            )
        result = load_encoder(str(last))
        content = _report_content(model, encoder, pairs, old_pairs, growth, trained, comparison.content)
        content["tokenization"] = {BEFORE: report.as_dict(), AFTER: diagnose_language(result, pairs).as_dict()}
        if command is not None:
            content["command"] = command
        content["version"] = __version__
        result.model_card_data.base_model = None if Path(model).is_dir() else model
        write_model(folder, result, str(manifest_of), content, complete)
        return AddedLanguage(content)


def _report_content(
    model: str,
    encoder: SentenceTransformer,
    pairs: NewLanguagePairs,
    old_pairs: Mapping[str, Dataset],
    growth: Mapping[str, Any],
    trained: Mapping[str, Any],
    comparison: Mapping[str, Any],
) -> dict[str, Any]:
    signature = sign(
        "add_language",
        language=pairs.language,
        pieces=len(growth["pieces"]),
        trained=",".join(stage for stage in trained if stage != "merged"),
        old_pairs=list(old_pairs) or None,
        merged=trained["merged"]["share"] if "merged" in trained else None,
        direction="both",
        tests="swaps,holm",
        model=model_options(encoder),
        data=f"{pairs.test.name}@{pairs.test.sha8['pairs']}",
    )
    return {
        "source": Path(model).resolve().name if Path(model).is_dir() else model,
        "source_fingerprint": model_fingerprint(encoder)[:8],
        "source_card": card_terms(model),
        "relation": "finetune",
        "language": pairs.language,
        "langs": _languages(pairs, old_pairs),
        "pieces": len(growth["pieces"]),
        "origins": growth["origins"],
        "stages": dict(trained),
        "accuracy": _accuracy_rows(comparison, pairs.test_code),
        "signature": signature,
    }


def _check_can_grow(
    encoder: SentenceTransformer, report: TokenizationReport, kept_texts: Mapping[str, Sequence[str]]
) -> None:
    if not report.is_unknown and not kept_texts:
        raise ValueError(
            f"{report.reason} Which pieces may be added depends on what the old languages use: got no text of them; "
            "give some (--keep-like), or train without new pieces (--pieces 0)."
        )
    check_can_grow(Vocabulary(encoder.tokenizer))


@contextmanager
def _stages(path: Path, task: Mapping[str, Any], *, overwrite: bool) -> Iterator[ResumableFolder]:
    """Yield the folder of the stages, which is begun for this task, or resumed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    instead = "choose another --out, or use --overwrite"
    with ResumableFolder(path, name="the folder of stages", instead=instead, owns_folder=True) as stages:
        stages.begin(task, overwrite=overwrite)
        yield stages


def _make_start(
    path: Path,
    encoder: SentenceTransformer,
    pairs: NewLanguagePairs,
    how: AddingOptions,
    *,
    grows: bool,
    old_texts: Sequence[str] | None,
    progress: bool,
) -> dict[str, Any]:
    """Save the model that training starts from, unless it is there; return its new pieces, their ids and origins."""
    start = path / "start"
    if is_complete(start):
        return read_json_object(path / _GROWTH)
    growth: dict[str, Any] = {"pieces": [], "first_id": 0, "origins": {}}
    if grows:
        grown = grow_vocabulary(
            encoder,
            pairs.train["source"][:],
            translations=pairs.train["target"][:],
            pieces=how.pieces,
            min_count=how.min_count,
            old_texts=old_texts,
            progress=progress,
        )
        encoder = grown.model
        growth = {"pieces": list(grown.pieces), "first_id": grown.first_id, "origins": dict(grown.origins)}
        logger.info("%s new pieces, which start from %s", f"{len(grown.pieces):,}", growth["origins"])
    write_json(path / _GROWTH, growth)
    save_folder(encoder, start)
    return growth


def _merge(start: Path, trained: Path, out: Path, share: float) -> Path:
    """Mix a trained model with the one that it was trained from, unless that is done, and return the folder."""
    if not is_complete(out):
        before = load_encoder(str(start), device="cpu")
        after = load_encoder(str(trained), device="cpu")
        save_folder(merge_encoders(before, after, share), out)
    return out


class _Training:
    """What the trainings of both stages have in common.

    Args:
        pairs: Pairs of the new language, and test text, which is not trained on.
        old_pairs: Pairs of old languages, which the training of all weights has besides.
        kept_texts: Text of the old languages.
        data: Specs that the pairs were read from.
        old_data: Specs that the old pairs were read from.
        cache: Folder of vectors.
        command: The command line.
    """

    def __init__(
        self,
        pairs: NewLanguagePairs,
        old_pairs: Mapping[str, Dataset],
        kept_texts: Mapping[str, Sequence[str]],
        data: Sequence[str],
        old_data: Sequence[str],
        *,
        cache: str | Path | None,
        command: str | None,
    ) -> None:
        codes = pairs.train.unique("target_language")
        other = codes[0] if len(codes) == 1 else "others"
        name = f"{pairs.language}-{other}"
        self.data = {name: pairs.train}
        self.provenance = [{"option": "data", "spec": spec, "names": [name]} for spec in data]
        self.old_pairs = old_pairs
        names_of_spec = [[old] for old in old_pairs]
        if len(old_data) != len(old_pairs):  # a phrasebook gives several
            names_of_spec = [[] for _ in old_data]
        self.old_provenance = [
            {"option": "data", "spec": spec, "names": names} for spec, names in zip(old_data, names_of_spec)
        ]
        self.evaluator = TatoebaEvaluator({pairs.language: pairs.dev}, name="dev") if len(pairs.dev) else None
        self.tests = {f"test {code}": sides for code, sides in pairs.test.pairs.items()}
        self.kept_texts = kept_texts
        self.cache = cache
        self.command = command

    def train_rows(
        self, recipe: Recipe, start: Path, out: Path, growth: Mapping[str, Any], *, teacher: SentenceTransformer
    ) -> Path:
        """Train the rows of new pieces, unless that is done, and return the folder."""
        if not _is_trained(out):
            train_new_rows(
                str(start),
                self.data,
                out,
                first=growth["first_id"],
                count=len(growth["pieces"]),
                recipe=recipe,
                teacher=teacher,
                cache=self.cache,
                evaluator=self.evaluator,
                evaluation=self.tests,
                on_leak="drop",
                resume=True,
                command=self.command,
                provenance=self.provenance,
            )
        return out

    def train_all(self, recipe: Recipe, start: Path, out: Path) -> Path:
        """Train all weights, on old pairs besides and next to old text, unless that is done, and return the folder."""
        if not self.kept_texts:
            logger.warning("no text of the old languages is replayed (--keep-like): what they can do may be lost")
        if not _is_trained(out):
            train(
                recipe,
                {**self.data, **self.old_pairs},
                out,
                model=str(start),
                keep_like=self.kept_texts,
                cache=self.cache,
                evaluator=self.evaluator,
                evaluation=self.tests,
                on_leak="drop",
                resume=True,
                command=self.command,
                provenance=[*self.provenance, *self.old_provenance],
            )
        return out


def _is_trained(folder: Path) -> bool:
    run = folder / "training" / "run.json"
    return run.is_file() and RunFolder(folder).is_finished


def _training_facts(folder: Path) -> dict[str, Any]:
    """Return the figures of a run that is finished."""
    facts: dict[str, Any] = read_json_object(folder / "results.json").get("training") or {}
    return {name: facts[name] for name in ("seconds", "steps", "best_dev") if name in facts}


def _languages(pairs: NewLanguagePairs, old_pairs: Mapping[str, Dataset]) -> list[str]:
    """Return the new language, and those that the model was tested or trained on."""
    others = [short_code(code) for code in pairs.test.pairs if code != pairs.test_code]
    for old in old_pairs.values():
        others += map(short_code, [*old.unique("source_language"), *old.unique("target_language")])
    return list(dict.fromkeys([pairs.language, *others, *pairs.train.unique("target_language")]))


def _accuracy_rows(content: Mapping[str, Any], new: str) -> list[dict[str, Any]]:
    """Return accuracy before and after: of the new language, of the others, and their mean."""
    measure = content["tasks"]["tatoeba"]["measures"][0]
    values = measure["values"]
    tests = {test["label"]: test for test in measure["comparisons"]}
    labels = [new, *(label for label in values[BEFORE] if label not in (new, MEAN))]
    if MEAN in values[BEFORE]:
        labels.append(MEAN)
    rows: list[dict[str, Any]] = []
    for label in labels:
        test = tests[label]
        # The test compares the first model with the second.
        sign_of_difference = 1.0 if test["first"] == AFTER else -1.0
        # Adding 0.0 turns -0.0 into 0.0.
        interval = sorted([sign_of_difference * test["low"] + 0.0, sign_of_difference * test["high"] + 0.0])
        rows.append(
            {
                "language": label,
                "is_mean": label == MEAN,
                "before": values[BEFORE][label][0],
                "after": values[AFTER][label][0],
                "difference": sign_of_difference * test["difference"] + 0.0,
                "interval": interval,
                "p": test["p_corrected"],
            }
        )
    return rows
