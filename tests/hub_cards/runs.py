"""The small runs whose cards are shown in ``hub_cards/``: every recipe, and variants, as commands to paste in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_TINY = "--model tiny --tiny vocabulary=800 --tiny hidden_size=32 --tiny layers=2 --tiny heads=2"
_STEPS = "--max-steps 40 --batch-size 64"
_LEAK = "--check-leak 'phrasebook:de?size=60'"


@dataclass(frozen=True)
class CardRun:
    """One model and its card.

    Attributes:
        name: Of the card, without ``.md``: the recipe, or recipe and variant.
        recipe: That it shows.
        what: The model, in a few words.
        makes: The command that leaves the model in :attr:`folder`.
        evaluations: ``st-xling evaluate`` of it; the results of the card.
        after: Name of the run that it starts from, made before.
    """

    name: str
    recipe: str
    what: str
    makes: str
    evaluations: tuple[str, ...]
    after: str | None = None

    @property
    def folder(self) -> str:
        """Of the model, beside those of the other runs."""
        return f"my-{self.name}"

    @property
    def commands(self) -> tuple[str, ...]:
        """All, in order."""
        return (self.makes, *self.evaluations)


def _run(
    name: str, what: str, makes: str, evaluations: Sequence[str], *, recipe: str | None = None, after: str | None = None
) -> CardRun:
    """``makes`` and ``evaluations`` without what they have in common."""
    evaluated = (
        f"st-xling evaluate {task} my-{name} {rest} --keep" for task, rest in (e.split(" ", 1) for e in evaluations)
    )
    return CardRun(name, recipe or name, what, f"st-xling {makes} --out my-{name}", tuple(evaluated), after)


def _encoder(name: str, what: str, *, languages: str = "de", steps: str = _STEPS) -> CardRun:
    data = f"--data 'phrasebook:{languages}?size=500' {_LEAK.replace(':de', f':{languages}')}"
    return _run(name, what, f"train {name} {_TINY} {data} {steps}", _of_encoder(languages))


def _of_encoder(languages: str) -> list[str]:
    return [
        f"tatoeba --data 'phrasebook:{languages}?size=60'",
        f"bucc --data 'phrasebook:{languages}?size=120&gold=40'",
    ]


def _retriever(name: str, what: str, *, options: str = "", recipe: str | None = None) -> CardRun:
    """Evaluated in German too, where it was trained on parallel text."""
    parallel = "--parallel 'phrasebook:de?size=300'" if "cl" in name else ""
    data = f"--data 'queries=phrasebook?size=300' {parallel} --check-leak 'en=phrasebook?size=60'"
    steps = "--max-steps 40 --batch-size 32 --max-length 48"
    text = "de=phrasebook?size=60&queries=de,en" if parallel else "en=phrasebook?size=60"
    makes = " ".join(f"train {recipe or name} {_TINY} {data} {steps} {options}".split())
    return _run(name, what, makes, [f"retrieval --data '{text}' --bm25"], recipe=recipe)


def _cross_encoder(name: str, what: str) -> CardRun:
    books = "--data 'en=phrasebook?size={size}' --data 'de=phrasebook?size={size}'"
    data = "--data 'de-en=phrasebook?size=400'" if name == "xpi" else books.format(size=150)
    steps = "--max-steps 40 --learning-rate 2e-3 --max-length 64"
    evaluations = [f"reranking {books.format(size=60)} --max-candidates 10"]
    return _run(name, what, f"train {name} {_TINY} {data} {steps}", evaluations)


RUNS = (
    _encoder(
        "dap",
        "encoder: translation ranking, and the target's words from the source's states",
        languages="de,fr",
        steps="--max-steps 70 --batch-size 64",
    ),
    _run(
        "dap-slim",
        "the same encoder, its vocabulary cut to German and English",
        "slim my-dap --langs de,en --text 'phrasebook:de?size=500'",
        _of_encoder("de"),
        recipe="dap",
        after="dap",
    ),
    _encoder("tr", "encoder: translation ranking alone"),
    _run(
        "tr-lora",
        "encoder: `my-dap`, trained on by adapters that are merged at the end",
        f"train tr --model my-dap --lora --data 'phrasebook:de?size=500&seed=1' {_LEAK} {_STEPS} --pooling mean "
        "--learning-rate 5e-4",
        _of_encoder("de"),
        recipe="tr",
        after="dap",
    ),
    _encoder("labse", "encoder: translation ranking in both directions, with a margin"),
    _encoder("dap-released", "encoder: DAP with the values of its authors' script"),
    _encoder("tr-tlm", "encoder: translation ranking and translation language modelling"),
    _encoder("amber", "encoder: masked words, word alignment and sentence alignment"),
    _encoder("semacl", "encoder: semantic contrastive loss"),
    _encoder("langcl", "encoder: language contrastive loss"),
    _encoder("semacl-langcl", "encoder: both contrastive losses"),
    _run(
        "sf",
        "encoder: a linear adapter on a frozen layer, for Chinese and Vietnamese",
        f"train sf {_TINY} --data 'zh-vi=phrasebook?size=500' --check-leak 'zh-vi=phrasebook?size=60' --epochs 60",
        ["precision --data 'zh-vi=phrasebook?size=60'"],
    ),
    _retriever("ir", "retriever: an encoder for queries and one for passages"),
    _retriever("ir-shared", "retriever: one encoder for both", options="--encoders shared", recipe="ir"),
    _retriever("ir-semacl", "retriever, with the semantic contrastive loss on parallel text"),
    _retriever("ir-langcl", "retriever, with the language contrastive loss on parallel text"),
    _retriever("ir-semacl-langcl", "retriever, with both contrastive losses on parallel text"),
    _cross_encoder("xpi", "cross-encoder: do two sentences mean the same?"),
    _cross_encoder("xpr-merged", "cross-encoder: does a passage answer a query? Languages in one set"),
    _cross_encoder("xpr-cascade", "cross-encoder: one language after the other"),
    _cross_encoder("xpr-mixed", "cross-encoder: half of the pairs in two languages"),
)
"""In an order in which they can be made."""


def all_recipes() -> list[str]:
    """Names of the recipes that the package comes with."""
    from st_xling.training import recipe_names

    return [name for kind in ("encoder", "adapter", "retriever", "cross-encoder") for name in recipe_names(kind)]
