"""The leak check: what counts as the same text, every number recomputed by sets, nothing dropped but what leaks."""

import dataclasses
import json
import random
import re
import tracemalloc
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, IterableDataset

from st_xling import __version__
from st_xling.data import LeakError, drop_leaks, leaks, load_evaluation_specs, refuse_leaks
from st_xling.data.leak import BATCH_ROWS
from st_xling.data.text_cells import leak_key, pair_hashes, text_hashes
from tests.data.test_formats import write


def pairs(*rows: tuple[str, str]) -> Dataset:
    source, target = zip(*rows)
    return Dataset.from_dict({"source": source, "target": target})


GERMAN = pairs(
    ("Der Hund schläft.", "The dog sleeps."),
    ("Ich weiß.", "I know."),
    ("Ich weiß es nicht.", "I do not know."),
    ("Es regnet.", "It is raining."),
)


SAME = [
    ("It is raining.", "it IS\u00a0raining"),
    ("Straße Nr. 12!", "STRASSE, NR １２"),  # full folding; full-width digits
    ("café", "cafe\u0301"),
    ("ΐ", "ΐ".upper()),  # folding takes the accents off the letter
    ("I ❤️ you 🙂", "I ❤ you"),
    ("ฉันอ่านหนังสือ", "ฉันอ่าน หนังสือ"),
    ("??", " ?? "),
]
DIFFERENT = [
    ("schon", "schön"),
    ("عَلِم", "علم"),  # marks count
    ("dog bites man", "man bites dog"),
    ("??", "!!"),
]


@pytest.mark.parametrize(("one", "other"), [*SAME, *DIFFERENT])
def test_which_texts_are_the_same(one: str, other: str) -> None:
    assert (leak_key(one) == leak_key(other) != "") == ((one, other) in SAME)


