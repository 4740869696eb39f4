"""``st-xling encode``, ``mine``, ``score``, ``pairs``, ``align-documents`` and ``align-words``."""

from __future__ import annotations

import logging
import math
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_xling.cli import model_options as model_opts
from st_xling.cli import options as opts
from st_xling.cli.app import MINE, app, with_options
from st_xling.cli.model_options import EmbeddingModel, EncoderOptions, LoadOptions, embedding_model
from st_xling.cli.options import argument, flag, given, number_or, option, options_of, required, search_option
from st_xling.cli.results import file_or_stdout, output, print_report, resumable, write_results
from st_xling.cli.rules import Excludes, Given, Inapplicable, Needs, Requires
from st_xling.utils.options import AlignmentFormat, Engine, Margin, PairFormat, Retrieval, StoreDtype, TextFormat

if TYPE_CHECKING:
    from st_xling.mining import EncodingOptions, FilterOptions, FirstStageOptions, SearchOptions

logger = logging.getLogger(__name__)

FILTERS = "Filters"
TEXT = "Text and embeddings"
filter_option = partial(option, panel=FILTERS)
text_option = partial(option, panel=TEXT)
threshold_option = partial(option, panel="Threshold")
rescore_option = partial(option, panel="Cross-encoder")
RESCORE_THRESHOLD = rescore_option(
    "--rescore-threshold", "Its minimum score (default: that of a filter by train filter, else none)."
)
first_stage_option = partial(option, panel="First stage")

OPTIONAL_MODEL = option("--model MODEL", "Encoder (Hub id or folder); not needed if all embeddings are given.")
FORMAT = option("--format", "Format of the pairs (default: by the name of --out, else tsv).")
TEXT_FORMAT = option(
    "--text-format", "lines; bucc: id TAB sentence; jsonl: id and text (default: lines, without ids).", panel=TEXT
)
BATCH_SIZE = option("--batch-size", "Maximum batch size (default: chosen for the device).", panel=TEXT)
STORE_DTYPE = option("--store-dtype", "Type in which embeddings are stored (default: float32).", panel=TEXT)
ENGINE = search_option("--engine", "ray: all GPUs, or the workers of a cluster; same result (default: local).")


def filter_limit(word: str) -> tuple[str, float]:
    """Parse the limit of a filter, such as ``length_ratio=2.5``."""
    name, _, limit = word.partition("=")
    try:
        number = float(limit)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(f"expected NAME=NUMBER, such as length_ratio=2.5, got {word!r}")
    return name, number


def _nothing_is_embedded(given_options: Given) -> str:
    embeddings = {"source_embeddings", "target_embeddings"}
    if embeddings <= given_options.typed.keys() and "calibrate" not in given_options.typed:
        return "both texts have embeddings, so that nothing is embedded"
    return ""


def _lacks_vectors(given_options: Given) -> str:
    sides = [side for side in ("source", "target") if f"{side}_embeddings" not in given_options.typed]
    if "model" in given_options.typed or not sides:
        return ""
    flags = " and ".join(f"--{side}-embeddings" for side in sides)
    texts = " and the ".join(sides)
    return f"expected --model, or embeddings of both texts: got neither for the {texts}; add --model or {flags}."


def _has_whole_documents(given_options: Given) -> str:
    if given_options.values["format"] == "vecalign":
        return "--format vecalign has all groups of a document"
    return ""


EMBEDDING = (
    "prompt",
    "prompt_name",
    "layer",
    "pooling",
    "truncate_dim",
    "dtype",
    "backend",
    "batch_size",
    "store_dtype",
)
"""Options of texts that are embedded."""

FILTER_OPTIONS = ("filter_limit", "disable_filter", "rejects")

UNMEASURED = ("rescore", "calibrate", "method", "engine", "margin", "retrieval", *FILTER_OPTIONS)
"""Options of ``mine`` that ``--dry-run`` does not measure."""

