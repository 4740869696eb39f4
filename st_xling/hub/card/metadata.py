"""The YAML at the top of a card, by the host's card data and the Hub's."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from st_xling.evaluation.results import KeptFigures
from st_xling.hub.card.escaping import one_line
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.judged import Judged
from st_xling.hub.card.losses import recipe_losses
from st_xling.hub.card.titles import title

_ORDER = ("language", "license", "license_name", "license_link", "library_name", "pipeline_tag", "tags", "base_model")
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_.:-]+")


def host_card_data(facts: CardFacts) -> BaseModelCardData:
    """What the host would say of such a model: library, task, tags, losses with their citations."""
    kind = SentenceTransformerModelCardData if facts.kind.is_encoder else CrossEncoderModelCardData
    data = kind(
        language=list(facts.languages),
        license=facts.options.license,
        model_name=title(facts),
        model_id=facts.options.repo_id,
        local_files_only=True,
        generate_widget_examples=False,
    )
    if facts.kind.kind in ("classifier", "tagger"):
        data.tags = ["sentence-transformers"] if facts.kind.kind == "classifier" else []
        data.pipeline_tag = "text-classification" if facts.kind.kind == "classifier" else "token-classification"
        data.library_name = "sentence-transformers" if facts.kind.kind == "classifier" else "transformers"
    elif facts.kind.kind == "cross-encoder":
        data.pipeline_tag = "text-ranking"
    data.base_model = facts.base_model
    data.datasets = list(dict.fromkeys(source.hub_id for source in facts.sources if source.hub_id))
    data.add_tags(_own_tags(facts))
    data.set_losses(recipe_losses(facts.recipe))
    return data


def card_metadata(facts: CardFacts) -> ModelCardData:
    """The metadata: what :func:`host_card_data` says, and figures that leaderboards read; nothing that is unknown."""
    host = host_card_data(facts)
    results = _as_indexed([result for kept, found in facts.judged for result in eval_results(kept, found)])
    options = facts.options
    given: dict[str, Any] = {
        "language": host.language or None,
        "license": host.license or None,
        "license_name": one_line(options.license_name) if options.license_name else None,
        "license_link": one_line(options.license_link) if options.license_link else None,
        "library_name": host.library_name,
        "pipeline_tag": host.pipeline_tag,
        "tags": host.tags,
        "base_model": host.base_model,
        "base_model_relation": _relation(facts) if host.base_model else None,
        "datasets": host.datasets or None,
        "metrics": list(dict.fromkeys(result.metric_type for result in results)) or None,
    }
    data = ModelCardData(**given, model_name=host.model_name if results else None, eval_results=results or None)
    # As dumped: what is said of the model first, its figures last.
    data.__dict__ = {key: data.__dict__[key] for key in [*given, *(key for key in data.__dict__ if key not in given)]}
    return data


def eval_results(kept: KeptFigures, found: Judged) -> list[EvalResult]:
    """Every figure that has a metric, with the signature among the metric's arguments.

    There, not among the data set's: a model index keeps those of the first figure of a data set alone.
    """
    return [
        EvalResult(
            task_type=found.task[0],
            task_name=one_line(found.task[1]),
            dataset_type=one_line(found.data[0]),
            dataset_name=one_line(f"{found.data[1]} ({label})"),
            dataset_config=one_line(label),
            dataset_split=one_line(found.split) if found.split else None,
            metric_type=column.metric,
            metric_name=one_line(column.head),
            metric_value=round(value, 6),
            metric_args={"signature": one_line(kept.signature), **_known(found.arguments.get(label, {}))},
        )
        for label, values in found.rows.items()
        for column, value in zip(found.columns, values)
        if column.metric is not None and value is not None
    ]


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _as_indexed(results: list[EvalResult]) -> list[EvalResult]:
    """In a model index's order: those of one data set together, under the names that the first gives it."""
    groups: dict[tuple, list[EvalResult]] = {}
    for result in results:
        groups.setdefault(result.unique_identifier, []).append(result)
    return [
        dataclasses.replace(result, task_name=group[0].task_name, dataset_name=group[0].dataset_name)
        for group in groups.values()
        for result in group
    ]


def _own_tags(facts: CardFacts) -> list[str]:
    tags = ["st-xling", "cross-lingual"]
    if name := facts.recipe.get("name"):
        tags.append(f"recipe:{_NOT_IN_TAGS.sub('-', one_line(name)).strip('-')}")
    rows = [source.rows for source in facts.sources if source.rows]
    return [*tags, *([f"dataset_size:{sum(rows)}"] if rows else [])]


def _relation(facts: CardFacts) -> str:
    if facts.slim:
        return str(facts.slim["relation"])
    return "adapter" if facts.kind.adapters else "finetune"
