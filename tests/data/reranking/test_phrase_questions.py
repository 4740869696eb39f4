"""The phrasebook as data of cross-encoders: pairs, held-out pools, XPI's parallel text."""

from __future__ import annotations

import pytest

from st_xling.data.phrasebook import phrase_passages
from st_xling.data.reranking.question_answering import QuestionAnswering
from st_xling.data.reranking.specs import (
    load_judging_texts,
    load_pair_specs,
    load_pool_specs,
    load_xpi_specs,
    read_pair_specs,
)

BOTH = ["en=phrasebook?size=20", "zh=phrasebook?size=20"]


def test_questions_and_passages_are_the_same_in_both_languages() -> None:
    found = read_pair_specs(BOTH)
    assert isinstance(found, QuestionAnswering)
    wanted = phrase_passages(["en", "zh"], split="train", size=20)
    assert found.questions == wanted.questions and found.passages == wanted.passages
    assert found.relevant() == [[number] for number in range(20)]
    assert len(found.articles) == 4 and found.passage_articles[:6] == [0, 0, 0, 0, 0, 1]


def test_training_holds_out_articles_and_its_dev_and_test_are_other_splits() -> None:
    data = load_pair_specs(BOTH, dev_share=0.25, negatives_per_positive=2)
    assert len(data.train) == 15 * 3 and data.dev is not None and len(data.dev) == 5
    given = load_pair_specs(BOTH, dev=["en=phrasebook?size=6", "zh=phrasebook?size=6"])
    assert given.dev is not None and len(given.train) == 40
    assert [pool.query_id for pool in given.dev] == [f"dev-0-{number}" for number in range(6)]


def test_the_split_of_pools() -> None:
    def first(**options: object) -> str:
        return load_pool_specs(BOTH, **options)[0].query_id  # type: ignore[arg-type]

    assert first() == "test-0-0" and first(split="dev") == "dev-0-0"
    named = ["en=phrasebook?size=4&split=dev", "zh=phrasebook?size=4&split=dev"]
    pools = load_pool_specs(named, query_languages=["zh"], passage_languages=["en"])
    assert len(pools) == 4 and pools[0].query_id == "dev-0-0"
    assert {pool.query_language for pool in pools} == {"zh"} and len(pools[0].passages) == 4


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        (["en=phrasebook?size=5", "zh=phrasebook?size=6"], "take the same .size, split and seed: got en=phrasebook"),
        (["en=phrasebook", "zh=phrasebook?seed=1"], "take the same"),
        (["en=phrasebook", "zh=xquad.zh.json"], "in every language or in none: got it in en out of en, zh"),
        (["en=phrasebook:de"], "one language a spec"),
        (["ru=phrasebook"], "language must be one of"),
        (["en=phrasebook?gold=1"], "expected the options size, split, seed, once each, got 'gold=1' in 'en=phrasebook"),
    ],
)
def test_malformed(specs: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        load_pair_specs(specs)


def test_languages_of_xpi_are_parallel_text() -> None:
    single = load_xpi_specs(["en=phrasebook?size=40", "zh=phrasebook?size=40", "de=phrasebook?size=40"])
    paired = load_xpi_specs(["zh-en=phrasebook?size=40", "de-en=phrasebook?size=40"])
    assert single.train.to_dict() == paired.train.to_dict()
    dev = load_xpi_specs(["zh-en=phrasebook?size=40"], dev=["phrasebook:zh?size=10"]).dev
    explicit = load_xpi_specs(["zh-en=phrasebook?size=40"], dev=["phrasebook:zh?size=10&split=dev"]).dev
    assert dev is not None and explicit is not None and list(dev) == list(explicit)


def test_languages_of_xpi_take_the_same_phrases() -> None:
    with pytest.raises(ValueError, match="size, split and seed must be, too: got en=phrasebook.size=50, zh=phrasebook"):
        load_xpi_specs(["en=phrasebook?size=50", "zh=phrasebook"])


def test_judging_texts() -> None:
    texts = load_judging_texts(["en=phrasebook?size=3", "phrasebook:de?size=2"])
    assert any("en=phrasebook" in name for name in texts) and len(texts["de-en"]) == 2
    assert phrase_passages(["en"], split="test", size=3).questions["en"] in [list(part) for part in texts.values()]
