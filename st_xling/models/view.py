"""A loaded encoder, looked at otherwise than it was saved: fewer layers, another pooling, a prompt before each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

from st_xling.models.layers import check_layer, cut_to_layer, layer_count
from st_xling.models.load import Pooling, set_pooling, st_model

_PROMPT = "st-xling"


class View(NamedTuple):
    """An encoder, and what of it is not its own.

    Attributes:
        model: It shares the weights of the model that it was made of.
        parts: For signatures, such as ``("layer:7", "pooling:mean")``; empty: the model as it is.
    """

    model: SentenceTransformer
    parts: tuple[str, ...]


def view(
    model: SentenceTransformer,
    *,
    layer: int | None = None,
    pooling: Pooling | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    passage_prompt: str | None = None,
) -> View:
    """The encoder cut, pooled and prompted as is said; what is left out, or what it has anyway, stays its own.

    Args:
        model: Its first module is a transformer, where a layer or a pooling is asked for; it stays as it is.
        layer: Ends there, counted from 1; where that is not the last one, modules after the pooling are left out, since
            they were made for the last.
        pooling: ``"mean"``, ``"cls"`` or ``"max"``, for the first pooling module.
        prompt: Stands before each text; of a retriever before each query.
        prompt_name: One of the model's own prompts, instead.
        passage_prompt: Stands before each text that ``encode_document`` reads.

    Raises:
        ValueError: A layer or prompt that the model lacks, an unknown pooling, no pooling module, both ``prompt`` and
            ``prompt_name``; a model of two encoders, where a layer or a pooling is asked for.

    Source:
        Hu et al. 2020 (XTREME) judge mBERT by the mean over layer 7's tokens.
    """
    parts: list[str] = []
    if pooling is not None and pooling not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}: got {pooling!r}.")
    if prompt is not None and prompt_name is not None:
        raise ValueError(f"a prompt is given by its text or by its name: got {prompt!r} and {prompt_name!r}.")
    if prompt_name is not None and prompt_name not in model.prompts:
        raise ValueError(f"this model has no prompt {prompt_name!r}: it has {', '.join(map(repr, model.prompts))}.")
    if (layer is not None or pooling is not None) and isinstance(model[0], Router):
        raise ValueError("a layer or a pooling is for models of one encoder: got one with a Router before all else.")
    result = rebuilt(model, list(model))
    if layer is not None and check_layer(model, layer) < layer_count(model):
        own = _pooling(model)
        result = rebuilt(model, list(cut_to_layer(model, layer, pooling=pooling or _known(own))))
        parts.append(f"layer:{layer}")
    if pooling is not None and pooling != _pooling(model):
        set_pooling(result, pooling)
        parts.append(f"pooling:{pooling}")
    text = prompt if prompt_name is None else model.prompts[prompt_name]
    # encode takes the default prompt, encode_query the one called "query".
    own = {model.prompts.get(model.default_prompt_name or ""), model.prompts.get("query")}
    if text is not None and own != {text}:
        result.prompts |= {_PROMPT: text, "query": text}
        result.default_prompt_name = _PROMPT
        parts.append(f"prompt:{_signed(text)}")
    if passage_prompt is not None and passage_prompt != model.prompts.get("document"):
        result.prompts["document"] = passage_prompt
        parts.append(f"passage_prompt:{_signed(passage_prompt)}")
    return View(result if parts else model, tuple(parts))


def rebuilt(model: SentenceTransformer, modules: Sequence[Any]) -> SentenceTransformer:
    """Other modules under the prompts, the similarity and the device of ``model``; weights are shared."""
    result = st_model(
        SentenceTransformer,
        modules=list(modules),
        device=str(model.device),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
    )
    result.model_card_data.base_model = model.model_card_data.base_model
    return result.eval()


def _pooling(model: SentenceTransformer) -> Any:
    return next((module.pooling_mode for module in model if isinstance(module, PoolingModule)), None)


def _known(mode: Any) -> Pooling:
    if mode not in get_args(Pooling):
        raise ValueError(
            f"this model pools by {mode}: another layer needs a pooling too, one of {', '.join(get_args(Pooling))}."
        )
    return mode


def _signed(text: str) -> str:
    """A prompt as a signature can hold it: on one line, without its separator."""
    return text.replace("%", "%25").replace("|", "%7C").replace("\n", "%0A")
