"""Filters: what each rejects and accepts, in many scripts; their order, limits and batches; rejected pairs as JSON."""

import gzip
import json
import unicodedata
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining import MinedPairs
from st_xling.mining.filters import (
    FILTERS,
    FilterOptions,
    PairFilters,
    RejectedPair,
    identify_languages,
    letter_key,
    weighted_length,
)
from st_xling.utils.identify import expected_odds

Pair = tuple[str, str]

LONG = "All human beings are born free and equal in dignity and rights."
FRENCH = "Les enfants mangent des pommes rouges dans le jardin."
ENGLISH = "The children are eating red apples in the garden."

#: By filter, with default limits and German and English expected: pairs that it rejects, and pairs that it accepts.
EXAMPLES: dict[str, tuple[list[Pair], list[Pair]]] = {
    "copy": (
        [
            ("Hello, world!", "hello world"),
            ("Der Fluß.", "DER FLUSS"),
            ("cafe\u0301 🙂", "CAFÉ"),
            ("محمـــد رسول", "محمد، رسول"),
            ("แมวดำ", "แมว ดำ"),
            ("१२ मार्च", "१२ — मार्च"),
            ("🙂🙂", "!!!"),
            ("สวัสดี\u200bครับ", "สวัสดีครับ"),
            ("Serug, Nahor, Tarah und Lot,", "Serug, Nahor, Terah und Lot,"),
            ("Автор: Иван Петрович Сидоров, Москва", "Автор: Иван Петрович Сидоров, г. Москва"),
            ("北京市海淀区中关村大街27号院", "北京市海淀区中关村大街29号院"),
            ("RES_USE_EDNS0 (since glibc 2.6)", "RES_USE_EDNS0 (since glibc 2.7)"),
            ("The flag O_CLOEXEC is set by open(2).", "The flag O_CLOEXEC was set by open(2)."),
            ("isalnum(), isalpha() and isblank()", "isalnum(), isalpha() and isblank(), too"),
            ("6.", "6."),
            ("ファイルを読み込みます。", "ファイルを読み込みました。"),
            ("Anna-Lena sagte nichts.", "Anna-Lena sagte nichts"),
            ("open(2), read(2)", "open(2), read(2)"),
        ],
        [
            ("Der Hund schläft.", "The dog is sleeping."),
            ("कि", "की"),  # vowel signs are marks: without them both would be "क"
            ("二零一九", "2019"),
            ("1984", "1985"),
            ("année", "annee"),
            # True pairs that share an identifier, and say little else: 5 % of the lines of manual pages.
            ("RES_USE_EDNS0 (seit Glibc 2.6)", "RES_USE_EDNS0 (since glibc 2.6)"),
            ("PTRACE_O_TRACEFORK (depuis Linux 2.5.46)", "PTRACE_O_TRACEFORK (since Linux 2.5.46)"),
            ("NUD_PROBES (Linux 3.5 以降)", "NUD_PROBES (since Linux 3.5)"),
            ("execve() и EAGAIN", "execve() and EAGAIN"),
            ("syslog() y vsyslog()", "syslog() and vsyslog()"),
            ("Siehe pthread_cleanup_push(3).", "See pthread_cleanup_push(3)."),
            ("使用RES_USE_EDNS0选项", "RES_USE_EDNS0 option"),
            ("Portabilité", "Portability"),
            ("VERSIONES", "VERSIONS"),
            ("6.", "(6)"),
            ("12,5 %", "12.5 %"),
            # Cognates, compounds and lists of names: 1 to 3 % of the lines of technical text from German and French.
            ("Hardware-Kompatibilität", "Hardware Compatibility"),
            ("Native und LPAR-Installationen", "Native and LPAR installations"),
            ("Signalnummerierung für Standard-Signale", "Signal numbering for standard signals"),
            ("Version-2-Format", "Version 2 format"),
            ("tan, tanf, tanl - Tangensfunktion", "tan, tanf, tanl - tangent function"),
            ("fwide() :", "fwide():"),
            (
                "afs_syscall, break, fattach, ftime, gtty, lock, mpx, prof - nicht implementierte Systemaufrufe",
                "afs_syscall, break, fattach, ftime, gtty, lock, mpx, prof - unimplemented system calls",
            ),
        ],
    ),
    "length_ratio": (
        [
            ("Ja. " * 20, "Yes, of course, we all agree with that. " * 12),
            ("да" * 30, "yes, of course I do. " * 20),
            ("人人生而自由，在尊严和权利上一律平等。", "All human"),
        ],
        [("Да.", "Yes, of course I do."), ("", ""), ("人人生而自由，在尊严和权利上一律平等。", LONG)],
    ),
    "numbers": ([("Ich habe 3 Bücher.", "I have 4 books.")], [("Ich habe 3 Bücher.", "I have three books.")]),
    "language": ([(FRENCH, ENGLISH), ("Der Hund schläft unter dem Tisch.", FRENCH)], [("Taxi!", "Taxi!"), ("", "🙂")]),
}
GOOD = [("Der Hund schläft unter dem Tisch.", "The dog is sleeping under the table."), ("Ja, gern.", "Yes, please.")]
BAD = {reason: rejected[0] for reason, (rejected, _) in EXAMPLES.items()}
OPTIONS = FilterOptions(source_language="de", target_language="en")