SCORE_RULES = (
    Requires(("model", "source_embeddings", "target_embeddings"), _lacks_vectors),
    Inapplicable(EMBEDDING, _nothing_is_embedded),
    Needs(("rescore_threshold",), "rescore", "the cross-encoder that it is for"),
)
MINE_RULES = (
    *SCORE_RULES,
    Needs(("target_precision",), "calibrate", "a file of known translations, from which the precision is estimated"),
    Needs(("calibrate",), "model", "known translations must be embedded like the text"),
    Needs(
        ("first_stage_recall", "first_stage_share"),
        "first_stage",
        "the static encoder that chooses the sentences to embed",
    ),
    Excludes("first_stage_share", ("first_stage_recall",), "both say how many sentences are embedded; remove one"),
    Excludes(
        "first_stage",
        ("source_embeddings", "target_embeddings"),
        "it chooses the sentences to embed, and these are embedded already; remove one",
    ),
    Excludes("keep_all", ("threshold", "calibrate"), "no threshold is used where all pairs are kept; remove one"),
)
PAIRS_RULES = (
    Needs(("size",), "around", "the score around which pairs are shown"),
    Needs(("overwrite",), "html", "the page to replace"),
)
ALIGN_DOCUMENTS_RULES = (Inapplicable(("min_score", "merge_to", *FILTER_OPTIONS), _has_whole_documents),)
ALIGN_WORDS_RULES = (
    Needs(("every_layer",), "gold", "the right links, by which a layer is chosen"),
    Needs(("gold_from_1",), "gold", "the file whose words it counts"),
    Needs(("overwrite",), "out", "the file to replace"),
    Excludes("every_layer", ("layer",), "--every-layer chooses one; remove --layer"),
)


@dataclass(frozen=True)
class EmbeddingSearchOptions:
    """Options of ``mine`` and ``score`` for embeddings and search."""

    source_embeddings: str | None = search_option("--source-embeddings STORE", "Store, or .npy file, of the source.")
    target_embeddings: str | None = search_option("--target-embeddings STORE", "The same of the target.")
    k: int | None = opts.NEIGHBORS
    margin: Margin | None = opts.MARGIN
    method: str | None = search_option("--method METHOD", "exact, approximate, auto or faiss:FACTORY (default: exact).")
    engine: Engine | None = ENGINE
    memory_mib: int | None = opts.MEMORY_MIB

    def search(self, retrieval: Retrieval | None = None) -> SearchOptions:
        """Return the options of the search as the library takes them."""
        from st_xling.mining import SearchOptions

        options = given(
            k=self.k, margin=self.margin, retrieval=retrieval, method=self.method, memory_mib=self.memory_mib
        )
        return SearchOptions(**options)


@dataclass(frozen=True)
class PairFileOptions:
    """Options of ``mine``, ``score`` and ``align-documents`` for the file of pairs."""

    overwrite: bool = opts.OVERWRITE
    work: str | None = opts.WORK
    batch_size: int | None = BATCH_SIZE
    store_dtype: StoreDtype | None = STORE_DTYPE
    source_language: str | None = filter_option("--source-language CODE", "Such as de, for filters and centering.")
    target_language: str | None = filter_option("--target-language CODE", "Such as en.")
    filter_limit: list[Any] | None = filter_option(
        "--filter-limit NAME=X", "Limit of a filter, such as length_ratio=2.5 (repeatable).", parser=filter_limit
    )
    disable_filter: list[str] | None = filter_option(
        "--disable-filter NAME", "Disable copy, length_ratio, numbers, language, or all (repeatable)."
    )
    rejects: str | None = filter_option("--rejects FILE", "File for rejected pairs, as JSON lines, or - for stdout.")

    @property
    def has_filters(self) -> bool:
        """Whether any option is for filters."""
        languages = self.source_language or self.target_language
        return bool(self.rejects or languages or self.filter_limit or self.disable_filter)

    def filters(self) -> FilterOptions:
        """Return the enabled filters."""
        from st_xling.mining import FilterOptions

        return FilterOptions(
            disable=self.disable_filter or (),
            limits=dict(self.filter_limit or ()),
            source_language=self.source_language,
            target_language=self.target_language,
        )

    def rejects_file(self, context: typer.Context) -> Any:
        """Return ``--rejects`` as the library takes it."""
        return None if self.rejects is None else file_or_stdout(context, self.rejects)

    def encoding(self, embedding: EmbeddingModel, engine: Engine | None = None) -> EncodingOptions:
        """Return how texts are embedded, as the library takes it."""
        return encoding_options(embedding, self.batch_size, self.store_dtype, engine)


