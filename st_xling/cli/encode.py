"""``st-xling encode``: text files to a store of embeddings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

EXAMPLE = """\
examples:
  st-xling encode my-encoder news.de.gz --out de.store
  st-xling encode my-encoder news.en.gz --out en.store
  st-xling encode my-encoder zh-en.training.zh --format bucc --out zh.store --dtype float16

Killed or interrupted, the same command goes on with the first shard that is not whole, and ends with the same bytes.
"""

_OPTIONS = (
    *("format", "errors", "blank", "dtype", "file_format", "normalise", "prompt", "batch_size", "shard_rows"),
    *("processes", "engine", "device", "append", "overwrite"),
)


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    encode = commands.add_parser(
        "encode",
        help="embed text files, a sentence a line, into a store",
        description="Embed every sentence of text files and keep the vectors in a folder that mining reads.",
        epilog=EXAMPLE,
        argument_default=argparse.SUPPRESS,  # what is not said keeps the library's default
    )
    encode.add_argument("model", metavar="MODEL", help="Hub id or folder")
    encode.add_argument("text", metavar="TEXT", nargs="+", help="UTF-8 files, also .gz and .xz; read as if one")
    encode.add_argument("--out", required=True, type=Path, metavar="STORE", help="folder of the store")
    encode.add_argument(
        "--format",
        choices=("lines", "bucc", "jsonl"),
        help="lines (default), bucc: id TAB sentence, jsonl: id and text",
    )
    encode.add_argument("--errors", choices=("strict", "replace"), help="bytes that are not UTF-8 (default: strict)")
    encode.add_argument(
        "--blank-lines", dest="blank", choices=("error", "keep"), help="lines without a sentence (default: error)"
    )
    encode.add_argument(
        "--dtype", choices=("float32", "float16", "bfloat16"), help="of what is kept (default: float32)"
    )
    encode.add_argument("--file-format", choices=("safetensors", "npy"), help="of the shards (default: safetensors)")
    encode.add_argument(
        "--no-normalise", dest="normalise", action="store_false", help="keep the vectors' lengths (default: length 1)"
    )
    encode.add_argument("--prompt", metavar="WORDS", help="put before every sentence, such as 'query: '")
    encode.add_argument("--batch-size", type=int, metavar="N", help="sentences of a batch (default: 128)")
    encode.add_argument("--shard-rows", type=int, metavar="N", help="sentences of a shard (default: 16384)")
    encode.add_argument("--processes", type=int, metavar="N", help="that embed, each a shard at a time (default: 1)")
    encode.add_argument("--engine", choices=("local", "ray"), help="ray: the workers of a cluster (default: local)")
    encode.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    placing = encode.add_mutually_exclusive_group()
    placing.add_argument("--append", action="store_true", help="add the text to a finished store of the same model")
    placing.add_argument("--overwrite", action="store_true", help="replace another store in --out")
    encode.add_argument("--json", type=Path, default=None, metavar="PATH", help="also write the figures here")
    encode.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Embed, say what was written, print the signature."""
    from st_xling.cli.figures import write_figures
    from st_xling.mining.encoding import encode

    options = {name: getattr(arguments, name) for name in _OPTIONS if hasattr(arguments, name)}
    try:
        store = encode(arguments.model, arguments.text, arguments.out, progress=True, **options)
    except KeyboardInterrupt:
        print(f"\nwhat is whole in {arguments.out} stands; the same command goes on from there.", file=sys.stderr)
        raise
    replaced = sum(text["replaced_lines"] for text in store.manifest.texts)
    for count, what in ((replaced, "with replaced bytes"), (len(store.blank_rows), "without a sentence, kept")):
        if count:
            print(f"{count:,} lines {what}", file=sys.stderr)
    print(f"{store.rows:,} vectors of dim {store.dim} in {len(store.manifest.shards):,} shards: {store.path}")
    print(store.signature)
    figures = {"rows": store.rows, "dim": store.dim, "shards": len(store.manifest.shards)}
    write_figures(arguments.json, {"encode": figures, "signature": store.signature})
