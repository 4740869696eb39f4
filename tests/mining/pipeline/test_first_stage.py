"""Two stages: a static encoder chooses the sentences that are embedded; the pairs are those of a full run."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from st_xling.mining import FilterOptions, FirstStageOptions, SearchOptions, mine_texts, plan_mining, tsv_cells

OFF = FilterOptions(disable=["all"])
WORDS = [f"w{number}" for number in range(1500)]


def bag_of_words(dim: int, seed: int) -> SentenceTransformer:
    """An encoder that knows words by random vectors: texts that share words are near each other."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["?", *WORDS])}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    weights = torch.randn(len(WORDS) + 1, dim, generator=torch.Generator().manual_seed(seed))
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights.numpy())], device="cpu")


class CountingEncoder(SentenceTransformer):
    """Remembers what it has read, and may fail on the way."""

    def read_at_most(self, sentences: int) -> None:
        self.left = sentences
        self.read: list[str] = []

    def encode(self, sentences: Any, **options: Any) -> Any:
        self.left -= len(sentences)
        if self.left < 0:
            raise OSError("No space left on device")
        self.read += list(sentences)
        return super().encode(sentences, **options)


@pytest.fixture(scope="module")
def encoder() -> CountingEncoder:
    model = CountingEncoder(modules=list(bag_of_words(128, seed=1)), device="cpu")
    model.read_at_most(10**9)
    return model


@pytest.fixture(scope="module")
def static() -> SentenceTransformer:
    return bag_of_words(64, seed=2)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """500 sentences of 8 words a side, of which 70 share 4 to 8 words with one of the other side."""
    rng = random.Random(0)
    sources = [rng.sample(WORDS, 8) for _ in range(500)]
    targets = [rng.sample(WORDS, 8) for _ in range(500)]
    for row in range(70):
        shared = rng.randint(4, 8)
        targets[499 - row][:shared] = sources[row][:shared]
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("s", sources), ("t", targets)):
        (folder / name).write_text("".join(f"{' '.join(words)}\n" for words in lines), encoding="utf-8")
    return folder / "s", folder / "t"


def read_scores(path: Path) -> dict[tuple[str, str], float]:
    """Scores by ids of source and target."""
    scores = {}
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        score, source, target, *_ = tsv_cells(line)
        scores[source, target] = float(score)
    return scores


def test_it_finds_the_pairs_and_embeds_few_sentences(
    texts: tuple[Path, Path], encoder: CountingEncoder, static: SentenceTransformer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"model": encoder, "filters": OFF, "threshold": 1.6}
    mine_texts(*texts, tmp_path / "full", **options)
    encoder.read_at_most(10**9)
    first = FirstStageOptions(model=static, recall=0.9)
    report = mine_texts(*texts, tmp_path / "o", **options, first_stage=first)
    full = read_scores(tmp_path / "full").keys()
    assert len(full & read_scores(tmp_path / "o").keys()) >= 0.9 * len(full) > 30
    first_stage = report.first_stage
    assert first_stage is not None
    assert first_stage.encoded == len(encoder.read) < 500
    assert first_stage.recall is not None and 0.9 <= first_stage.recall < 1
    assert report.distinct == {"source": 500, "target": 500} and report.blank == {"source": 0, "target": 0}
    line = next(line for line in report.lines() if line.startswith("first stage"))
    assert re.fullmatch(
        r"first stage: \d+ of 1,000 sentences \(\d+\.\d%\) embedded; about 9\d\.\d% of the pairs are kept, estimated "
        "from their static margins",
        line,
    )
    assert re.search(r"\|first_stage:[^|@]+@\w{8},recall:0\.9,background:0\.1,seed:0,encoded:0\.\d+,", report.signature)
    assert report.as_dict()["first_stage"]["encoded"] == first_stage.encoded


def test_with_all_others_as_background_scores_are_those_of_a_full_run(
    texts: tuple[Path, Path], encoder: CountingEncoder, static: SentenceTransformer, tmp_path: Path
) -> None:
    """Among the kept sentences alone all pairs scored higher, so that a published threshold kept wrong ones."""
    encoder.read_at_most(10**9)
    options: dict[str, Any] = {"model": encoder, "filters": OFF, "threshold": 1.5}
    mine_texts(*texts, tmp_path / "full", **options)
    first_stage = FirstStageOptions(model=static, share=0.2, background=1.0)
    mine_texts(*texts, tmp_path / "two", **options, first_stage=first_stage)
    full = read_scores(tmp_path / "full")
    two = read_scores(tmp_path / "two")
    assert len(two.keys() & full.keys()) > 30
    for pair in two.keys() & full.keys():
        assert two[pair] == pytest.approx(full[pair], abs=1e-6)
    everything = FirstStageOptions(model=static, share=1.0)
    report = mine_texts(*texts, tmp_path / "all", **options, first_stage=everything)
    assert read_scores(tmp_path / "all") == pytest.approx(full)
    assert report.first_stage is not None and report.first_stage.share == 1