def encoding_options(
    embedding: EmbeddingModel, batch_size: int | None, dtype: StoreDtype | None, engine: Engine | None
) -> EncodingOptions:
    """Return how texts are embedded, as the library takes it; its defaults hold for options that are not set."""
    from st_xling.mining import EncodingOptions

    options = given(batch_size=batch_size, dtype=dtype, prompt=embedding.prompt, device=embedding.device, engine=engine)
    return EncodingOptions(**options)


def _first_stage_options(
    models: list[str] | None, recall: float | None, share: float | None
) -> FirstStageOptions | None:
    """Return the options of the first stage as the library takes them; ``None`` without one."""
    if not models:
        return None
    from st_xling.mining import FirstStageOptions

    return FirstStageOptions(model=models, **given(recall=recall, share=share))


@app.command("encode", cls=with_options(EncoderOptions), rich_help_panel=MINE)
def encode(
    context: typer.Context,
    model: str = model_opts.MODEL,
    text: str = argument("TEXT", "Text, a sentence a line, also compressed (.gz, .xz, .bz2, .zst); or a document."),
    out: str = required("--out STORE", "Folder of the store."),
    store_dtype: StoreDtype | None = STORE_DTYPE,
    language: str | None = option("--language CODE", "Language of the text, for a model centered by language."),
    batch_size: int | None = opts.BATCH_SIZE,
    shard_rows: int | None = option("--shard-rows", "Sentences in a shard (default: 16384)."),
    engine: Engine | None = ENGINE,
    overwrite: bool = opts.OVERWRITE,
    text_format: TextFormat | None = TEXT_FORMAT,
) -> None:
    """Embed a text file, a sentence a line, into a store that mining reads.

    \b
    examples:
      st-xling encode my-encoder news.de.gz --out de.store
      st-xling encode my-encoder news.en.gz --out en.store
      st-xling encode my-encoder zh-en.training.zh --text-format bucc \\
          --out zh.store --store-dtype float16

    Run the same command again to resume from the first incomplete shard.
    """
    from st_xling.mining import encode as encode_texts

    embedding = embedding_model(context, model)
    with resumable():
        store = encode_texts(
            embedding.model,
            text,
            out,
            encoding=encoding_options(embedding, batch_size, store_dtype, engine),
            format=text_format,
            language=language,
            overwrite=overwrite,
            progress=True,
            **given(shard_rows=shard_rows),
        )
    print(f"{store.rows:,} vectors of dim {store.dim} in {len(store.manifest.shards):,} shards: {store.path}")
    print(store.signature)
    sizes = {"rows": store.rows, "dim": store.dim, "shards": len(store.manifest.shards)}
    write_results(context, {"encode": sizes, "signature": store.signature})