def check(filters: PairFilters, *pairs: Pair) -> tuple[np.ndarray, list[RejectedPair]]:
    """Row ``i`` of one side with row ``i`` of the other; the score decreases from 2."""
    rows = np.arange(len(pairs))
    rejected: list[RejectedPair] = []
    return filters.allowed(MinedPairs(2 - rows / 100, rows, rows), *zip(*pairs), rejected.append), rejected


def rejections(pairs: list[Pair], reason: str, limit: float | None = None, **more: Any) -> list[Any]:
    """For each pair the value by which one filter alone rejects it; ``None`` for a pair that passes."""
    limits = {} if limit is None else {reason: limit}
    options = FilterOptions(disable=[name for name in FILTERS if name != reason], limits=limits, **more)
    rejected = {row.source_index: row.value for row in check(PairFilters(options), *pairs)[1]}
    return [rejected.get(row) for row in range(len(pairs))]


@pytest.mark.parametrize("reason", FILTERS)
def test_examples_of_each_filter(reason: str, pairs: list[Pair]) -> None:
    """Filters of texts alone decide the same with the sides swapped, and accept the phrasebook."""
    rejected, accepted = EXAMPLES[reason]
    languages = {"source_language": "de", "target_language": "en"} if reason == "language" else {}
    for way in (1, -1) if reason != "language" else (1,):
        values = rejections([pair[::way] for pair in [*rejected, *accepted]], reason, **languages)
        assert [value is not None for value in values] == [True] * len(rejected) + [False] * len(accepted)
    if reason != "language":
        assert not any(rejections(pairs, reason))


def test_each_bad_pair_gets_its_reason_whatever_the_batches_and_order() -> None:
    filters = PairFilters(OPTIONS)
    pairs = [*GOOD, *BAD.values()]
    allowed, rejected = check(filters, *pairs)
    assert allowed.tolist() == [True] * 2 + [False] * len(BAD)
    assert [(pair.reason, pair.source, pair.target) for pair in rejected] == [(k, *v) for k, v in BAD.items()]
    assert [(pair.source_index, pair.score) for pair in rejected][:2] == [(2, 1.98), (3, 1.97)]
    assert filters.rejected == dict.fromkeys(BAD, 1)
    sources, targets = zip(*pairs[::-1])
    rows = np.arange(len(pairs))
    singly: list[RejectedPair] = []
    mined = MinedPairs(np.ones(len(pairs)), rows, rows)
    one_by_one = [filters.allowed(mined.select([row]), sources, targets, singly.append)[0] for row in rows]
    assert one_by_one == allowed.tolist()[::-1]
    assert [pair[:2] for pair in singly[::-1]] == [pair[:2] for pair in rejected]


