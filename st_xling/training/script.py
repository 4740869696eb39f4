"""Scripts: a run by a recipe as Python code of sentence-transformers' trainer, to be read and changed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers.util.file_io import is_sentence_transformer_model, load_file_path

from st_xling.data.holdout import FEWEST_PAIRS
from st_xling.data.spec import paired_languages, parse_data_spec
from st_xling.losses import CrossLingualLoss
from st_xling.models import static_encoder, tiny_encoder
from st_xling.models.load import PAIR_TOKENS
from st_xling.training.options import HardNegativeOptions, TeacherOptions
from st_xling.training.recipe import Recipe, RecipeLoss, objective
from st_xling.training.run import check_static, check_tiny
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.languages import canonical_language
from st_xling.utils.lora_options import LoraOptions
from st_xling.utils.python_code import Call, Expression, Name, Scaled, Sum, flat, layout

PLACEHOLDER_MODEL = "xlm-roberta-base"
PLACEHOLDER_DATA = "de-en=pairs.tsv"
PLACEHOLDER_OUT = "my-encoder"

# Variables of the script.
_PAIRS = Name("pairs")
_MODEL = Name("model")
_ARGUMENTS = Name("arguments")
_TRAIN = Name("train")
_DEV = Name("dev")


def training_script(
    recipe: Recipe,
    *,
    model: str = PLACEHOLDER_MODEL,
    data: Sequence[str] = (PLACEHOLDER_DATA,),
    out: str | Path = PLACEHOLDER_OUT,
    dev: Sequence[str] | None = None,
    tiny: Mapping[str, Any] | None = None,
    static: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    skip_bad_lines: bool = False,
) -> str:
    """Return the Python script of a run that trains an encoder, as ``st-xling train RECIPE --print-python`` prints it.

    The script loads and prepares the data, builds model, losses and arguments, trains by
    :class:`~st_xling.training.CrossLingualTrainer` and saves the model. It writes no card, and does not look for text
    that training and evaluation data share.

    Args:
        recipe: Losses, training arguments and options of the data.
        model: Hub id or folder of the model to start from, or ``"tiny"`` or ``"static"``.
        data: Specs of training data, see :func:`~st_xling.data.load_data_specs`.
        out: Folder for the model.
        dev: Specs of development data; empty: none; ``None``: held out from ``data``.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        static: Options of :func:`~st_xling.models.static_encoder`, for ``model="static"``.
        cache: Folder of a teacher's vectors.
        revision: Version of the model on the Hub.
        trust_remote_code: Whether code that comes with the model may run.
        skip_bad_lines: Skip faulty lines of the data.

    Raises:
        ValueError: A model whose files cannot be read, so that it is not known whether it has a pooling module.

    Example:
        >>> from st_xling.training import load_recipe
        >>> print(training_script(load_recipe("labse", tiny=True), model="tiny", data=["phrasebook:de"], dev=[]))
        ... # doctest: +ELLIPSIS
        # labse: Translation ranking both ways with an additive margin (Feng et al. 2022, LaBSE, equations 1 to 3).
        from st_xling.data import load_data_specs
        from st_xling.data.text_cells import column_texts
        from st_xling.losses import TranslationRankingLoss
        ...
        loss = TranslationRankingLoss(model, margin=0.3)
        ...
    """
    script = _Script()
    _add_data(script, recipe, data, dev, skip_bad_lines=skip_bad_lines)
    if model in BUILT_MODELS:
        sizes = check_tiny(tiny, model) | check_static(static, model)
        is_bare = _add_built_model(script, recipe, model, sizes)
    else:
        is_bare = _add_model(script, recipe, model, revision=revision, trust_remote_code=trust_remote_code)
    _add_arguments(script, recipe, out, has_prompts=not is_bare)
    _add_columns(script, recipe, cache)
    _add_loss(script, recipe)
    _add_training(script, recipe, out, evaluates=dev is None or bool(dev))
    return script.text(f"# {recipe.name}: {' '.join(recipe.summary.split())}".removesuffix(": "))


class _Script:
    """Lines of code, and what they import.

    Attributes:
        imports: Module → names.
        lines: Lines below the imports.
        has_prompts: Whether ``arguments.prompts`` are those of each column.
        options: Names of the variables that hold options of losses.
    """

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []
        self.has_prompts = False
        self.options: list[str] = []

    def import_name(self, module: str, name: str) -> str:
        """Import a name, and return it."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def call(self, module: str, name: str, /, *arguments: Expression, **keywords: Expression) -> Call:
        """Return the call of a function that is imported."""
        return Call(self.import_name(module, name), arguments, keywords)

    def assign(self, target: str, expression: Expression) -> None:
        self.lines += layout(expression, before=f"{target} = ")

    def run(self, expression: Expression) -> None:
        self.lines += layout(expression)

    def text(self, comment: str) -> str:
        """Return the script, its imports first."""
        imports: list[str] = []
        for module, names in sorted(self.imports.items()):
            imports += _import_lines(module, sorted(names))
        return "\n".join([comment, *imports, "", *self.lines, ""])


