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
from typing import Any

import jinja2
from huggingface_hub import CardData, EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from st_xling._version import __version__
from st_xling.evaluation.pictures import PICTURES, draw_results
from st_xling.evaluation.results import Row, SavedResults
from st_xling.hub.card_facts import CARD, CARD_FILE, TASKS, CardFacts, CardOptions
from st_xling.losses.base import bibtex
from st_xling.training.development import FEWEST_STEPS
from st_xling.utils.io import write_atomic, write_json
from st_xling.utils.languages import canonical_language, language_name
from st_xling.utils.paths import shown_command
from st_xling.utils.terminal import duration

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

    Pictures of the results are drawn into ``pictures/``. The options are saved in ``card.json``, where they replace
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
    names = [source["name"] for source in facts.sources]
    if wrong := [name for name in facts.said.data_licenses if name not in names]:
        raise ValueError(
            f"licenses are given to data that were trained on: got {', '.join(wrong)}; there are {', '.join(names)}."
        )
    draw_results(facts.folder, [(TASKS[result.task][0], result) for result in facts.evaluations])
    text = _render(facts)  # shows the pictures that are there
    said = {name: value for name, value in vars(facts.said).items() if value}
    write_json(facts.folder / CARD_FILE, {"said": said, "found": facts.found})
    path = facts.folder / CARD
    write_atomic(path, text.encode("utf-8"))
    return path


def card_text(folder: str | Path) -> str:
    """Return the card of a folder, without writing anything."""
    return _render(CardFacts(folder))


def one_line(text: object) -> str:
    """Return the text in one line, without invisible signs and halves of surrogate pairs."""
    kinds = [(sign, unicodedata.category(sign)) for sign in str(text)]
    kept = [(sign, kind) for sign, kind in kinds if kind not in ("Cf", "Cs") or sign in "\u200c\u200d"]
    return " ".join("".join(" " if kind in ("Cc", "Zl", "Zp") else sign for sign, kind in kept).split())


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
    room = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{room}{line}{room}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return a block of code whose fence is longer than any run of backticks in it."""
    hidden = ("Cc", "Cs", "Zl", "Zp")
    shown = "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in hidden).strip("\n")
    fence = _fence(shown, 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def _fence(text: str, least: int) -> str:
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


def _entities(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(sign)};" for sign in found[0])


def card_metadata(facts: CardFacts) -> tuple[CardData, dict[str, str]]:
    """Return the YAML at the top, sentence-transformers' card data and results that leaderboards read; and citations.

    The description of the model comes first, its results last.
    """
    is_encoder = facts.kind != "cross-encoder"
    kind = SentenceTransformerModelCardData if is_encoder else CrossEncoderModelCardData
    st_data: BaseModelCardData = kind(local_files_only=True, generate_widget_examples=False)
    tags = ["st-xling", "cross-lingual"]
    if name := facts.recipe.get("name"):
        tags.append(f"recipe:{one_line(name)}")
    if rows := [source["rows"] for source in facts.sources if source["rows"]]:
        tags.append(f"dataset_size:{sum(rows)}")
    st_data.add_tags(tags)
    st_data.set_losses(_losses(facts.recipe))
    if "strategy" in facts.recipe:
        st_data.citations["XPI and XPR"] = bibtex("chen2020crosslingual")
    results = [each for result in facts.evaluations for each in eval_results(result)]
    relation = facts.slim["relation"] if facts.slim else "adapter" if facts.adapters else "finetune"
    metadata = CardData(
        language=facts.hub_languages or None,
        license=facts.license,
        library_name=st_data.library_name,
        pipeline_tag=st_data.pipeline_tag if is_encoder else "text-ranking",
        tags=st_data.tags,
        base_model=facts.base_model,
        base_model_relation=str(relation) if facts.base_model else None,
        datasets=list(dict.fromkeys(source["hub_id"] for source in facts.sources if source["hub_id"])) or None,
        metrics=list(dict.fromkeys(result.metric_type for result in results)) or None,
    )
    if results:
        metadata["model-index"] = eval_results_to_model_index(one_line(facts.title), results)
    return metadata, st_data.citations


def eval_results(result: SavedResults) -> list[EvalResult]:
    """The main values, with the signature among their arguments: of the average over all rows, if there is one.

    The rest is in the tables and in ``results.json``. The signature is not among the arguments of the data set, since a
    model index keeps those of the first value of a data set alone.
    """
    split = result.parts.get("split")
    rows = [row for row in result.rows if row.average][-1:] or result.rows
    measures = [column for column in result.columns if column.metric is not None]
    main = [column for column in measures if column.picture] or measures
    task_name, task_type = TASKS[result.task]
    return [
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
            metric_args={
                "signature": one_line(result.signature),
                **{name: argument for name, argument in row.arguments.items() if argument is not None},
            },
        )
        for row in rows
        for column, value in zip(result.columns, row.values)
        if column in main and value is not None
    ]


def data_title(result: SavedResults) -> str:
    """Return the name of the data that a model was evaluated on."""
    return "Tatoeba" if result.data_name == "tatoeba" else result.data_name


def data_size(result: SavedResults) -> str:
    """Return how much was evaluated, such as ``500 sentences each``; empty where the results do not tell.

    A share of 100 % of five sentences and one of five thousand are different news.
    """
    rows = [row for row in result.rows if not row.average]
    gold = next((index for index, column in enumerate(result.columns) if column.name == "gold"), None)
    for unit in ("sentences", "queries", "gold pairs"):
        if unit == "gold pairs":
            counts = [] if gold is None else [row.values[gold] for row in rows]
        else:
            counts = [row.arguments.get(unit) for row in rows]
        known = [int(count) for count in counts if count is not None]
        if known and len(known) == len(rows):
            low, high = min(known), max(known)
            numbers = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            return f"{numbers} {unit} each" if len(rows) > 1 else f"{numbers} {unit}"
    return ""


def flat_recipe(recipe: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Every hyper-parameter: dotted name, as ``--set`` takes it, and value as JSON."""
    for key, value in recipe.items():
        if isinstance(value, Mapping) and value:
            yield from flat_recipe(value, f"{stem}{key}.")
        elif stem or key not in ("name", "summary"):
            yield f"{stem}{key}", json.dumps(value, ensure_ascii=False)


