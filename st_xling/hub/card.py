"""Model cards: ``card_template.md`` filled from a model's folder, with metadata for the Hub."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import jinja2
from huggingface_hub import CardData, EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from st_xling._version import __version__
from st_xling.evaluation.pictures import PICTURES, draw_results
from st_xling.evaluation.results import Row, SavedResults
from st_xling.hub import markdown
from st_xling.hub.card_facts import CARD, CARD_FILE, TASKS, CardFacts, CardOptions, read_facts
from st_xling.hub.markdown import one_line
from st_xling.losses.base import bibtex
from st_xling.utils.console import duration
from st_xling.utils.io import write_atomic, write_json
from st_xling.utils.languages import canonical_language, language_name
from st_xling.utils.paths import without_folders

__all__ = ["CardOptions", "card_text", "write_card"]

# Language → a sentence, a question that it answers, and another sentence; the same in all languages.
with Path(__file__).with_name("examples.tsv").open(encoding="utf-8", newline="") as _file:
    _EXAMPLES = {row.pop("language"): row for row in csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE)}
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_.:-]+")


def write_card(folder: str | Path, *, options: CardOptions | None = None) -> Path:
    """Write the ``README.md`` of a model from the content of its folder; the same folder gives the same bytes.

    Pictures of the results are drawn into ``pictures/``. The options are saved in ``card.json``, where they replace
    those of an earlier call.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
        options: The user's words and facts.
    Returns:
        The card.
    Raises:
        ValueError: If there is no model, its records are damaged, or a license is for an unknown data set.
        OSError: If it cannot be written; an earlier card is kept.
    """
    facts = read_facts(folder, options=options)
    data = facts.run.get("data") or {}
    if wrong := [name for name in facts.options.data_licenses if data and name not in data]:
        raise ValueError(
            f"licenses are given to data that were trained on: got {', '.join(wrong)}; there are {', '.join(data)}."
        )
    draw_results(facts.folder, [(TASKS[result.task][0], result) for result in facts.evaluations])
    text = _render(facts)  # shows the pictures that are there
    write_json(facts.folder / CARD_FILE, {"said": facts.said.as_dict(), "found": dict(facts.looked_up)})
    path = facts.folder / CARD
    write_atomic(path, text.encode("utf-8"))
    return path


def card_text(folder: str | Path) -> str:
    """Return the card of a folder, without writing anything."""
    return _render(read_facts(folder))


def shown_command(command: str, repo_id: str | None = None) -> str:
    """Return a command to paste, without what only concerns one machine and changes no result.

    These are ``--keep``, ``--json``, ``--cache``, ``--overwrite`` and ``--resume``, and all but the last part of
    ``--out`` and of absolute paths.

    Args:
        command: The command as it was typed.
        repo_id: Replaces the model of ``evaluate`` and ``transfer``, which comes after the task.
    Example:
        >>> shown_command("st-xling evaluate bucc my-encoder --data mining --json f.json --keep", "me/encoder")
        'st-xling evaluate bucc me/encoder --data mining'
    """
    shown: list[str] = []
    try:
        rest = iter(shlex.split(command))
    except ValueError:  # an open quotation: not a command of ours
        return command
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in ("--json", "--cache"):
            value = value if equals else next(rest, "")
        elif flag == "--out":
            shown += [flag, PurePath(value if equals else next(rest, "")).name or "model"]
        elif word not in ("--overwrite", "--resume", "--keep"):
            shown.append(word)
    if repo_id and shown[1:2] in (["evaluate"], ["transfer"]) and len(shown) > 3 and not shown[3].startswith("-"):
        shown[3] = repo_id
    return without_folders(shlex.join(shown))


def card_metadata(facts: CardFacts) -> tuple[CardData, dict[str, str]]:
    """Return the YAML at the top, sentence-transformers' card data and results that leaderboards read; and citations.

    What is said of the model comes first, its results last.
    """
    kind = SentenceTransformerModelCardData if facts.kind.is_encoder else CrossEncoderModelCardData
    st_data: BaseModelCardData = kind(local_files_only=True, generate_widget_examples=False)
    tags = ["st-xling", "cross-lingual"]
    if name := facts.recipe.get("name"):
        tags.append(f"recipe:{_NOT_IN_TAGS.sub('-', one_line(name)).strip('-')}")
    if rows := [source.rows for source in facts.sources if source.rows]:
        tags.append(f"dataset_size:{sum(rows)}")
    st_data.add_tags(tags)
    st_data.set_losses(_losses(facts.recipe))
    if "strategy" in facts.recipe:
        st_data.citations["XPI and XPR"] = bibtex("chen2020crosslingual")
    results = [each for result in facts.evaluations for each in eval_results(result)]
    options, base_model = facts.options, facts.base_model
    relation = facts.slim["relation"] if facts.slim else "adapter" if facts.kind.adapters else "finetune"
    metadata = CardData(
        language=facts.hub_languages or None,
        language_bcp47=list(facts.languages) if any(re.search("[-_]", code) for code in facts.languages) else None,
        license=options.license or None,
        license_name=one_line(options.license_name) if options.license_name else None,
        license_link=one_line(options.license_link) if options.license_link else None,
        library_name=st_data.library_name,
        pipeline_tag=st_data.pipeline_tag if facts.kind.is_encoder else "text-ranking",
        tags=st_data.tags,
        base_model=base_model,
        base_model_relation=str(relation) if base_model else None,
        datasets=list(dict.fromkeys(source.hub_id for source in facts.sources if source.hub_id)) or None,
        metrics=list(dict.fromkeys(result.metric_type for result in results)) or None,
    )
    if results:
        metadata["model-index"] = eval_results_to_model_index(facts.title, results)
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
    return {"tatoeba": "Tatoeba", "bucc": "BUCC"}.get(result.data_name, result.data_name)


def flat_recipe(recipe: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Every hyper-parameter: dotted name, as ``--set`` takes it, and value as JSON."""
    for key, value in recipe.items():
        if isinstance(value, Mapping) and value:
            yield from flat_recipe(value, f"{stem}{key}.")
        elif stem or key not in ("name", "summary"):
            yield f"{stem}{key}", json.dumps(value, ensure_ascii=False)


