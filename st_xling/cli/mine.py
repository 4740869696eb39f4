"""``st-xling encode``, ``mine`` and ``score``: text files to embeddings, to pairs, and pairs to scores."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from st_xling.cli.keep import check_folder, publish, renew_card
from st_xling.cli.model_options import ENCODER, encoding_options
from st_xling.cli.options import JSON, Options, command, is_set, output, print_report, set_options, write_results

logger = logging.getLogger(__name__)


def _threshold(word: str) -> float | str | None:
    if word in ("auto", "published"):
        return word
    try:
        return None if word == "none" else float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, auto, published or none, got {word!r}") from None


def _columns(word: str) -> tuple[int, ...] | tuple[str, ...]:
    words = word.split(",")
    return tuple(map(int, words)) if all(word.isdecimal() for word in words) else tuple(words)


def _filter_limit(word: str) -> tuple[str, float]:
    name, _, limit = word.partition("=")
    try:
        return name, float(limit)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, such as length_ratio=2.5, got {word!r}") from None


# Options of both `mine` and `score`.
MINING = Options(
    """
embeddings:
--model MODEL                       Hub id or folder; embeds a text without embeddings
--source-embeddings STORE           of the source: store of st-xling encode, or .npy file
--target-embeddings STORE           the same of the target
--batch-size N                      most sentences of a batch (default: as suits the device)
--store-dtype {float32,float16,int8}  type that embeddings are kept in (default: float32)
search:
--k N                               neighbors that make up a sentence's neighborhood (default: 4)
--margin {ratio,distance,absolute}  how a cosine is compared with those of the neighbors (default: ratio)
--method METHOD                     exact (default), approximate, auto: by size, or faiss:FACTORY, such as
                                    faiss:IVF4096,Flat?nprobe=64
--index DIR                         where its indexes are kept for other searches (default: with the work)
--engine {local,ray}                ray: the workers of a cluster, with the same result (default: local)
--memory-mib N                      memory for one block of the search (default: 256)
--shard-rows N                      rows of a text searched in one task (default: by size; approximate: 1,048,576)
filters:
--source-language CODE              such as de: for a filter, a published threshold and its mean (models centered by it)
--target-language CODE              such as en
--filter-limit NAME=X               set the limit of one, such as length_ratio=2.5 (repeatable)
--disable-filter NAME               disable one: hub, copy, near_copy, length_ratio, numbers, language, or all
                                    (repeatable)
