"""``st-xling align``: which words of translations belong together."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from st_xling.cli.model_options import MODEL
from st_xling.cli.options import JSON, command, set_options, write_results


@command("align", MODEL, JSON)
def align(arguments: argparse.Namespace) -> None:
    """Link the words of translations, by an encoder's token states.

    Write for each pair the words that mean the same, in the Pharaoh format: 0-0 1-2 links the first word of the source
    to the first of the target, and the second to the third. With gold: precision, recall, F1 and alignment error rate.

    SPEC                             pairs, as train's --data reads them
    --model MODEL                    Hub id or folder of an encoder (required)
    --out FILE                       file of the links, a line a pair, or - for stdout
    --method {itermax,intersection}  itermax (default): more links; intersection: fewer, more of them right
    --layer N                        whose token states, counted from 1 (default: two thirds of the way up, 8 of 12)
    --tokenized                      words are what spaces separate; otherwise punctuation is split off, and Chinese,
                                     Japanese and Thai into characters
    --gold FILE                      links that are right, a line a pair, such as 0-0 1-2; 1?2 is possible
    --gold-from-1                    gold counts words from 1
    --every-layer                    with --gold: score every layer; --out then takes the best
    --batch-size N                   most pairs at once (default: 32)

    examples:
      st-xling align pairs.tsv --model my-encoder --out links.txt
      st-xling align dev.tsv --tokenized --gold dev.links --model intfloat/multilingual-e5-small --every-layer
    """
    from st_xling.data import load_data_specs
    from st_xling.evaluation.alignment import evaluate_alignment, format_links, read_links
    from st_xling.models import load_encoder
    from st_xling.models.align import align_words, default_layer
    from st_xling.utils.io import write_atomic

    if arguments.out is None and arguments.gold is None:
        raise ValueError("expected where the links go, or what they are compared with: give --out, or --gold.")
    if arguments.every_layer and arguments.gold is None:
        raise ValueError("--every-layer chooses by gold: give --gold as well.")
    read = load_data_specs([arguments.spec])
    if len(read) != 1:
        raise ValueError(f"expected pairs of two languages: got {', '.join(read)}; align one after the other.")
    ((name, data),) = read.items()
    sides = [data[side][:] for side in ("source", "target")]
    if arguments.tokenized:
        sides = [[text.split() for text in side] for side in sides]
    options: dict[str, Any] = {**set_options(arguments, align_words), "show_progress_bar": True}
    del options["model"]
    gold = arguments.gold and read_links(arguments.gold, first=int(arguments.gold_from_1))
    model = load_encoder(arguments.model, **{**set_options(arguments, load_encoder), "layer": None})
    results: dict[str, Any] = {"pairs": len(data)}
    if gold:
        layer = options.pop("layer", default_layer(model))
        report = evaluate_alignment(
            model, sides[0], sides[1], gold, layers=None if arguments.every_layer else [layer], name=name, **options
        )
        print(report.table(), report.signature, sep="\n", file=sys.stderr if arguments.out == "-" else sys.stdout)
        results |= report.as_dict()
        options["layer"] = report.best_layer
    if arguments.out is not None:
        lines = "".join(f"{format_links(links)}\n" for links in align_words(model, *sides, **options))
        if arguments.out == "-":
            print(lines, end="")
        else:
            write_atomic(Path(arguments.out), lines.encode())
    write_results(arguments, results)