def test_options_and_signature(caplog: pytest.LogCaptureFixture) -> None:
    assert tuple(FILTERS) == tuple(FilterOptions().enabled) == tuple(EXAMPLES)
    assert FilterOptions(disable=["all"]).enabled == {}
    options = FilterOptions(limits={"length_ratio": 3, "copy": 0.9}, disable=["language"])
    assert PairFilters(options).signature == "copy=0.9,length_ratio=3,numbers"
    assert PairFilters(FilterOptions(disable=["all"])).signature == "none" and not caplog.text
    # The signature has the filters that run.
    filters = PairFilters(FilterOptions(source_language="de", target_language="tlh", disable=["copy"]))
    assert filters.signature == "length_ratio=2.5,numbers,language=0.1"
    assert "py3langid does not know 'tlh'" in caplog.text
    assert check(filters, ("Wo ist hier die Bücherei dieser Stadt?", "nuqDaq 'oH"))[0].all()
    assert "language" not in PairFilters(FilterOptions(source_language="tlh")).limits
    for faulty, fact in (
        ({"limits": {"lenght_ratio": 2}}, "lenght_ratio"),
        ({"disable": ["copies"]}, "copies"),
        ({"limits": {"numbers": 3}}, "numbers has no limit"),
        ({"limits": {"copy": 85}}, "copy .* 85"),
        ({"limits": {"copy": np.nan}}, "copy .* nan"),
    ):
        with pytest.raises(ValueError, match=fact):
            FilterOptions(**faulty)  # type: ignore[arg-type]


@given(st.text(max_size=40))
def test_letter_key_is_stable_and_does_not_depend_on_the_unicode_form(text: str) -> None:
    key = letter_key(text)
    assert letter_key(key) == key == letter_key(unicodedata.normalize("NFD", text))
    assert all(unicodedata.category(character)[0] in "LMN" for character in key)


def test_similarity_is_twice_the_common_subsequence() -> None:
    """ "it is a kitten" and "it is a sitting" share itisa, i, t, t, n: 2 * 9 / 23; of four words one is another."""
    pair = [("it is a kitten", "it is a sitting")]
    assert rejections(pair, "copy", 18 / 23 - 1e-6) == [0.7826] and rejections(pair, "copy", 18 / 23 + 1e-6) == [None]
    assert rejections([("Ja!", "ja"), ("", "ja"), ("…", "!")], "copy", 1.0) == [1.0, None, 1.0]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("cafe\u0301", 4),
        ("书。", 4.5),
        ("カタカナ", 6.8),
        ("한국", 5),
        (unicodedata.normalize("NFD", "한국"), 5),
        ("我用Python写", 16.5),
        ("𠮷", 3.5),
        ("แมวดำ", 5),
        ("🙂", 1),
    ],
)
def test_weighted_length(text: str, length: float) -> None:
    """Weights are those of ``tests.benchmarks.filter_constants``; no test failed when a Chinese character was two."""
    assert weighted_length(text) == pytest.approx(length)


def test_length_ratio_by_hand() -> None:
    """(85 + 15) / (10 + 15); a ratio of the limit passes."""
    pairs = [("a" * 85, "b" * 10), ("b" * 10, "a" * 85)]
    assert rejections(pairs, "length_ratio", 3.9) == [4.0] * 2
    assert rejections(pairs, "length_ratio", 4.0) == [None] * 2


RIGHT = [
    ("ar", "لا أعرف أين المفتاح."),
    ("zh", "我买了三本旧书。"),
    ("ru", "12345 + 7"),
    ("de", "🙂"),
    # Old and pointed spellings, presentation forms, other widths.
    ("he", "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ"),
    ("arb", "بِسْمِ اللَّهِ الرَّحْمَٰنِ الرَّحِيمِ الْحَمْدُ لِلَّهِ رَبِّ الْعَالَمِينَ"),
    ("ar", "ﺍﻟﺴﻼﻡ ﻋﻠﻴﻜﻢ ﻛﻴﻒ ﺣﺎﻟﻚ ﺍﻟﻴﻮﻡ ﻳﺎ ﺻﺪﻳﻘﻲ"),
    ("pes", "ﺳﻼﻡ ﺣﺎﻝ ﺷﻤﺎ ﭼﻄﻮﺭ ﺍﺳﺖ ﺩﻭﺳﺖ ﻣﻦ"),
    ("el", "ἐν ἀρχῇ ἦν ὁ λόγος, καὶ ὁ λόγος ἦν πρὸς τὸν θεόν"),
    ("fil", "Magandang umaga sa inyong lahat, kumusta kayo?"),
    ("en", "Ｔｈｅ ｃｈｉｌｄｒｅｎ ａｒｅ ｅａｔｉｎｇ ａｐｐｌｅｓ"),
    ("ja", "ﾃﾞﾝｼｬｶﾞﾏｲﾘﾏｽ"),
    ("hbs", "Djeca jedu crvene jabuke u vrtu iza kuće."),
]