--rejects FILE                      pairs that filters reject, as JSON lines
--no-header                         write no header line into a TSV file
work:
--work DIR                          folder of what is done so far, until all is (default: OUT.work)
--keep-work                         leave that folder, to try other thresholds or filters
--save-seconds S                    time between two saves of the search (default: 60)
""",
    filter_limit={"type": _filter_limit, "dest": "limits"},
    disable_filter={"dest": "disable"},
    no_header={"action": "store_const", "const": False, "dest": "header"},
)


@command(
    "encode",
    ENCODER,
    JSON,
    text_format={"dest": "format"},
    blank_lines={"dest": "blank"},
    no_normalize={"action": "store_const", "const": False, "dest": "normalize"},
)
def encode(arguments: argparse.Namespace) -> None:
    """Embed text files, a sentence a line, into a store.

    Embed every sentence of text files and keep the vectors in a folder that mining reads.

    MODEL                               Hub id or folder
    TEXT...                             UTF-8 files, also .gz, .xz, .bz2 and .zst; read as if one
    --out STORE                         folder of the store (required)
    --text-format {lines,bucc,jsonl}    lines (default), bucc: id TAB sentence, jsonl: id and text
    --errors {strict,replace}           bytes that are not UTF-8: an error, or replaced (default: strict)
    --blank-lines {error,keep}          lines without a sentence: an error, or kept (default: error)
    --store-dtype {float32,float16,int8}  type that vectors are kept in (default: float32)
    --no-normalize                      keep the vectors' lengths (default: length 1)
    --language CODE                     language of the text, for a model centered by language, whose mean is subtracted
                                        (default: the joint one)
    --batch-size N                      most sentences of a batch (default: as suits the device)
    --shard-rows N                      sentences of a shard (default: 16384)
    --processes N                       processes that embed, each a shard at a time (default: 1)
    --engine {local,ray}                ray: the workers of a cluster, with the same result (default: local)
    --overwrite                         replace another store in --out

    examples:
      st-xling encode my-encoder news.de.gz --out de.store
      st-xling encode my-encoder news.en.gz --out en.store
      st-xling encode my-encoder zh-en.training.zh --text-format bucc --out zh.store --store-dtype float16

    Killed or interrupted, the same command goes on with the first shard that is not whole, and ends with the same
    bytes.
    """
    from st_xling.mining import encode as encode_texts

    try:
        options = set_options(arguments, encode_texts) | encoding_options(arguments)
        if arguments.normalize is False:
            options["normalize"] = False
        store = encode_texts(text_files=arguments.text, progress=True, **options)
    except KeyboardInterrupt:
        print(f"\nwhat is whole in {arguments.out} stands; the same command goes on from there.", file=sys.stderr)
        raise
    replaced = store.manifest.text.replaced_lines
    for count, what in ((replaced, "with replaced bytes"), (len(store.blank_rows), "without a sentence, kept")):
        if count:
            logger.warning("%s lines %s", f"{count:,}", what)
    print(f"{store.rows:,} vectors of dim {store.dim} in {len(store.manifest.shards):,} shards: {store.path}")
    print(store.signature)
    sizes = {"rows": store.rows, "dim": store.dim, "shards": len(store.manifest.shards)}
    write_results(arguments, {"encode": sizes, "signature": store.signature})


@command(
    "mine",
    MINING,
    ENCODER,
    JSON,
    threshold={"type": _threshold, "default": "auto"},
    calibrate={"dest": "calibrate_with"},
)
def mine(arguments: argparse.Namespace) -> None:
    """Find translations between two text files.

    Embed two texts, find the pairs that are likely translations, and write them, best first.

    SOURCE                            UTF-8 text, a sentence a line, also .gz, .xz, .bz2 and .zst
    TARGET                            the same in the other language
    --out FILE                        file of the pairs, or - for stdout (required)
    --overwrite                       replace earlier files of --out and --rejects
    --keep-threshold                  with --calibrate: also put the threshold into the model's mining.json; MODEL must
                                      be a folder
    --dry-run                         only say what time, memory and disk it will take
    --threshold X                     keep pairs that score at least this; auto (default): the one that the model was
                                      published with for these two languages (its mining.json), if it fits, else all
                                      pairs; published: that one or an error; none: all pairs
    --text-format {lines,bucc,jsonl}  lines (default), bucc: id TAB sentence, jsonl: id and text
    --errors {strict,replace}         bytes that are not UTF-8: an error, or replaced (default: strict)
    --calibrate PARALLEL              known translations from elsewhere (TSV, JSONL, …), added to estimate the threshold
    --format {tsv,jsonl}              form of the pairs (default: tsv)
    choice of pairs:
    --retrieval {max,intersect,forward,backward}  which candidates are chosen (default: max)
    --target-precision P              with --calibrate: precision to reach (default: of the best F1)
    --rescore MODEL                   cross-encoder that scores the mined pairs again
    --rescore-threshold X             keep pairs that it scores at least this (default: all)
    --rescore-dtype {float32,float16,bfloat16}  type that it computes in (default: as saved)

    examples:
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --threshold 1.06 --rejects rejects.jsonl
      st-xling mine news.de.gz news.en.gz --source-embeddings de.store --target-embeddings en.store --out - | head
      st-xling mine news.de news.en --model my-encoder --source-language de --target-language en --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.jsonl --format jsonl --calibrate gold.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --rescore my-reranker --rescore-threshold 0.5
      st-xling mine news.de news.en --model intfloat/multilingual-e5-small --prompt 'query: ' --out pairs.tsv
      st-xling mine news.de news.en --model my-encoder --out pairs.tsv --dry-run

    A TSV file has the columns score, source_id, target_id, source, target; with --rescore the score is the
    cross-encoder's, and a last column has the margin. Without ids of its own, a line's id is its number; equal lines
    are mined once, and their ids joined by commas. Tabs, line ends and backslashes in a sentence are written as \\t,
    \\n, \\r and \\\\. train, score and other commands read such a file. Run the same command again to resume from
    OUT.work after a kill or an interrupt.
    """
    from st_xling.mining import mine_texts, plan_mining
    from st_xling.mining.thresholds import language_pair

    filters = _filters(arguments)
    if arguments.dry_run:
        place = arguments.work or ("." if arguments.out == "-" else arguments.out)
        options = set_options(arguments, plan_mining) | encoding_options(arguments)
        plan = plan_mining(**(options | {"work": place}))
        print("\n".join(plan.lines()))
        return write_results(arguments, {"plan": plan.as_dict()})
    if arguments.keep_threshold:
        _check_keep_threshold(arguments)
    options = set_options(arguments, mine_texts) | encoding_options(arguments)
    options |= {
        "threshold": arguments.threshold,
        "filters": filters,
        "header": arguments.header is None,
        "progress": True,
    }
    with output(arguments) as out:
        report = mine_texts(**(options | {"out": out}))
    print_report(arguments, "mine", report, f"{report.pairs:,} pairs")
    if arguments.keep_threshold:
        assert report.calibration is not None
        pair = language_pair(arguments.source_language, arguments.target_language)
        publish(Path(arguments.model), {pair: report.calibration.as_published(report.signature)})
        renew_card(Path(arguments.model))


@command("score", MINING, ENCODER, JSON, columns={"type": _columns})
def score(arguments: argparse.Namespace) -> None:
    """Score the pairs of a parallel file, to filter it.

    Give each pair of a file its margin score, and leave out what falls below a threshold.

    PAIRS                 tab-separated lines, or what train --data reads: CSV, JSONL, Parquet, Moses pairs, data sets
                          of the Hub, packed or not, xx-yy=PATH, PATH?size=10000
    --out FILE            file of the scored pairs, or - for stdout (required)
    --overwrite           replace earlier files of --out and --rejects
    --filters             leave out what filters reject (so does any option of theirs)
    --filter-first        filter before anything is embedded, which saves the time of what is rejected
    --columns I,J         columns of source and target: counted from 0, or names (default: found by name, else 0,1)
    --max-chars N         longest sentence (default: 5000)
    --threshold X         keep pairs that score at least this (default: all)
    --format {tsv,jsonl}  form of the scored pairs (default: tsv)

    examples:
      st-xling score pairs.tsv --model my-encoder --out scored.tsv
      st-xling score crawl.tsv.gz --model my-encoder --out clean.tsv --threshold 1.02 --filters --rejects rejects.jsonl
      st-xling score de-en=crawl.de.gz,crawl.en.gz --model my-encoder --out clean.jsonl --format jsonl
      st-xling score pairs.tsv --source-embeddings de.npy --target-embeddings en.npy --out - | cut -f1

    Neighbors come from the corpus itself. Pairs are written in the order of the file, in the format of st-xling mine,
    with line numbers as ids. Faulty lines (columns, bytes, an empty side, too long) are skipped, counted, and listed
    first in --rejects, with their number and the reason. Run the same command again to resume from OUT.work.
    """
    from st_xling.mining import score_texts

    names = ("filters", "limits", "disable", "source_language", "target_language", "rejects", "filter_first")
    filtered = any(is_set(getattr(arguments, name)) for name in names)
    options = set_options(arguments, score_texts) | encoding_options(arguments)
    filters = _filters(arguments) if filtered else None
    options |= {"filters": filters, "header": arguments.header is None, "progress": True}
    with output(arguments) as out:
        report = score_texts(**(options | {"out": out}))
    print_report(arguments, "score", report, f"{report.kept:,} pairs")


def _filters(arguments: argparse.Namespace) -> Any:
    """The :class:`~st_xling.mining.FilterOptions` of the command line."""
    from st_xling.mining import FilterOptions

    return FilterOptions(**(set_options(arguments, FilterOptions) | {"limits": dict(arguments.limits)}))


def _check_keep_threshold(arguments: argparse.Namespace) -> None:
    """Raise where the threshold could not be published, before anything is mined."""
    from st_xling.mining.thresholds import canonical_pair, language_pair, load_published_thresholds

    needed = ("calibrate_with", "model", "source_language", "target_language")
    if missing := [name for name in needed if getattr(arguments, name) is None]:
        flags = ", ".join(f"--{name.removesuffix('_with').replace('_', '-')}" for name in missing)
        raise ValueError(f"--keep-threshold publishes the model's threshold for two languages: give {flags} as well.")
    canonical_pair(language_pair(arguments.source_language, arguments.target_language))
    check_folder(Path(arguments.model), "--keep-threshold")
    load_published_thresholds(arguments.model)