@app.command(
    "mine",
    cls=with_options(EmbeddingSearchOptions, PairFileOptions, EncoderOptions, rules=MINE_RULES),
    rich_help_panel=MINE,
)
def mine(
    context: typer.Context,
    source: str = argument("SOURCE", "Text, a sentence a line, also compressed; or a document, such as EPUB."),
    target: str = argument("TARGET", "The same in the other language."),
    out: str = required("--out FILE", "File of the pairs, or - for stdout."),
    model: str | None = OPTIONAL_MODEL,
    threshold: Any = option(
        "--threshold X",
        "Minimum score of a pair: a number, auto, published or estimated, see above (default: auto).",
        parser=number_or("auto", "published", "estimated"),
        default="auto",
    ),
    keep_all: bool = flag("--keep-all", "Keep all pairs, right or wrong, without a threshold.", panel="Threshold"),
    format: PairFormat | None = FORMAT,
    dry_run: bool = flag("--dry-run", "Only estimate time, memory and disk."),
    first_stage: list[str] | None = first_stage_option(
        "--first-stage MODEL",
        "Static encoder, by which only sentences that may have a translation are embedded (repeatable).",
    ),
    first_stage_recall: float | None = first_stage_option(
        "--first-stage-recall X", "Share of the pairs not to lose, as estimated (default: 0.98)."
    ),
    first_stage_share: float | None = first_stage_option(
        "--first-stage-share X", "Share of the sentences to embed, whatever is lost."
    ),
    rescore: str | None = rescore_option("--rescore MODEL", "Cross-encoder that scores the mined pairs again."),
    rescore_threshold: float | None = RESCORE_THRESHOLD,
    text_format: TextFormat | None = TEXT_FORMAT,
    calibrate: str | None = threshold_option("--calibrate PARALLEL", "Known translations, to estimate the threshold."),
    target_precision: float | None = threshold_option(
        "--target-precision", "With --calibrate: precision to reach (default: that of the best F1)."
    ),
    retrieval: Retrieval | None = opts.RETRIEVAL,
) -> None:
    """Find translations between two text files.

    Embeds two texts, finds the pairs that are likely translations, and writes them, best first.

    \b
    examples:
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv \\
          --threshold 1.06 --rejects rejects.jsonl
      st-xling mine news.de.gz news.en.gz --source-embeddings de.store \\
          --target-embeddings en.store --out - | head
      st-xling mine news.de news.en --model my-encoder --source-language de \\
          --target-language en --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.jsonl \\
          --calibrate gold.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv \\
          --rescore my-reranker --rescore-threshold 0.5
      st-xling mine news.de news.en --model intfloat/multilingual-e5-small \\
          --prompt 'query: ' --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv \\
          --first-stage my-static-encoder
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv \\
          --dry-run

    --threshold auto uses the score that the model's author published for your two languages (in its mining.json), if
    there is one that fits, and otherwise one estimated from the scores of the mined pairs. published stops if none
    fits; estimated never looks for it. The last lines show how the scores are distributed, and what the threshold
    keeps.

    --first-stage mines large texts much faster. A static encoder, which train static makes, searches them first;
    --model embeds only the sentences that have a near neighbor, and a random sample of the others, so that scores are
    the same as among all sentences. The report says how many were embedded, and estimates how many pairs were kept.

    --method auto searches exactly or approximately by size; a factory is one of FAISS, such as
    faiss:IVF4096,Flat?nprobe=64.

    SOURCE and TARGET may also be documents: EPUB, DOCX, ODT and HTML are split into sentences, of subtitles (SRT, VTT)
    the times are ids. For a document and its translation, align-documents finds more.

    A TSV file has the columns score, source_id, target_id, source, target and threshold (nan if all pairs were kept);
    with --rescore the score is the cross-encoder's, and a column margin comes before the threshold. The ids are line
    numbers, counted from 1, unless the texts have ids of their own. Equal lines are mined once, and their ids joined by
    commas. Tabs, line ends and backslashes in a sentence are written as \\t, \\n, \\r and \\\\. train, score and other
    commands read such a file. Run the same command again to resume from OUT.work.
    """
    if calibrate is not None and threshold != "auto":
        raise ValueError("--threshold and --calibrate both set the threshold; choose one of them.")
    from st_xling.mining import mine_texts, plan_mining

    vectors = options_of(context, EmbeddingSearchOptions)
    pairs = options_of(context, PairFileOptions)
    embedding = embedding_model(context, model)
    search = vectors.search(retrieval)
    encoding = pairs.encoding(embedding, vectors.engine)
    first_stage_options = _first_stage_options(first_stage, first_stage_recall, first_stage_share)
    if dry_run:
        plan = plan_mining(
            source,
            target,
            model=embedding.model,
            source_embeddings=vectors.source_embeddings,
            target_embeddings=vectors.target_embeddings,
            source_language=pairs.source_language,
            target_language=pairs.target_language,
            text_format=text_format,
            search=search,
            encoding=encoding,
            first_stage=first_stage_options,
        )
        print("\n".join(plan.lines()))
        if unmeasured := Given.of(context).names(UNMEASURED):
            print(f"not measured: what {unmeasured} costs or changes")
        return write_results(context, {"plan": asdict(plan)})
    if keep_all:
        threshold = None
    with output(context, out, pairs.work) as opened:
        report = mine_texts(
            source,
            target,
            opened,
            model=embedding.model,
            source_embeddings=vectors.source_embeddings,
            target_embeddings=vectors.target_embeddings,
            text_format=text_format,
            search=search,
            encoding=encoding,
            first_stage=first_stage_options,
            threshold=threshold,
            calibrate_with=calibrate,
            target_precision=target_precision,
            rescore=rescore,
            rescore_threshold=rescore_threshold,
            filters=pairs.filters(),
            rejects=pairs.rejects_file(context),
            format=format,
            work=pairs.work,
            progress=True,
        )
    print_report(context, report, f"{report.pairs:,} pairs")


