"""An encoder as it was saved or otherwise: other weights' type, fewer layers, another prompt; centred by language.

:func:`load_encoder` loads, cuts, pools and prompts, :func:`model_options` says what of it signatures must name;
:class:`Centring` takes each language's mean off; :func:`encode_once` encodes
columns of text, each distinct text once and by the mean of its language.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.util import get_device_name
from torch import Tensor, nn

from st_xling.models.encode import Role, encode, own_prompt, prompt_text
from st_xling.models.layers import check_layer, cut_to_layer, layer_count
from st_xling.models.load import Backend, Dtype, Pooling, limit_length, loaded, set_pooling, st_model
from st_xling.utils.languages import UNKNOWN, canonical_language

logger = logging.getLogger(__name__)

Centre = Literal["per_language", "joint", "none"]

JOINT = "joint"
"""Route of text whose language is not named; ``encode`` without a task takes it."""

_PROMPT = "st-xling"


def load_encoder(
    name_or_path: str,
    *,
    pooling: Pooling | None = None,
    max_length: int | None = None,
    device: str | None = None,
    revision: str | None = None,
    dtype: Dtype | None = None,
    layer: int | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    passage_prompt: str | None = None,
    truncate_dim: int | None = None,
    backend: Backend = "torch",
    trust_remote_code: bool = False,
) -> SentenceTransformer:
    """A sentence encoder from a sentence-transformers model or a bare transformer.

    What is left out is as the model was saved; what is not, signatures name: see :func:`model_options`.

    Args:
        name_or_path: Hub id or folder.
        pooling: ``"mean"``, ``"cls"`` or ``"max"``; ``None`` keeps what the model has, or means over a bare
            transformer's tokens.
        max_length: Tokens a text is cut to, special tokens included.
        device: Where to put it; ``None`` lets ST choose.
        revision: Branch, tag or commit of the Hub.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``, of what is computed, and but on a CPU of the weights.
        layer: As for :func:`view`, and so are the prompts and ``truncate_dim``.
        prompt: Before each text.
        prompt_name: One of the model's own prompts, instead.
        passage_prompt: Before each passage.
        truncate_dim: Dimensions kept of an embedding.
        backend: ``"torch"``, ``"onnx"`` or ``"openvino"``, the last two where what ST asks of them is installed.
        trust_remote_code: Let code run that comes with the model. It can do whatever you can: read it before.

    Weights in ``pytorch_model.bin`` are read where there is no ``model.safetensors``, as transformers does: tensors
    alone, and a file that would run code is refused.

    Raises:
        ValueError: Nothing loadable at that name, code of its own without ``trust_remote_code``, a length that the
            encoder's positions do not reach, and as :func:`view`.
    """
    if pooling is not None and pooling not in get_args(Pooling):  # not only after the model is loaded
        raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}: got {pooling!r}.")
    if layer is not None and backend != "torch":
        raise ValueError(f"layer (--layer) is for the backend torch: got {layer} for {backend}; leave it out.")
    # On a CPU, autocast over float32 weights is as fast as weights of a shorter type, and nearer to float32: of 20,000
    # sentences with multilingual-e5-small, the worst cosine is 0.9996 in place of 0.9982.
    casts = dtype in ("float16", "bfloat16") and backend == "torch" and (device or get_device_name()) == "cpu"
    model = st_model(
        SentenceTransformer,
        name_or_path,
        device=device,
        revision=revision,
        dtype="float32" if casts else dtype,
        backend=backend,
        trust_remote_code=trust_remote_code,
    )
    if casts:
        with_options(model, dtype=str(dtype))
    if max_length is not None:
        limit_length(model, max_length)
    try:
        return view(
            model,
            layer=layer,
            pooling=pooling,
            prompt=prompt,
            prompt_name=prompt_name,
            passage_prompt=passage_prompt,
            truncate_dim=truncate_dim,
        )
    except ValueError as error:
        raise ValueError(f"{name_or_path}: {error}") from error


def view(
    model: SentenceTransformer,
    *,
    layer: int | None = None,
    pooling: Pooling | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    passage_prompt: str | None = None,
    truncate_dim: int | None = None,
) -> SentenceTransformer:
    """The encoder cut, pooled and prompted as requested; what is left out, or what it has anyway, stays its own.

    Args:
        model: Its first module is a transformer, where a layer or a pooling is asked for; it stays as it is, and shares
            its weights with the result.
        layer: Ends there, counted from 1; where that is not the last one, modules after the pooling are left out, since
            they were made for the last.
        pooling: ``"mean"``, ``"cls"`` or ``"max"``, for the first pooling module.
        prompt: Stands before each text; of a retriever before each query. ``""``: none.
        prompt_name: One of the model's own prompts, instead.
        passage_prompt: Stands before each text that ``encode_document`` reads.
        truncate_dim: Dimensions kept of an embedding, the first.

    Raises:
        ValueError: A layer or prompt that the model lacks, an unknown pooling, no pooling module, both ``prompt`` and
            ``prompt_name``; a model of two encoders, where a layer or a pooling is asked for; more dimensions than
            there are.

    Source:
        Hu et al. 2020 (XTREME) evaluate mBERT by the mean over layer 7's tokens.
    """
    if pooling is not None and pooling not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}: got {pooling!r}.")
    text = prompt_text(model, prompt, prompt_name)
    if (layer is not None or pooling is not None) and isinstance(model[0], Router):
        raise ValueError("a layer or a pooling is for models of one encoder: got one with a Router before all else.")
    if text is layer is pooling is passage_prompt is truncate_dim is None:
        return model
    options: dict[str, str] = {}
    result = rebuilt(model, list(model))
    if layer is not None and check_layer(model, layer) < layer_count(model):
        own = _pooling(model)
        result = rebuilt(model, list(cut_to_layer(model, layer, pooling=pooling or _known(own))))
        options["layer"] = str(layer)
    if pooling is not None and pooling != _pooling(model):
        set_pooling(result, pooling)
        options["pooling"] = pooling
    if text is not None:
        # encode takes the default prompt, encode_query the one called "query".
        result.prompts |= {_PROMPT: text, "query": text}
        result.default_prompt_name = _PROMPT
    if passage_prompt is not None:
        result.prompts["document"] = passage_prompt
    if truncate_dim is not None and truncate_dim != model.truncate_dim:
        dim = model.get_embedding_dimension()
        if truncate_dim < 1 or (dim is not None and truncate_dim > dim):
            raise ValueError(f"truncate_dim must be from 1 to {dim}, the model's dimensions: got {truncate_dim}.")
        result.truncate_dim = truncate_dim
        options["dim"] = str(truncate_dim)
    return with_options(result, **options)


def model_options(model: Any, *, prompt: str | None = None, retrieval: bool = False) -> dict[str, str]:
    """What a figure made with ``model`` depends on besides the saved model: parts of signatures, by name.

    ``dim``, ``layer`` and ``pooling`` where they are not the model's own; any ``prompt``, and of retrieval that of the
    passages; the ``dtype`` of what is computed where it is not float32; ``backend``, ``revision`` and
    ``trust_remote_code`` where they were set.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``; of others nothing is known.
        prompt: That stood before each text, in place of the model's own.
        retrieval: Whether queries and passages were told apart.
    """
    own = loaded(model).options
    parts = {name: own[name] for name in ("dim", "layer", "pooling") if name in own}
    if retrieval:
        parts |= {"prompt": own_prompt(model, "query"), "passage_prompt": own_prompt(model, "document")}
    else:
        parts["prompt"] = own_prompt(model) if prompt is None else prompt
    weights = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    dtype = "float32" if weights is None else str(weights.dtype).removeprefix("torch.")
    parts["dtype"] = own.get("dtype", "") if dtype == "float32" else dtype
    parts |= {name: value for name, value in own.items() if name not in parts}
    return {name: _signed(value) for name, value in parts.items() if value}


def with_options(model: SentenceTransformer, **options: str) -> SentenceTransformer:
    """The same model, of which signatures name these options as well."""
    known = loaded(model)
    model.st_xling_loaded = replace(known, options={**known.options, **options})  # type: ignore[assignment]
    return model


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
    result.st_xling_loaded = loaded(model)  # type: ignore[assignment]
    result.backend = model.backend
    if len(result) == len(model):
        result.module_kwargs = model.module_kwargs
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
    """A text as a signature can hold it: on one line, without its separator."""
    return text.replace("%", "%25").replace("|", "%7C").replace("\n", "%0A")


@dataclass(frozen=True)
class Centring:
    """Unit length, less a mean, unit length again.

    Languages differ by an offset that a mean of all cannot remove, so each may have a mean of its own.

    Attributes:
        joint: For text whose language is not named. *Shape:* ``(dim,)``
        languages: Language → its own mean. *Shape of each:* ``(dim,)``; empty: ``joint`` for all.

    Source:
        VecMap (Artetxe et al. 2018), option ``unit center unit``, which centres each language's matrix by itself;
        Huang et al. 2023 (mBERT-SF), section 4.2.
    """

    joint: Tensor
    languages: Mapping[str, Tensor]

    def __call__(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Centre by the language's mean, or by ``joint`` where it has none. *Shape:* ``(texts, dim)`` → the same"""
        own = {canonical_language(name): mean for name, mean in self.languages.items()}
        mean = own.get(canonical_language(language or ""), self.joint).to(vectors)
        return F.normalize(F.normalize(vectors, dim=-1) - mean, dim=-1)

    def modules(self) -> list[Any]:
        """The same as modules of sentence-transformers, to follow a pooling.

        With means by language their middle is a ``Router``: ``encode(texts, task="zh")`` takes the mean of ``zh``;
        ``encode``, ``encode_query`` and ``encode_document`` take the joint one; a task that is no language of it is an
        error of the router's, which names those it has.
        """
        middle: Any = _minus(self.joint)
        if self.languages:
            routes = {JOINT: [middle], **{language: [_minus(mean)] for language, mean in self.languages.items()}}
            roles = {(task, None): JOINT for task in ("query", "document")}
            middle = Router(routes, default_route=JOINT, route_mappings=roles)  # type: ignore[arg-type]
        return [Normalize(), middle, Normalize()]


