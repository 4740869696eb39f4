"""``st-xling compare``: which of several encoders is better, where, by how much, and is the difference significant?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_xling.cli.keep import check_folder, keep_in
from st_xling.cli.model_options import ENCODER
from st_xling.cli.options import JSON, KEEP, command, set_options, write_results


@command("compare", ENCODER, JSON, KEEP, seed={"default": 0})
def compare(arguments: argparse.Namespace) -> None:
    """Compare encoders by many tasks: one page, with intervals and tested differences.

    Measure all models on the same items: Tatoeba both ways, xsim and xsim++, mining with a threshold from another
    split, a mixed pool of passages and its language bias, hubness, speed and size, and whether their recorded training
    data contain the texts. An order of models is given only where paired tests, corrected for their number, allow one.

    MODEL...          Hub ids or folders; options of a single model follow it: 'e5?prompt=query: &name=E5&layer=7'
    --data SPEC       folder of Tatoeba's, BUCC's or XQuAD-R's files; xx-en=PATH; xx=DIR or xx=FILE.json, passages
                      as of evaluate retrieval; or phrasebook:… (default: the phrasebook's test sentences)
                      (repeatable)
    --languages LIST  codes, joined by commas, or a group: xnli14, full28, xtreme36, laser112 (default: all)
    --tasks LIST      tatoeba,xsim,xsim++,mining,pool,hubness,speed,size,leak (default: all)
    --out DIR         folder for the page compare.html and for results; the same command resumes from there
    --samples N       samples of the bootstrap (default: 1000)
    --seed N          seed of samples and draws (default: 0)
    --batch-size N    maximum batch size (default: chosen for the device)

    examples:
      st-xling compare my-encoder intfloat/multilingual-e5-small --out my-comparison
      st-xling compare my-encoder 'intfloat/multilingual-e5-small?prompt=query: ' --data tatoeba/v1 --languages de,fr \\
          --tasks tatoeba,xsim --json comparison.json
      st-xling compare my-encoder --data 'de-en=pairs.tsv?size=200' --data bucc2018

    An item is a pair of sentences, a sentence to mine, or a question. Intervals are bootstrap intervals over items.
    """
    from st_xling.evaluation.compare import compare_models, load_comparison_data, parse_models
    from st_xling.models import load_encoder

    models = parse_models(arguments.model, **set_options(arguments, load_encoder))
    if arguments.keep:
        for each in models:
            check_folder(Path(str(each.model)), "--keep")
    data = load_comparison_data(arguments.data, arguments.languages, seed=arguments.seed)
    try:
        report = compare_models(
            models, **{**set_options(arguments, compare_models), "data": data, "show_progress_bar": True}
        )
    except KeyboardInterrupt:
        if arguments.out is not None:
            print("\nInterrupted. The same command resumes from the results so far.", file=sys.stderr)
        raise
    print(report.table())
    if arguments.out is not None:
        print(f"page: {Path(arguments.out) / 'compare.html'}", file=sys.stderr)
    write_results(arguments, {"compare": report.as_dict(), "signature": report.signature})
    for model in report.content["models"] if arguments.keep else ():
        keep_in(arguments, Path(model["model"]), "compare", report.result(model["name"]))