def _import_lines(module: str, names: Sequence[str]) -> list[str]:
    lines = layout(Call("", [Name(name) for name in names]), before=f"from {module} import ")
    if len(lines) == 1:  # without parentheses
        return [f"from {module} import {', '.join(names)}"]
    return [lines[0], *(f"    {name}," for name in names), lines[-1]]


def _add_data(
    script: _Script, recipe: Recipe, data: Sequence[str], dev: Sequence[str] | None, *, skip_bad_lines: bool
) -> None:
    """Load the data, hold out development pairs, turn pairs to the pivot, and join all."""
    skip = {"skip_bad_lines": True} if skip_bad_lines else {}
    load_data = script.call("st_xling.data", "load_data_specs", list(data), **skip)
    if dev is None:
        script.assign("train, dev", script.call("st_xling.data", "hold_out", load_data, fewest=FEWEST_PAIRS))
    else:
        script.assign("train", load_data)
    if dev:
        load_dev = script.call("st_xling.data", "load_data_specs", list(dev), split="dev", **skip)
        script.assign("dev", load_dev)
    pivot = recipe.data.pivot
    if pivot is not None and not _all_end_in(pivot, data):
        script.assign("train, _", script.call("st_xling.data", "orient", _TRAIN, pivot=pivot))
    script.assign("pairs", script.call("st_xling.training.mixture", "mix", _TRAIN))


def _all_end_in(pivot: str, specs: Iterable[str]) -> bool:
    """Return whether the names of all specs have the pivot as their second language."""
    for spec in map(parse_data_spec, specs):
        if spec.is_phrasebook and not spec.languages:
            target_languages = ["en" for _ in paired_languages(spec)]
        elif spec.languages:
            _, target = spec.languages
            target_languages = [target]
        else:  # named by the columns of a file that is not read
            return False
        if any(canonical_language(target) != canonical_language(pivot) for target in target_languages):
            return False
    return True


def _add_model(
    script: _Script,
    recipe: Recipe,
    model: str,
    *,
    revision: str | None,
    trust_remote_code: bool,
) -> bool:
    """Load the model; return whether it is one without sentence-transformers' modules."""
    is_bare = model == PLACEHOLDER_MODEL or not _is_ready(model, revision)
    pooling = recipe.model.pooling
    max_length = recipe.model.max_length
    if is_bare:  # a ready model keeps its own
        pooling = pooling or recipe.bare.pooling
        max_length = max_length or recipe.bare.max_length
    shape = {"pooling": pooling, "max_length": max_length}
    options = {**shape, "revision": revision, "trust_remote_code": trust_remote_code or None}
    script.assign("model", script.call("st_xling.models", "load_encoder", model, **_drop_none(options)))
    return is_bare


def _add_built_model(script: _Script, recipe: Recipe, model: str, sizes: Mapping[str, Any]) -> bool:
    """Build a tiny or static model; return whether its prompts are those of the arguments alone."""
    options: dict[str, Any] = {"seed": recipe.arguments.seed}
    build_function: Callable[..., Any] = static_encoder
    if model == "tiny":
        build_function = tiny_encoder
        pooling = recipe.model.pooling or recipe.bare.pooling
        max_length = recipe.model.max_length or recipe.bare.max_length
        options |= _drop_none({"pooling": pooling, "max_length": max_length})
    options |= sizes
    parameters = inspect.signature(build_function).parameters
    changed = {name: value for name, value in options.items() if value != parameters[name].default}
    script.assign("texts", script.call("st_xling.data.text_cells", "column_texts", _PAIRS, "source", "target"))
    script.assign("model", script.call("st_xling.models", build_function.__name__, Name("texts"), **changed))
    return True