@torch.no_grad()
def fit_centring(vectors: Tensor, languages: Sequence[str], centre: Centre = "per_language") -> Centring | None:
    """Means of unit vectors, by language; the joint mean has each language count alike.

    Args:
        vectors: Sentence embeddings of some text, of any length. *Shape:* ``(texts, dim)``
        languages: Of each of the texts.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``, see :class:`Centring`.

    Returns:
        ``None`` for ``"none"``.

    Raises:
        ValueError: No text, or an unknown ``centre``.
    """
    check_centre(centre)
    if centre == "none":
        return None
    if not len(vectors) or len(vectors) != len(languages):
        raise ValueError(f"means need text with its languages: got {len(vectors)} vectors, {len(languages)} languages.")
    rows: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        rows.setdefault(language, []).append(row)
    units = F.normalize(vectors, dim=-1)
    means = {language: units[own].mean(dim=0) for language, own in rows.items()}
    return Centring(torch.stack([*means.values()]).mean(dim=0), means if centre == "per_language" else {})


def check_centre(centre: str) -> None:
    """Raise ``ValueError`` for what is no way to centre."""
    if centre not in get_args(Centre):
        raise ValueError(f"centre must be one of {', '.join(get_args(Centre))}: got {centre!r}.")


def saved_centring(model: SentenceTransformer) -> Centring | None:
    """The centring of a model that ends with the modules of :meth:`Centring.modules`; of others ``None``."""
    modules: list[Any] = list(model)[-3:]
    if len(modules) < 3 or not (isinstance(modules[0], Normalize) and isinstance(modules[2], Normalize)):
        return None
    stages: dict[str, Any] = {JOINT: [modules[1]]}
    if isinstance(modules[1], Router):
        routes: Any = modules[1].sub_modules
        stages = {name: list(parts) for name, parts in routes.items()}
    if JOINT not in stages or not all(len(parts) == 1 and _is_shift(parts[0]) for parts in stages.values()):
        return None
    means = {name: -parts[0].linear.bias.detach() for name, parts in stages.items()}
    return Centring(means.pop(JOINT), means)


