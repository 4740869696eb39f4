"""Runs of 20 steps whose losses are recorded in ``golden_curves.json``, by the command line and by the trainer.

A run goes through what users call, ``st-xling train RECIPE`` or :class:`CrossLingualTrainer`, and its curve is what the
trainer logs: the loss and its components at every step. Whoever moves code of training adapts the options here, if they
are renamed, and leaves the recorded numbers alone.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from st_xling.data.phrasebook import parallel_phrases
from st_xling.models import tiny_encoder

RECORDED = Path(__file__).with_suffix(".json")
Curve = dict[str, list[float]]
"""``loss`` and the names of its components → value at each step."""

NOT_LOSSES = {"step", "epoch", "grad_norm", "learning_rate", "stage", "layer"}
"""What a logged step holds besides losses."""

ROWS = 120
"""Pairs of each language: 15 steps of 16 are an epoch of both, so that 20 steps see a second order of the rows."""

SHAPE = {"layers": 2, "hidden_size": 32, "vocabulary": 500, "dropout": 0.0}
TINY = ["--model", "tiny", *(word for name, value in SHAPE.items() for word in ("--tiny", f"{name}={value}"))]
LOADED = ["--model", "{start}"]
"""A saved encoder: pretrained, as far as a run can tell."""

FAST = ["--learning-rate", "0.002"]
"""So that losses move within 20 steps where the recipe's own rate is for pretrained encoders."""

PAIRS = ["--data", f"phrasebook:de,zh?size={ROWS}"]
FROM_ENGLISH = ["--data", f"en-de=phrasebook?size={ROWS}", "--data", f"zh-en=phrasebook?size={ROWS}"]
QUERIES = ["--data", f"queries=phrasebook?size={2 * ROWS}"]
PARALLEL = ["--parallel", f"phrasebook:de,zh?size={ROWS}"]
QUESTIONS = ["--data", "en=phrasebook?size=60", "--data", "zh=phrasebook?size=60"]
RANKING = ["--data", "de-en=phrasebook?size=60", "--data", "zh-en=phrasebook?size=60"]

STEPS = ["--max-steps", "20", "--eval-steps", "20", "--set", "arguments.logging_steps=1", "--dev", "none"]
ENCODER = [*STEPS, "--batch-size", "16"]
NO_WARM_UP = ["--set", "arguments.warm_up_heads=0"]
RERANKER = [*STEPS, "--batch-size", "8", "--max-length", "64"]

