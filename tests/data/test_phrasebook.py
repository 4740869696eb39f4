"""The embedded corpus: grammar by golden sentences, alignment, splits by meaning, true gold pairs and answers."""

import hashlib
import itertools
import os
import subprocess
import sys
from functools import cache

import pytest

from st_xling.data.phrasebook import (
    LANGUAGES,
    MANY,
    SPLITS,
    Clause,
    Meaning,
    NounPhrase,
    align,
    draw_meanings,
    mining_phrases,
    parallel_phrases,
    phrase_passages,
    render,
    split_of,
)
from st_xling.data.phrasebook.corpora import draw_passages
from st_xling.data.phrasebook.grammar import lexicon
from st_xling.data.phrasebook.meanings import ADJECTIVES, NOUNS, PRONOUNS, TIMES, VERBS


@cache
def meanings(split: str = "train", size: int = 8_000, seed: int = 0) -> list[Meaning]:
    return draw_meanings(split, size, seed)


def texts(meaning: Meaning) -> dict[str, str]:
    return {language: render(meaning, language).text for language in LANGUAGES}


HE, SHE, ME = NounPhrase("he"), NounPhrase("she"), NounPhrase("i")
TEACHER = NounPhrase("teacher")
OLD_BOOK = NounPhrase("book", "a", 1, "old")