def centred_model(model: SentenceTransformer, centring: Centring | None) -> SentenceTransformer:
    """``model`` with this centring for the one it ends with, if any; the weights before it are shared.

    Args:
        model: An encoder; it stays as it is.
        centring: ``None``: no centring.
    """
    before = list(model)[: -3 if saved_centring(model) is not None else None]
    return rebuilt(model, [*before, *([] if centring is None else centring.modules())])


def language_routes(model: Any) -> dict[str, str]:
    """Languages (as ``canonical_language`` has them) → the task of ``encode``, of a model centred by language."""
    modules: list[Any] = list(model)[1:] if isinstance(model, nn.Sequential) else []
    names = {name for module in modules if isinstance(module, Router) for name in module.sub_modules} - {JOINT}
    return {canonical_language(name): name for name in sorted(names)}


def _minus(mean: Tensor) -> Dense:
    dim = len(mean)
    weight, bias = torch.eye(dim, dtype=mean.dtype), -mean.detach().cpu()
    return Dense(dim, dim, activation_function=nn.Identity(), init_weight=weight, init_bias=bias)


def _is_shift(module: Any) -> bool:
    if not isinstance(module, Dense) or module.linear.bias is None or module.in_features != module.out_features:
        return False
    weight = module.linear.weight
    return torch.equal(weight, torch.eye(len(weight), dtype=weight.dtype, device=weight.device))