@pytest.mark.parametrize(("expected", "text"), RIGHT)
def test_right_language(expected: str, text: str) -> None:
    assert rejections([(text, "whatever")], "language", source_language=expected) == [None]


UNCHECKED = [
    # Scripts in which a language is written, but which py3langid has not learned for it.
    ("pa", "اَج موسم بہت چنگا اے"),
    ("pan_Arab", "ایہہ کتاب میری بھین دی اے تے میں اوہنوں پڑھ رہیا واں"),
    ("kk", "Bügın aua raiy jaqsy"),
    ("kaz_Cyrl", "بۇگىن اۋا رايى جاقسى"),
    ("az", "Бу ҝүн һава чох ҝөзәлдир."),
    ("azj", "بو گون هاوا چوخ گؤزل‌دیر"),
    ("kmr", "Иро һәва гәләк хwәш ә"),
    ("ug", "Bügün hawa nahayiti yaxshi, biz baghchigha barimiz."),
    ("ug", "Бүгүн һава наһайити яхши"),
    ("tg", "امروز هوا خیلی خوب است و ما به باغ می‌رویم"),
    ("ms", "هاري اين چواچ ساڠت باءيق دان كيت ڤرݢي كتامن"),
    ("ha", "يَوْ غَرِي يَا يِ كْيَوْ سُوسَيْ"),
    ("mn", "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ"),
    ("tk", "Бу гүн ховa гаты говы."),
    ("ky", "بۇگۈن اۋا ىرايى جاقشى"),
    ("tt", "Bügen hawa bik yaxşı, bez baqçağa barabız."),
    ("crh", "Бугунь ава пек яхшы."),
    ("mo", "Астэзь тимпул есте фрумос ши мерджем ын парк."),
    ("jv", "ꦲꦏ꧀ꦱꦫꦗꦮ ꦲꦤꦕꦫꦏ"),
    ("ff", "𞤋𞤲𞥆𞤢𞤥𞤢 𞤢𞥄𞤣𞤫𞥅𞤶𞤭"),
    ("kab", "ⵉⵎⴷⴰⵏⴻⵏ ⴰⴽⴽ ⵜⵜⵍⴰⵍⴻⵏ"),
    ("hi_Latn", "Aaj mausam bahut accha hai, chalo bahar chalte hain."),
    ("ko", "大韓民國憲法"),
    ("vi", "南國山河南帝居"),
    # Languages with two scripts that it has learned.
    ("sr", "Данас је лепо време и идемо у шетњу поред реке."),
    ("srp_Latn", "Danas je lepo vreme i idemo u šetnju pored reke."),
    ("bs", "Данас је лијепо вријеме и идемо у шетњу."),
    ("uz", "Бугун ҳаво жуда яхши, биз боққа борамиз."),
    ("ckb", "ئەمڕۆ کەش زۆر خۆشە و دەچینە باخچە"),
    # Names, code, and terms in Latin letters.
    ("en", "Nguyễn Văn Thiệu"),
    ("en", "Ludwig van Beethoven"),
    ("en", "Serug, Nahor, Tarah,"),
    ("de", "EACCES, EPERM"),
    ("de", "asin, asinf, asinl - Arkussinus-Funktion"),
    ("ja", "timeradd, timersub, timercmp, timerclear, timerisset - timeval の操作"),
    ("de", "ssize_t read(int fd, void *buf, size_t count);"),
    ("ja", "int getaddrinfo(const char *node, const char *service);"),
    ("ru", "if (x > 0) { return x; }"),
    ("ja", "app_solicit (Linux 2.2 以降)"),
    ("ko", "app_solicit (Linux 2.2 이후)"),
    ("ja", "FileHandle を close する"),
]


