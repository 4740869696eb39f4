"""What each file of a published model is, by its path alone."""

from __future__ import annotations

import re

_STOCK = {
    "config.json": "shape of the encoder",
    "config_sentence_transformers.json": "settings of sentence-transformers: kind of model, prompts, similarity",
    "sentence_bert_config.json": "how sentence-transformers feeds the encoder: length, output",
    "modules.json": "the modules and their order",
    "router_config.json": "which modules read which text",
    "model.safetensors": "weights",
    "model.safetensors.index.json": "which file holds which weights",
    "adapter_model.safetensors": "weights of the adapters",
    "adapter_config.json": "shape of the adapters, and the model below them",
    "tokenizer.json": "the tokenizer: how text becomes tokens",
    "tokenizer_config.json": "settings of the tokenizer",
    "special_tokens_map.json": "special tokens",
    "added_tokens.json": "tokens added to the vocabulary",
    "chat_template.jinja": "how several texts become one",
    "generation_config.json": "settings for generating text",
    "preprocessor_config.json": "settings of the input's preparation",
    "processor_config.json": "settings of the input's preparation",
}
_VOCABULARIES = {
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "bpe.codes",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
}
_COMPANIONS = {
    "README.md": "this card",
    "LICENSE": "the licence in full",
    "results.json": "every figure, with its signature",
    "mining.json": "thresholds for mining, by language pair",
    "card.json": "what this card was told: licences, intended use",
    "training/run.json": "recipe, data and command of the training",
    "training/log.jsonl": "loss and development scores by step",
}
_SHARD = re.compile(r"model-(\d{5})-of-(\d{5})\.safetensors")
_MODULE = re.compile(r"\d+_(?P<kind>[A-Z]\w*)")
_NESTED = re.compile(r"\d+_Router/(?P<path>.+/.+)")
_ROUTED = re.compile(r"(?P<route>[A-Za-z][\w-]*?)_\d+_(?P<kind>[A-Z]\w*)")
_PICTURE = re.compile(r"pictures/(?P<name>[\w][\w.-]*)\.(png|svg)")


def describe(path: str) -> str | None:
    """What the file at ``path`` of a published model is.

    Args:
        path: Relative to the model's folder, with forward slashes.

    Returns:
        A phrase for the card's table of files; ``None`` for a file that is no part of a published model.

    Example:
        >>> describe("2_Dense/model.safetensors")
        'Dense module: weights'
    """
    if path in _COMPANIONS:
        return _COMPANIONS[path]
    picture = _PICTURE.fullmatch(path)
    if picture:
        return "picture: " + re.sub(r"[_\W]+", " ", picture["name"]).strip()
    if nested := _NESTED.fullmatch(path):
        path = nested["path"]
    folder, _, name = path.rpartition("/")
    stock = _stock(name)
    if stock is None or not folder:
        return stock
    module, routed = _MODULE.fullmatch(folder), _ROUTED.fullmatch(folder)
    if module:
        return f"{module['kind']} module: {_of_module(name, module['kind'], stock)}"
    if routed:
        return f"{routed['kind']} module for {_route(routed['route'])}: {_of_module(name, routed['kind'], stock)}"
    return None


def _stock(name: str) -> str | None:
    if name in _VOCABULARIES:
        return "vocabulary of the tokenizer"
    shard = _SHARD.fullmatch(name)
    if shard:
        return f"weights, part {int(shard[1])} of {int(shard[2])}"
    return _STOCK.get(name)


def _of_module(name: str, kind: str, stock: str) -> str:
    return "settings" if name == "config.json" and kind != "Transformer" else stock


def _route(name: str) -> str:
    return {"query": "queries", "document": "documents"}.get(name, name)