@app.command(
    "score",
    cls=with_options(EmbeddingSearchOptions, PairFileOptions, EncoderOptions, rules=SCORE_RULES),
    rich_help_panel=MINE,
)
def score(
    context: typer.Context,
    pairs: str = argument("PAIRS", "Parallel text, as train --data reads it: TSV, CSV, JSONL, xx-yy=PATH, …."),
    out: str = required("--out FILE", "File of the scored pairs, or - for stdout."),
    model: str | None = OPTIONAL_MODEL,
    threshold: float | None = option("--threshold", "Minimum score of a pair (default: none)."),
    format: PairFormat | None = FORMAT,
    filters: bool = flag("--filters", "Reject pairs by filters; so does any option of theirs.", panel=FILTERS),
    rescore: str | None = rescore_option("--rescore MODEL", "Cross-encoder that scores the pairs that pass again."),
    rescore_threshold: float | None = RESCORE_THRESHOLD,
) -> None:
    """Score the pairs of a parallel file, to filter it.

    Gives each pair its margin score, and drops pairs below a threshold.

    \b
    examples:
      st-xling score pairs.tsv --model my-encoder --out scored.tsv
      st-xling score crawl.tsv.gz --model my-encoder --out clean.tsv \\
          --threshold 1.02 --filters --rejects rejects.jsonl
      st-xling score crawl.tsv.gz --model my-encoder --out clean.tsv \\
          --filters --rescore my-filter
      st-xling score de-en=crawl.de.gz,crawl.en.gz --model my-encoder \\
          --out clean.jsonl
      st-xling score pairs.tsv --source-embeddings de.npy \\
          --target-embeddings en.npy --out - | cut -f1

    PAIRS is any parallel text that train --data reads: TSV, CSV, JSONL, TMX, XLIFF, PO, xx-yy=SOURCE,TARGET, …;
    PATH?columns=0,1 names its columns, by number or by name. Neighbors come from the corpus itself. Pairs are written
    in the order of the file, in the format of st-xling mine, with line numbers as ids. Faulty lines (columns, bytes, an
    empty side, too long) are skipped, counted, and listed first in --rejects, with their number and the reason. Run the
    same command again to resume from OUT.work.
    """
    from st_xling.mining import score_texts

    vectors = options_of(context, EmbeddingSearchOptions)
    files = options_of(context, PairFileOptions)
    enabled_filters = files.filters() if filters or files.has_filters else None
    embedding = embedding_model(context, model)
    with output(context, out, files.work) as opened:
        report = score_texts(
            pairs,
            opened,
            model=embedding.model,
            source_embeddings=vectors.source_embeddings,
            target_embeddings=vectors.target_embeddings,
            search=vectors.search(),
            encoding=files.encoding(embedding, vectors.engine),
            threshold=threshold,
            filters=enabled_filters,
            rescore=rescore,
            rescore_threshold=rescore_threshold,
            rejects=files.rejects_file(context),
            format=format,
            work=files.work,
            progress=True,
        )
    print_report(context, report, f"{report.kept:,} pairs")


