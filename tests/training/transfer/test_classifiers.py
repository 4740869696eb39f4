"""First sub-words carry the tags; long sentences are read in pieces, and no word is lost."""

from __future__ import annotations

from typing import Any

import pytest

from st_xling.data.tagged_words import UPOS, TaggedSentences
from st_xling.training.transfer.classifiers import NO_LABEL, WordTagger
from tests.conftest import PAIRS
from tests.training.transfer.sets import write_encoder

SENTENCES = [
    *(text.split() for pair in PAIRS for text in pair),
    ["猫", "睡觉", "。"],
    ["\u200b", "Él", "cree", "\u00ad"],  # a tokenizer may read such words as nothing
    ["unverzichtbarkeitsbescheinigungsverfahrensordnung", "x"],
    [],
]


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return WordTagger.build(write_encoder(tmp_path_factory.mktemp("encoder"), max_length=9), UPOS, max_length=9)


def prepare(tagger: WordTagger, sentences: list[list[str]]) -> Any:
    return tagger.prepare(TaggedSentences(sentences, [["X"] * len(words) for words in sentences]))


def test_every_word_has_one_place_in_its_order(tagger: Any) -> None:
    rows, split = prepare(tagger, SENTENCES)
    seen = [(sentence, start + offset) for sentence, start, count in rows.pieces for offset in range(count)]
    assert seen == [(number, word) for number, words in enumerate(SENTENCES) for word in range(len(words))]
    assert 0 < split < len(SENTENCES)
    for ids, places, (_, _, count) in zip(rows.input_ids, rows.places, rows.pieces):
        assert len(ids) <= 9 and len(places) == count and places == sorted(set(places))
        assert ids[0] == tagger.tokenizer.cls_token_id and ids[-1] == tagger.tokenizer.sep_token_id
        assert places[0] == 1 and places[-1] < len(ids) - 1


def test_a_piece_holds_its_words_and_others_get_no_label(tagger: Any) -> None:
    tokenizer = tagger.tokenizer
    rows = prepare(tagger, SENTENCES)[0]
    tags = [[UPOS[(number + word) % 17] for word in range(len(words))] for number, words in enumerate(SENTENCES)]
    ids = {tag: number for number, tag in enumerate(UPOS)}
    found = tagger.dataset(rows, tags, ids)
    for row, (sentence, start, count), places in zip(found, rows.pieces, rows.places):
        labelled = {place: label for place, label in enumerate(row["labels"]) if label != NO_LABEL}
        assert labelled == {place: ids[tags[sentence][start + offset]] for offset, place in enumerate(places)}
        for offset, place in enumerate(places):
            word = SENTENCES[sentence][start + offset]
            alone = tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            assert row["input_ids"][place] == (alone or [tokenizer.unk_token_id])[0]
        assert len(places) == count


def test_predictions_do_not_depend_on_batches(tagger: Any) -> None:
    """Padding and the order of rows change nothing: each sentence alone gives the tags that it has among others."""
    together = tagger.predict(prepare(tagger, SENTENCES[:-1])[0], UPOS, "xx")
    alone = [tagger.predict(prepare(tagger, [words])[0], UPOS, "xx")[0] for words in SENTENCES[:-1]]
    assert together == alone
    assert [len(row) for row in together] == [len(words) for words in SENTENCES[:-1]]
    assert {tag for row in together for tag in row} <= set(UPOS)
