"""``st-xling reproduce``: a paper's tables by one command."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from st_xling.cli.options import JSON, command, write_results


@command(
    "reproduce",
    JSON,
    table={"nargs": "*"},
    seeds={"default": [0]},
    out={"type": Path, "default": Path("xling-reproduce")},
    jobs={"default": 1},
    scale={"default": "tiny"},
)
def reproduce(arguments: argparse.Namespace) -> None:
    """A paper's tables, trained and evaluated anew, beside the paper's own values.

    Train and evaluate what the tables of a paper take, each step an ordinary command, and print them with
    mean and deviation over seeds, tested differences and the paper's own values. What is done is not done again: the
    same command goes on where it was stopped, and other tables share its models.

    PAPER                       dap (Li et al. 2023), sf (Huang et al. 2023), amber (Hu et al. 2021), ir (Hu et al.
                                2023), xpr (Chen et al. 2020), or a YAML file of your own in the form of theirs
    TABLE                       as the paper numbers them, such as 1 or 'figure 4' (default: all)
    --scale {tiny,small,paper}  tiny: the phrasebook, to see that all runs (default); small: real text on two cores;
                                paper: the paper's own setting, for GPUs
    --model MODEL               Hub id or folder to start from; mlm: a small BERT that is pre-trained here by masked
                                words alone (default below paper scale); e5-small: the first four layers of
                                multilingual-e5-small, its vocabulary cut; e5-12: all twelve
    --precision {bf16,fp32}     of numbers; bf16: as the scale has it (default, but on processors without bfloat16)
    --seeds NUMBERS             one run each, such as 0,1,2 (default: 0)
    --rows LABEL...             only these rows; 'TR*' is all that begin with TR
    --data DIR                  folder of the data (default: $ST_XLING_DATA)
    --out DIR                   folder of models, results and tables (default: xling-reproduce)
    --jobs N                    steps at a time (default: 1)
    --overwrite                 run again what is done, and replace it

    examples:
      st-xling reproduce dap 1 --rows TR DAP --out my-tables
      st-xling reproduce xpr 3 --scale small --data data --model my-encoder --seeds 0,1,2

    All tables made so far are in DIR/PAPER-SCALE-MODEL-SEEDS.md and .json, with every signature and command.
    """
    from st_xling.reproduce import load_paper
    from st_xling.reproduce import reproduce as run
    from st_xling.reproduce.report import text

    options = {"scale": arguments.scale, "model": arguments.model, "seeds": arguments.seeds}
    options["precision"] = arguments.precision
    paper = load_paper(arguments.paper, arguments.table, rows=arguments.rows or (), **options)
    data = arguments.data or os.environ.get("ST_XLING_DATA")
    results = run(paper, arguments.out, data=data, jobs=arguments.jobs, overwrite=arguments.overwrite)
    print(text(results))
    print(f"\n{arguments.out / paper.file_name}.md", file=sys.stderr)
    write_results(arguments, results)
    if results["failed"]:
        lines = "\n".join(f"  {name}: {why}" for name, why in results["failed"].items())
        raise ValueError(f"{len(results['failed'])} steps failed; the same command tries them again:\n{lines}")