@app.command("pairs", cls=with_options(rules=PAIRS_RULES), rich_help_panel=MINE)
def pairs(
    context: typer.Context,
    file: str = argument("FILE", "Scored pairs: TSV, JSON lines or TMX of mine, score or align-documents."),
    around: float | None = option("--around X", "Show the pairs whose scores are nearest to X."),
    size: int | None = option("--size", "How many of them (default: 10)."),
    html: str | None = option(
        "--html FILE", "Page to look at the pairs, and step through doubtful ones; - for stdout."
    ),
    overwrite: bool = opts.OVERWRITE,
) -> None:
    """Look at a file of scored pairs, to choose a threshold.

    Shows how the scores are distributed, and the pairs around any of them, best first.

    \b
    examples:
      st-xling pairs mined.tsv
      st-xling pairs mined.tsv --around 1.05
      st-xling pairs scored.jsonl.gz --around 1.02 --size 40
      st-xling pairs mined.tsv --html mined.html
    """
    from st_xling.data.pair_page import page_of_scored
    from st_xling.data.scored import inspect_scores, read_scored
    from st_xling.utils.io import write_atomic

    inspection = inspect_scores(read_scored(file), around=around, **given(size=size))
    print(f"scores of {inspection.histogram.total:,} pairs, best first:")
    print("\n".join(inspection.histogram.lines()))
    shown = [*inspection.above, *inspection.below]
    for row, pair in enumerate(shown):
        if row == len(inspection.above) and row > 0:
            print(f"---- {around:g} ----")
        print(f"{pair.score:.4f}\t{pair.source}\n\t{pair.target}")
    if html is not None:
        page = page_of_scored(file, around=around).render()
        if html == "-":
            print(page, end="", file=context.obj.stdout)
        else:
            Path(html).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(Path(html), page.encode())
        print(f"page: {html}")
    elif around is None:
        print("To look at the pairs around a score: --around X")
    content: dict[str, Any] = {"pairs": inspection.histogram.total, "histogram": inspection.histogram.as_dict()}
    nearest = [{"score": pair.score, "source": pair.source, "target": pair.target} for pair in shown]
    if around is not None:
        content["nearest"] = nearest
    write_results(context, {"pairs": content})