def _is_ready(model: str, revision: str | None) -> bool:
    """Return whether a model has sentence-transformers' modules, such as a pooling."""
    if is_sentence_transformer_model(model, revision=revision):
        return True
    if load_file_path(model, "config.json", revision=revision) is None:
        raise ValueError(
            f"the files of the model {model!r} cannot be read, which say whether it has a pooling of its own; check "
            f"its name and the connection, or leave out --model: the script then starts from {PLACEHOLDER_MODEL}."
        )
    return False


def _add_arguments(script: _Script, recipe: Recipe, out: str | Path, *, has_prompts: bool) -> None:
    """Build the training arguments; the model gets the prompts that it is trained with, or gives those that it has."""
    changed = recipe.arguments.changed()
    if (recipe.model.max_length or 0) > PAIR_TOKENS:  # the trainer would read less
        changed["max_length"] = recipe.model.max_length
    if "lora" in changed:
        options = _changed_fields(recipe.arguments.lora, LoraOptions())
        changed["lora"] = script.call("st_xling.training", "LoraOptions", **options)
    folder = str(Path(out) / "training")
    script.assign("arguments", script.call("st_xling.training", "CrossLingualTrainingArguments", folder, **changed))
    if has_prompts or changed.keys() & {"prompts", "prompt_name"}:
        columns = {"source": "source", "target": "target"}
        prompts = script.call("st_xling.training.run", "set_prompts", _MODEL, columns, _ARGUMENTS)
        script.assign("arguments.prompts", prompts)
        script.has_prompts = True


def _add_columns(script: _Script, recipe: Recipe, cache: str | Path | None) -> None:
    """Add the columns that the losses read besides source and target: hard negatives, a teacher's vectors."""
    if recipe.data.hard_negatives.num_negatives:
        keywords = _changed_fields(recipe.data.hard_negatives, HardNegativeOptions())
        if script.has_prompts:
            keywords["prompts"] = Name("arguments.prompts")
        if recipe.arguments.seed:
            keywords["seed"] = recipe.arguments.seed
        script.assign("pairs", script.call("st_xling.training", "add_hard_negatives", _PAIRS, _MODEL, **keywords))
    if recipe.data.hard_swaps:
        keywords = {"categories": recipe.data.hard_swaps}
        if recipe.arguments.seed:
            keywords["seed"] = recipe.arguments.seed
        script.assign("pairs", script.call("st_xling.training", "add_swap_negatives", _PAIRS, **keywords))
    if recipe.taught:
        options = recipe.data.teacher
        projects = any("projection_dim" in loss for loss in recipe.taught.values())
        keywords = {
            "student": None if projects else _MODEL,
            "reads": None if options.reads == "target" else options.reads,
            "prompt": options.prompt,
            "prompt_name": options.prompt_name,
            "cache": None if cache is None else str(cache),
        }
        teacher = _teacher(script, options)
        add_vectors = script.call("st_xling.training", "add_teacher_vectors", _PAIRS, teacher, **_drop_none(keywords))
        script.assign("pairs", add_vectors)


def _teacher(script: _Script, options: TeacherOptions) -> Expression:
    """The name of the teacher, or the call that loads it with the options that it has."""
    name = options.model or "sentence-transformers/all-mpnet-base-v2"
    keywords = _drop_none(
        {
            "revision": options.revision,
            "trust_remote_code": options.trust_remote_code or None,
            "max_length": options.max_length,
            "truncate_dim": options.truncate_dim,
        }
    )
    if not keywords:
        return name
    return script.call("st_xling.models", "load_encoder", name, **keywords)


def _add_loss(script: _Script, recipe: Recipe) -> None:
    """Build the weighted sum of the recipe's losses."""
    if any(_reads_data(objective(name)) for name in recipe.losses):
        prompts = [Name('arguments.prompts.get(side, "")')] if script.has_prompts else []
        report = script.call("st_xling.training.mixture", "report_texts", _MODEL, _PAIRS, Name("side"), *prompts)
        sides = 'for side in ("source", "target")'
        script.lines += [
            f"tokens = [{flat(report)}.token_ids {sides}]",
            f'languages = [pairs.unique(f"{{side}}_language") {sides}]',
        ]
    script.run(Call(script.import_name("transformers", "set_seed"), [recipe.arguments.seed]))
    script.lines[-1] += "  # of new heads"
    has_negatives = recipe.data.hard_negatives.num_negatives > 0 or bool(recipe.data.hard_swaps)
    first, *others = _terms(script, recipe, recipe.losses, has_negatives=has_negatives)
    script.assign("loss", first)
    for term in others:
        script.lines += layout(term, before="loss += ")


