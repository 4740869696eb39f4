"""``st-xling demo``, ``leak``, ``slim``, ``postprocess``: beside training, evaluating and mining."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_xling.cli.model_options import ENCODER
from st_xling.cli.options import JSON, command, set_options, write_results


@command("demo", JSON, out={"type": Path, "default": Path("xling-demo")}, seed={"default": 0})
def demo(arguments: argparse.Namespace) -> None:
    """Train, evaluate and use a tiny encoder, offline, in a few minutes.

    Train a tiny encoder for five languages on the phrasebook, evaluate it before and after, mine with it, and save it
    with its card and a picture. Needs no network, no files and no GPU.

    --out DIR    folder for the model (default: xling-demo)
    --seed N     seed of text, weights and training (default: 0)
    --overwrite  replace an earlier demo in --out

    examples:
      st-xling demo
      st-xling demo --out my-demo --seed 1 --json figures.json
    """
    from st_xling.demo import demo_table, run_demo, usage_lines

    results = run_demo(arguments.out, seed=arguments.seed, overwrite=arguments.overwrite)
    print(demo_table(results))
    print(f"\nThe model, results.json and {results['picture']} are in {arguments.out}. Use it:\n")
    print(usage_lines(arguments.out, results["example"]))
    write_results(arguments, results)


@command("leak", JSON)
def leak(arguments: argparse.Namespace) -> None:
    """Look for evaluation text in training data.

    Count the evaluation sentences that training data hold on either side. Texts are compared by their letters, marks
    and numbers, case folded; near duplicates are not found.

    --train SPEC      as train's --data (required, repeatable)
    --eval EVAL       a SPEC, a Tatoeba folder, a BUCC folder or prefix, a .txt file of sentences, or phrasebook:… (its
                      test split) (required, repeatable)
    --skip-bad-lines  leave faulty lines out, and say how many
    --stream          read --train as needed: for more than memory holds
    --fail-on-leak    end with status 2 if anything is shared

    examples:
      st-xling leak --train phrasebook:de --eval phrasebook:de
      st-xling leak --train de-en=pairs.tsv --eval tatoeba/v1 --eval bucc2018/de-en/de-en.test
    """
    from st_xling.data import leaks, load_data_specs, load_evaluation_specs, refuse_leaks

    train = load_data_specs(arguments.train, skip_bad_lines=arguments.skip_bad_lines, stream=arguments.stream)
    evaluation = load_evaluation_specs(arguments.eval, skip_bad_lines=arguments.skip_bad_lines)
    report = leaks(train, evaluation, progress=True)
    print(report.table())
    write_results(arguments, report.as_dict())
    if arguments.fail_on_leak:
        refuse_leaks(report)


@command("slim", ENCODER, JSON)
def slim(arguments: argparse.Namespace) -> None:
    """Cut an encoder's vocabulary to some languages: the same embeddings, a smaller model.

    Keep the tokens that text of the given languages uses, drop all others with their rows of the word embeddings, and
    compare the two models.

    MODEL                Hub id or folder of an encoder; it is not touched
    --languages LIST     languages that it shall still read: de,en (required)
    --data SPEC          text of these languages: xx=FILE, xx-yy=PAIRS or phrasebook:xx (required, repeatable)
    --out DIR            folder of the slim model (required)
    --keep-words WORDS|FILE  words, or a file of them, a line each, whose tokens stay (repeatable)
    --parity SPEC        compare on this text instead (repeatable)
    --parity-rows N      texts or pairs to compare, in all (default: 500)
    --min-count N        drop tokens that come less often (default: 1, none)
    --hold-out X         share or number of rows of each source that are not counted, but compared (default: 0.05, at
                         most as many as are compared)
    --seed N             seed of the rows held out, and of the sample compared (default: 0)
    --skip-bad-lines     leave faulty lines out, and say how many
    --batch-size N       most texts of a batch (default: as suits the device)
    --overwrite          replace an earlier slim model in --out

    examples:
      st-xling slim intfloat/multilingual-e5-small --languages de,en --data de-en=pairs.tsv --out small
      st-xling slim my-encoder --languages de,en --data de=news.de.txt.gz --data en=news.en.txt.gz --min-count 2 \\
          --out small
      st-xling slim my-encoder --languages de,en --data phrasebook:de --layer 2 --keep-words 'Zürich' --out small

    Text is parallel as train takes it, or a text a line (also packed), or JSON lines with "text". It should be much and
    of many kinds: a token that does not come in it is gone, and words that need it are spelled in smaller pieces.
    """
    from st_xling.cli.keep import renew_card
    from st_xling.data.check import FaultLog, numbered_lines
    from st_xling.hub.card import shown_command
    from st_xling.models import load_encoder
    from st_xling.models.slim import slim_model

    # Words to keep: those named, and those in files.
    keep: list[str] = []
    for each in arguments.keep_words:
        if not Path(each).is_file():
            keep.append(each)
            continue
        faults = FaultLog(can_skip=False, what="words")
        keep += [line for _, line in numbered_lines(each, faults) if line]
        faults.finalize()
    options = set_options(arguments, slim_model, load_encoder)
    options |= {"keep": keep, "texts": arguments.data, "languages": arguments.languages}
    report = slim_model(
        parity_texts=arguments.parity,
        progress=True,
        command=shown_command(arguments.command_line),
        complete=lambda folder: renew_card(folder, made_here=True),
        **options,
    )
    print(report.table())
    write_results(arguments, {"slim": report.as_dict()})


@command("postprocess", ENCODER, JSON)
def postprocess(arguments: argparse.Namespace) -> None:
    """Fit centering, removal of languages, whitening, fewer dimensions or int8 on text; save a stock model.

    Fit steps on the sentence vectors of parallel text, evaluate translation retrieval before and after each on pairs
    held out, and save the encoder with them at its end. Nothing is trained.

    MODEL                           Hub id or folder of an encoder; it is not touched
    --data SPEC                     parallel text, as train's --data: two per cent to a fifth is held out (required,
                                    repeatable)
    --out DIR                       folder of the new model (required)
    --center {none,joint,language}  unit length, less a mean, unit length: less one mean of all languages, or each
                                    language its own, which encode(texts, task="de") takes (default: as the model has)
    --remove-languages              remove the directions in which the languages' means differ; without a task
    --whiten                        all directions of equal variance
    --dim N                         dimensions that stay, those of most variance
    --int8                          also write int8_ranges.json, for quantize_embeddings of sentence-transformers
    --eval SPEC                     evaluate on these pairs instead (repeatable)
    --skip-bad-lines                leave faulty lines out, and say how many
    --batch-size N                  most texts of a batch (default: as suits the device)
    --overwrite                     replace an earlier such model in --out

    examples:
      st-xling postprocess my-encoder --data de-en=pairs.tsv --center language --out centered
      st-xling postprocess my-encoder --data de-en=pairs.tsv --remove-languages --dim 8 --int8 --out small-vectors
    """
    from st_xling.cli.keep import renew_card
    from st_xling.cli.model_options import CENTERS
    from st_xling.evaluation import postprocess
    from st_xling.hub.card import shown_command
    from st_xling.models import load_encoder

    options = set_options(arguments, postprocess, load_encoder)
    if arguments.center is not None:
        options["center"] = CENTERS[arguments.center]
    report = postprocess(
        evaluate_on=arguments.eval,
        progress=True,
        command=shown_command(arguments.command_line),
        complete=lambda folder: renew_card(folder, made_here=True),
        **options,
    )
    print(report.table(), report.signature, sep="\n")
    write_results(arguments, {"postprocess": report.as_dict()})