COMMANDS: dict[str, list[str]] = {
    # Encoders, each recipe as it comes.
    "tr": ["tr", *TINY, *PAIRS, *ENCODER],
    "labse": ["labse", *TINY, *PAIRS, *ENCODER],
    "dap": ["dap", *TINY, *PAIRS, *ENCODER],
    "dap-released": ["dap-released", *TINY, *PAIRS, *ENCODER],
    "tr-tlm": ["tr-tlm", *TINY, *PAIRS, *ENCODER],
    "amber": ["amber", *TINY, *PAIRS, *ENCODER],
    "semacl": ["semacl", *TINY, *PAIRS, *ENCODER],
    "langcl": ["langcl", *TINY, *PAIRS, *ENCODER],
    "semacl-langcl": ["semacl-langcl", *TINY, *PAIRS, *ENCODER],
    "mexma": ["mexma", *TINY, *PAIRS, *ENCODER],
    "distill": ["distill", *TINY, *PAIRS, *ENCODER, "--teacher", "{teacher}", "--cache", "{cache}"],
    "realign": [
        *("realign", *LOADED, *PAIRS, *ENCODER, *FAST),
        *("--keep-like", "de=phrasebook?size=60", "--cache", "{cache}"),
    ],
    "static": ["static", "--static", "vocabulary=500", "--static", "dimensions=32", *PAIRS, *ENCODER],
    # The same from a saved encoder, whose own pooling and length are kept, by the recipes' values for pretrained ones.
    "tr, loaded": ["tr", *LOADED, *PAIRS, *ENCODER],
    "dap, loaded, no warm-up of heads": ["dap", *LOADED, *PAIRS, *ENCODER, *FAST, *NO_WARM_UP],
    "dap, loaded, 5 steps of heads": ["dap", *LOADED, *PAIRS, *ENCODER, *FAST, "--set", "arguments.warm_up_heads=5"],
    "dap, loaded, heads by default": ["dap", *LOADED, *PAIRS, *ENCODER, *FAST],
    "dap-released, loaded": ["dap-released", *LOADED, *PAIRS, *ENCODER, *FAST, *NO_WARM_UP],
    "mexma, loaded": ["mexma", *LOADED, *PAIRS, *ENCODER, *FAST, *NO_WARM_UP],
    # langCL is nearly constant over vectors that are all alike, as those of random weights are.
    "langcl, loaded": ["langcl", *LOADED, *PAIRS, *ENCODER, *FAST],
    # Options of encoders.
    "tr, gradient cache": ["tr", *TINY, *PAIRS, *ENCODER, "--mini-batch-size", "8"],
    "dap, gradient cache": ["dap", *TINY, *PAIRS, *ENCODER, "--mini-batch-size", "8"],
    "tr-tlm, gradient cache": ["tr-tlm", *TINY, *PAIRS, *ENCODER, "--mini-batch-size", "8"],
    "tr, mined negatives": ["tr", *TINY, *PAIRS, *ENCODER, "--mine-negatives", "2"],
    "tr, LoRA": ["tr", *LOADED, *PAIRS, *ENCODER, "--lora", "--learning-rate", "0.01"],
    "amber, running text": ["amber", *TINY, *PAIRS, *ENCODER, "--mono", "de={mono}"],
    "dap, stream": ["dap", *TINY, *PAIRS, *ENCODER, "--stream"],
    "dap, pivot de": ["dap", *TINY, *PAIRS, *ENCODER, "--pivot", "de"],
    "dap, turned to English": ["dap", *TINY, *FROM_ENGLISH, *ENCODER],
    "dap, no pivot": ["dap", *TINY, *FROM_ENGLISH, *ENCODER, "--pivot", "none"],
    "tr, languages alike": [
        *("tr", *TINY, *ENCODER, "--set", "arguments.language_alpha=0"),
        *("--data", "phrasebook:de?size=200", "--data", "phrasebook:zh?size=40"),
    ],
    "tr, one pair a batch": ["tr", *TINY, *PAIRS, *ENCODER, "--set", "arguments.batches=one_pair"],
    "tr, shuffled alone": [
        *("tr", *TINY, *PAIRS, *ENCODER),
        *("--set", "arguments.group_by_length=false", "--set", "arguments.keep_duplicates_apart=false"),
    ],
    "tr, two batches a step": [*("tr", *TINY, *PAIRS, *ENCODER), *("--set", "arguments.gradient_accumulation_steps=2")],
    "tr, prompt": ["tr", *TINY, *PAIRS, *ENCODER, "--prompt", "query: "],
    "tr, prompt a column": [
        *("tr", *TINY, *PAIRS, *ENCODER),
        *("--set", 'arguments.prompts={source: "query: ", target: "passage: "}'),
    ],
    "tr, dropout and seed": ["tr", *TINY, "--tiny", "dropout=0.1", *PAIRS, *ENCODER, "--seed", "3"],
    "amber, MLM alone": [
        *("amber", *TINY, *PAIRS, *ENCODER, "--set", "losses.tlm.weight=0"),
        *("--set", "losses.word_alignment.weight=0", "--set", "losses.translation_ranking.weight=0"),
    ],
    "distill, both sides": [
        *("distill", *TINY, *PAIRS, *ENCODER, "--teacher", "{teacher}", "--cache", "{cache}"),
        *("--set", "data.teacher.reads=both", "--set", "losses.translation_ranking.weight=0.1"),
    ],
    # Adapters.
    "sf": ["sf", *TINY, *PAIRS, "--max-steps", "20", "--batch-size", "16", "--dev", "none", "--cache", "{cache}"],
    # Retrievers.
    "ir": ["ir", *TINY, *QUERIES, *ENCODER],
    "ir-semacl": ["ir-semacl", *TINY, *QUERIES, *PARALLEL, *ENCODER],
    "ir-langcl": ["ir-langcl", *TINY, *QUERIES, *PARALLEL, *ENCODER],
    "ir-semacl-langcl": ["ir-semacl-langcl", *TINY, *QUERIES, *PARALLEL, *ENCODER],
    "ir-semacl-langcl, shared encoder, other text": [
        *("ir-semacl-langcl", *TINY, *QUERIES, *PARALLEL, *ENCODER),
        *("--encoders", "shared", "--mono", f"vi=phrasebook?size={ROWS}"),
    ],
    "ir-langcl, loaded, langCL of weight 1": [
        *("ir-langcl", *LOADED, *QUERIES, *PARALLEL, *ENCODER, *FAST),
        *("--set", "losses.language_contrastive.weight=1"),
    ],
    # Cross-encoders.
    "xpi": ["xpi", *TINY, *RANKING, *RERANKER],
    "filter": ["filter", *TINY, *RANKING, *RERANKER],
    "xpr-merged": ["xpr-merged", *TINY, *QUESTIONS, *RERANKER],
    "xpr-cascade": ["xpr-cascade", *TINY, *QUESTIONS, *RERANKER],
    "xpr-mixed": ["xpr-mixed", *TINY, *QUESTIONS, *RERANKER],
    "xpr-merged, list_net": [
        *("xpr-merged", *TINY, *QUESTIONS, *RERANKER, "--set", "loss=list_net", "--learning-rate", "0.01"),
    ],
}
"""Name → words behind ``st-xling train``, with the files that :func:`made_files` writes in braces."""