def headline(result: SavedResults) -> tuple[Row, int, list[int]] | None:
    """Return the row that sums up a result, the place of its main value, and those of its other shares."""
    if not result.rows:
        return None
    row, columns = sorted(result.rows, key=lambda row: row.average)[-1], result.columns
    shares = [place for place, column in enumerate(columns) if column.percent and row.values[place] is not None]
    # A mean of both directions, the column of pictures, any.
    shares.sort(key=lambda place: (columns[place].name != "mean", not columns[place].picture))
    return (row, shares[0], sorted(shares[1:])) if shares else None


def _render(facts: CardFacts) -> str:
    # A model that has no name on the Hub yet is loaded from its folder, next to which the snippet runs as it is.
    folder_name = facts.folder_name if _FOLDER_NAME.fullmatch(facts.folder_name) else "my-model"
    template = jinja2.Template(Path(__file__).with_name("card_template.md").read_text(encoding="utf-8"))
    metadata, citations = card_metadata(facts)
    # Texts in two languages of the model, the second English if possible; in English if none is known.
    languages = facts.tasks[:2] if len(facts.tasks) > 1 else facts.hub_languages
    first, *others = [code for code in map(canonical_language, languages) if code in _EXAMPLES] or ["eng"]
    second = "eng" if "eng" in others or not others else others[0]
    functions = (code, data_size, data_title, duration, fenced, flat_recipe, plain, repr, shown_command, span)
    text = template.render(
        card_data=metadata.to_yaml(),
        facts=facts,
        language_names=[language_name(code) for code in facts.hub_languages],
        examples=[_EXAMPLES[first], _EXAMPLES[second]],
        pictures={path.name for path in (facts.folder / PICTURES).glob("*")},
        place=facts.said.repo_id or folder_name,
        st_xling_version=__version__,
        citations=citations,
        headlines=[(result, best) for result in facts.evaluations if (best := headline(result))],
        count=lambda number: "" if number is None else f"{number:,}",
        percent=lambda share: "–" if share is None else f"{100 * share:.1f}",
        tasks=TASKS,
        fewest_steps=FEWEST_STEPS,
        **{function.__name__: function for function in functions},
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _losses(recipe: Mapping[str, Any]) -> list[Any]:
    """Return an unbuilt module of each loss that a recipe names, for its class and citation."""
    from sentence_transformers.cross_encoder import losses as ranking_losses

    from st_xling.losses import SiameseContrastiveLoss
    from st_xling.training.recipe import objective

    if "adapter" in recipe:
        return [SiameseContrastiveLoss.__new__(SiameseContrastiveLoss)]
    if "strategy" in recipe:  # a cross-encoder, by a loss of sentence-transformers
        classes = {name.lower(): getattr(ranking_losses, name) for name in dir(ranking_losses)}
        loss = classes[f"{recipe['loss']['name'].replace('_', '')}loss"]
        return [loss.__new__(loss)]
    modules: dict[type, Any] = {}
    for name, options in (recipe.get("losses") or {}).items():
        known = objective(name)
        if (options or {}).get("weight") != 0:
            with contextlib.suppress(AttributeError, TypeError):  # ST's, whose citation may depend on their options
                modules[known.loss] = known.loss.__new__(known.loss) if known.is_ours else known.loss(None)
    return list(modules.values())
