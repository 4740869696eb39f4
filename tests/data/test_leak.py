"""The leak check: what counts as the same text, every figure recomputed by sets, nothing dropped but what leaks."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tracemalloc
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from datasets import Dataset, IterableDataset

from st_xling import __version__
from st_xling.data import LeakError, drop_leaks, leaks, load_evaluation_specs, refuse_leaks
from st_xling.data.leak import BATCH_ROWS
from st_xling.data.leak_key import leak_key, pair_hashes, text_hashes
from st_xling.data.phrasebook import parallel_phrases


def pairs(*rows: tuple[str, str]) -> Dataset:
    source, target = zip(*rows)
    return Dataset.from_dict({"source": source, "target": target})


GERMAN = pairs(
    ("Der Hund schläft.", "The dog sleeps."),
    ("Ich weiß.", "I know."),
    ("Ich weiß es nicht.", "I do not know."),
    ("Es regnet.", "It is raining."),
)


class TestKey:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("It is raining.", "it IS\u00a0raining"),
            ("Straße Nr. 12!", "STRASSE, NR １２"),  # full folding; full-width digits
            ("café", "cafe\u0301"),
            ("ﬁne", "fine"),
            ("ΐ", "ΐ".upper()),  # folding takes the accents off the letter
            ("I ❤️ you 🙂", "I ❤ you"),
            ("ฉันอ่านหนังสือ", "ฉันอ่าน หนังสือ"),
            ("can't", "cant"),
            ("??", " ?? "),
        ],
    )
    def test_same(self, one, other):
        assert leak_key(one) == leak_key(other) != ""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("schon", "schön"),
            ("عَلِم", "علم"),  # marks count
            ("मैं", "म"),
            ("Nr. 12", "Nr. 13"),
            ("dog bites man", "man bites dog"),
            ("??", "!!"),
            ("😀", "🙂"),
        ],
    )
    def test_different(self, one, other):
        assert leak_key(one) != leak_key(other)

    def test_by_its_definition(self):
        """Character by character, on text in nine scripts; a key is its own key."""
        texts = [
            "Größe: 5 m²!",
            "你好，世界。",
            "مَرْحَبًا بك",
            "नमस्ते दुनिया",
            "สวัสดี",
            "Ⅷ x½",
            "ǅ İ ß ﬀ",
            "Привет",
            "한국어",
        ]
        for text in texts:
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
            expected = "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")
            assert leak_key(text) == expected == leak_key(expected)

    def test_hashes_are_fixed_and_pairs_have_no_order(self):
        """Fixed, since reports made on different days are compared."""
        assert text_hashes(["Hello, World!", "hello world"]).tolist() == [6_801_638_793_323_236_970] * 2
        one, other = text_hashes(["a", "b"]), text_hashes(["c", "a"])
        assert pair_hashes(one, other).tolist() == pair_hashes(other, one).tolist()
        assert len(set(pair_hashes(one, other).tolist())) == 2
        assert len(text_hashes([])) == 0

    def test_half_a_surrogate_pair(self):
        assert len(text_hashes(["\ud83d a"])) == 1


def expected_figures(train, evaluation):
    """By definition, with sets of keys."""
    key = leak_key
    figures = {}
    for name, (source, target) in evaluation.items():
        sides = {"source": source, "target": target}
        figures[name] = {
            side: {
                t: n for t, (a, b) in train.items() if (n := sum(key(x) in {*map(key, a), *map(key, b)} for x in texts))
            }
            for side, texts in sides.items()
        }
        figures[name]["pair"] = {
            t: n
            for t, (a, b) in train.items()
            if (
                n := sum(
                    frozenset(map(key, row)) in {frozenset(map(key, x)) for x in zip(a, b)}
                    for row in zip(source, target)
                )
            )
        }
    return figures


class TestFigures:
    def test_sides_pairs_and_training_sets(self):
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
        assert {side: (found.rows, found.leaked) for side, found in sides.items()} == {
            "source": (5, 4),
            "target": (5, 3),
            "pair": (5, 2),
        }
        assert sides["source"].train == {"de-en": 3, "fr-en": 1}
        assert sides["target"].train == {"de-en": 3, "fr-en": 1}
        assert sides["pair"].train == {"de-en": 1, "fr-en": 1}
        assert sides["source"].share == 0.8
        assert [(e.text, e.train, e.row) for e in sides["source"].examples] == [
            ("Ich weiß.", "de-en", 2),
            ("Je sais.", "fr-en", 1),
            ("It is raining.", "de-en", 4),
        ]
        assert report.leaked_rows == {"de-en": [0, 1, 3], "fr-en": [0]}
        assert report.leaking == ["test"]

    def test_equal_to_the_definition_on_random_text(self):
        """Over batch borders, with repetitions, in all three kinds of container."""
        draw = random.Random(5)
        words = [f"word{n}" for n in range(300)]

        def side(size):
            return [draw.choice(words).title() + draw.choice([".", "!", ""]) for _ in range(size)]

        train = {"a": (side(150), side(150)), "b": (side(40), side(40))}
        evaluation = {"x": (side(120), side(120)), "y": (side(30), side(30))}
        expected = expected_figures(train, evaluation)
        assert expected["x"]["pair"] or expected["y"]["pair"] or expected["x"]["source"]
        tables = {name: Dataset.from_dict(dict(zip(("source", "target"), sides))) for name, sides in train.items()}
        streams = {name: table.to_iterable_dataset() for name, table in tables.items()}
        reports = [leaks(kind, evaluation) for kind in (train, tables, streams)]
        for report in reports:
            got = {name: {side: found.train for side, found in sides.items()} for name, sides in report.sets.items()}
            assert got == expected
            assert report.as_dict() == reports[0].as_dict()

    def test_over_many_batches(self):
        rows = 2 * BATCH_ROWS + 7
        train = ([f"satz {n}" for n in range(rows)], [f"line {n}" for n in range(rows)])
        wanted = [0, BATCH_ROWS - 1, BATCH_ROWS, rows - 1]
        report = leaks({"t": train}, {"e": [f"Line {n}!" for n in wanted] + ["other"]})
        found = report.sets["e"]["text"]
        assert (found.rows, found.leaked, report.leaked_rows["t"]) == (5, 4, wanted)
        assert [example.row for example in found.examples] == [row + 1 for row in wanted[:3]]

    def test_sentences_of_one_language_from_a_generator(self):
        report = leaks({"de-en": GERMAN}, {"queries": (text for text in ["es regnet", "es regnet", "nein"])})
        assert report.sets["queries"]["text"].leaked == 2
        assert "pair" not in report.sets["queries"]

    def test_nothing_shared(self):
        report = leaks({"de-en": GERMAN}, {"test": pairs(("Danke.", "Thanks."))})
        assert report.leaking == [] and report.leaked_rows == {"de-en": []}
        assert report.table().splitlines()[0] == "text in both training and evaluation data: 0 of 1 evaluation sets"
        assert len(report.table().splitlines()) == 2
        refuse_leaks(report)

    def test_the_memory_is_that_of_the_evaluation_side(self):
        """Twenty times the training text, read as a stream, takes no more."""

        def rows(count):
            for number in range(count):
                yield {
                    "source": f"Satz Nummer {number}, lang genug",
                    "target": f"Sentence number {number}, long enough",
                }

        def peak(count):
            stream = IterableDataset.from_generator(rows, gen_kwargs={"count": count})
            tracemalloc.start()
            report = leaks({"t": stream}, {"e": ["Sentence number 5, long enough"]})
            assert report.train_rows == {"t": count} and report.sets["e"]["text"].leaked == 1
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

        peak(10)
        assert peak(5 * BATCH_ROWS) < 1.5 * peak(BATCH_ROWS)


class TestReport:
    def test_table(self):
        report = leaks({"de-en": GERMAN}, {"dev deu": pairs(("Ich weiß!", "I know!"), ("a", "b")), "q": ["c"]})
        lines = report.table().splitlines()
        assert lines[0].endswith("1 of 2 evaluation sets")
        assert lines[1].split() == ["evaluation", "set", "rows", "source", "target", "both", "found", "in"]
        assert re.split(r"\s{2,}", lines[2]) == ["dev deu", "2", "1 (50.0 %)", "1 (50.0 %)", "1 (50.0 %)", "de-en 2"]
        assert lines[3] == "  e.g. de-en row 2: Ich weiß."
        assert lines[4] == "de-en: 1 of 4 training rows in question"
        assert lines[5] == report.signature and len(lines) == 6
        assert "training rows dropped" in report.as_dropped().table()

    def test_signature_says_what_was_compared(self):
        evaluation = {"test": pairs(("Danke.", "Thanks."))}
        signature = leaks({"de-en": GERMAN}, evaluation).signature
        assert re.fullmatch(
            rf"leak\|key:nfkc-casefold-lmn\|match:exact\|train:de-en@[0-9a-f]{{8}}\|data:test@[0-9a-f]{{8}}"
            rf"\|st-xling:{re.escape(__version__)}",
            signature,
        )
        assert leaks({"de-en": GERMAN}, evaluation).signature == signature
        others = [
            leaks({"de-en": GERMAN.select([0])}, evaluation).signature,
            leaks({"de-en": GERMAN}, {"test": pairs(("Danke.", "Thank you."))}).signature,
        ]
        assert len({signature, *others}) == 3
        many = {f"set {number}": ["a"] for number in range(9)}
        assert "|data:set 0+8@" in leaks({"de-en": GERMAN}, many).signature

    def test_as_dict_is_json(self):
        report = leaks({"de-en": GERMAN}, {"test": GERMAN.select([1])})
        written = json.loads(json.dumps(report.as_dict()))
        assert written["sets"]["test"]["pair"] == {
            "rows": 1,
            "leaked": 1,
            "share": 1.0,
            "train": {"de-en": 1},
            "examples": [{"text": "Ich weiß.", "train": "de-en", "row": 2}],
        }
        assert written["train"] == {"de-en": {"rows": 4, "leaked": 1}}
        assert written["dropped"] is False and written["signature"] == report.signature

    def test_refusing(self):
        report = leaks({"de-en": GERMAN}, {"test": GERMAN, "other": ["x"]})
        with pytest.raises(LeakError, match=r"1 of 2 evaluation sets share some \(test\)") as caught:
            refuse_leaks(report)
        assert caught.value.report is report


class TestDropping:
    @pytest.mark.parametrize("stream", [False, True])
    def test_only_what_leaks_goes(self, stream):
        train = {"de-en": GERMAN, "fr-en": pairs(("Merci.", "Thank you."))}
        if stream:
            train = {name: part.to_iterable_dataset() for name, part in train.items()}
        evaluation = {"test": ["i know", "ES REGNET"]}
        kept = drop_leaks(train, leaks(train, evaluation))
        assert [row["target"] for row in kept["de-en"]] == ["The dog sleeps.", "I do not know."]
        assert [row["target"] for row in kept["fr-en"]] == ["Thank you."]
        assert leaks(kept, evaluation).leaking == []

    def test_two_streams_lose_their_own_rows(self):
        train = {"a": pairs(("1", "x"), ("2", "y")), "b": pairs(("3", "z"), ("4", "x"))}
        train = {name: part.to_iterable_dataset() for name, part in train.items()}
        kept = drop_leaks(train, leaks(train, {"test": ["x"]}))
        assert {name: [row["source"] for row in part] for name, part in kept.items()} == {"a": ["2"], "b": ["3"]}

    def test_nothing_left(self):
        with pytest.raises(ValueError, match="every row of 'de-en' has a side in the evaluation data"):
            drop_leaks({"de-en": GERMAN}, leaks({"de-en": GERMAN}, {"test": GERMAN}))


class TestErrors:
    @pytest.mark.parametrize(
        ("train", "evaluation", "message"),
        [
            ({}, {"e": ["a"]}, "got 0 and 1"),
            ({"t": GERMAN}, {}, "got 1 and 0"),
            ({"t": GERMAN}, {"e": []}, "evaluation set 'e' has no sentences"),
            ({"t": GERMAN.select([])}, {"e": ["a"]}, "training set 't' has no sentences"),
            ({"t": GERMAN}, {"e": "text"}, "'e' must hold sentences: got one text"),
            ({"t": GERMAN}, {"e": (["a", "b"], ["c"])}, "'e' has sides of unequal length"),
            ({"t": GERMAN.rename_column("target", "tgt")}, {"e": ["a"]}, "'t' has columns source, tgt; name them"),
        ],
    )
    def test_message(self, train, evaluation, message):
        with pytest.raises(ValueError, match=message):
            leaks(train, evaluation)


class TestSpecs:
    def test_every_layout(self, tmp_path):
        (tmp_path / "tatoeba").mkdir()
        (tmp_path / "tatoeba" / "tatoeba.deu-eng.deu").write_text("Hund\n", encoding="utf-8")
        (tmp_path / "tatoeba" / "tatoeba.deu-eng.eng").write_text("dog\n", encoding="utf-8")
        (tmp_path / "bucc").mkdir()
        for ending, text in {"de": "d1\tHund\nd2\tKatze\n", "en": "e1\tdog\n", "gold": "d1\te1\n"}.items():
            (tmp_path / "bucc" / f"de-en.test.{ending}").write_text(text, encoding="utf-8")
        (tmp_path / "queries.txt").write_text("Wo?\n\nWann?\n", encoding="utf-8")
        (tmp_path / "dev.de-en.tsv").write_text("Hund\tdog\n", encoding="utf-8")
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
        assert list(loaded) == [*bucc, "queries", "queries-2"]
        assert loaded["queries"] == ["Wo?", "Wann?"]
        report = leaks({"t": (["hund"], ["Dog!"])}, loaded)
        assert {name: next(iter(report.sets[name].values())).leaked for name in bucc} == dict(zip(bucc, [1, 1, 1]))
        assert report.sets["de-en.test gold"]["pair"].leaked == 1

    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load_evaluation_specs([str(tmp_path / "absent.txt")])
        (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
        with pytest.raises(ValueError, match="holds no sentences"):
            load_evaluation_specs([str(tmp_path / "empty.txt")])


def test_the_phrasebook_splits_share_nothing():
    """The demo's own claim, that it judges by unseen meanings."""
    parts = [
        {code: parallel_phrases(code, "en", size=400, split=split) for code in ("de", "zh")}
        for split in ("train", "dev", "test")
    ]
    for one, other in pairwise(parts):
        assert leaks(one, other).leaking == []


def test_the_same_in_every_process():
    """Whatever Python's hash seed."""
    code = "from st_xling.data import leaks; print(leaks({'t': (['a'], ['b'])}, {'e': ['A', 'c']}).as_dict())"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=60
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def test_hashes_spread():
    hashes = text_hashes(f"sentence {number}" for number in range(5000))
    assert len(np.unique(hashes)) == 5000 and len(np.unique(hashes >> np.uint64(48))) > 4500
