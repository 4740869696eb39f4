"""``st-xling exam``: which of several encoders is better, where, by how much, and whether that can be trusted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_xling.cli.keep import check_folder, keep_in
from st_xling.cli.model_options import ENCODER
from st_xling.cli.options import JSON, KEEP, command, set_options, write_results


@command("exam", ENCODER, JSON, KEEP, seed={"default": 0}, budget={"type": float})
def exam(arguments: argparse.Namespace) -> None:
    """Compare encoders by many tasks: one page, with intervals and tested differences.

    Examine each model by the same items: Tatoeba both ways, xsim and xsim++, robustness, mining with a threshold from
    another split, a mixed pool of passages and its language bias, hubness, speed and size, and whether its recorded
    training data hold the exam's text. An order of models is given only where paired tests, corrected for their number,
    allow one.

    MODEL...          Hub ids or folders; options of one alone stand behind it: 'e5?prompt=query: &name=E5&layer=7'
    --data SPEC       folder with some of tatoeba, mining, xquad_r and retrieval; a folder of Tatoeba's, BUCC's or
                      XQuAD-R's files; xx-en=PATH; xx=DIR or xx=FILE.json, passages as of evaluate retrieval; or
                      phrasebook:… (default: the phrasebook's test sentences) (repeatable)
    --languages LIST  codes, joined by commas, or a group: xnli14, full28, xtreme36, laser112 (default: all)
    --tasks LIST      tatoeba,xsim,xsim++,robustness,mining,pool,hubness,speed,size,leak (default: all)
    --out DIR         folder of the page exam.html, and of what is done: the same command goes on from there
    --budget MINUTES  where all items would take longer: the same sample of them for each model
    --samples N       samples of the bootstrap (default: 1000)
    --seed N          of samples and draws (default: 0)
    --batch-size N    most texts of a batch (default: as suits the device)

    examples:
      st-xling exam my-encoder intfloat/multilingual-e5-small --out my-exam
      st-xling exam my-encoder 'intfloat/multilingual-e5-small?prompt=query: ' --data tatoeba/v1 --languages de,fr \\
          --tasks tatoeba,xsim --json exam.json
      st-xling exam my-encoder --data tatoeba/v1 --budget 30

    An item is a pair of sentences, a sentence to mine, or a question. Intervals are bootstrap intervals over items.
    """
    from st_xling.evaluation.exam import examine, load_exam_data, parse_examinees
    from st_xling.models import load_encoder

    examinees = parse_examinees(arguments.model, **set_options(arguments, load_encoder))
    if arguments.keep:
        for each in examinees:
            check_folder(Path(str(each.model)), "--keep")
    data = load_exam_data(arguments.data, arguments.languages, seed=arguments.seed)
    try:
        options = {**set_options(arguments, examine), "data": data, "show_progress_bar": True}
        report = examine(examinees, **options)
    except KeyboardInterrupt:
        if arguments.out is not None:
            print("\nwhat is done stands; the same command goes on from there.", file=sys.stderr)
        raise
    print(report.table())
    if arguments.out is not None:
        print(f"page: {Path(arguments.out) / 'exam.html'}", file=sys.stderr)
    write_results(arguments, {"exam": report.as_dict(), "signature": report.signature})
    for model in report.content["models"] if arguments.keep else ():
        keep_in(arguments, Path(model["model"]), "exam", report.scores(model["name"]), model["signature"])