def test_several_static_encoders_find_more_than_each(
    texts: tuple[Path, Path], encoder: CountingEncoder, tmp_path: Path
) -> None:
    """Encoders with other vocabularies make other errors: their vectors are joined."""
    encoder.read_at_most(10**9)
    weak = [bag_of_words(12, seed=seed) for seed in (4, 5, 6)]
    recalls = []
    for statics in (weak[0], weak):
        first_stage = FirstStageOptions(model=statics, share=0.2)
        report = mine_texts(*texts, tmp_path / "o", model=encoder, first_stage=first_stage, filters=OFF, threshold=1.6)
        recalls.append(report.pairs)
        assert report.first_stage is not None
        assert report.first_stage.model.count("@") == (1 if statics is weak[0] else 3)
    assert recalls[1] > recalls[0]


def test_an_unreachable_recall_embeds_everything(
    texts: tuple[Path, Path], encoder: CountingEncoder, tmp_path: Path
) -> None:
    """A static encoder that knows nothing of the languages lost the pairs without a word."""
    encoder.read_at_most(10**9)
    ignorant = FirstStageOptions(model=bag_of_words(2, seed=3), recall=0.98)
    report = mine_texts(*texts, tmp_path / "o", model=encoder, first_stage=ignorant, filters=OFF, threshold=1.5)
    assert report.first_stage is not None and report.first_stage.share == 1
    assert report.first_stage.line().endswith("(100.0%) embedded; among fewer, more pairs would be lost than wanted")


def test_a_run_that_failed_resumes(
    texts: tuple[Path, Path], encoder: CountingEncoder, static: SentenceTransformer, tmp_path: Path
) -> None:
    first_stage = FirstStageOptions(model=static, share=0.2)
    options: dict[str, Any] = {"model": encoder, "filters": OFF, "first_stage": first_stage, "threshold": 1.5}
    encoder.read_at_most(10**9)
    mine_texts(*texts, tmp_path / "straight", **options)
    whole = len(encoder.read)
    encoder.read_at_most(whole * 2 // 3)  # the source text, and not the target text
    with pytest.raises(OSError, match="No space left"):
        mine_texts(*texts, tmp_path / "o", **options)
    assert not (tmp_path / "o").exists()
    encoder.read_at_most(whole * 2 // 3)
    mine_texts(*texts, tmp_path / "o", **options)
    assert (tmp_path / "o").read_bytes() == (tmp_path / "straight").read_bytes()
    assert not (tmp_path / "o.work").exists()


def test_texts_that_are_embedded_have_no_first_stage(
    texts: tuple[Path, Path], encoder: CountingEncoder, static: SentenceTransformer, tmp_path: Path
) -> None:
    first_stage = FirstStageOptions(model=static)
    with pytest.raises(ValueError, match="got embeddings of the source text; leave out one of the two"):
        mine_texts(*texts, tmp_path / "o", model=encoder, source_embeddings="store", first_stage=first_stage)
    with pytest.raises(TypeError, match=r"first_stage must be FirstStageOptions\(model=...\): got str"):
        mine_texts(*texts, tmp_path / "o", model=encoder, first_stage="static")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="recall of the first stage must be a share between 0 and 1: got 98"):
        FirstStageOptions(model=static, recall=98)
    # It was taken as not given, and 15 % were embedded.
    with pytest.raises(ValueError, match="share of the first stage must be above 0: got 0"):
        FirstStageOptions(model=static, share=0.0)


def test_a_plan_tells_what_the_first_stage_takes(
    texts: tuple[Path, Path], encoder: CountingEncoder, static: SentenceTransformer
) -> None:
    encoder.read_at_most(10**9)
    plan = plan_mining(*texts, model=encoder, search=SearchOptions(k=2), first_stage=FirstStageOptions(model=static))
    assert plan.first_stage_seconds is not None and plan.first_stage_seconds > 0
    assert plan.lines()[2].startswith("first stage: about ")