def _reads_data(recipe_loss: RecipeLoss) -> bool:
    """Return whether a loss has options that depend on the data, such as a vocabulary."""
    loss = recipe_loss.loss
    if not issubclass(loss, CrossLingualLoss):
        return False
    return loss.resolve_options.__func__ is not CrossLingualLoss.resolve_options.__func__  # type: ignore[attr-defined]


def _terms(
    script: _Script, recipe: Recipe, losses: Mapping[str, Mapping[str, Any]], *, has_negatives: bool = False
) -> list[Expression]:
    """The weighted terms of a sum."""
    terms: list[Expression] = []
    for name, section in losses.items():
        options = {**objective(name).preset, **section}
        weight = options.pop("weight", 1.0)
        columns = options.pop("columns", None)
        if has_negatives and name == "translation_ranking":
            options["hard_negatives"] = True
        elif has_negatives and columns is None:
            columns = [0, 1]
        term = _loss_call(script, recipe, name, options)
        if columns is not None:
            term = Call(f"{flat(term)}.on", columns)
        if weight != 1:
            term = Scaled(weight, term)
        terms.append(term)
    return terms


def _loss_call(script: _Script, recipe: Recipe, name: str, options: dict[str, Any]) -> Expression:
    """The expression of one loss, with the options that differ from its defaults."""
    recipe_loss = objective(name)
    loss_class = recipe_loss.loss
    if "loss" in options and not recipe_loss.is_ours:
        terms = _terms(script, recipe, options["loss"])
        options["loss"] = terms[0] if len(terms) == 1 else Sum(terms)
    parameters = inspect.signature(loss_class).parameters
    changed: dict[str, Any] = {}
    for key, value in options.items():
        if key not in parameters or value != parameters[key].default:
            changed[key] = value
    if loss_class.__module__.startswith("sentence_transformers."):
        return script.call("st_xling.losses", "make", loss_class.__name__, _MODEL, **changed)
    if "." in name:  # the import path of a class
        module, _, class_name = name.rpartition(".")
    else:
        module = "st_xling.losses"
        class_name = loss_class.__name__
    script.import_name(module, class_name)
    if _reads_data(recipe_loss):
        from_data = {"token_ids": Name("tokens"), "languages": Name("languages")}
        variable = f"options_{len(script.options) + 1}" if script.options else "options"
        script.options.append(variable)
        script.assign(variable, Call(f"{class_name}.resolve_options", [changed], from_data))
        return Call(class_name, [_MODEL], {"**": Name(variable)})
    loss = Call(class_name, [_MODEL], changed)
    if recipe_loss.is_ours:
        return loss
    return script.call("st_xling.losses", "make", loss)


def _add_training(script: _Script, recipe: Recipe, out: str | Path, *, evaluates: bool) -> None:
    """Train, and save the model."""
    if evaluates:
        evaluator = script.call("st_xling.evaluation", "TatoebaEvaluator", _DEV, name="dev")
        script.lines += layout(evaluator, before="evaluator = ", after=" if dev else None")
    keywords: dict[str, Expression] = {
        "model": _MODEL,
        "args": _ARGUMENTS,
        "train_dataset": _PAIRS,
        "loss": Name("loss"),
    }
    if evaluates:
        keywords["evaluator"] = Name("evaluator")
    script.assign("trainer", script.call("st_xling.training", "CrossLingualTrainer", **keywords))
    script.run(Call("trainer.train"))
    # The trainer has the vocabulary head, which the model has not.
    save = "trainer.save_model" if recipe.arguments.save_vocabulary_head else "model.save_pretrained"
    script.run(Call(save, [str(out)]))


def _drop_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not ``None``."""
    return {name: value for name, value in options.items() if value is not None}


def _changed_fields(options: Any, defaults: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from the defaults."""
    values = {entry.name: getattr(options, entry.name) for entry in dataclasses.fields(options)}
    return {name: value for name, value in values.items() if value != getattr(defaults, name)}