def encode_once(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]],
    *,
    tasks: Sequence[str | None] | None = None,
    role: Role = "text",
    **options: Any,
) -> list[np.ndarray]:
    """Embeddings of each column's texts; equal texts have equal vectors, in whatever batch they would have fallen.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        columns: Lists of texts.
        tasks: Of each column: the route of the model that encodes it, see :func:`language_tasks`.
        role: ``"query"`` or ``"document"``: as ``encode_query`` or ``encode_document`` embed.
        options: Of :func:`~st_xling.models.encode.encode`.
    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    tasks = [None] * len(columns) if tasks is None else tasks
    encoded: dict[int, np.ndarray] = {}
    for task in dict.fromkeys(tasks):
        places = [place for place, own in enumerate(tasks) if own == task]
        texts = sorted({text for place in places for text in columns[place]})
        if task is None:
            embeddings = encode(model, texts, role=role, **options)
        elif role != "text" and isinstance(model[0], Router):  # of two encoders, each has its task: the mean goes in
            own = saved_centring(model)
            assert own is not None
            centred = centred_model(model, Centring(own.languages[task], {}))
            embeddings = encode(centred, texts, role=role, **options)
        else:  # encode_query and encode_document have tasks of their own
            embeddings = encode(model, texts, task=task, prompt=own_prompt(model, role), **options)
        row = {text: index for index, text in enumerate(texts)}
        for place in places:
            encoded[place] = np.asarray(embeddings[[row[text] for text in columns[place]]])
    return [encoded[place] for place in range(len(columns))]


def language_tasks(model: Any, languages: Sequence[str | None]) -> tuple[list[str | None], bool]:
    """Routes of a model that is centred by language, for text in these languages.

    Returns:
        A task of ``encode`` for each language (``None``: the joint mean, or a model without such routes), and whether a
        language lacks a mean of its own in a model that has some; a warning names those.
    """
    routes = language_routes(model)
    tasks = [routes.get(canonical_language(code or "")) for code in languages]
    joint = bool(routes) and None in tasks
    if joint:
        lacking = sorted({str(code) for code, task in zip(languages, tasks) if task is None})
        logger.warning(
            "the model has means of %s: text of %s is centred by their joint mean",
            ", ".join(routes.values()),
            ", ".join(lacking),
        )
    return tasks, joint


def centred_by_text(
    model: SentenceTransformer, texts: Sequence[str], languages: Sequence[str], centre: Centre, **options: Any
) -> SentenceTransformer:
    """``model`` centred by the means of a text, instead of those that it was saved with.

    Args:
        model: An encoder; it stays as it is.
        texts: Of all languages.
        languages: Of each of ``texts``.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``.
        options: Of ``encode``.
    Raises:
        ValueError: Text whose language is not known, where each language is to have its mean.
    """
    bare = centred_model(model, None)
    if centre == "none":
        return bare
    if centre == "per_language" and UNKNOWN in languages:
        raise ValueError("a mean for each language needs the languages of the text: got und; name them (zh-vi=PATH).")
    (vectors,) = encode_once(bare, [texts], **options)
    return centred_model(bare, fit_centring(torch.from_numpy(vectors), languages, centre))
