"""``st-xling evaluate precision``: is a translation among the N nearest sentences, both directions?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.commands.encoder_view import add_view, check_view, load_view
from st_xling.commands.figures import write_figures
from st_xling.commands.keep import add_keep, check_keep, keep

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.models.centre import Centre

_CENTRES: dict[str, Centre] = {"none": "none", "joint": "joint", "language": "per_language"}


def add_parser(tasks: Any) -> None:
    """Add the task to the parsers of ``st-xling evaluate``."""
    precision = tasks.add_parser(
        "precision",
        help="translations among the N nearest (P@1, P@5), both directions",
        description="How often is a translation among the N nearest sentences, by cosine? Any language pair.",
        epilog="examples:\n  st-xling evaluate precision my-encoder --data 'zh-vi=phrasebook?split=test&size=500'\n"
        "  st-xling evaluate precision my-encoder --data zh-vi=test.tsv --at 1,5\n"
        "  st-xling evaluate precision my-encoder --data zh-vi=test.tsv --centre language "
        "--centre-text 'zh-vi=phrasebook?size=2000'",
    )
    precision.add_argument("model", metavar="MODEL", help="Hub id or folder")
    precision.add_argument(
        "--data",
        action="append",
        required=True,
        metavar="SPEC",
        help="xx-yy=PATH, Hub id, phrasebook:… (its test split)",
    )
    precision.add_argument("--at", default="1,5", metavar="LIST", help="numbers of candidates (default: %(default)s)")
    precision.add_argument(
        "--centre",
        choices=tuple(_CENTRES),
        help="unit length, less a mean, unit length: less one mean of all languages, or each language its own; those "
        "saved with the model, or of --centre-text, or else of the judged text (default: as the model was saved)",
    )
    precision.add_argument("--centre-text", action="append", metavar="SPEC", help="text of the means, as --data")
    precision.add_argument("--skip-bad-lines", action="store_true", help="drop unreadable lines and say how many")
    precision.add_argument(
        "--batch-size", type=int, default=128, metavar="N", help="texts embedded at a time (default: %(default)s)"
    )
    precision.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    add_view(precision)
    add_keep(precision)
    precision.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Judge, print the table and the signature."""
    from st_xling.data import load_data_specs
    from st_xling.data.phrasebook_spec import phrasebook_name
    from st_xling.evaluation import PrecisionEvaluator

    check_keep(arguments)
    check_view(arguments, "centre")
    if arguments.centre_text and arguments.centre not in ("joint", "language"):
        raise ValueError("--centre-text is the text of the means: say which, --centre language or --centre joint.")
    if not all(part.strip().isdecimal() for part in arguments.at.split(",")):
        raise ValueError(f"--at takes whole numbers joined by commas, such as 1,5: got {arguments.at!r}.")
    data = load_data_specs(arguments.data, split="test", skip_bad_lines=arguments.skip_bad_lines)
    evaluator = PrecisionEvaluator(
        data,
        data_name=phrasebook_name(arguments.data, split="test"),
        at=[int(part) for part in arguments.at.split(",")],
        batch_size=arguments.batch_size,
        show_progress_bar=True,
        write_csv=False,
    )
    model, evaluator.view = load_view(arguments)
    if arguments.centre is not None:
        model, part = _centred(model, data, arguments)
        evaluator.view += part
    metrics = evaluator(model)
    print(evaluator.table(metrics))
    print(evaluator.signature)
    write_figures(arguments.json, {"precision": metrics, "signature": evaluator.signature})
    keep(arguments, "precision", metrics, evaluator.signature)


def _centred(
    model: SentenceTransformer, judged: dict[str, Any], arguments: argparse.Namespace
) -> tuple[SentenceTransformer, tuple[str, ...]]:
    """The model centred as ``--centre`` says, and what the signature says of it."""
    from st_xling.data import load_data_specs
    from st_xling.data.languages import canonical_language
    from st_xling.evaluation.precision import centred_by_text
    from st_xling.evaluation.signatures import sha8
    from st_xling.models.centre import Centring, centred_model, language_routes, saved_centring

    how, own = arguments.centre, saved_centring(model)
    if how == "none":
        return centred_model(model, None), () if own is None else ("centre:none",)
    if own is not None and not arguments.centre_text and (how == "joint" or own.languages):
        made, where = centred_model(model, own if how == "language" else Centring(own.joint, {})), "model"
    else:
        text, where = judged, "judged text"
        if arguments.centre_text:
            text = load_data_specs(arguments.centre_text, skip_bad_lines=arguments.skip_bad_lines)
            where = f"{','.join(text)}@{sha8([[part['source'][:], part['target'][:]] for part in text.values()])}"
        made = centred_by_text(model, text, _CENTRES[how], batch_size=arguments.batch_size, show_progress_bar=True)
    sides = ("source_language", "target_language")
    codes = {canonical_language(code) for part in judged.values() for side in sides for code in part.unique(side)}
    if lacking := sorted(codes - language_routes(made).keys()) if how == "language" else []:
        raise ValueError(
            f"--centre language needs a mean for each language: {where} has none for {', '.join(lacking)}."
        )
    return made, (f"centre:{how}@{where}",)