@app.command(
    "align-documents",
    cls=with_options(PairFileOptions, EncoderOptions, rules=ALIGN_DOCUMENTS_RULES),
    rich_help_panel=MINE,
)
def align_documents(
    context: typer.Context,
    source: str = argument("SOURCE", "Document: text, EPUB, DOCX, ODT, HTML, SRT or VTT; or a folder of documents."),
    target: str = argument("TARGET", "Its translation; or a folder with documents of the same names, see --pair."),
    out: str = required("--out FILE", "File of the pairs, or - for stdout."),
    model: str = model_opts.ENCODER,
    min_score: float | None = option("--min-score", "Minimum score of a pair, from 0 to 1 (default: none)."),
    format: AlignmentFormat | None = option(
        "--format", "Format of the pairs (default: by the name of --out, else tsv)."
    ),
    max_size: int | None = text_option(
        "--max-size", "Maximum number of sentences of both sides in a group (default: 8)."
    ),
    split: bool = flag("--split", "Split the lines into sentences; ids are then their numbers.", panel=TEXT),
    merge_to: int | None = option("--merge-to CHARS", "Join neighboring pairs, to at most so many characters a side."),
    pair: bool = flag("--pair", "Two folders: pair documents by what they say, not by name.", panel=TEXT),
    html: str | None = option("--html FILE", "Page to look at the alignment, both texts side by side; - for stdout."),
) -> None:
    """Align documents with their translations, sentence by sentence.

    Finds which sentences of a document are translations of which, in order, up to several on either side, and writes
    the pairs. Sentences without a translation are counted. Text has a sentence or a paragraph a line, and blank lines
    between paragraphs; it may be compressed (.gz, .xz, .bz2, .zst). EPUB, DOCX, ODT and HTML are split into sentences;
    subtitles (SRT, VTT) stay as they are, with their times as ids.

    \b
    examples:
      st-xling align-documents book.de book.fr --model my-encoder \\
          --out pairs.tsv
      st-xling align-documents news/de news/fr --model my-encoder \\
          --out pairs.tsv
      st-xling align-documents report.de.txt report.fr.txt --split \\
          --model my-encoder --out pairs.tsv
      st-xling align-documents book.de.epub book.fr.epub --model my-encoder \\
          --out pairs.tsv
      st-xling align-documents book.de book.fr \\
          --model intfloat/multilingual-e5-small --prompt 'query: ' \\
          --out pairs.tsv
      st-xling align-documents book.de book.fr --model my-encoder \\
          --merge-to 600 --out paragraphs.tsv --html book.html
      st-xling align-documents news/de news/fr --pair --model my-encoder \\
          --out pairs.tsv

    The file is that of st-xling mine, or with --format vecalign all groups of one document, with line numbers as ids,
    and is read by train, score and other commands. Two more columns have each pair's document, and its position there.
    Run the same command again to resume from OUT.work.
    """
    from st_xling.mining import align_texts, folder_files, match_documents, pair_documents

    files = options_of(context, PairFileOptions)
    has_folders = Path(source).is_dir() and Path(target).is_dir()
    if pair and not has_folders:
        raise ValueError(f"--pair is for the documents of two folders: got {source} and {target}; remove it.")
    documents = [(source, target)]
    matching: dict[str, Any] = {}
    if has_folders and not pair:
        documents, without_partner = pair_documents(source, target)
        _warn_of_files_without_partner(without_partner)
    embedding = embedding_model(context, model)
    matching_work = None
    if files.work is not None or out != "-":
        matching_work = f"{files.work or out}.pairing"
    with output(context, out, files.work) as opened:
        if pair:
            matches = match_documents(
                folder_files(source),
                folder_files(target),
                model=embedding.model,
                split=split,
                encoding=files.encoding(embedding),
                filters=files.filters(),
                work=matching_work,
                progress=True,
            )
            documents = matches.files
            matching = {"matches": matches.as_dict()}
            _warn_of_files_without_partner(matches.without_partner)
        report = align_texts(
            documents,
            opened,
            model=embedding.model,
            split=split,
            min_score=min_score,
            merge_to=merge_to,
            encoding=files.encoding(embedding),
            filters=files.filters(),
            rejects=files.rejects_file(context),
            html=None if html is None else file_or_stdout(context, html),
            format=format,
            work=files.work,
            progress=True,
            **given(max_size=max_size),
        )
    if matching_work is not None and files.work is None:
        shutil.rmtree(matching_work, ignore_errors=True)
    print_report(context, report, f"{report.pairs:,} pairs", also=matching)


def _warn_of_files_without_partner(files: list[str]) -> None:
    """Name files that are not aligned, the first twenty of them."""
    if files:
        others = f" and {len(files) - 20:,} more" if len(files) > 20 else ""
        logger.warning("%s files have no partner: %s%s", f"{len(files):,}", ", ".join(files[:20]), others)


