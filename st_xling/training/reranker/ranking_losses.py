"""The host's losses for cross-encoders, by name, with the options that a recipe may give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import losses as host
from torch import nn

from st_xling.training.reranker.loss_rows import Form
from st_xling.training.strict_keys import check_keys, nearest, option_types, read_value

DEFAULT = "binary_cross_entropy"

_CLASSES: dict[str, tuple[str, Form]] = {
    "binary_cross_entropy": ("BinaryCrossEntropyLoss", "pairs"),
    "mse": ("MSELoss", "pairs"),
    "lambda": ("LambdaLoss", "lists"),
    "list_net": ("ListNetLoss", "lists"),
    "list_mle": ("ListMLELoss", "lists"),
    "plist_mle": ("PListMLELoss", "lists"),
    "rank_net": ("RankNetLoss", "lists"),
    "adr_mse": ("ADRMSELoss", "lists"),
    "multiple_negatives_ranking": ("MultipleNegativesRankingLoss", "positives"),
    "cached_multiple_negatives_ranking": ("CachedMultipleNegativesRankingLoss", "positives"),
    "margin_mse": ("MarginMSELoss", "triplets"),
}
_ACTIVATIONS: dict[str, type[nn.Module]] = {"identity": nn.Identity, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
_WEIGHTINGS = ("NoWeightingScheme", "NDCGLoss1Scheme", "NDCGLoss2Scheme", "LambdaRankScheme", "NDCGLoss2PPScheme")
_NAMED = {"activation_fn": tuple(_ACTIVATIONS), "weighting_scheme": _WEIGHTINGS}
_NEVER = {"lambda_weight", "show_progress_bar"}


@dataclass(frozen=True)
class RankingLoss:
    """A loss that a recipe names.

    Attributes:
        name: As :func:`loss_names` spells it.
        options: Of the host's class; ``activation_fn`` and ``weighting_scheme`` by name, ``pos_weight`` a number.
    """

    name: str = DEFAULT
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> type[nn.Module]:
        """The host's class."""
        return _host_class(self.name)

    @property
    def form(self) -> Form:
        """The rows it reads, see :func:`~st_xling.training.reranker.loss_rows.loss_rows`."""
        return _CLASSES[self.name][1]

    @property
    def compares_within_batch(self) -> bool:
        """Whether other rows' passages serve as negatives, so that no text, nor a translation of it, may come twice
        in a batch: see :mod:`st_xling.training.reranker.batch_keys`."""
        return self.form == "positives"

    def build(self, model: CrossEncoder) -> nn.Module:
        """The host's loss over ``model``."""
        options = dict(self.options)
        if "activation_fn" in options:
            options["activation_fn"] = _ACTIVATIONS[options["activation_fn"]]()
        if "weighting_scheme" in options:
            options["weighting_scheme"] = getattr(host, options["weighting_scheme"])()
        if "pos_weight" in options:
            options["pos_weight"] = torch.tensor(options["pos_weight"], device=model.device)
        return _host_class(self.name)(model, **options)


def loss_names() -> list[str]:
    """Losses of the installed host that can be trained with labelled pairs."""
    return [name for name, (kind, _) in _CLASSES.items() if hasattr(host, kind)]


def read_loss(given: Any, where: str = "loss") -> RankingLoss:
    """What a recipe says under ``loss``: a name, or a mapping of one name to its options.

    Names are taken in any of the spellings ``rank_net``, ``ranknet`` and ``RankNetLoss``.

    Raises:
        ValueError: A loss or option that is not known (the nearest is named), or a value of another type.
    """
    if given is None:
        return RankingLoss()
    if isinstance(given, str):
        given = {given: None}
    if not isinstance(given, dict) or len(given) != 1:
        raise ValueError(f"{where} names one loss, as in {{list_net: {{mini_batch_size: 16}}}}: got {given!r}.")
    [(spelling, options)] = given.items()
    spelled = {_plain(name): name for name in loss_names()}
    name = spelled.get(_plain(str(spelling)))
    if name is None:
        raise ValueError(f"{where} {str(spelling)!r} is not known{nearest(str(spelling), loss_names())}")
    return RankingLoss(name, _read_options(name, {} if options is None else options, f"{where}.{name}"))


def _read_options(name: str, given: Any, where: str) -> dict[str, Any]:
    known: dict[str, tuple[type, ...]] = dict(option_types(_host_class(name)))
    takes = {key: types for key, types in known.items() if (types or key in _NAMED) and key not in _NEVER}
    if "pos_weight" in known:
        takes["pos_weight"] = (float,)
    check_keys(given, takes, where)
    options = {}
    for key, value in given.items():
        if key in _NAMED:
            if value not in _NAMED[key]:
                raise ValueError(f"{where}.{key} must be one of {', '.join(_NAMED[key])}: got {value!r}.")
            options[key] = value
        else:
            options[key] = read_value(value, takes[key], f"{where}.{key}")
    return options


def _host_class(name: str) -> Any:
    return getattr(host, _CLASSES[name][0])


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower().removesuffix("loss")
