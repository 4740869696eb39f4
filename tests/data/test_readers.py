"""Readers of parallel text: what is written is what is read, and every fault is found."""

import csv
import gzip
import io
import json
import logging
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from st_xling.data import COLUMNS, ParallelTextError, read_moses, read_parallel, require_rows

REAL = [
    ("هذا كتابٌ جديد", "This is a new book"),
    ("นี่คือหนังสือเล่มใหม่", "日本語のテキスト"),
    ("👩‍👩‍👧‍👦 Famille", "e\u0301te\u0301 vs été"),
    ("line\u2028separator", "next\x85line \x0b\x0c\x1c"),
    ('ein einzelnes " Zeichen', 'a lone " mark'),
    ('"', "'"),
    ("  leading and trailing  ", "\u00a0no-break\u00a0"),
]

# Tabs and line ends divide; a "\r" before the line's end belongs to the line end.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"), min_size=1, max_size=30
).filter(lambda text: text.strip())
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8)


def rows(dataset):
    return list(zip(dataset["source"], dataset["target"]))


def write_tsv(folder: Path, pairs):
    path = folder / "corpus.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in pairs).encode())
    return path


def write_tsv_gz(folder: Path, pairs):
    path = folder / "corpus.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(f"{source}\t{target}" for source, target in pairs).encode()))
    return path


def write_csv(folder: Path, pairs):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([("source", "target"), *pairs])
    path = folder / "corpus.csv"
    path.write_bytes(buffer.getvalue().encode())
    return path


def write_jsonl(folder: Path, pairs):
    path = folder / "corpus.jsonl"
    lines = (json.dumps({"src": source, "tgt": target}, ensure_ascii=len(source) % 2 == 0) for source, target in pairs)
    path.write_bytes("\n".join(lines).encode())
    return path


def write_jsonl_gz(folder: Path, pairs):
    path = folder / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress(write_jsonl(folder, pairs).read_bytes()))
    return path


def write_parquet(folder: Path, pairs):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "corpus.parquet"
    source, target = zip(*pairs)
    pq.write_table(pa.table({"sentence1": pa.array(source, "string"), "sentence2": pa.array(target, "string")}), path)
    return path