@app.command("align-words", cls=with_options(LoadOptions, rules=ALIGN_WORDS_RULES), rich_help_panel=MINE)
def align_words(
    context: typer.Context,
    spec: str = argument("SPEC", "Pairs, as train --data reads them."),
    model: str = model_opts.ENCODER,
    out: str | None = option("--out FILE", "File of the links, a line a pair, or - for stdout."),
    method: Literal["itermax", "intersection", "corpus"] = option(
        "--method", "How words are linked (default: itermax).", default="itermax"
    ),
    layer: int | None = option("--layer", "Layer of the token states, from 1 (default: two thirds up, 8 of 12)."),
    every_layer: bool = flag("--every-layer", "With --gold: score every layer; --out then has the best."),
    tokenized: bool = flag("--tokenized", "Words are separated by spaces (default: see above)."),
    gold: str | None = option("--gold FILE", "Right links, such as 0-0 1-2; 1?2 is a possible one.", panel="Gold"),
    gold_from_1: bool = flag("--gold-from-1", "The gold file counts words from 1.", panel="Gold"),
    batch_size: int | None = option("--batch-size", "Maximum batch size (default: 32)."),
    overwrite: bool = opts.OVERWRITE,
) -> None:
    """Link the words of translations, by an encoder's token states.

    Writes for each pair the words that mean the same, in the Pharaoh format: 0-0 1-2 links the first word of the source
    to the first of the target, and the second to the third. A line with an empty side has an empty line of links. With
    gold: precision, recall, F1 and alignment error rate.
    --method itermax finds more links, intersection fewer, more of them right; corpus also counts in all pairs which
    words go together, for some hundred pairs and more. Unless --tokenized, punctuation is split off, and Chinese,
    Japanese and Thai into characters.

    \b
    examples:
      st-xling align-words pairs.tsv --model my-encoder --out links.txt
      st-xling align-words test.tsv --tokenized --gold test.links \\
          --model intfloat/multilingual-e5-small --every-layer
      st-xling align-words pairs.tsv --method corpus --model my-encoder \\
          --out links.txt
    """
    if out is None and gold is None:
        raise ValueError("expected --out, a file for the links, or --gold, links to compare them with; got neither.")
    from st_xling.data.read import load_aligned_lines
    from st_xling.evaluation.alignment import evaluate_alignment, format_links, read_links, sign_alignment
    from st_xling.models import align as word_alignment
    from st_xling.models import load_encoder
    from st_xling.utils.io import write_atomic
    from st_xling.utils.signature import sha8

    # ``numbers`` are those of the lines without an empty side, among ``count`` lines.
    name, data, numbers, count = load_aligned_lines(spec, identify=True)
    sources: Any = data["source"][:]
    targets: Any = data["target"][:]
    if tokenized:
        sources = split_at_spaces(sources)
        targets = split_at_spaces(targets)
    gold_links = None if gold is None else read_links(gold, first=int(gold_from_1))
    if gold_links is not None and len(gold_links) == count:
        gold_links = [gold_links[number] for number in numbers]
    encoder = load_encoder(model, **options_of(context, LoadOptions).given())
    if layer is None:
        layer = word_alignment.default_layer(encoder)
    options: dict[str, Any] = {"method": method, "show_progress_bar": True, **given(batch_size=batch_size)}
    results: dict[str, Any] = {"pairs": len(data), "layer": layer}
    shown = []
    if gold_links is None:
        links = word_alignment.align_words(encoder, sources, targets, layer=layer, **options)
        signature = sign_alignment(encoder, [layer], method, f"{name}@{sha8([sources, targets])}")
    else:
        layers = None if every_layer else [layer]
        report = evaluate_alignment(encoder, sources, targets, gold_links, layers=layers, name=name, **options)
        shown.append(report.table())
        if every_layer:
            shown.append(f"lowest error rate: layer {report.best_layer}")
        links = report.links[report.best_layer]
        signature = report.signature
        results |= report.as_dict()
    if out is not None:
        links_by_line = dict(zip(numbers, map(format_links, links)))
        lines = "".join(f"{links_by_line.get(number, '')}\n" for number in range(count))
        if out == "-":
            print(lines, end="", file=context.obj.stdout)
        else:
            Path(out).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(Path(out), lines.encode())
        empty = f"; {count - len(links):,} lines with an empty side" if count > len(links) else ""
        shown.append(f"{len(links):,} pairs: {out}{empty}")
    print(*shown, signature, sep="\n")
    write_results(context, {**results, "signature": signature})


def split_at_spaces(texts: list[str]) -> list[list[str]]:
    """Split texts at ASCII spaces only, as Pharaoh's tools count words: a token may contain a no-break space."""
    return [list(filter(None, text.split(" "))) for text in texts]
