"""Token ids beyond the embeddings: one line where a text uses one, nothing where none does, padding as it can be."""

import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from st_xling.cli import main
from st_xling.losses import CrossUnmaskingLoss, RepresentationTranslationLoss, TranslationLanguageModelingLoss
from st_xling.models import load_encoder
from st_xling.models.align import align_words
from st_xling.models.cross_encoders import cross_encoder
from st_xling.models.encoding import encode
from st_xling.models.pair_scorer import rerank
from st_xling.models.vocabulary import slim_encoder
from st_xling.training import load_recipe, train
from tests.conftest import PAIRS

Change = Callable[[Any], None]
PLAIN = [text for pair in PAIRS for text in pair]
MARKED = "Der Hund <de> schläft. 我买了三本旧书。"


@pytest.fixture
def variant(saved_encoder: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Saves the encoder with another tokenizer and the same embeddings."""
    numbers = itertools.count()

    def save(change: Change) -> Path:
        folder = Path(shutil.copytree(saved_encoder, tmp_path / f"variant-{next(numbers)}"))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        change(tokenizer)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.fixture
def marked(variant: Callable[[Change], Path]) -> Path:
    """A model whose tokenizer got two tokens without a new row for either."""
    return variant(lambda tokenizer: tokenizer.add_tokens(["<de>", "<en>"]))


def rows(folder: Path) -> tuple[int, str]:
    model = load_encoder(str(folder))
    count = model[0].auto_model.get_input_embeddings().num_embeddings
    return count, f"the tokenizer has {count + 2} tokens, the embeddings {count} rows: '<de>'"


def test_tokens_that_no_text_uses_do_no_harm(marked: Path, saved_encoder: Path) -> None:
    """Tokenizers of good models, such as Qwen's, have tokens beyond the embeddings: they must not be refused."""
    before = load_encoder(str(saved_encoder))
    after = load_encoder(str(marked))
    assert (encode(after, PLAIN) == encode(before, PLAIN)).all()
    recipe = load_recipe("tr", tiny=True, overrides={"arguments.max_steps": 1})
    pairs = {"source": [pair[0] for pair in PAIRS], "target": [pair[1] for pair in PAIRS]}
    assert train(recipe, _dataset(pairs), marked.parent / "run", model=str(marked)).steps == 1


def _dataset(columns: dict[str, list[str]]) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(columns)


def test_texts_next_to_the_pairs_are_looked_at_too(marked: Path, tmp_path: Path) -> None:
    """Monolingual text and hard negatives with such a token ended a run in torch's IndexError."""
    _, message = rows(marked)
    pairs = {"source": [pair[0] for pair in PAIRS], "target": [pair[1] for pair in PAIRS]}
    lines = [MARKED, *pairs["source"]]
    mono = {"de": _dataset({"source": lines, "target": lines})}  # as of `load_texts`; the targets are not read
    amber = load_recipe("amber", tiny=True, overrides={"arguments.max_steps": 1})
    with pytest.raises(ValueError, match=re.escape(message)):
        train(amber, _dataset(pairs), tmp_path / "amber", model=str(marked), mono=mono)
    negatives = {**pairs, "negative_1": [*pairs["target"][1:], MARKED]}
    ranked = load_recipe(
        "tr", tiny=True, overrides={"arguments.max_steps": 1, "losses.translation_ranking.hard_negatives": True}
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        train(ranked, _dataset(negatives), tmp_path / "tr", model=str(marked))


def test_a_text_with_such_a_token_is_refused_before_anything_is_computed(marked: Path, tmp_path: Path) -> None:
    """It was an IndexError of torch, with its traceback, in the middle of a run."""
    model = load_encoder(str(marked))
    _, message = rows(marked)
    sides = {"source": [*(pair[0] for pair in PAIRS), MARKED], "target": [*(pair[1] for pair in PAIRS), "The dog."]}
    ranker = cross_encoder(str(marked), max_length=24)
    recipe = load_recipe("tr", tiny=True, overrides={"arguments.max_steps": 1})
    for call in (
        lambda: encode(model, [*PLAIN, MARKED]),
        lambda: encode(model, PLAIN, prompt="<de> "),
        lambda: align_words(model, ["Der Hund."], [MARKED]),
        lambda: rerank(ranker, "Wer schläft?", ["Der Hund.", MARKED]),
        lambda: slim_encoder(model, [*PLAIN, MARKED]),
        lambda: train(recipe, _dataset(sides), tmp_path / "run", model=str(marked)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["score", "train"])
def test_commands_say_it_in_one_line(
    command: str, marked: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in [*PAIRS, (MARKED, "A dog.")]))
    words = {"score": ["score", str(path)], "train": ["train", "tr", "--data", f"de-en={path}", "--dev", "none"]}
    assert main([*words[command], "--model", str(marked), "--out", str(tmp_path / "out")]) == 2
    printed = capfd.readouterr().err
    assert rows(marked)[1] in printed and "Traceback" not in printed and not (tmp_path / "out").exists()


def test_a_slim_model_leaves_out_tokens_without_a_row(marked: Path, tmp_path: Path) -> None:
    """A Qwen tokenizer with an unused extra token ended in an IndexError."""
    before = load_encoder(str(marked))
    slim_encoder(before, PLAIN[:4]).save_pretrained(str(tmp_path / "slim"))
    after = load_encoder(str(tmp_path / "slim"))
    assert encode(after, PLAIN[:4]) == pytest.approx(encode(before, PLAIN[:4]), abs=1e-6)
    table = after[0].auto_model.get_input_embeddings()
    assert "<de>" not in after.tokenizer.get_vocab() and table.num_embeddings == len(after.tokenizer)


def _without_padding(tokenizer: Any) -> None:
    tokenizer.pad_token = None


def _padding_beyond(tokenizer: Any) -> None:
    tokenizer.add_special_tokens({"pad_token": "<far>"})


@pytest.mark.parametrize("change", [_without_padding, _padding_beyond])
def test_padding_is_a_token_with_a_row(
    change: Change, variant: Callable[[Change], Path], saved_encoder: Path, tmp_path: Path
) -> None:
    """Decoders come without a padding token, or with one that was added and has no embedding."""
    model = load_encoder(str(variant(change)))
    expected = encode(load_encoder(str(saved_encoder)), PLAIN)
    assert encode(model, PLAIN) == pytest.approx(expected, abs=1e-6)
    assert model.encode(PLAIN) == pytest.approx(expected, abs=1e-5)
    model.save_pretrained(str(tmp_path / "saved"))
    assert encode(load_encoder(str(tmp_path / "saved")), PLAIN) == pytest.approx(expected, abs=1e-6)


def test_special_tokens_of_every_text_need_a_row(variant: Callable[[Change], Path]) -> None:
    masked = load_encoder(str(variant(lambda tokenizer: tokenizer.add_special_tokens({"mask_token": "<mmm>"}))))
    assert encode(masked, PLAIN).shape == (len(PLAIN), 16)  # no text has it
    for loss in (RepresentationTranslationLoss, TranslationLanguageModelingLoss, CrossUnmaskingLoss):
        with pytest.raises(ValueError, match="rows: '<mmm>'"):
            loss(masked)  # type: ignore[operator]
