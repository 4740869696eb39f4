"""``st-xling align``: which words of translations belong together."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from st_xling.cli.model_options import MODEL
from st_xling.cli.options import JSON, command, set_options, write_results


@command("align", MODEL, JSON)
def align(arguments: argparse.Namespace) -> None:
    """Link the words of translations, by an encoder's token states.

    Write for each pair the words that mean the same, in the Pharaoh format: 0-0 1-2 links the first word of the source
    to the first of the target, and the second to the third. With gold: precision, recall, F1 and alignment error rate.

    SPEC                                    pairs, as train's --data reads them
    --model MODEL                           Hub id or folder of an encoder (required)
    --out FILE                              file of the links, a line a pair, or - for stdout
    --overwrite                             replace an earlier file of --out
    --method {itermax,intersection,corpus}  itermax (default): more links; intersection: fewer, more of them right;
                                            corpus: counts in all pairs, too, which words go together, and is the best
                                            for some hundred pairs and more
    --layer N                               whose token states, counted from 1 (default: two thirds of the way up, 8 of
                                            12)
    | --every-layer                         with --gold: score every layer; --out then takes the best
    --tokenized                             words are what spaces separate; otherwise punctuation is split off, and
                                            Chinese, Japanese and Thai into characters
    --gold FILE                             links that are right, a line a pair, such as 0-0 1-2; 1?2 is possible
    --gold-from-1                           gold counts words from 1
    --skip-bad-lines                        leave faulty lines out, and say how many
    --batch-size N                          most pairs at once (default: 32)

    examples:
      st-xling align pairs.tsv --model my-encoder --out links.txt
      st-xling align test.tsv --tokenized --gold test.links --model intfloat/multilingual-e5-small --every-layer
      st-xling align pairs.tsv --method corpus --model my-encoder --out links.txt
    """
    from st_xling.data import load_data_specs
    from st_xling.evaluation.alignment import evaluate_alignment, format_links, read_links, sign_alignment
    from st_xling.models import load_encoder
    from st_xling.models.align import align_words, default_layer
    from st_xling.utils.io import write_atomic
    from st_xling.utils.signature import sha8

    if arguments.out is None and arguments.gold is None:
        raise ValueError("expected where the links go, or what they are compared with: give --out, or --gold.")
    if arguments.every_layer and arguments.gold is None:
        raise ValueError("--every-layer chooses by gold: give --gold as well.")
    read = load_data_specs([arguments.spec], skip_bad_lines=arguments.skip_bad_lines)
    if len(read) != 1:
        raise ValueError(f"expected pairs of two languages: got {', '.join(read)}; align one after the other.")
    ((name, data),) = read.items()
    sides = [data[side][:] for side in ("source", "target")]
    if arguments.tokenized:
        sides = [[text.split() for text in side] for side in sides]
    gold = None if arguments.gold is None else read_links(arguments.gold, first=int(arguments.gold_from_1))
    model = load_encoder(arguments.model, **{**set_options(arguments, load_encoder), "layer": None})
    options: dict[str, Any] = {**set_options(arguments, align_words), "show_progress_bar": True}
    layer = options.pop("layer", default_layer(model))
    del options["model"]
    show = partial(print, file=sys.stderr if arguments.out == "-" else sys.stdout)
    results: dict[str, Any] = {"pairs": len(data), "layer": layer}
    if gold is None:
        links = align_words(model, *sides, layer=layer, **options)
        signature = sign_alignment(model, [layer], options.get("method", "itermax"), f"{name}@{sha8(sides)}")
    else:
        layers = None if arguments.every_layer else [layer]
        report = evaluate_alignment(model, sides[0], sides[1], gold, layers=layers, name=name, **options)
        show(report.table())
        layer, signature = report.best_layer, report.signature
        if arguments.every_layer:
            show(f"lowest error rate: layer {layer}")
        links = report.links[layer]
        results |= report.as_dict()
    if arguments.out is not None:
        lines = "".join(f"{format_links(own)}\n" for own in links)
        if arguments.out == "-":
            print(lines, end="")
        else:
            Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(Path(arguments.out), lines.encode())
        show(f"{len(links):,} pairs: {arguments.out}")
    show(signature)
    write_results(arguments, {**results, "signature": signature})