def write_moses(folder: Path, pairs):
    for side, ending in enumerate(("de", "en")):
        (folder / f"moses.{ending}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    return folder / "moses"


def write_moses_gz(folder: Path, pairs):
    for side, ending in enumerate(("de", "en")):
        text = "\r\n".join(pair[side] for pair in pairs)
        (folder / f"zipped.{ending}.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "zipped"


WRITERS = [write_tsv, write_tsv_gz, write_csv, write_jsonl, write_jsonl_gz, write_parquet, write_moses, write_moses_gz]


@pytest.mark.parametrize("write", WRITERS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=PAIRS)
def test_what_is_written_is_read(tmp_path, write, pairs):
    assert rows(read_parallel(write(tmp_path, pairs))) == pairs


@pytest.mark.parametrize("write", WRITERS)
def test_real_strings_and_columns(tmp_path, write):
    dataset = read_parallel(write(tmp_path, REAL), source_language="de", target_language="en")
    assert rows(dataset) == REAL
    assert dataset.column_names == list(COLUMNS)
    assert {str(feature.dtype) for feature in dataset.features.values()} == {"string"}
    assert set(dataset["source_language"]) == {"de"} and set(dataset["target_language"]) == {"en"}
    assert dataset.select_columns(["source", "target"]).column_names == ["source", "target"]


def tsv(tmp_path, text: str | bytes, name="corpus.tsv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


class TestLines:
    def test_last_line_without_newline_keeps_its_last_letter(self, tmp_path):
        assert rows(read_parallel(tsv(tmp_path, "Hund\tdog"))) == [("Hund", "dog")]

    def test_crlf(self, tmp_path):
        path = tsv(tmp_path, "Hund\tdog\r\nKatze\tcat\r\n")
        assert rows(read_parallel(path)) == [("Hund", "dog"), ("Katze", "cat")]

    def test_byte_order_mark_goes_at_the_start_only(self, tmp_path):
        path = tsv(tmp_path, "\ufeffHund\tdog\n\ufeffKatze\tcat\n")
        assert rows(read_parallel(path)) == [("Hund", "dog"), ("\ufeffKatze", "cat")]

    def test_lone_quotes_swallow_nothing(self, tmp_path):
        text = '"Hund\tdog\nKatze\t"cat\n"Maus"\tmouse"\n'
        expected = [('"Hund', "dog"), ("Katze", '"cat'), ('"Maus"', 'mouse"')]
        assert rows(read_parallel(tsv(tmp_path, text))) == expected
        assert rows(read_parallel(write_moses(tmp_path, expected))) == expected

    def test_lone_carriage_return_is_text(self, tmp_path):
        assert rows(read_parallel(tsv(tmp_path, "a\rb\tc\n"))) == [("a\rb", "c")]

    def test_gzip_is_told_by_its_bytes(self, tmp_path):
        assert rows(read_parallel(tsv(tmp_path, gzip.compress(b"a\tb\n")))) == [("a", "b")]
        with pytest.raises(ParallelTextError, match="expected gz, got a file that begins with b'a"):
            read_parallel(tsv(tmp_path, "a\tb\n", "corpus.tsv.gz"))

    def test_truncated_gzip(self, tmp_path):
        data = gzip.compress(b"".join(b"%d\tx\n" % number for number in range(1000)))
        with pytest.raises(ParallelTextError, match="expected a whole packed file"):
            read_parallel(tsv(tmp_path, data[: len(data) // 2], "corpus.tsv.gz"))

    def test_utf16_is_named(self, tmp_path):
        with pytest.raises(ParallelTextError, match="byte order mark of UTF-16"):
            read_parallel(tsv(tmp_path, "a\tb\n".encode("utf-16")))


class TestTsv:
    def test_columns(self, tmp_path):
        path = tsv(tmp_path, "1\tHund\tdog\textra\n2\tKatze\tcat\n")
        assert rows(read_parallel(path, columns=(2, 1))) == [("dog", "Hund"), ("cat", "Katze")]

    def test_no_header_is_assumed(self, tmp_path):
        assert rows(read_parallel(tsv(tmp_path, "source\ttarget\n"))) == [("source", "target")]

    @pytest.mark.parametrize("columns", [(0, 0), (-1, 0), ("de", "en"), (0, 1, 2)])
    def test_columns_must_be_two_positions(self, tmp_path, columns):
        with pytest.raises(ValueError, match="two different positions counted from 0"):
            read_parallel(tsv(tmp_path, "a\tb\n"), columns=columns)

    def test_faults_are_gathered(self, tmp_path):
        path = tsv(tmp_path, b"gut\tgood\neins\n \tempty\n\nx\xff\ty\na\tb\tc\n")
        with pytest.raises(ParallelTextError) as caught:
            read_parallel(path)
        message = str(caught.value)
        assert "got 5 faults" in message
        for line, reason in [
            (2, r"wrong column count \(expected 2, got 1\)"),
            (3, r"empty side \(source\)"),
            (4, r"wrong column count \(expected 2, got 1\)"),
            (5, r"invalid UTF-8 \(byte 0xff at byte 2\)"),
            (6, r"wrong column count \(expected 2, got 3\)"),
        ]:
            assert re.search(rf"{re.escape(str(path))}:{line}: {reason}", message), message
        assert "skip_bad_lines=True / --skip-bad-lines" in message
        assert len(caught.value.faults) == 5
        assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults

    def test_twenty_faults_are_listed_and_all_counted(self, tmp_path):
        with pytest.raises(ParallelTextError, match=r"got 33 faults(.|\n)*:20: (.|\n)*and 13 more") as caught:
            read_parallel(tsv(tmp_path, "one\n" * 33))
        assert ":21:" not in str(caught.value)

    def test_skipping_warns_how_many_of_which(self, tmp_path, caplog):
        path = tsv(tmp_path, b"gut\tgood\neins\nzwei\n\t\nx\xff\ty\n")
        with caplog.at_level(logging.WARNING):
            assert rows(read_parallel(path, skip_bad_lines=True)) == [("gut", "good")]
        (record,) = caplog.records
        message = record.getMessage()
        assert "dropped for faults in 4 lines" in message
        assert "2 wrong column count" in message and "1 invalid UTF-8" in message

    def test_no_rows(self, tmp_path, caplog):
        with pytest.raises(ParallelTextError, match=r"at least one sentence pair in .*corpus.tsv, got none"):
            read_parallel(tsv(tmp_path, ""))
        with pytest.raises(ParallelTextError, match="at least one sentence pair"):
            read_parallel(tsv(tmp_path, "bad\n"), skip_bad_lines=True)

    def test_missing_file_names_the_nearest(self, tmp_path):
        tsv(tmp_path, "a\tb\n", "de-en.tsv")
        with pytest.raises(FileNotFoundError, match=r"the nearest name there is de-en\.tsv"):
            read_parallel(tmp_path / "de-en.tsv.gz")
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
            read_parallel(tmp_path / "nowhere" / "de-en.tsv")


class TestCsv:
    def read(self, tmp_path, text, **options):
        return rows(read_parallel(tsv(tmp_path, text, "corpus.csv"), **options))

    def test_quoted_fields(self, tmp_path):
        assert self.read(tmp_path, '"a, b","say ""x"""\r\nc,"d"\r\n') == [("a, b", 'say "x"'), ("c", "d")]

    def test_a_quote_inside_a_field_is_text(self, tmp_path):
        text = '5" pipe,5-Zoll-Rohr\na,6\'5"\nb,c\n'
        assert self.read(tmp_path, text) == [('5" pipe', "5-Zoll-Rohr"), ("a", "6'5\""), ("b", "c")]

    @pytest.mark.parametrize("stray", ['"a,b', '"a" x,b', 'a,"b', '",b', '"""a"",b'])
    def test_an_unclosed_quote_is_a_fault_of_its_line_alone(self, tmp_path, stray):
        text = f'x,y\n{stray}\nc,d\n"e",f\n'
        with pytest.raises(ParallelTextError, match=r"got 1 fault:\n.*corpus\.csv:2: unclosed quote"):
            self.read(tmp_path, text)
        assert self.read(tmp_path, text, skip_bad_lines=True) == [("x", "y"), ("c", "d"), ("e", "f")]

    def test_fields_over_lines_are_faults_at_both_ends(self, tmp_path):
        text = 'x,y\n"a\nb",c\nd,e\n'
        with pytest.raises(ParallelTextError, match=r":2: unclosed quote(.|\n)*:3: unclosed quote \(ends a field"):
            self.read(tmp_path, text)
        assert self.read(tmp_path, text, skip_bad_lines=True) == [("x", "y"), ("d", "e")]

    def test_header_by_common_names(self, tmp_path):
        assert self.read(tmp_path, "id,tgt,src\n1,b,a\n") == [("a", "b")]

    def test_header_by_languages(self, tmp_path):
        text = "en,de\ndog,Hund\n"
        assert self.read(tmp_path, text) == [("en", "de"), ("dog", "Hund")]  # "no,si" may be a pair
        assert self.read(tmp_path, text, source_language="de", target_language="en") == [("Hund", "dog")]
        assert rows(read_parallel(tsv(tmp_path, text, "de-en.csv"))) == [("Hund", "dog")]

    def test_columns_by_name(self, tmp_path):
        dataset = read_parallel(tsv(tmp_path, "n,en,de\n1,dog,Hund\n", "corpus.csv"), columns=("de", "en"))
        assert dataset[0] == {"source": "Hund", "target": "dog", "source_language": "de", "target_language": "en"}
        with pytest.raises(ValueError, match=r"expected the columns \('fr', 'en'\) in the header, got \['n', 'en'"):
            read_parallel(tmp_path / "corpus.csv", columns=("fr", "en"))

    def test_columns_by_position(self, tmp_path):
        assert self.read(tmp_path, "1,Hund,dog\n2,Katze,cat\n", columns=(1, 2)) == [("Hund", "dog"), ("Katze", "cat")]
        assert self.read(tmp_path, "source,target\nHund,dog\n", columns=(1, 0)) == [("dog", "Hund")]

    def test_header_sets_the_width(self, tmp_path):
        with pytest.raises(ParallelTextError, match=r"csv:3: wrong column count \(expected 3, got 2\)"):
            self.read(tmp_path, "id,source,target\n1,a,b\n2,c\n")

    def test_language_columns(self, tmp_path):
        text = "source,target,source_language,target_language\na,b,de,fr\nc,d,,fr\n"
        dataset = read_parallel(tsv(tmp_path, text, "corpus.csv"))
        assert dataset["source_language"][:] == ["de", "und"] and dataset["target_language"][:] == ["fr", "fr"]
        dataset = read_parallel(tmp_path / "corpus.csv", source_language="nl")
        assert dataset["source_language"][:] == ["nl", "nl"]


class TestRecords:
    def test_faults_of_json(self, tmp_path):
        lines = [
            '{"source": "a", "target": "b"}',
            '{"source": "a", "target": ',
            '["a", "b"]',
            '{"source": "a"}',
            '{"source": 1, "target": null}',
            '{"source": "a", "target": " "}',
            "",
            '{"source": "\\ud83d", "target": "b"}',
        ]
        with pytest.raises(ParallelTextError) as caught:
            read_parallel(tsv(tmp_path, "\n".join(lines), "corpus.jsonl"))
        for reason in [
            r":2: bad JSON \(Expecting value",
            r":3: bad JSON \(expected an object, got list\)",
            r":4: missing key \(expected 'source' and 'target', got source\)",
            r":5: non-string value \(source is int\)",
            r":5: non-string value \(target is null\)",
            r":6: empty side \(target\)",
            r":7: bad JSON \(an empty line\)",
            r":8: bad JSON \(source holds half a surrogate pair\)",
        ]:
            assert re.search(reason, str(caught.value)), reason
        assert len(read_parallel(tmp_path / "corpus.jsonl", skip_bad_lines=True)) == 1

    def test_deeply_nested_json_is_a_fault(self, tmp_path):
        with pytest.raises(ParallelTextError, match="1: bad JSON"):
            read_parallel(tsv(tmp_path, "[" * 200_000, "corpus.jsonl"))

    def test_languages_from_keys(self, tmp_path):
        path = tsv(tmp_path, '{"de": "Hund", "en": "dog"}\n{"en": "cat", "de": "Katze"}\n', "corpus.jsonl")
        dataset = read_parallel(path)
        assert rows(dataset) == [("Hund", "dog"), ("Katze", "cat")]
        assert dataset["source_language"][0] == "de" and dataset["target_language"][0] == "en"
        assert rows(read_parallel(path, source_language="en", target_language="de"))[0] == ("dog", "Hund")
        assert rows(read_parallel(path, source_language="en"))[0] == ("dog", "Hund")
        assert rows(read_parallel(path, columns=("en", "de")))[0] == ("dog", "Hund")

    def test_translation_of_the_languages_asked_for(self, tmp_path):
        path = tsv(tmp_path, '{"translation": {"de": "Hund", "en": "dog", "fr": "chien"}}\n', "corpus.jsonl")
        assert rows(read_parallel(path, source_language="fr", target_language="en")) == [("chien", "dog")]
        with pytest.raises(ParallelTextError, match=r"missing key \(expected source/target.*got translation in line 1"):
            read_parallel(path)

    def test_ambiguous_codes_are_not_guessed(self, tmp_path):
        path = tsv(tmp_path, '{"id": "7", "de": "Hund", "en": "dog"}\n', "corpus.jsonl")
        with pytest.raises(ParallelTextError, match="Name the two columns"):
            read_parallel(path)
        assert rows(read_parallel(path, columns=("de", "en"))) == [("Hund", "dog")]

    def test_positions_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="must be two different names"):
            read_parallel(tsv(tmp_path, "{}", "corpus.jsonl"), columns=(0, 1))

    def test_own_format_comes_back(self, tmp_path):
        first = read_parallel(tsv(tmp_path, "Hund\tdog\n", "de-en.tsv"))
        first.to_json(tmp_path / "again.jsonl")
        first.to_csv(tmp_path / "again.csv")
        first.to_parquet(tmp_path / "again.parquet")
        for ending in ("jsonl", "csv", "parquet"):
            assert read_parallel(tmp_path / f"again.{ending}").to_list() == first.to_list()

    def test_parquet_faults(self, tmp_path):
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / "corpus.parquet"
        pq.write_table(pa.table({"source": ["a", None, ""], "target": ["b", "c", "d"]}), path)
        with pytest.raises(ParallelTextError, match=r":2: non-string value \(source is null\)(.|\n)*:3: empty side"):
            read_parallel(path)
        pq.write_table(pa.table({"source": [1], "text": ["b"]}), path)
        with pytest.raises(ParallelTextError, match=r"missing key \(expected source/target.*got source, text"):
            read_parallel(path)
        pq.write_table(pa.table({"translation": [{"de": "Hund", "en": "dog"}]}), path)
        assert rows(read_parallel(path)) == [("Hund", "dog")]
        path.write_bytes(b"no parquet")
        with pytest.raises(ParallelTextError, match="expected a Parquet file"):
            read_parallel(path)


class TestMoses:
    def test_two_paths(self, tmp_path):
        source, target = tsv(tmp_path, "a\n", "one.txt"), tsv(tmp_path, "b\n", "two.txt")
        assert read_parallel((source, target))[0]["source_language"] == "und"

    def test_english_is_the_target_unless_the_name_says_otherwise(self, tmp_path):
        for name in ("corpus", "en-de"):
            tsv(tmp_path, "dog\n", f"{name}.en")
            tsv(tmp_path, "Hund\n", f"{name}.de")
        assert rows(read_parallel(tmp_path / "corpus")) == [("Hund", "dog")]
        assert rows(read_parallel(tmp_path / "en-de")) == [("dog", "Hund")]
        assert rows(read_parallel(tmp_path / "corpus", source_language="en")) == [("dog", "Hund")]
        with pytest.raises(ValueError, match="swap the languages or the files"):
            read_moses(tmp_path / "corpus.de", tmp_path / "corpus.en", source_language="en", target_language="de")

    def test_three_files_need_languages(self, tmp_path):
        for ending in ("de", "en", "fr"):
            tsv(tmp_path, f"{ending}!\n", f"corpus.{ending}")
        with pytest.raises(ValueError, match="source_language and target_language to choose two"):
            read_parallel(tmp_path / "corpus")
        chosen = read_parallel(tmp_path / "corpus", source_language="fr", target_language="de")
        assert rows(chosen) == [("fr!", "de!")]

    def test_faults(self, tmp_path):
        source, target = tsv(tmp_path, b"a\n\nc\xff\nd\n", "c.de"), tsv(tmp_path, "A\nB\nC\n \n", "c.en")
        with pytest.raises(ParallelTextError) as caught:
            read_parallel((source, target))
        for reason in (r"c\.de:2: empty side", r"c\.de:3: invalid UTF-8", r"c\.en:4: empty side"):
            assert re.search(reason, str(caught.value))
        assert rows(read_parallel((source, target), skip_bad_lines=True)) == [("a", "A")]

    @pytest.mark.parametrize("skip_bad_lines", [False, True])
    def test_unequal_line_counts_cannot_be_skipped(self, tmp_path, skip_bad_lines):
        source, target = tsv(tmp_path, "a\nb\n", "c.de"), tsv(tmp_path, "A\n", "c.en")
        with pytest.raises(ParallelTextError, match=r"unequal line counts \(2 lines, but .*c\.en has 1\)") as caught:
            read_parallel((source, target), skip_bad_lines=skip_bad_lines)
        assert "skip_bad_lines=True" not in str(caught.value)

    def test_missing_side(self, tmp_path):
        tsv(tmp_path, "a\n", "corpus.de")
        with pytest.raises(FileNotFoundError, match=r"the nearest name there is corpus\.de"):
            read_parallel((tmp_path / "corpus.de", tmp_path / "corpus.en"))
        with pytest.raises(ValueError, match="pass both paths"):
            read_parallel(tmp_path / "corpus.de")


class TestLanguages:
    @pytest.mark.parametrize(
        ("name", "pair"),
        [
            ("de-en.tsv", ("de", "en")),
            ("de-en.dev.tsv", ("de", "en")),
            ("wmt_zh-vi.tsv", ("zh", "vi")),
            ("dev-de.tsv", ("und", "und")),
            ("built-in-to.tsv", ("und", "und")),
        ],
    )
    def test_from_the_name(self, tmp_path, name, pair):
        row = read_parallel(tsv(tmp_path, "a\tb\n", name))[0]
        assert (row["source_language"], row["target_language"]) == pair

    def test_arguments_count_first(self, tmp_path):
        row = read_parallel(tsv(tmp_path, "a\tb\n", "de-en.tsv"), source_language="nl")[0]
        assert (row["source_language"], row["target_language"]) == ("nl", "en")

    def test_the_name_the_other_way_round_is_refused(self, tmp_path):
        path = tsv(tmp_path, "Hund\tdog\n", "de-en.tsv")
        with pytest.raises(ValueError, match=r"expected de-en, as the name of .* says, got en-de"):
            read_parallel(path, source_language="en", target_language="de")
        dataset = read_parallel(path, source_language="en", target_language="de", columns=(1, 0))
        assert rows(dataset) == [("dog", "Hund")]


class TestDispatch:
    def test_options_that_do_not_fit(self, tmp_path):
        with pytest.raises(ValueError, match="takes no split='train'"):
            read_parallel(tsv(tmp_path, "a\tb\n"), split="train")
        with pytest.raises(ValueError, match=r"takes no columns=\(0, 1\)"):
            read_parallel((tmp_path / "a.de", tmp_path / "a.en"), columns=(0, 1))

    def test_unknown_ending(self, tmp_path):
        with pytest.raises(ValueError, match=r"expected a file ending in \.tsv, .*corpus\.docx"):
            read_parallel(tsv(tmp_path, "a\tb\n", "corpus.docx"))

    def test_a_folder_of_tatoeba_files(self, tmp_path):
        tsv(tmp_path, "a\n", "tatoeba.deu-eng.deu")
        tsv(tmp_path, "b\n", "tatoeba.deu-eng.eng")
        with pytest.raises(ValueError, match="read_tatoeba"):
            read_parallel(tmp_path)
        assert read_parallel(tmp_path / "tatoeba.deu-eng")[0]["target_language"] == "eng"

    def test_require_rows(self, tmp_path):
        dataset = read_parallel(tsv(tmp_path, "a\tb\n"))
        assert require_rows(dataset, "here") is dataset
        with pytest.raises(ParallelTextError, match="in the dev set, got none"):
            require_rows(dataset.select([]), "the dev set")


def test_importing_is_cheap():
    heavy = "[name for name in ('datasets', 'torch', 'pyarrow', 'numpy') if name in sys.modules]"
    code = f"import sys, st_xling.data; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