@pytest.mark.parametrize(
    "text", ["Größe: 5 m²!", "你好，世界。", "مَرْحَبًا بك", "नमस्ते दुनिया", "Ⅷ x½", "ǅ İ ß ﬀ", "Привет", "한국어"]
)
def test_the_key_by_its_definition(text: str) -> None:
    """Character by character, as signatures name it: nfkc-casefold-lmn; a key is its own key."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    expected = "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")
    assert leak_key(text) == expected == leak_key(expected)


def test_hashes_are_fixed_and_pairs_have_no_order() -> None:
    """Fixed, since reports made on different days are compared."""
    assert text_hashes(["Hello, World!", "hello world"]).tolist() == [6_801_638_793_323_236_970] * 2
    hashes = text_hashes(["a", "b"])
    other = text_hashes(["c", "a"])
    assert pair_hashes(hashes, other).tolist() == pair_hashes(other, hashes).tolist()
    assert len(set(pair_hashes(hashes, other).tolist())) == 2
    assert len(text_hashes([])) == 0 and len(text_hashes(["\ud83d a"])) == 1  # half a surrogate pair


def test_sides_pairs_and_training_sets() -> None:
    evaluation = pairs(
        ("ICH WEISS", "I know it."),  # the source only
        ("Je sais.", "I know"),  # the target only
        ("It is raining!", "Es regnet"),  # the pair, the other way round
        ("Der Hund schläft", "It is raining"),  # both sides, but of two rows
        ("Danke.", "Thanks."),
    )
    french = pairs(("Je sais.", "I know."), ("Merci.", "Thank you."))
    report = leaks({"de-en": GERMAN, "fr-en": french}, {"test": evaluation})
    sides = report.sets["test"]
    assert sides == {"source": (5, 4), "target": (5, 3), "pair": (5, 2)} and sides["source"].share == 0.8
    assert report.leaked_rows == {"de-en": [0, 1, 3], "fr-en": [0]} and report.leaking == ["test"]


def test_equal_to_the_definition_on_random_text() -> None:
    """With repetitions, in all three kinds of container."""
    draw = random.Random(5)

    def side(size: int) -> list[str]:
        return [f"Word{draw.randrange(100)}" + draw.choice([".", "!", ""]) for _ in range(size)]

    train = {"a": (side(150), side(150)), "b": (side(40), side(40))}
    evaluation = {"x": (side(120), side(120)), "y": (side(30), side(30))}

    def shared(units: list[Any], known: set[Any]) -> int:
        return sum(unit in known for unit in units)

    expected: dict[str, Any] = {}
    for name, sides in evaluation.items():
        keys = [list(map(leak_key, texts)) for texts in sides]
        known = [[list(map(leak_key, texts)) for texts in both] for both in train.values()]
        sentences = {text for both in known for texts in both for text in texts}
        counts = [shared(texts, sentences) for texts in keys]
        rows = {frozenset(row) for both in known for row in zip(*both)}
        expected[name] = [*counts, shared([frozenset(row) for row in zip(*keys)], rows)]
    assert expected["x"][2] or expected["y"][2]
    tables = {name: Dataset.from_dict(dict(zip(("source", "target"), sides))) for name, sides in train.items()}
    streams = {name: table.to_iterable_dataset() for name, table in tables.items()}
    reports = [leaks(kind, evaluation) for kind in (train, tables, streams)]
    for report in reports:
        assert {name: [side.leaked for side in sides.values()] for name, sides in report.sets.items()} == expected
        assert report.as_dict() == reports[0].as_dict()


def test_report() -> None:
    report = leaks({"de-en": GERMAN}, {"dev deu": pairs(("Ich weiß!", "I know!"), ("a", "b")), "q": ["c"]})
    lines = report.table().splitlines()
    assert lines[0].endswith("1 of 2 evaluation sets")
    assert lines[1].split() == ["evaluation", "set", "rows", "source", "target", "both"]
    assert re.split(r"\s{2,}", lines[2]) == ["dev deu", "2", "1 (50.0 %)", "1 (50.0 %)", "1 (50.0 %)"]
    assert lines[3] == "  e.g. de-en row 2: Ich weiß."
    assert lines[4] == "de-en: 1 of 4 training rows in question"
    assert lines[5] == report.signature and len(lines) == 6
    assert "training rows dropped" in dataclasses.replace(report, dropped=True).table()
    written = json.loads(json.dumps(report.as_dict()))
    assert written["sets"]["dev deu"]["pair"] == {"rows": 2, "leaked": 1, "share": 0.5}
    assert written["train"] == {"de-en": {"rows": 4, "leaked": 1}}
    assert written["dropped"] is False and written["signature"] == report.signature
    with pytest.raises(LeakError, match=r"1 of 2 evaluation sets share some \(dev deu\)"):
        refuse_leaks(report)


def test_signature_says_what_was_compared() -> None:
    def signature(rows: Any = GERMAN, **sets: Any) -> str:
        return leaks({"de-en": rows}, sets or {"test": ["Danke."]}).signature

    parts = r"leak\|key:nfkc-casefold-lmn\|match:exact\|train:de-en@[0-9a-f]{8}\|data:test@[0-9a-f]{8}\|st-xling:"
    assert re.fullmatch(parts + re.escape(__version__), signature()) and signature() == signature()
    assert len({signature(GERMAN.select([0])), signature(test=["Bitte."]), signature()}) == 3
    assert "|data:set0+8@" in signature(**{f"set{number}": ["a"] for number in range(9)})


@pytest.mark.parametrize(
    ("train", "evaluation", "message"),
    [
        ({}, {"e": ["a"]}, "got 0 and 1"),
        ({"t": GERMAN}, {}, "got 1 and 0"),
        ({"t": GERMAN}, {"e": []}, "'e' has no sentences"),
        ({"t": GERMAN.select([])}, {"e": ["a"]}, "'t' has no sentences"),
    ],
)
def test_what_cannot_be_checked(train: dict[str, Any], evaluation: dict[str, Any], message: str) -> None:
    """An empty set shares nothing, which is no finding."""
    with pytest.raises(ValueError, match=message):
        leaks(train, evaluation)


def test_the_memory_is_that_of_the_evaluation_side() -> None:
    """Three times the training text, read as a stream, takes no more."""

    def rows(count: int) -> Any:
        for number in range(count):
            yield {"source": f"Satz Nummer {number}, lang genug", "target": f"Sentence number {number}, long enough"}

    def peak(count: int) -> int:
        stream = IterableDataset.from_generator(rows, gen_kwargs={"count": count})
        tracemalloc.start()
        report = leaks({"t": stream}, {"e": ["Sentence number 5, long enough"]})
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert report.train_rows == {"t": count} and report.sets["e"]["text"].leaked == 1
        return most

    peak(10)
    assert peak(3 * BATCH_ROWS) < 1.5 * peak(BATCH_ROWS)


@pytest.mark.parametrize("stream", [False, True])
def test_only_what_leaks_is_dropped(stream: bool) -> None:
    train = {"de-en": GERMAN, "fr-en": pairs(("Merci.", "Thank you."), ("Oui.", "It is raining!"))}
    if stream:
        train = {name: part.to_iterable_dataset() for name, part in train.items()}
    evaluation = {"test": ["i know", "ES REGNET", "it is raining"]}
    kept = drop_leaks(train, leaks(train, evaluation))
    assert [row["target"] for row in kept["de-en"]] == ["The dog sleeps.", "I do not know."]
    assert [row["target"] for row in kept["fr-en"]] == ["Thank you."]
    assert leaks(kept, evaluation).leaking == []
    with pytest.raises(ValueError, match="every row of 'de-en' has a side in the evaluation data"):
        drop_leaks({"de-en": GERMAN}, leaks({"de-en": GERMAN}, {"test": GERMAN}))


def test_specs_of_every_layout(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "tatoeba/tatoeba.deu-eng.deu": "Hund\n",
        "tatoeba/tatoeba.deu-eng.eng": "dog\n",
        "bucc/de-en.test.de": "d1\tHund\nd2\tKatze\n",
        "bucc/de-en.test.en": "e1\tdog\n",
        "bucc/de-en.test.gold": "d1\te1\n",
        "queries.txt": "Wo?\n\nWann?\n",
        "dev.de-en.tsv": "Hund\tdog\n",
    }
    write(tmp_path, files)
    bucc = ["de-en.test de", "de-en.test en", "de-en.test gold"]
    for spec, names in {
        "tatoeba": ["tatoeba deu"],
        "bucc": bucc,
        "bucc/de-en.test": bucc,
        "queries.txt": ["queries"],
        "dev.de-en.tsv": ["de-en"],
    }.items():
        assert list(load_evaluation_specs([str(tmp_path / spec)])) == names
    loaded = load_evaluation_specs([str(tmp_path / name) for name in ("bucc", "queries.txt", "queries.txt")])
    assert list(loaded) == [*bucc, "queries", "queries-2"] and loaded["queries"] == ["Wo?", "Wann?"]
    report = leaks({"t": (["hund"], ["Dog!"])}, loaded)
    assert {name: next(iter(report.sets[name].values())).leaked for name in bucc} == dict(zip(bucc, [1, 1, 1]))
    assert report.sets["de-en.test gold"]["pair"].leaked == 1
    with pytest.raises(FileNotFoundError):
        load_evaluation_specs([str(tmp_path / "absent.txt")])


def test_rows_of_either_label_are_test_sentences(tmp_path: Path) -> None:
    """Rows whose label is 0 are no pairs to train on, but training on their sentences is a leak all the same."""
    text = "sentence1\tsentence2\tlabel\nDer Hund schläft.\tThe city sleeps.\t0\nJa.\tYes.\t1\n"
    write(tmp_path, {"test.tsv": text})
    evaluation = load_evaluation_specs([f"de-en={tmp_path / 'test.tsv'}"])
    assert any(len(rows) == 2 for rows in evaluation.values())
    report = leaks({"train": GERMAN}, evaluation)
    (sides,) = report.sets.values()
    assert sides["source"] == (2, 1)


def test_a_single_data_set_needs_no_name() -> None:
    """In a script there is one data set; it had to be wrapped in a dict, and unwrapped again."""
    evaluation = pairs(("Es regnet!", "Rain."), ("Nein.", "No."))
    report = leaks(GERMAN, evaluation)
    assert report.sets["evaluation"]["source"].leaked == 1 and list(report.leaked_rows["training"]) == [3]
    kept = drop_leaks(GERMAN, evaluation)
    assert isinstance(kept, Dataset) and kept["source"][:] == GERMAN["source"][:3]
    assert drop_leaks(GERMAN, report)[:] == kept[:]
    assert drop_leaks(GERMAN, ["I KNOW", "café"])["target"][:] == [
        text for text in GERMAN["target"] if text != "I know."
    ]
    assert drop_leaks(GERMAN, {"dev": evaluation, "test": ["I know"]})["source"][:] == [
        "Der Hund schläft.",
        "Ich weiß es nicht.",
    ]
    named = drop_leaks({"de-en": GERMAN, "more": GERMAN.select([0])}, evaluation)
    assert {name: len(part) for name, part in named.items()} == {"de-en": 3, "more": 1}
    stream = drop_leaks(GERMAN.to_iterable_dataset(), evaluation)
    assert isinstance(stream, IterableDataset) and [row["source"] for row in stream] == kept["source"][:]
    assert drop_leaks(GERMAN, ["แมวดำ"])[:] == GERMAN[:]  # nothing is shared


def test_dropped_rows_are_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="st_xling"):
        drop_leaks(GERMAN, ["It is raining"])
    assert "training: 1 of 4 rows dropped" in caplog.text


@pytest.mark.parametrize(("train", "against", "error"), [
    (GERMAN, "tatoeba/v1", "expected text to compare, got 'tatoeba/v1'; read it first, .*load_evaluation_specs"),
    (GERMAN, Path("dev.txt"), "expected text to compare, got 'dev.txt'"),
    ("de-en.tsv", ["Hello"], "got 'de-en.tsv'; read it first"),
    (["Hallo", "Ja"], ["Hello"], "rows are dropped from data sets: got list for 'training'"),
    (GERMAN, [], "evaluation set 'evaluation' has no sentences"),
    (GERMAN, GERMAN, "every row of 'training' has a side in the evaluation data"),
    (GERMAN.rename_columns({"source": "de", "target": "en"}), ["Hello"], "source and target: got de, en; rename them"),
    (GERMAN, GERMAN.rename_column("target", "en"), "source and target: got source, en; rename them"),
    (GERMAN, leaks({"fr-en": GERMAN}, ["Hello"]), "report must be of these training data: got one of fr-en, without"),
])  # fmt: skip
def test_what_is_no_text_or_no_data_set(train: Any, against: Any, error: str) -> None:
    """A path was compared letter by letter, and nothing was found to leak."""
    with pytest.raises((ValueError, TypeError), match=error):
        drop_leaks(train, against)