def by_command(words: list[str], folder: Path) -> Curve:
    """Train by the command line, in this process, and read the log that the run has written."""
    from st_xling.cli import main

    files = made_files(folder)
    filled = [word.format(**files) if word in {f"{{{name}}}" for name in files} else word for word in words]
    filled = ["de=" + files["mono"] if word == "de={mono}" else word for word in filled]
    out = folder / "run"
    if main(["train", *filled, "--out", str(out)]) != 0:
        raise RuntimeError(f"expected a command that succeeds: got a failure of st-xling train {' '.join(filled)}")
    lines = (out / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return curve_of([json.loads(line) for line in lines])


def by_trainer(
    make_loss: Callable[[Any], Any], folder: Path, *, prompts: str | None = None, warm_up: bool = True
) -> Curve:
    """Train as README does: model, ST's arguments, data set and loss.

    Args:
        make_loss: Builds the loss over a model.
        folder: As of :func:`loss_curve`.
        prompts: Of ST's arguments.
        warm_up: Whether new heads learn alone first.
    """
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments

    from st_xling.models.heads import new_heads
    from st_xling.training import CrossLingualTrainer

    model = SentenceTransformer(made_files(folder)["start"], device="cpu")
    dataset = parallel_phrases("de", "en", size=2 * ROWS).select_columns(["source", "target"])
    arguments = SentenceTransformerTrainingArguments(
        str(folder / "run"),
        max_steps=20,
        per_device_train_batch_size=16,
        learning_rate=2e-3,
        warmup_steps=2,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        prompts=prompts,
    )
    torch.manual_seed(0)  # of new heads
    loss = make_loss(model)
    if not warm_up:
        for head in new_heads(loss):
            head.mark_trained()
    trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=dataset, loss=loss)
    trainer.train()
    return curve_of(trainer.state.log_history)


def _ranking(model: Any) -> Any:
    from st_xling.losses import TranslationRankingLoss

    return TranslationRankingLoss(model, margin=0.3)


def _ranking_and_reconstruction(model: Any) -> Any:
    from st_xling.losses import RepresentationTranslationLoss

    return _ranking(model) + 0.1 * RepresentationTranslationLoss(model, layers=2)


def _cached_ranking(model: Any) -> Any:
    from st_xling.losses import CachedLoss

    return CachedLoss(_ranking(model), mini_batch_size=8)


def _matryoshka(model: Any) -> Any:
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    return MatryoshkaLoss(model, _ranking(model), matryoshka_dims=[32, 16])


TRAINERS: dict[str, Callable[[Path], Curve]] = {
    "CrossLingualTrainer, TR": lambda folder: by_trainer(_ranking, folder),
    "CrossLingualTrainer, TR with a prompt": lambda folder: by_trainer(_ranking, folder, prompts="query: "),
    "CrossLingualTrainer, TR, gradient cache": lambda folder: by_trainer(_cached_ranking, folder),
    "CrossLingualTrainer, TR in MatryoshkaLoss": lambda folder: by_trainer(_matryoshka, folder),
    "CrossLingualTrainer, TR + RTL": lambda folder: by_trainer(_ranking_and_reconstruction, folder),
    "CrossLingualTrainer, TR + RTL, no warm-up of heads": lambda folder: by_trainer(
        _ranking_and_reconstruction, folder, warm_up=False
    ),
}
NAMES = [*COMMANDS, *TRAINERS]


def loss_curve(name: str, folder: Path) -> Curve:
    """Make a run and return its curve.

    Args:
        name: One of ``NAMES``.
        folder: An empty folder for its files.
    """
    torch.set_num_threads(1)
    # A run seeds all that it draws from: other numbers before it must not change its curve.
    for seed_all in (random.seed, np.random.seed, torch.manual_seed):
        seed_all(sum(name.encode()))
    if name in TRAINERS:
        return TRAINERS[name](folder)
    return by_command(COMMANDS[name], folder)


def curve_of(history: list[dict[str, Any]]) -> Curve:
    """Return the losses that a trainer has logged; components are rounded by sentence-transformers, to four digits."""
    steps = [entry for entry in history if "loss" in entry]
    names = [name for name in steps[0] if name not in NOT_LOSSES]
    return {name: [float(entry[name]) for entry in steps] for name in names}


def made_files(folder: Path) -> dict[str, str]:
    """Write what runs read besides the phrasebook: a start, a teacher, running text; and name a folder for vectors."""
    if not (folder / "start").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        start = tiny_encoder(_texts(), **SHAPE)
        with torch.no_grad():  # sentences are nearly alike otherwise, by positions and segments that all have
            start[0].auto_model.get_input_embeddings().weight.mul_(20)
        start.save_pretrained(str(folder / "start"))
        tiny_encoder(_texts(), **{**SHAPE, "hidden_size": 48, "seed": 1}).save_pretrained(str(folder / "teacher"))
        running = "".join(f"{text}\n" for text in parallel_phrases("de", "en", split="dev", size=100)["source"])
        (folder / "mono.de.txt").write_text(running, encoding="utf-8")
    return {
        "start": str(folder / "start"),
        "teacher": str(folder / "teacher"),
        "mono": str(folder / "mono.de.txt"),
        "cache": str(folder / "cache"),
    }


def _texts() -> Iterator[str]:
    for language in ("de", "zh"):
        pairs = parallel_phrases(language, "en", size=ROWS)
        yield from pairs["source"]
        yield from pairs["target"]