@pytest.mark.parametrize(("expected", "text"), UNCHECKED)
def test_text_that_does_not_show_its_language_passes(expected: str, text: str) -> None:
    """Punjabi in Shahmukhi was taken for Urdu, Kazakh in Latin letters for Crimean Tatar: all was rejected."""
    assert rejections([(text, "whatever")], "language", source_language=expected) == [None]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("pa", "The weather is very nice today."),
        ("kk", "The weather is very nice today and we go to the park."),
        ("kk", "Сегодня хорошая погода, и мы идём в парк гулять."),
        ("sr", "Сегодня хорошая погода, и мы идём в парк."),
        ("ug", "قال الرئيس اليوم إن الحكومة ستعلن عن خطة جديدة"),
        ("ar", "امروز هوا خیلی خوب است و ما به باغ می‌رویم"),
        ("mn", "Сегодня хорошая погода, и мы идём в парк."),
        ("ko", "我买了三本旧书，今天想送给我的朋友。"),
        ("deu_Latn", "Сегодня хорошая погода."),
        ("de", "The function open() returns a file descriptor, or -1 on error."),
        ("ja", "Return the number of elements of the list (see list.count)."),
    ],
)
def test_the_wrong_language_is_found_in_every_script(expected: str, text: str) -> None:
    assert rejections([(text, "whatever")], "language", source_language=expected) != [None]


def test_wrong_language_on_either_side() -> None:
    pairs = [(FRENCH, ENGLISH), (ENGLISH, ENGLISH), (FRENCH, FRENCH)]
    right, source, target = rejections(pairs, "language", source_language="fr", target_language="en")
    assert right is None and source.pop("odds") < 0.1
    assert source == {"side": "source", "expected": "fr", "found": "en"}
    assert target.items() >= {"side": "target", "expected": "en", "found": "fr"}.items()
    assert rejections(pairs, "language", target_language="en")[:2] == [None, None]


def test_short_sentences_are_identified_leniently() -> None:
    """Below 40 letters the limit shrinks in proportion: at 12 letters the odds need to be 12/40 of it."""
    text = "Grazie mille"
    limit = expected_odds(text, "de")[1] * 40 / len(text)
    assert 0 < limit < 1
    (passes,) = rejections([(text, "…")], "language", limit * 0.99, source_language="de")
    (rejected,) = rejections([(text, "…")], "language", limit * 1.01, source_language="de")
    assert passes is None and (rejected["expected"], rejected["found"]) == ("de", "it")


# A sentence, its expected language, and whether the filter rejects it. Recorded at 7c27a47c.
SHORT_SENTENCES = [
    ("Grazie mille", "de", False),  # odds 0.038 of a limit of 0.03 for 12 letters
    ("Grazie mille a tutti", "de", True),
    ("Taxi!", "fr", False),
    ("Добрый день", "uk", True),
    ("Guten Tag", "nl", False),
    ("Guten Tag, liebe Leute", "nl", True),
    ("你好", "ja", True),
    ("Hyvää", "et", True),
    ("Wir sehen uns morgen", "da", True),
    ("Buna ziua", "it", False),
    ("Bom dia", "es", False),
    ("God morgen", "sv", False),
]


@pytest.mark.parametrize(("text", "language", "rejected"), SHORT_SENTENCES)
def test_short_sentences_in_another_language(text: str, language: str, rejected: bool) -> None:
    """No test failed when short sentences were judged like long ones."""
    (value,) = rejections([(text, "…")], "language", source_language=language)
    assert (value is not None) == rejected


@pytest.mark.parametrize(
    ("text", "is_sentence"),
    [
        ("Guten Morgen", False),
        ("Guten Morgen zusammen", True),
        ("我们明天去北京", False),
        ("我们明天去北京吧！好", True),
    ],
)
def test_a_copied_sentence_has_three_words(text: str, is_sentence: bool) -> None:
    """Recorded at 7c27a47c: only then both sides remain free for other partners."""
    frees = FILTERS["copy"].frees
    assert frees is not None and frees(text, text) == is_sentence


def test_copied_code_is_no_sentence() -> None:
    """It has found its partner, its copy; both sides got wrong ones, in every translated manual page."""
    frees = FILTERS["copy"].frees
    assert frees is not None and not frees(*["int open(const char *path, int flags);"] * 2)


def test_a_copied_name_in_capitals_frees_nothing() -> None:
    """EAGAIN was taken for Gaelic after its copy was recognized, so that it got another partner: BEZEICHNUNG."""
    rows = np.arange(2)
    sources = ["EAGAIN", ENGLISH]
    filters = PairFilters(OPTIONS)
    assert filters.allowed(MinedPairs(np.ones(2), rows, rows), sources, sources, freeing=True).tolist() == [True, False]


