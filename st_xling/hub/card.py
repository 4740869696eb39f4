"""Model cards: ``card_template.md`` filled from a model's folder, with metadata for the Hub, as safe Markdown.

Text that is not ours is shown as it is: no structure, no HTML, no way out of a table. Signs that could mean something
to Markdown or HTML are written as numeric entities, which unlike backslashes are safe in a table cell too.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from huggingface_hub import CardData, EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from st_xling._version import __version__
from st_xling.evaluation.compare.axes import AXES_HEAD, axes_rows
from st_xling.evaluation.pictures import PICTURES, draw_results
from st_xling.evaluation.results import Row, SavedResults
from st_xling.hub.card_facts import CARD, CARD_FILE, TASKS, CardFacts, CardOptions
from st_xling.hub.eval_results import write_eval_results
from st_xling.losses.base import bibtex
from st_xling.training.development import FEWEST_STEPS
from st_xling.utils.io import write_atomic, write_json
from st_xling.utils.languages import canonical_language, language_name
from st_xling.utils.paths import shown_command
from st_xling.utils.terminal import duration

if TYPE_CHECKING:
    from torch import nn

# Language → a sentence, a question that it answers, and another sentence; the same in all languages.
with Path(__file__).with_name("examples.tsv").open(encoding="utf-8", newline="") as _file:
    _EXAMPLES = {row.pop("language"): row for row in csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE)}
# `_` and `:` mean something only next to other characters; `$` opens formulas on the Hub.
_MEANINGFUL = re.compile(r"[&<>|`*\[\]\\~$]|(?<![^\W_])_|_(?![^\W_])|(?<=[hH][tT][tT][pP])s?:|(?<=[wW]{3})\.")
#: Folders whose name can stand between quotes in a fence.
_FOLDER_NAME = re.compile(r"[\w.+@ -]+")
_LEADING = re.compile(r"^(?:[-+=#]|\d+(?=[.)](?:\s|$)))")


def write_card(folder: str | Path, *, options: CardOptions | None = None, folder_name: str | None = None) -> Path:
    """Write the ``README.md`` of a model from the content of its folder; the same folder gives the same bytes.

    Pictures of the results are drawn into ``pictures/``. Results that the Hub's leaderboards read are written to
    ``.eval_results/``, see :mod:`st_xling.hub.eval_results`. The options are saved in ``card.json``, where they replace
    those of an earlier call.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
        options: The user's words and facts.
        folder_name: Name of the folder that the model will be moved to, if that is another.

    Returns:
        The card.

    Raises:
        ValueError: If there is no model, its records are damaged, or a license is for an unknown data set.
        OSError: If it cannot be written; an earlier card is kept.
    """
    facts = CardFacts(folder, options=options, folder_name=folder_name)
    names = [source.name for source in facts.sources]
    if unknown := [name for name in facts.given.data_licenses if name not in names]:
        raise ValueError(
            f"licenses are given to data that were trained on: got {', '.join(unknown)}; there are {', '.join(names)}."
        )
    draw_results(facts.folder, [(TASKS[result.task][0], result) for result in facts.evaluations])
    text = _render(facts)  # shows the pictures that are there
    given = {name: value for name, value in vars(facts.given).items() if value}
    write_json(facts.folder / CARD_FILE, {"given": given, "hub_ids": facts.hub_ids})
    write_eval_results(facts.folder, facts.evaluations, repo_id=facts.given.repo_id)
    path = facts.folder / CARD
    write_atomic(path, text.encode("utf-8"))
    return path


def card_text(folder: str | Path) -> str:
    """Return the card of a folder, without writing anything."""
    return _render(CardFacts(folder))


def one_line(text: object) -> str:
    """Return the text in one line, without invisible signs and halves of surrogate pairs."""
    kept = []
    for sign in str(text):
        category = unicodedata.category(sign)
        if category in ("Cc", "Zl", "Zp"):  # control characters and ends of lines
            kept.append(" ")
        elif category not in ("Cf", "Cs") or sign in "\u200c\u200d":  # joiners belong to words and emoji
            kept.append(sign)
    return " ".join("".join(kept).split())


def plain(text: object) -> str:
    """Return one line of Markdown that reads as ``text``.

    Example:
        >>> plain("a|b <script>")
        'a&#124;b &#60;script&#62;'
    """
    return _LEADING.sub(_entities, _MEANINGFUL.sub(_entities, one_line(text)))


def code(text: object) -> str:
    """Return the same in the typeface of code, also within a table."""
    return f"<code>{plain(text)}</code>"


def span(text: object) -> str:
    """Return the same outside of tables, as it was typed, between as many backticks as it takes."""
    line = one_line(text)
    fence = _fence(line, 1)
    touches_fence = not line or line.startswith("`") or line.endswith("`")
    room = " " if touches_fence else ""
    return f"{fence}{room}{line}{room}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return a block of code whose fence is longer than any run of backticks in it."""
    hidden = ("Cc", "Cs", "Zl", "Zp")
    shown = "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in hidden).strip("\n")
    fence = _fence(shown, 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def _fence(text: str, min_length: int) -> str:
    """Return backticks: one more than the longest run of them in the text, and at least ``min_length``."""
    longest_run = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(min_length, longest_run + 1)


def _entities(match: re.Match[str]) -> str:
    return "".join(f"&#{ord(sign)};" for sign in match[0])


def card_metadata(facts: CardFacts) -> tuple[CardData, dict[str, str]]:
    """Return the YAML at the top, sentence-transformers' card data and results that leaderboards read; and citations.

    The description of the model comes first, its results last.
    """
    is_encoder = facts.kind != "cross-encoder"
    card_data_class = SentenceTransformerModelCardData if is_encoder else CrossEncoderModelCardData
    st_data: BaseModelCardData = card_data_class(local_files_only=True, generate_widget_examples=False)
    tags = ["st-xling", "cross-lingual"]
    if name := facts.recipe.get("name"):
        tags.append(f"recipe:{one_line(name)}")
    if rows := [source.rows for source in facts.sources if source.rows]:
        tags.append(f"dataset_size:{sum(rows)}")
    st_data.add_tags(tags)
    st_data.set_losses(_losses(facts.recipe))
    if "strategy" in facts.recipe and not facts.is_filter:
        st_data.citations["XPI and XPR"] = bibtex("chen2020crosslingual")

    results: list[EvalResult] = []
    for evaluation in facts.evaluations:
        results += eval_results(evaluation)
    datasets = dict.fromkeys(source.hub_id for source in facts.sources if source.hub_id)
    metrics = dict.fromkeys(result.metric_type for result in results)
    metadata = CardData(
        language=facts.hub_languages or None,
        license=facts.license,
        library_name=st_data.library_name,
        pipeline_tag=st_data.pipeline_tag if is_encoder else "text-ranking",
        tags=st_data.tags,
        base_model=facts.base_model,
        base_model_relation=_base_model_relation(facts),
        datasets=list(datasets) or None,
        metrics=list(metrics) or None,
    )
    if results:
        metadata["model-index"] = eval_results_to_model_index(one_line(facts.title), results)
    return metadata, st_data.citations


def _base_model_relation(facts: CardFacts) -> str | None:
    """Return how the model was made from its base model, in the Hub's words."""
    if not facts.base_model:
        return None
    if facts.slim:
        return str(facts.slim["relation"])
    if facts.merge:
        return str(facts.merge["relation"])
    return "adapter" if facts.adapters else "finetune"


def eval_results(result: SavedResults) -> list[EvalResult]:
    """Return the main values with their signature: of the average over all rows, if there is one.

    The rest is in the tables and in ``results.json``. The signature is an argument of the metric, not of the data set:
    a model index keeps only the arguments of the first value of a data set.
    """
    split = result.parts.get("split")
    averages = [row for row in result.rows if row.average]
    rows = averages[-1:] or result.rows
    measures = [column for column in result.columns if column.metric is not None]
    main = [column for column in measures if column.picture] or measures
    task_name, task_type = TASKS[result.task]
    results = []
    for row in rows:
        metric_args = {"signature": one_line(result.signature)}
        metric_args |= {name: argument for name, argument in row.arguments.items() if argument is not None}
        for column, value in zip(result.columns, row.values):
            if column not in main or value is None:
                continue
            results.append(
                EvalResult(
                    task_type=task_type,
                    task_name=task_name,
                    dataset_type=one_line(result.data_name),
                    dataset_name=one_line(f"{data_title(result)} ({row.label})"),
                    dataset_config=one_line(row.label),
                    dataset_split=one_line(split) if split else None,
                    metric_type=str(column.metric),
                    metric_name=one_line(column.name),
                    metric_value=round(value, 6),
                    metric_args=dict(metric_args),
                )
            )
    return results


def data_title(result: SavedResults) -> str:
    """Return the name of the data that a model was evaluated on."""
    return "Tatoeba" if result.data_name == "tatoeba" else result.data_name


def data_size(result: SavedResults) -> str:
    """Return how much was evaluated, such as ``500 sentences each``; empty where the results do not tell.

    A share of 100 % of five sentences and one of five thousand are different news.
    """
    rows = [row for row in result.rows if not row.average]
    for unit in ("sentences", "queries", "gold pairs"):
        if unit == "gold pairs":
            counts = _column_values(result, rows, "gold")
        else:
            counts = [row.arguments.get(unit) for row in rows]
        sizes = [int(count) for count in counts if count is not None]
        if sizes and len(sizes) == len(rows):
            smallest = min(sizes)
            largest = max(sizes)
            numbers = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
            return f"{numbers} {unit} each" if len(rows) > 1 else f"{numbers} {unit}"
    return ""


def _column_values(result: SavedResults, rows: list[Row], name: str) -> list[float | None]:
    """Return the values of a column in some rows of a result; empty if it has no such column."""
    names = [column.name for column in result.columns]
    if name not in names:
        return []
    index = names.index(name)
    return [row.values[index] for row in rows]


def flat_recipe(recipe: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Iterate over all hyper-parameters: dotted name, as ``--set`` takes it, and value as JSON."""
    for key, value in recipe.items():
        if isinstance(value, Mapping) and value:
            yield from flat_recipe(value, f"{stem}{key}.")
        elif stem or key not in ("name", "summary"):
            yield f"{stem}{key}", json.dumps(value, ensure_ascii=False)


def headline(result: SavedResults) -> tuple[Row, int, list[int]] | None:
    """Return the row that sums up a result, the index of its main column, and those of its other shares."""
    if not result.rows:
        return None
    averages = [row for row in result.rows if row.average]
    row = (averages or result.rows)[-1]
    columns = result.columns
    shares = [index for index, column in enumerate(columns) if column.percent and row.values[index] is not None]
    if not shares:
        return None
    # A mean of both directions, the column of pictures, any.
    shares.sort(key=lambda index: (columns[index].name != "mean", not columns[index].picture))
    return row, shares[0], sorted(shares[1:])


def _render(facts: CardFacts) -> str:
    # A model that has no name on the Hub yet is loaded from its folder, next to which the snippet runs as it is.
    folder_name = facts.folder_name if _FOLDER_NAME.fullmatch(facts.folder_name) else "my-model"
    template = jinja2.Template(Path(__file__).with_name("card_template.md").read_text(encoding="utf-8"))
    metadata, citations = card_metadata(facts)
    headlines = []
    for result in facts.evaluations:
        if best := headline(result):
            headlines.append((result, best))
    text = template.render(
        card_data=metadata.to_yaml(),
        facts=facts,
        language_names=[language_name(code) for code in facts.hub_languages],
        examples=_examples(facts),
        pictures={path.name for path in (facts.folder / PICTURES).glob("*")},
        place=facts.given.repo_id or folder_name,
        added_name=language_name(facts.added["language"]) if facts.added else "",
        st_xling_version=__version__,
        citations=citations,
        headlines=headlines,
        tasks=TASKS,
        fewest_steps=FEWEST_STEPS,
        axes_head=AXES_HEAD,
        axes_rows=axes_rows,
        code=code,
        count=_count,
        data_size=data_size,
        data_title=data_title,
        duration=duration,
        fenced=fenced,
        flat_recipe=flat_recipe,
        percent=_percent,
        plain=plain,
        repr=repr,
        shown_command=shown_command,
        span=span,
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _examples(facts: CardFacts) -> list[dict[str, str]]:
    """Return texts in two languages of the model, the second English if possible; in English if none is known."""
    languages = facts.tasks[:2] if len(facts.tasks) > 1 else facts.hub_languages
    codes = [canonical_language(code) for code in languages]
    first, *others = [code for code in codes if code in _EXAMPLES] or ["eng"]
    second = "eng" if "eng" in others or not others else others[0]
    return [_EXAMPLES[first], _EXAMPLES[second]]


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _losses(recipe: Mapping[str, Any]) -> list[nn.Module]:
    """Return an unbuilt module of each loss that a recipe names, for its class and citation."""
    from sentence_transformers.cross_encoder import losses as ranking_losses

    from st_xling.losses import SiameseContrastiveLoss
    from st_xling.training.recipe import objective

    if "adapter" in recipe:
        return [_unbuilt(SiameseContrastiveLoss)]
    if "strategy" in recipe:  # a cross-encoder, by a loss of sentence-transformers
        classes = {name.lower(): getattr(ranking_losses, name) for name in dir(ranking_losses)}
        name = recipe["loss"]["name"].replace("_", "")
        return [_unbuilt(classes[f"{name}loss"])]
    losses: dict[type[nn.Module], nn.Module] = {}
    for name, options in (recipe.get("losses") or {}).items():
        term = objective(name)
        if (options or {}).get("weight") == 0:
            continue
        if term.is_ours:
            losses[term.loss] = _unbuilt(term.loss)
            continue
        # The citation of a loss of sentence-transformers may depend on its options, so it needs to be built.
        with contextlib.suppress(AttributeError, TypeError):
            losses[term.loss] = term.loss(None)
    return list(losses.values())


def _unbuilt(loss: type[nn.Module]) -> nn.Module:
    """Return a loss without model and weights: ``set_losses`` takes modules, but reads class and citation alone."""
    return loss.__new__(loss)