def headline(result: SavedResults) -> tuple[Row, int, list[int]] | None:
    """The row of a result that sums it up, the place of its first value, and those of the others that are shares."""
    rows: list[Row] = sorted(result.rows or (), key=lambda row: row.average)
    row = rows[-1] if rows else None
    columns = enumerate(result.columns or ())
    shares = {place: column for place, column in columns if row and column.percent and row.values[place] is not None}
    if row is None or not shares:
        return None
    # A mean of both directions, the column of pictures, any.
    main = min(shares, key=lambda place: (shares[place].name != "mean", not shares[place].picture, place))
    return row, main, [place for place in shares if place != main]


@functools.cache
def _template() -> jinja2.Template:
    """Return the compiled template; compiling takes a tenth of a second."""
    return jinja2.Template(Path(__file__).with_name("card_template.md").read_text(encoding="utf-8"))


def _render(facts: CardFacts) -> str:
    metadata, citations = card_metadata(facts)
    tasks = facts.kind.tasks[:2] if len(facts.kind.tasks) > 1 else facts.hub_languages
    kind = SentenceTransformer if facts.kind.is_encoder else CrossEncoder
    text = _template().render(
        card_data=metadata.to_yaml(),
        facts=facts,
        language_names=[language_name(code) for code in facts.hub_languages],
        examples=_examples(tasks),
        pictures={path.name for path in (facts.folder / PICTURES).glob("*")},
        place=facts.options.repo_id or kind._model_card_model_id_placeholder,  # which ST's push_to_hub replaces
        duration=duration,
        st_xling_version=__version__,
        citations=citations,
        headlines=[(result, best) for result in facts.evaluations if (best := headline(result))],
        repr=repr,
        prompt=_prompt(facts),
        count=lambda number: "" if number is None else f"{number:,}",
        percent=lambda share: "–" if share is None else f"{100 * share:.1f}",
        flat_recipe=flat_recipe,
        tasks=TASKS,
        data_title=data_title,
        shown_command=shown_command,
        **{name: getattr(markdown, name) for name in ("plain", "code", "span", "fenced", "paragraphs")},
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _losses(recipe: Mapping[str, Any]) -> list[Any]:
    """A module of each class of loss that a recipe names; unbuilt: they have class and citation, and no more."""
    from sentence_transformers.cross_encoder import losses as st_losses
    from sentence_transformers.sentence_transformer import losses as st_encoder_losses

    from st_xling import losses

    names = [name for name, options in (recipe.get("losses") or {}).items() if (options or {}).get("weight") != 0]
    names += ["siamese_contrastive"] if "adapter" in recipe else []
    module: Any = losses
    if "strategy" in recipe:  # a cross-encoder, by losses of sentence-transformers
        module = st_losses
        names = [(recipe.get("loss") or {}).get("name") or ""]
    classes = {name.lower(): getattr(module, name) for name in dir(module) if name.endswith("Loss")}
    full = dict.fromkeys(("tlm", "mlm"), "translation_language_modeling")
    keys = dict.fromkeys(f"{full.get(name, name).replace('_', '')}loss" for name in names)
    modules = [classes[key].__new__(classes[key]) for key in keys if key in classes]
    # Of sentence-transformers a recipe names the classes themselves, whose citation may depend on their options.
    for name in names if module is losses else ():
        with contextlib.suppress(AttributeError, TypeError):
            modules.append(getattr(st_encoder_losses, name)(None))
    return modules


def _prompt(facts: CardFacts) -> str | None:
    """The prompt by which texts are compared: that of the evaluations, the model's own, or that of queries."""
    prompts, default = facts.kind.prompts, facts.kind.default_prompt
    parts = [part for result in facts.evaluations for part in result.signature.split("|")]
    evaluated = [name for name, text in prompts.items() if f"prompt:{text}" in parts]
    # Results without a prompt are of texts as they are.
    likely = () if facts.evaluations else ("query", *prompts)
    return next((name for name in (*evaluated, default, *likely) if name in prompts), None)


def _examples(languages: Sequence[str]) -> list[dict[str, str]]:
    """Texts in a language of the model, and in another one of it, if it can be English: in English where nothing
    better is known."""
    codes = [code for code in map(canonical_language, languages) if code in _EXAMPLES]
    first = codes[0] if codes else "eng"
    others = [code for code in codes if code != first]
    second = "eng" if "eng" in others or not others else others[0]
    return [_EXAMPLES[first], _EXAMPLES[second]]