def test_the_side_that_was_left_untranslated_is_spent() -> None:
    """An English line that both texts have was free on both sides; on the German one all its partners were wrong."""
    german = "Die Kinder essen rote Äpfel im Garten."
    texts = [ENGLISH, german, "Remote Procedure Call Programming Guide"]
    rows = np.arange(3)
    pairs = MinedPairs(np.ones(3), rows, rows)
    source_is_spent, target_is_spent = PairFilters(OPTIONS).spent(pairs, texts, texts)
    assert source_is_spent.tolist() == [True, False, True] and target_is_spent.tolist() == [False, True, False]
    for options in (FilterOptions(disable=["language"]), FilterOptions(source_language="de")):
        assert not np.any(PairFilters(options).spent(pairs, texts, texts))


@pytest.mark.parametrize("code", ["de", "zh"])
def test_true_pairs_of_real_data_are_kept(real_data: Path, code: str) -> None:
    """At least 98 of 100; with the languages exchanged, none of twenty."""
    with gzip.open(real_data / "parallel" / f"{code}-en.dev.tsv.gz", "rt", encoding="utf-8") as lines:
        real = [line.rstrip("\n").split("\t") for line in islice(lines, 300)]
    options = FilterOptions(source_language=code, target_language="en")
    assert check(PairFilters(options), *real)[0].mean() >= 0.98
    exchanged = FilterOptions(source_language="en", target_language=code, disable=["numbers"])
    assert check(PairFilters(exchanged), *real)[0].mean() <= 0.05


def test_languages_that_are_not_given_are_those_of_the_text() -> None:
    french = [FRENCH] * 30
    english = [ENGLISH] * 30
    mixed = [FRENCH, ENGLISH] * 15
    options = identify_languages(FilterOptions(target_language="de"), french, english)
    assert (options.source_language, options.target_language) == ("fr", "de")
    for options, texts in (
        (FilterOptions(), mixed),
        (FilterOptions(), french[:5]),
        (FilterOptions(disable=["all"]), french),
    ):
        assert identify_languages(options, texts, texts) == options


@pytest.mark.parametrize(("sentences", "names", "language"), [(26, 4, "fr"), (24, 6, None), (30, 0, "fr")])
def test_four_of_five_sentences_tell_the_language(sentences: int, names: int, language: str | None) -> None:
    """Recorded at 7c27a47c: short sentences of 22 letters count, and others are of another language."""
    texts = ["Les enfants mangent ici"] * sentences + ["We have no time today, sorry."] * names
    assert identify_languages(FilterOptions(), texts, texts).source_language == language
    # What does not tell its language is left out if there are 20 others.
    mixed = ["Les enfants mangent ici"] * 20 + ["No!"] * 20
    assert identify_languages(FilterOptions(), mixed, mixed).source_language == "fr"
    assert identify_languages(FilterOptions(), mixed[1:], mixed[1:]).source_language is None


def test_the_language_of_technical_text_is_found() -> None:
    """Commands and names of options hid it: the language filter was off in seven of thirteen documents."""
    german = ["Der Aufruf von open(2) gibt den Deskriptor zurück.", "Die Datei ist nicht lesbar für diesen Benutzer."]
    code = ["EACCES", "ssize_t read(int fd, void *buf, size_t count);", "O_CLOEXEC", "sudo", "Linus Torvalds"]
    options = identify_languages(FilterOptions(), [*german, *code] * 12, [*code] * 12)
    assert (options.source_language, options.target_language) == ("de", None)


@pytest.mark.parametrize("text", ['"quoted" \\ tab\t', "line\nend\r", "ไทย 🙂 e\u0301"])
def test_a_rejected_pair_is_one_line_and_round_trips(text: str) -> None:
    pair = RejectedPair("numbers", {"source": ["3"]}, float("-inf"), 3, 4, text, "b")
    (line,) = pair.as_json(["de-1", "de-9"]).decode().splitlines()
    record = json.loads(line)
    assert list(record) == ["reason", "value", "score", "source_ids", "target_ids", "source", "target"]
    assert (record["source"], record["score"], record["value"]) == (text, None, {"source": ["3"]})
    assert (record["source_ids"], record["target_ids"]) == (["de-1", "de-9"], [4])
    assert "ไทย" not in text or "ไทย" in line