GOLDEN = {
    # Gender and case on determiner and adjective; participle last; a/an; classifiers.
    "transitive": (
        Meaning(Clause(TEACHER, "buy", "past", OLD_BOOK, time="yesterday")),
        {
            "en": "Yesterday the teacher bought an old book.",
            "de": "Gestern hat der Lehrer ein altes Buch gekauft.",
            "fr": "Hier, le professeur a acheté un vieux livre.",
            "es": "Ayer el profesor compró un libro viejo.",
            "vi": "Hôm qua giáo viên đã mua một cuốn sách cũ.",
            "zh": "昨天那位老师买了一本旧书。",
        },
    ),
    # The German verb goes last, with its particle; fr elision qu'il; personal a.
    "that": (
        Meaning(Clause(SHE, "say", "present"), link="that", other=Clause(HE, "call", "progressive", NounPhrase("man"))),
        {
            "en": "She says that he is calling the man.",
            "de": "Sie sagt, dass er den Mann anruft.",
            "fr": "Elle dit qu'il appelle l'homme.",
            "es": "Ella dice que él está llamando al hombre.",
            "vi": "Cô ấy nói rằng anh ấy đang gọi điện cho người đàn ông.",
            "zh": "她说他正在给那个男人打电话。",
        },
    ),
    # ser and estar; Chinese 很, and reasons first; dropped Spanish pronouns; separable verb split in the main clause.
    "because": (
        Meaning(
            Clause(ME, "invite", "habitual", NounPhrase("friend", "my", 2, "clever"), time="every_day"),
            link="because",
            other=Clause(NounPhrase("aunt", "your"), "be", "present", quality="tired"),
        ),
        {
            "en": "I invite my two clever friends every day because your aunt is tired.",
            "de": "Ich lade jeden Tag meine zwei klugen Freunde ein, weil deine Tante müde ist.",
            "fr": "J'invite mes deux amis intelligents tous les jours parce que ta tante est fatiguée.",
            "es": "Invito a mis dos amigos inteligentes todos los días porque tu tía está cansada.",
            "vi": "Tôi mời hai người bạn thông minh của tôi mỗi ngày vì dì bạn mệt mỏi.",
            "zh": "因为你阿姨很累，所以我每天邀请我那两个聪明的朋友。",
        },
    ),
    # The German preterite after als; the Chinese moment first and without 了.
    "when": (
        Meaning(
            Clause(NounPhrase("child", "the", MANY), "laugh", "past"),
            link="when",
            other=Clause(HE, "open", "past", NounPhrase("box", "this", 1, "heavy")),
        ),
        {
            "en": "The children laughed when he opened this heavy box.",
            "de": "Die Kinder lachten, als er diese schwere Kiste aufmachte.",
            "fr": "Les enfants ont ri quand il a ouvert cette boîte lourde.",
            "es": "Los niños rieron cuando él abrió esta caja pesada.",
            "vi": "Những đứa trẻ đã cười khi anh ấy mở chiếc hộp nặng này.",
            "zh": "他打开这个沉重的箱子的时候，那些孩子笑了。",
        },
    ),
    "new_subject": (
        Meaning(Clause(NounPhrase("dog", "a"), "sleep", "progressive", place=NounPhrase("garden"), time="now")),
        {
            "en": "Now a dog is sleeping in the garden.",
            "de": "Jetzt schläft ein Hund im Garten.",
            "fr": "Maintenant, un chien dort dans le jardin.",
            "es": "Ahora un perro está durmiendo en el jardín.",
            "vi": "Bây giờ một con chó đang ngủ ở vườn.",
            "zh": "现在有一只狗正在花园里睡觉。",
        },
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    meaning, expected = GOLDEN[name]
    assert texts(meaning) == expected


def test_every_sentence_is_as_it_was() -> None:
    """A thousand meanings in all languages, words and slots; a change of any is a change of the corpus' version."""
    digest = hashlib.sha256()
    for meaning in draw_meanings("train", 1000, 0):
        for language in LANGUAGES:
            digest.update(repr(render(meaning, language)).encode())
    assert digest.hexdigest()[:16] == "31113d85d0436289"


def test_alignment_follows_the_grammar() -> None:
    """Word order differs everywhere, and ``hat … gekauft`` both answer ``bought``."""
    meaning = GOLDEN["transitive"][0]
    english, german, chinese = (render(meaning, language) for language in ("en", "de", "zh"))
    pairs = {(english.tokens[i], german.tokens[j]) for i, j in align(english, german)}
    assert pairs == {
        ("Yesterday", "Gestern"), ("the", "der"), ("teacher", "Lehrer"), ("bought", "hat"), ("bought", "gekauft."),
        ("an", "ein"), ("old", "altes"), ("book.", "Buch"),
    }  # fmt: skip
    pairs = {(english.tokens[i], chinese.tokens[j]) for i, j in align(english, chinese)}
    assert {("an", "一"), ("book.", "书"), ("old", "旧"), ("bought", "买"), ("bought", "了")} <= pairs
    assert [token for token, slots in zip(chinese.tokens, chinese.slots) if not slots] == ["。"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_lexicons_are_complete(language: str) -> None:
    words = lexicon(language)
    assert (set(words.noun), set(words.adjective), set(words.time)) == (set(NOUNS), set(ADJECTIVES), set(TIMES))
    assert set(VERBS) - {"be", "exist"} <= set(words.verb) and set(PRONOUNS) == set(words.pronoun)
    assert all(map(all, words.adjective.values())) and len(set(map(len, words.noun.values()))) == 1


def test_rendering_is_injective_in_every_language() -> None:
    assert len(set(meanings())) == 8_000
    for language in LANGUAGES:
        seen: dict[str, Meaning] = {}
        for meaning in meanings():
            text = render(meaning, language).text
            assert text not in seen, f"{meaning} and {seen[text]} are both {text!r}"
            seen[text] = meaning


def test_every_word_occurs_in_training() -> None:
    phrases = [
        p for m in meanings() for c in (m.main, m.other) if c for p in (c.subject, c.object, c.recipient, c.place) if p
    ]
    clauses = [clause for m in meanings() for clause in (m.main, m.other) if clause]
    assert {p.head for p in phrases} == {*NOUNS, *PRONOUNS}
    assert {p.adjective for p in phrases if p.adjective} | {c.quality for c in clauses if c.quality} == set(ADJECTIVES)
    assert {c.predicate for c in clauses} == set(VERBS)
    assert {c.time for c in clauses if c.time} == set(TIMES)
    assert {p.count for p in phrases} == set(range(10))


def test_alignment_is_valid_and_covers_what_both_sides_say() -> None:
    content = (".noun", ".adjective", ".verb", ".time", ".quality", ".negation")
    for meaning in meanings()[:300]:
        phrases = [render(meaning, language) for language in LANGUAGES]
        for source, target in itertools.product(phrases, phrases):
            pairs = align(source, target)
            assert pairs == sorted(pairs)
            assert all(0 <= i < len(source.tokens) and 0 <= j < len(target.tokens) for i, j in pairs)
            aligned, expressed = {i for i, _ in pairs}, set().union(*target.slots)
            for i, slots in enumerate(source.slots):
                # "be" has no word of its own in Chinese when denied or intensified.
                wanted = any(s.endswith(content) and (s in expressed or not s.endswith(".verb")) for s in slots)
                assert i in aligned or not wanted, (source.text, target.text, source.tokens[i])


def test_splits_are_by_meaning_whatever_the_seed() -> None:
    for split in SPLITS:
        drawn = [draw_meanings(split, 400, seed) for seed in range(3)]
        assert drawn[0] != drawn[1] and {split_of(meaning) for part in drawn for meaning in part} == {split}


def test_same_rows_in_another_process() -> None:
    call = "str([render(m, 'vi').text for m in draw_meanings('test', 40, 3)]) + repr(mining_phrases(size=40, gold=9))"
    code = (
        f"from st_xling.data.phrasebook import draw_meanings, render, mining_phrases; print({call})\n"
        "import sys; assert not {'datasets', 'torch'} & sys.modules.keys(), 'importing and drawing are cheap'"
    )
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONHASHSEED": "1"}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert said == f"{eval(call)}\n"


def test_parallel_phrases_columns_and_prefix() -> None:
    large = parallel_phrases("de", "en", size=300, seed=4)
    assert large.column_names == [
        "source", "target", "source_language", "target_language", "alignment", "source_tokens", "target_tokens",
    ]  # fmt: skip
    assert parallel_phrases("de", "en", size=50, seed=4).to_list() == large.select(range(50)).to_list()
    assert len(set(large["source"])) == len(set(large["target"])) == 300
    assert set(large["source_language"]) == {"de"}
    assert parallel_phrases("zh", "en", size=300, seed=4)["target"][:] == large["target"][:]
    row = large[0]
    assert row["source"].split() == row["source_tokens"]
    assert all(i < len(row["source_tokens"]) and j < len(row["target_tokens"]) for i, j in row["alignment"])


def test_mining_set_tells_the_truth() -> None:
    size, gold, seed = 400, 60, 7
    found = mining_phrases("fr", "zh", size=size, gold=gold, seed=seed)
    translation = {render(m, "fr").text: render(m, "zh").text for m in draw_meanings("test", 2 * size - gold, seed)}
    assert len(set(found.source)) == len(set(found.target)) == size
    where = {text: index for index, text in enumerate(found.target)}
    pairs = [(i, where[translation[text]]) for i, text in enumerate(found.source) if translation[text] in where]
    assert pairs == found.gold and len(pairs) == gold and [i for i, _ in pairs] != [j for _, j in pairs]
    assert mining_phrases(size=5, gold=0).gold == [] and len(mining_phrases(size=5, gold=5).gold) == 5
    assert len(draw_meanings("train", 500, 0, distinct=False)) == 500


@pytest.mark.parametrize(("split", "size"), [("train", 300), ("dev", 60), ("test", 60)])
def test_each_question_is_answered_by_its_own_passage_alone(split: str, size: int) -> None:
    drawn = draw_passages(split, size, 0)
    stated: dict[str, list[int]] = {}
    positions = set()
    for number, (question, sentences) in enumerate(drawn):
        assert {split_of(question), *map(split_of, sentences)} == {split}
        assert 2 <= len(sentences) <= 4 and not any(sentence.question for sentence in sentences)
        positions.add([sentence.main.key for sentence in sentences].index(question.main.key))
        for clause in (clause for sentence in sentences for clause in (sentence.main, sentence.other) if clause):
            stated.setdefault(clause.key, []).append(number)
    assert all(stated[question.main.key] == [number] for number, (question, _) in enumerate(drawn))
    assert positions >= {0, 1, 2}, "the answer must not always stand in one place"


def test_passages_of_a_prefix_a_seed_and_a_choice_of_languages() -> None:
    small, large = (phrase_passages(["de"], split="test", size=size) for size in (5, 20))
    assert large.passages["de"][:5] == small.passages["de"] and large.ids[:5] == small.ids
    other = phrase_passages(["de"], split="test", size=5, seed=1)
    assert not set(other.ids) & set(small.ids) and not set(other.passages["de"]) & set(small.passages["de"])
    assert phrase_passages(["fr", "de"], split="test", size=5).passages["de"] == small.passages["de"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parallel_phrases("xx", "en"), "language must be one of en, de, fr, es, vi, zh: got 'xx'"),
        (lambda: parallel_phrases("de", "english"), "got 'english'; did you mean 'en'"),
        (lambda: parallel_phrases("de", "de"), "source and target must differ: got 'de' for both"),
        (lambda: parallel_phrases("de", "en", split="valid"), "split must be one of train, dev, test: got 'valid'"),
        (lambda: parallel_phrases("de", "en", size=0), "size must be at least 1: got size=0"),
        (lambda: mining_phrases(size=10, gold=11), "gold must lie between 0 and size: got gold=11 for size=10"),
        (lambda: mining_phrases(size=10, gold=-1), "gold must lie between 0 and size: got gold=-1"),
        (lambda: render(GOLDEN["that"][0], "pt"), "language must be one of"),
        (lambda: phrase_passages(["de"], split="all"), "split must be one of train, dev, test: got 'all'"),
        (lambda: phrase_passages(["ru"]), "language must be one of en, de, fr, es, vi, zh: got 'ru'"),
    ],
)
def test_errors_say_what_to_do(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
