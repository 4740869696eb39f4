"""Files as people have them: a row for each format and each kind of fault, with the pairs or the error it gives."""

import gzip
import json
import os
import re
import shutil
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from st_xling.data import load_data_specs, load_pairs
from st_xling.data.retrieval import load_query_passage_specs
from st_xling.utils.text import SCORED_COLUMNS, ParallelTextError, escape_cell
from tests.data.test_read import cells, codes
from tests.retrieval_files import json_lines, lines

HUND = [("Der Hund schläft.", "The dog sleeps."), ("Es regnet.", "It rains.")]
GERMAN = "".join(f"{source}\n" for source, _ in HUND)
ENGLISH = "".join(f"{target}\n" for _, target in HUND)
TSV = "".join(f"{source}\t{target}\n" for source, target in HUND)
SCORED = "".join(
    "\t".join(line) + "\n"
    for line in [
        [*SCORED_COLUMNS, "margin"],
        *(["1.06", "7", "3", *map(escape_cell, pair), "0.1"] for pair in [*HUND, ("C:\\neu\ta", "C:\\new")]),
    ]
)  # fmt: skip


def tmx(*units: dict[str, str], head: str = "", attribute: str = "xml:lang") -> str:
    """TMX with a unit for each mapping of language to XML text."""
    body = ""
    for number, unit in enumerate(units):
        variants = "".join(f'<tuv {attribute}="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items())
        body += f'<tu tuid="{number}"><prop type="x">p</prop>{variants}</tu>\n'
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<tmx version="1.4"><header srclang="en"/>\n'
    return f"{head}<body>{body}</body></tmx>"


UNITS = [{"en": target, "de": source} for source, target in HUND]
REGIONS = [
    {"EN-US": "The <bpt i='1'/>dog<ept i='1'/> sleeps.", "de-DE": "Der <ph>&lt;</ph><hi>Hund</hi>", "fr": "Le chien"},
    {"fr": "Il pleut.", "en-us": "It rains."},
    {"en-US": "A", "de-DE": "B\n  b"},
]
DOCTYPE = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'

UNKNOWN = ("und", "und")

ROWS = [{"de": source, "en": target} for source, target in HUND]

# What is written (name → content), the spec, its languages, and its pairs.
READ: dict[str, tuple[dict[str, str | bytes], str, tuple[str, str], list[tuple[str, str]]]] = {
    "JSON array": (
        {"c.json": json.dumps([{"de": source, "en": target} for source, target in HUND], indent=1)},
        "c.json", ("de", "en"), HUND,
    ),
    "JSON with data": (
        {"c.json.gz": gzip.compress(json.dumps({"v": 1, "data": [{"src": s, "tgt": t} for s, t in HUND]}).encode())},
        "de-en=c.json.gz", ("de", "en"), HUND,
    ),
    "CSV without a header, semicolons": (
        {"c.csv": "Sie weiß, dass sie kommt.;She knows that she comes.\nJa, ja.;Yes.\nNein;No, no, no\n"},
        "de-en=c.csv", ("de", "en"),
        [("Sie weiß, dass sie kommt.", "She knows that she comes."), ("Ja, ja.", "Yes."), ("Nein", "No, no, no")],
    ),
    "CSV with bars": (
        {"c.csv": "source|target\nSie weiß, dass sie kommt.|She knows.\n\"Ja | ja; ja\"|Yes\n"},
        "de-en=c.csv", ("de", "en"),
        [("Sie weiß, dass sie kommt.", "She knows."), ("Ja | ja; ja", "Yes")],
    ),
    "CSV with semicolons in its texts": (
        {"c.csv": 'Ja; ja,"Yes; yes"\nNein,No\nTaxi; Bus,Taxi; bus\n'}, "de-en=c.csv", ("de", "en"),
        [("Ja; ja", "Yes; yes"), ("Nein", "No"), ("Taxi; Bus", "Taxi; bus")],
    ),
    "JSON with rows": ({"c.json": json.dumps({"rows": ROWS}, indent=1)}, "c.json", ("de", "en"), HUND),
    "JSON with pairs": ({"c.json": json.dumps({"version": 1, "pairs": ROWS})}, "c.json", ("de", "en"), HUND),
    "JSON of a data set's viewer": (
        {"c.json": json.dumps({
            "features": [{"name": "de"}], "rows": [{"row_idx": n, "row": row} for n, row in enumerate(ROWS)],
        })}, "c.json", ("de", "en"), HUND,
    ),
    "JSON of columns": (
        {"c.json": json.dumps({name: [row[name] for row in ROWS] for name in ("de", "en")})}, "c.json",
        ("de", "en"), HUND,
    ),
    "JSON of pandas, split": (
        {"c.json": json.dumps({"columns": ["de", "en"], "index": [0, 1], "data": HUND})}, "c.json", ("de", "en"), HUND,
    ),
    "JSON array on one line": ({"c.json": json.dumps(ROWS)}, "c.json", ("de", "en"), HUND),
    "JSON array with a byte order mark": (
        {"c.json": f"\ufeff{json.dumps(ROWS, ensure_ascii=False, indent=2)}\n"}, "c.json", ("de", "en"), HUND,
    ),
    "JSON array of more than a block": (
        {"c.json": json.dumps([*ROWS, {"de": "Hund " * 300_000, "en": "dog " * 300_000}, ROWS[1]])}, "c.json",
        ("de", "en"), [*HUND, ("Hund " * 300_000, "dog " * 300_000), HUND[1]],
    ),
    "JSON of one row": ({"c.json": json.dumps(ROWS[0], indent=1)}, "c.json", ("de", "en"), HUND[:1]),
    "JSON of one nested row": (
        {"c.json": json.dumps({"translation": ROWS[0]}, indent=1)}, "c.json", ("de", "en"), HUND[:1],
    ),
    "JSON lines in .json": (
        {"c.json": "".join(json.dumps({"de": source, "en": target}) + "\n" for source, target in HUND)},
        "c.json", ("de", "en"), HUND,
    ),
    "TMX": ({"c.tmx": tmx(*UNITS, head=DOCTYPE)}, "c.tmx", ("de", "en"), HUND),
    "TMX, packed and named": (
        {"en-de.tmx.gz": gzip.compress(tmx(*UNITS).encode())},
        "en-de.tmx.gz", ("en", "de"), [pair[::-1] for pair in HUND],
    ),
    "TMX, UTF-16": ({"c.tmx": tmx(*UNITS).replace("UTF-8", "UTF-16").encode("utf-16")}, "c.tmx", ("de", "en"), HUND),
    "TMX, line breaks": (
        {"c.tmx": tmx(
            {"de": 'Hallo<ph type="lb"/>Welt', "en": "hello<ph>&lt;br/&gt;</ph>world"},
            {"de": "Preis:\n <bpt i='1'>&lt;b&gt;</bpt>5\N{NO-BREAK SPACE}€<ept i='1'/>", "en": "<it>\\n</it>Price: 5"},
        )}, "de-en=c.tmx", ("de", "en"), [("Hallo Welt", "hello world"), ("Preis: 5\N{NO-BREAK SPACE}€", "Price: 5")],
    ),
    "TMX, a script": (
        {"c.tmx": tmx({"zh-Hans-CN": "公共汽车", "zh-Hant-TW": "公車", "en": "Bus"})}, "zh_Hant-en=c.tmx",
        ("zh_Hant", "en"), [("公車", "Bus")],
    ),
    "TMX, a script by its region": (
        {"c.tmx": tmx({"zh-CN": "公共汽车", "zh-TW": "公車", "en": "Bus"})}, "zh_Hant-en=c.tmx",
        ("zh_Hant", "en"), [("公車", "Bus")],
    ),
    "TMX, an underscore": (
        {"c.tmx": tmx({"zh_CN": "公共汽车", "en": "Bus"})}, "c.tmx", ("zh_CN", "en"), [("公共汽车", "Bus")],
    ),
    "TMX, lang": ({"c.tmx": tmx(*UNITS, attribute="lang")}, "de-en=c.tmx", ("de", "en"), HUND),
    "TMX, namespace": (
        {"c.tmx": tmx(*UNITS).replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" ')},
        "de-en=c.tmx", ("de", "en"), HUND,
    ),
    "TMX, regions": (
        {"c.tmx": tmx(*REGIONS)}, "de-en=c.tmx", ("de", "en"), [("Der Hund", "The dog sleeps."), ("B b", "A")],
    ),
    "TMX, another pair": (
        {"c.tmx": tmx(*REGIONS)},
        "fr-en=c.tmx", ("fr", "en"), [("Le chien", "The dog sleeps."), ("Il pleut.", "It rains.")],
    ),
    "fast_align": ({"corpus.txt": "".join(f"{s} ||| {t}\n" for s, t in HUND)}, "de-en=corpus.txt", ("de", "en"), HUND),
    "FLORES files": (
        {"deu_Latn.devtest": GERMAN, "eng_Latn.devtest": ENGLISH},
        "deu_Latn.devtest,eng_Latn.devtest", ("deu_Latn", "eng_Latn"), HUND,
    ),
    "FLORES folder": (
        {"f/deu_Latn.devtest": GERMAN, "f/eng_Latn.devtest": ENGLISH, "f/zho_Hans.devtest": "x\n"},
        "de-eng_Latn=f", ("de", "eng_Latn"), HUND,
    ),
    "WMT": (
        {"newstest2014-deen-src.de": GERMAN, "newstest2014-deen-ref.en": ENGLISH},
        "newstest2014-deen", ("de", "en"), HUND,
    ),
    "scored pairs": ({"p.tsv": SCORED}, "de-en=p.tsv", ("de", "en"), [*HUND, ("C:\\neu\ta", "C:\\new")]),
    "backslashes are text": ({"p.tsv": "C:\\neu\t\\n\n"}, "de-en=p.tsv", ("de", "en"), [("C:\\neu", "\\n")]),
    "folder, quotes are text": (
        {"f/train.tsv": '"Ja\tYes\nNein"\tNo\n' + TSV},
        "de-en=f", ("de", "en"), [('"Ja', "Yes"), ('Nein"', "No"), *HUND],
    ),
    "folder, several files": (
        {"f/a.tsv": TSV, "f/b.tsv": "target\tsource\nb\ta\n"}, "de-en=f", ("de", "en"), [*HUND, ("a", "b")],
    ),
    "folder, a split": (
        {"f/train.csv": "a,b\n", "f/test.csv": "c,d\n"}, "de-en=f?split=test", ("de", "en"), [("c", "d")],
    ),
    "header of names": ({"c.tsv": "German\tEnglish\n" + TSV}, "c.tsv", ("de", "en"), HUND),
    "header of texts": ({"c.csv": "Source Text,Target_text\na,b\n"}, "c.csv", ("und", "und"), [("a", "b")]),
    "header of named languages": ({"c.tsv": "de\ten\n" + TSV}, "de-en=c.tsv", ("de", "en"), HUND),
    "marks that paste left": (
        {"c.tsv": "\ufeffa\r\t\ufeffb\r\nc\r\td\r\n"}, "de-en=c.tsv", ("de", "en"), [("a", "b"), ("c", "d")],
    ),
    "header of variants": ({"c.tsv": "Chinese (Simplified)\tEnglish:\n" + TSV}, "c.tsv", ("zh", "en"), HUND),
    "numbers in few rows": ({"c.tsv": "1984\t1984\n"}, "de-en=c.tsv", ("de", "en"), [("1984", "1984")]),
    "folder of TMX": ({"f/c.tmx": tmx(*UNITS)}, "de-en=f", ("de", "en"), HUND),
    "lone carriage return": ({"c.tsv": "a\rb\tc\n"}, "c.tsv", UNKNOWN, [("a\rb", "c")]),
    "quotes swallow nothing": (
        {"c.tsv": '"a\tb\nc\t"d\n"e"\tf"\n'}, "c.tsv", UNKNOWN, [('"a', "b"), ("c", '"d'), ('"e"', 'f"')],
    ),
    "columns": ({"c.tsv": "1\ta\tb\tc\n2\tc\td\n"}, "c.tsv?columns=2,1", UNKNOWN, [("b", "a"), ("d", "c")]),
    "TSV, a column twice that is chosen by number": (
        {"c.tsv": "source\ttarget\tsource\na\tb\tc\n"}, "c.tsv?columns=2,1", UNKNOWN, [("c", "b")],
    ),
    "JSON lines called otherwise": (
        {"c.ndjson": '{"source": "a", "target": "b"}\n'}, "c.ndjson", UNKNOWN, [("a", "b")],
    ),
    "TSV, header of more": ({"c.tsv": "id\ttgt\tsrc\n1\tb\ta\n"}, "c.tsv", UNKNOWN, [("a", "b")]),
    "TSV, names": ({"c.tsv": "n\tx\ty\n1\ta\tb\n"}, "c.tsv?columns=y,x", UNKNOWN, [("b", "a")]),
    "TSV, names of words": ({"c.tsv": "source\tQuelle\n"}, "c.tsv", UNKNOWN, [("source", "Quelle")]),
    "CSV, quoted": (
        {"c.csv": '"a, b","say ""x"""\r\nc,"d"\r\n'}, "c.csv", UNKNOWN, [("a, b", 'say "x"'), ("c", "d")],
    ),
    "CSV, quote is text": (
        {"c.csv": '5" pipe,Rohr\na,6\'5"\n'}, "c.csv", UNKNOWN, [('5" pipe', "Rohr"), ("a", "6'5\"")],
    ),
    "CSV, header": ({"c.csv": "id,tgt,src\n1,b,a\n"}, "c.csv", UNKNOWN, [("a", "b")]),
    "CSV, two codes or a pair": ({"c.csv": "en,de\ndog,Hund\n"}, "c.csv", UNKNOWN, [("en", "de"), ("dog", "Hund")]),
    "CSV, codes of the name": ({"de-en.csv": "en,de\ndog,Hund\n"}, "de-en.csv", ("de", "en"), [("Hund", "dog")]),
    "CSV, places and header": ({"c.csv": "source,target\na,b\n"}, "c.csv?columns=1,0", UNKNOWN, [("b", "a")]),
    "JSON, translation": (
        {"c.jsonl": '{"translation": {"de": "a", "en": "b", "fr": "c"}}\n'},
        "fr-en=c.jsonl", ("fr", "en"), [("c", "b")],
    ),
}  # fmt: skip


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", READ)
def test_what_is_read(case: str, stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, spec, languages, pairs = READ[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, files)
    (loaded,) = load_data_specs([spec], stream=stream).values()
    assert cells(loaded) == pairs and codes(loaded) == languages


NUMBERS = "".join(f"1.{n:04}\t{n}\t{n}\tHund {n}\tdog {n}\n" for n in range(20))
INVISIBLE = "\u200b\u00ad\u2060"

# An object that has a key twice lost the first of both texts in silence; so did tables with two columns of one name.
TWICE = '{"source": "Es regnet.", "target": "It rains.", "source": "Es schneit."}'
# What is written, the spec, and what the error says.
REFUSED: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    "JSON lines, a key twice": (
        {"c.jsonl": f'{{"source": "a", "target": "b"}}\n{TWICE}\n'},
        "c.jsonl", r"c.jsonl:2: bad JSON \(an object has the key 'source' twice, and which value is meant is unknown",
    ),
    "JSON lines, a key twice in a translation": (
        {"c.ndjson": '{"translation": {"de": "a", "en": "b", "de": "c"}}\n'},
        "de-en=c.ndjson", r"c.ndjson:1: bad JSON \(an object has the key 'de' twice",
    ),
    "JSON array, a key twice": (
        {"c.json": f'[{{"source": "a", "target": "b"}}, {TWICE}]'},
        "c.json", "row 2: an object has the key 'source' twice",
    ),
    "JSON document, a key twice": (
        {"c.json": f'{{"data": [{TWICE}]}}'},
        "c.json", "c.json: expected rows in JSON; an object has the key 'source' twice",
    ),
    "TSV, a column twice": (
        {"c.tsv": "source\ttarget\tsource\na\tb\tc\n"},
        "c.tsv", "c.tsv: 2 columns are called 'source'(.|\n)*columns=0,1",
    ),
    "CSV, a language twice": (
        {"c.csv": "de,en,de\na,b,c\n"},
        "de-en=c.csv", "c.csv: 2 columns are called 'de'",
    ),
    "numbers as text": (
        {"c.tsv": NUMBERS},
        "c.tsv?columns=0,1", r"c.tsv: numbers \(expected sentences, got source 1.0000(.|\n)*columns=3,4",
    ),
    "ids as sources": (
        {"c.tsv": "".join(f"3f2504e0-{n:04}\tHund {n}\n" for n in range(20))},
        "c.tsv", r"c.tsv: ids \(expected sentences, got sources that are or begin with ids: 3f2504e0-0(.|\n)*columns=1",
    ),
    "ids as targets": (
        {"c.csv": "source,target\n" + "".join(f"Hund {n},doc1:p{n}.s2\n" for n in range(20))},
        "c.csv", r"c.csv: ids \(expected sentences, got targets that are or begin with ids: doc1:p0.s2",
    ),
    "verses before sentences": (
        {f"c.{code}": "".join(f"1 Kor {n},{n}\tHund\n" for n in range(20)) for code in ("de", "en")},
        "c", r"c.de: ids .*: 1 Kor 0,0(.|\n)*c.en: ids",
    ),
    "scored pairs without header": ({"c.tsv": NUMBERS}, "c.tsv", "wrong column count(.|\n)*20 faults|got 20 faults"),
    "invisible": (
        {"c.tsv": f"a\t{INVISIBLE}\n{INVISIBLE}\tb\n"},
        "c.tsv", r"c.tsv:1: empty side \(target\)\n.*:2: empty side \(source",
    ),
    "range of verses": ({"c.de": "a\n<range>\n", "c.en": "A\nB\n"}, "c", "c.de:2: empty side"),
    "CR alone": ({"c.tsv": b"a\tb\rc\td\re\tf\n"}, "c.tsv", "lines that end in CR alone; convert it: tr"),
    "Latin-1": (
        {"c.tsv": "Küche\tkitchen\n".encode("latin-1")},
        "c.tsv", r"c.tsv:1: invalid UTF-8 \(byte 0xfc(.|\n)*iconv.*latin1",
    ),
    "NumPy": ({"c.de": ENGLISH, "c.en": b"\x93NUMPY\x01\0"}, "c", "c.en: expected text, got a NumPy array"),
    "SGM": (
        {"n-src.de.sgm": '<srcset setid="n" srclang="any">\n', "n-ref.en.sgm": "<refset>\n"},
        "de-en=n-src.de.sgm,n-ref.en.sgm", "n-src.de.sgm: .*looks like XML.*SGM",
    ),
    "Europarl": ({"c.de": "<CHAPTER ID=1>\na\n", "c.en": "<CHAPTER ID=1>\nb\n"}, "c", "looks like XML"),
    "folder, CSV and TSV": ({"f/a.tsv": TSV, "f/b.csv": "a,b\n"}, "f", "both .csv and .tsv"),
    "TMX, malformed": ({"c.tmx": tmx(*UNITS)[:-20]}, "c.tmx", "c.tmx:[4-6]: expected TMX, got malformed XML"),
    "TMX, empty": ({"c.tmx": tmx(*UNITS, {"de": " ", "en": "b"})}, "c.tmx", r"c.tmx:3: empty side \(source\)"),
    "TMX, no such language": ({"c.tmx": tmx(*UNITS)}, "nl-en=c.tmx", "at least one sentence pair"),
    "translations of three languages": (
        {"c.jsonl": json.dumps({"translation": {"de": "a", "en": "b", "fr": "c"}}) + "\n"}, "c.jsonl",
        r"expected two languages out of de, en, fr; name two, as in de-en=c\.jsonl",
    ),
    "columns of three languages": (
        {"c.jsonl": json.dumps({"German": "a", "en": "b", "fr": "c"}) + "\n"}, "nl-en=c.jsonl",
        "expected two languages out of German, en, fr; nl-en was asked for",
    ),
    "FLORES, three languages": (
        {f"f/{code}.dev": "a\n" for code in ("deu_Latn", "eng_Latn", "tha_Thai")}, "f",
        "f: expected two languages out of deu_Latn, eng_Latn, tha_Thai, got none named; name two, as in deu_L",
    ),
    "labels of three classes": (
        {"c.tsv": "sentence1\tsentence2\tlabel\na\tb\tneutral\n"}, "c.tsv",
        r"(?s)c\.tsv:2: unknown label \(expected 0 or 1, got 'neutral'\).*name the columns: \?columns=",
    ),
    "hunalign's sentences": (
        {"c.tsv": "Es regnet. ~~~ Er geht.\tIt rains. He goes.\t0.7\nJa.\tYes.\t0.9\n"}, "c.tsv?columns=0,1",
        r"c\.tsv:1: joined sentences \(source has hunalign's ~~~; sed 's/ ~~~ / /g' joins them\)",
    ),
    "JSON array, cut off": (
        {"c.json": json.dumps(ROWS)[:-20]}, "c.json", "c.json: expected an array of rows in JSON; row 2",
    ),
    "JSON array, a comma is missing": (
        {"c.json": json.dumps(ROWS).replace("}, {", "} {")}, "c.json", "expected a comma or the end of the array",
    ),
    "JSON array, two": (
        {"c.json": f"{json.dumps(ROWS)} {json.dumps(ROWS)}"}, "c.json", "expected nothing after the array",
    ),
    "JSON array, not UTF-8": (
        {"c.json": json.dumps(ROWS, ensure_ascii=False).encode("latin-1")}, "c.json", "c.json: expected UTF-8, got",
    ),
    "JSON array, an endless row": (
        {"c.json.gz": gzip.compress(json.dumps([*ROWS, {"de": "Hund " * 5_000_000}]).encode())}, "c.json.gz",
        "c.json.gz: expected an array of rows in JSON; row 3: more than 16,777,216 characters",
    ),
    "JSON of unequal columns": (
        {"c.json": json.dumps({"de": ["a", "b"], "en": ["c"]})}, "c.json", "got de with 2, en with 1",
    ),
    "JSON of pandas, columns": (
        {"c.json": json.dumps({"de": {"0": "a"}, "en": {"0": "b"}})}, "c.json", r"got an object of objects, de, en; of",
    ),
    "TMX, two regions": (
        {"c.tmx": tmx({"pt-BR": "Ônibus", "pt-PT": "Autocarro", "en": "Bus"})}, "pt-en=c.tmx",
        "expected one text in 'pt', got pt-BR and pt-PT in unit 1; name the one to read, such as pt-BR",
    ),
    "TMX, two scripts": (
        {"c.tmx": tmx(*UNITS, {"zh_cn": "公共汽车", "zh_tw": "公車", "en": "Bus"})}, "zh-en=c.tmx",
        "got zh_CN and zh_TW in unit 3",
    ),
    "TMX, control character": (
        {"c.tmx": tmx(*UNITS, {"de": "Der \x0bHund", "en": "The dog"})}, "de-en=c.tmx",
        r"c\.tmx:3: control character \(in the text of de\)",
    ),
    "TMX, reference to a control character": (
        {"c.tmx": tmx(*UNITS, {"de": "Der Hund", "en": "The &#x1F;dog"})}, "de-en=c.tmx",
        r"c\.tmx:3: control character \(in the text of en\)",
    ),
    "TMX, no segment": (
        {"c.tmx": tmx(*UNITS, {"de": "Der Hund", "en": "The dog"}).replace("<seg>The dog</seg>", "")}, "de-en=c.tmx",
        r"c\.tmx:3: no segment \(the tuv of en has no seg\)",
    ),
    "TMX, tags without end": (
        {"c.tmx": tmx(*UNITS, {"de": "<hi>" * 200 + "Hund" + "</hi>" * 200, "en": "dog"})}, "c.tmx",
        "c.tmx: expected TMX with tags at most 100 deep, got more in unit 3",
    ),
    "TMX, one endless unit": (
        {"c.tmx.gz": gzip.compress(tmx(*UNITS, {"de": "Hund " * 1_000_000, "en": "dog"}).encode())}, "c.tmx.gz",
        "got more than 4,194,304 bytes without the end of unit 3",
    ),
    "one endless line": (
        {"c.tsv.gz": gzip.compress(f"{TSV}{'Hund ' * 5_000_000}\tdog\n".encode())}, "c.tsv.gz",
        "c.tsv.gz:3: expected a sentence a line, got a line of more than 16,777,216 bytes",
    ),
    "one endless JSON line": (
        {"c.jsonl": json.dumps({"source": "Hund " * 4_000_000, "target": "dog"}) + "\n"}, "c.jsonl",
        "c.jsonl:1: expected a sentence a line, got a line of more than 16,777,216 bytes",
    ),
    "JSON, no objects": ({"c.json": "[1, 2]"}, "c.json", "c.json:1: bad JSON .expected an object, got int"),
    "fast_align, a line": ({"c.txt": "a ||| b\nc | d\n"}, "c.txt", "c.txt:2: wrong column count"),
    "empty": ({"c.tsv": b""}, "c.tsv", r"at least one sentence pair, got none in c\.tsv: the file is empty"),
    "header alone": ({"c.tsv": "source\ttarget\n"}, "c.tsv", "at least one sentence pair"),
    "CSV, no such names": ({"c.csv": "n,en\n1,a\n"}, "c.csv?columns=fr,en", r"'fr', 'en'\) in the header, got"),
    "JSON, no pair": (
        {"c.jsonl": '{"id": "7", "de": "a", "en": "b"}\n'}, "c.jsonl", "missing key(.|\n)*Name the two columns",
    ),
    "no Parquet": ({"c.parquet": "no parquet"}, "c.parquet", "Parquet"),
    "split of a file": ({"c.tsv": "a\tb\n"}, "c.tsv?split=train", "takes no split='train'"),
    "other way round": ({"de-en.tsv": "a\tb\n"}, "en-de=de-en.tsv", "expected de-en, as in the name of .*, got en-de"),
    "unknown ending": ({"c.dat": "a\tb\n"}, "c.dat", r"expected a file ending in \.tsv, .*c\.dat"),
    "a document": ({"c.docx": "a\tb\n"}, "c.docx", "c.docx: expected sentence pairs, .*align-documents"),
    "escapes": ({"p.tsv": SCORED + "1\t1\t1\tC:\\x\tb\t0\n"}, "p.tsv", "p.tsv:5: bad escape .*at character 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, spec, message = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, files)
    for stream in (False, True):
        with pytest.raises(ValueError) as caught:
            (loaded,) = load_data_specs([spec], stream=stream).values()
            list(loaded)
        assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("first", ["de\ten", "Deutsch\tGerman", "Ja.\tYes.", '"source"\t"target"'])
def test_a_first_line_that_may_be_a_header(first: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, {"c.tsv": f"{first}\nWir haben keine Zeit.\tWe have no time.\nEs regnet.\tIt rains.\n"})
    assert cells(load_pairs(tmp_path / "c.tsv"))[0] == tuple(first.split("\t"))
    columns = f"if it is a header, name its columns: ?columns={','.join(first.split())}"
    assert (columns in caplog.text) == (first != "Ja.\tYes.")


@pytest.mark.parametrize(
    "first", ["text_de\ttext_en", "text.de\ttext.en", "German sentence\tText (English)", "de_src\ten_tgt"]
)
def test_columns_called_by_a_language_and_a_word(first: str, tmp_path: Path) -> None:
    write(tmp_path, {"c.tsv": f"{first}\nEs regnet.\tIt rains.\n"})
    loaded = load_pairs(tmp_path / "c.tsv")
    assert (cells(loaded), codes(loaded)) == ([("Es regnet.", "It rains.")], ("de", "en"))


LOCAL_HEADERS: list[tuple[list[str], tuple[str, str]]] = [
    (["Quelle", "Ziel"], UNKNOWN),
    (["Quelltext", "Zieltext"], UNKNOWN),
    (["Quelle (de)", "Ziel (en)"], ("de", "en")),
    (["source language", "target language"], UNKNOWN),
    (["Original", "Translation"], UNKNOWN),
    (["Texte source", "Texte cible"], UNKNOWN),
    (["texto_origen", "texto_destino"], UNKNOWN),
    (["原文", "译文"], UNKNOWN),
    (["النص", "الترجمة"], UNKNOWN),
    (["ต้นฉบับ", "คำแปล"], UNKNOWN),
    (["L1", "L2"], UNKNOWN),
    (["Deutsch", "Englisch"], ("de", "en")),
    (["Alemán", "Inglés"], ("de", "en")),
    (["Немецкий", "Английский"], ("de", "en")),
    (["德语", "英语"], ("de", "en")),
    (["Almanca", "İngilizce"], ("de", "en")),
    (["ID", "Deutsch", "Englisch"], ("de", "en")),
    (["Nr.", "Quelle", "Ziel"], UNKNOWN),
]


@pytest.mark.parametrize("names, languages", LOCAL_HEADERS, ids=lambda value: "-".join(value))
def test_headers_in_other_languages_are_no_pairs(names: list[str], languages: tuple[str, str], tmp_path: Path) -> None:
    """A German translator's table began with the pair "Quelle", "Ziel", or was refused for a third column."""
    row = [*["7"] * (len(names) - 2), "Wir haben heute leider keine Zeit.", "We have no time today."]
    write(
        tmp_path,
        {
            "c.tsv": "\n".join("\t".join(line) for line in (names, row, row)),
            "c.csv": "\n".join(";".join(line) for line in (names, row, row)),
            "c.jsonl": "\n".join(json.dumps(dict(zip(names, row))) for _ in range(2)),
        },
    )
    for name in ("c.tsv", "c.csv", "c.jsonl"):
        loaded = load_pairs(tmp_path / name)
        assert (cells(loaded), codes(loaded)) == ([tuple(row[-2:])] * 2, languages), name


def test_a_header_of_questions_in_other_languages(tmp_path: Path) -> None:
    """The header "Frage", "Antwort" of a retriever's training text was trained on as a query with its passage."""
    write(tmp_path, {"c.tsv": "Frage\tAntwort\nWie hoch ist der Brocken?\tEr ist 1141 Meter hoch.\n"})
    (queries,) = load_query_passage_specs([f"de={tmp_path / 'c.tsv'}"]).values()
    assert queries["source"][:] == ["Wie hoch ist der Brocken?"]


def test_other_formats_in_a_folder_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, {"f/a.tsv": TSV, "f/b.tsv": TSV, "f/c.jsonl": '{"source": "a", "target": "b"}'})
    assert cells(load_pairs(tmp_path / "f")) == [*HUND, *HUND]
    assert f"ending in .tsv, and not {tmp_path / 'f' / 'c.jsonl'}" in caplog.text


def test_pairs_are_memory_mapped_and_read_again_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text(TSV, encoding="utf-8")
    first = load_pairs(path)
    second = load_pairs(path)
    assert first.cache_files == second.cache_files != []
    path.write_text(TSV.replace("Hund", "Wolf"), encoding="utf-8")
    assert load_pairs(path)[0]["source"] == "Der Wolf schläft."


def write_pair(folder: Path, kind: str, source: str) -> Any:
    """Write one pair as a kind of text, with the same size for sources of the same length; return what to read."""
    folder.mkdir(exist_ok=True)
    if kind == "tsv":
        lines(folder / "c.tsv", [f"{source}\tdog"])
    elif kind == "jsonl":
        json_lines(folder / "c.jsonl", [{"source": source, "target": "dog"}])
    elif kind == "tmx":
        lines(folder / "c.tmx", [tmx({"de": source, "en": "dog"})])
    elif kind == "moses":
        lines(folder / "c.de", [source])
        lines(folder / "c.en", ["dog"])
        return folder / "c"
    elif kind == "zip":
        with zipfile.ZipFile(folder / "c.zip", "w") as packed:
            packed.writestr(zipfile.ZipInfo("c.de"), f"{source}\n")
            packed.writestr(zipfile.ZipInfo("c.en"), "dog\n")
    elif kind == "folder of parquet":
        Dataset.from_dict({"source": [source], "target": ["dog"]}).to_parquet(str(folder / "c.parquet"))
        return folder
    elif kind == "saved":
        Dataset.from_dict({"source": [source], "target": ["dog"]}).save_to_disk(str(folder))
        return folder
    return folder / f"c.{kind}"


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "tmx", "moses", "zip", "folder of parquet", "saved"])
def test_another_text_of_the_same_size_and_time_is_read(kind: str, tmp_path: Path) -> None:
    """A corrected file that kept size and time of modification (``cp -p``, ``rsync -t``) was trained on as before."""
    location = write_pair(tmp_path / "old", kind, "alt eins")
    assert load_pairs(location)["source"][:] == ["alt eins"]
    write_pair(tmp_path / "new", kind, "neu eins")
    for path in (tmp_path / "old").iterdir():
        before = path.stat()
        if path.name != "state.json":  # which has a fingerprint of the text, and may be left as it was
            shutil.copyfile(tmp_path / "new" / path.name, path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
    assert load_pairs(location)["source"][:] == ["neu eins"]


def test_what_a_translation_memory_has_besides(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A third language, and two regions read as one, were read or left out without a word."""
    path = tmp_path / "c.tmx"
    path.write_text(memory_of_regions(), encoding="utf-8")
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        assert len(load_pairs(path)) == 3
        assert "de and en-GB are read, and not fr (1 units)" in caplog.text
        assert "en-GB and en-US are both read as en-GB" in caplog.text
    caplog.clear()
    assert len(load_pairs(path, source_language="de", target_language="en")) == 3
    assert "not fr" not in caplog.text


def memory_of_regions() -> str:
    return tmx(
        {"de": "Der Hund", "en-GB": "The dog", "fr": "Le chien"},
        {"de": "Die Farbe", "en-US": "The color"},
        {"de": "Die Farbe", "en-GB": "The colour"},
    )


def test_faulty_units_are_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One control character in a memory of a million units ended the reading of all; it is a fault of its unit."""
    path = tmp_path / "c.tmx"
    path.write_text(tmx({"de": "Der \x01Hund", "en": "The dog"}, *UNITS, {"fr": "\x02"}), encoding="utf-8")
    assert cells(load_pairs(path, skip_bad_lines=True)) == HUND
    assert "c.tmx:1: control character (in the text of de)" in caplog.text


def test_long_lines_take_little_memory(tmp_path: Path) -> None:
    """A line of 300 MB, packed to 0.3 MB, took more than a gigabyte and minutes before it was refused."""
    path = tmp_path / "c.tsv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(300):
            stream.write(b"a" * 1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="line of more than"):
            load_pairs(path)
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()


def test_long_rows_are_gathered_few_at_a_time(tmp_path: Path) -> None:
    """A thousand rows of megabytes, each within the limit of a line, would all be in memory at once."""
    path = tmp_path / "c.tsv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(40):
            stream.write(b"a" * 8_000_000 + b"\tb\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in load_pairs(path, stream=True)) == 40
        assert tracemalloc.get_traced_memory()[1] < 250e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize(
    ("name", "yes", "no"), [("label", 1, 0), ("is_duplicate", True, False), ("Label", "yes", "no")]
)
def test_rows_that_are_no_pairs_are_left_out(
    ending: str, name: str, yes: Any, no: Any, stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows with the label 0, texts that do not belong together, were trained on as translations."""
    rows = [(*HUND[0], yes), ("Der Hund schläft.", "It rains.", no), (*HUND[1], yes), ("Es regnet.", "The dog.", no)]
    names = ["source", "target", name]
    path = tmp_path / f"c.{ending}"
    objects = [dict(zip(names, row)) for row in rows]
    if ending == "parquet":
        Dataset.from_list(objects).to_parquet(str(path))
    elif ending == "json":
        path.write_text(json.dumps(objects), encoding="utf-8")
    elif ending == "jsonl":
        json_lines(path, objects)
    else:
        lines(path, [{"tsv": "\t", "csv": ","}[ending].join(map(str, row)) for row in [names, *rows]])
    assert cells(load_pairs(path, stream=stream)) == HUND
    assert f"{path}: 2 rows with label 0 left out" in caplog.text
    assert len(list(load_pairs(path, columns=("source", "target"), stream=stream))) == 4  # asked for by name


@pytest.mark.parametrize("name", ["de_en.tsv", "news.deu_eng.jsonl"])
def test_languages_that_a_name_may_mean_are_said(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``de_en.tsv`` was read as text of two unknown languages, without a word."""
    path = tmp_path / name
    if name.endswith("jsonl"):
        json_lines(path, [{"source": "Hund", "target": "dog"}])
    else:
        lines(path, ["Hund\tdog"])
    codes_in_name = name.split(".")[-2].split("_")
    assert codes(load_pairs(path)) == UNKNOWN
    hint = f"if they are German and English, name them: {'-'.join(codes_in_name)}={path}"
    assert hint in caplog.text
    caplog.clear()
    load_data_specs([f"de-en={path}"])
    assert "not known" not in caplog.text


def test_a_spec_is_a_location_in_python_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide calls ``pairs.tsv?size=100`` the way to name text; ``load_pairs`` looked for a file of that name."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"c.tsv": TSV, "odd?size=1": TSV})
    assert cells(load_pairs("de-en=c.tsv?size=1&seed=3")) in ([HUND[0]], [HUND[1]])
    assert codes(load_pairs("de-en=c.tsv")) == ("de", "en")
    assert len(list(load_pairs("c.tsv?size=1", stream=True))) == 1
    assert len(load_pairs("phrasebook:de?size=7")) == 7
    with pytest.raises(ValueError, match="the spec c.tsv.size=1 takes no columns"):
        load_pairs("c.tsv?size=1", columns=(0, 1))
    with pytest.raises(ValueError, match="names de-en, fr-en; load several by load_data_specs"):
        load_pairs("phrasebook:de,fr?size=7")
    with pytest.raises(ValueError, match="expected a file ending in"):
        load_pairs("odd?size=1")  # a file that is there is no spec


def test_a_translation_memory_without_the_languages(tmp_path: Path) -> None:
    """The error said "got none", and not which languages there are instead."""
    path = tmp_path / "c.tmx"
    path.write_text(tmx(*UNITS), encoding="utf-8")
    with pytest.raises(ValueError, match="no unit has nl and en; its languages are en, de"):
        load_pairs(path, source_language="nl", target_language="en")
    path.write_text(tmx(*UNITS).replace(' xml:lang="de"', ""), encoding="utf-8")
    with pytest.raises(ValueError, match="no unit has two languages; its languages are en; 2 texts have no xml:lang"):
        load_pairs(path)
    path.write_text(re.sub(' xml:lang="[^"]*"', "", tmx(*UNITS)), encoding="utf-8")
    with pytest.raises(ValueError, match="no unit has two languages; [0-9]+ texts have no xml:lang"):
        load_pairs(path)


def test_skipped_lines_are_listed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Which lines, and how many more: without them nobody finds what is wrong with a file."""
    (tmp_path / "c.tsv").write_text(TSV + "one\n" * 30, encoding="utf-8")
    with caplog.at_level("WARNING"):
        assert cells(load_pairs(tmp_path / "c.tsv", skip_bad_lines=True)) == HUND
    assert "30 lines: 30 wrong column count" in caplog.text
    assert "c.tsv:3: wrong" in caplog.text and "c.tsv:22: wrong" in caplog.text and "and 10 more" in caplog.text


def test_a_column_twice_in_parquet(tmp_path: Path) -> None:
    """Of two columns of one name, as a join of tables writes them, the last was read in silence."""
    table = pa.table([["Es regnet."], ["It rains."], ["Es schneit."]], names=["source", "target", "source"])
    pq.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(ParallelTextError, match="2 columns are called 'source'"):
        load_pairs(tmp_path / "c.parquet")


def test_packed_parquet(tmp_path: Path) -> None:
    """The error spoke of magic bytes and of a file that may be corrupted, and asked to write it again."""
    pq.write_table(pa.table({"source": ["Es regnet."], "target": ["It rains."]}), tmp_path / "c.parquet")
    (tmp_path / "c.parquet.gz").write_bytes(gzip.compress((tmp_path / "c.parquet").read_bytes()))
    with pytest.raises(ParallelTextError, match="which is compressed within, got a packed one; unpack it"):
        load_pairs(tmp_path / "c.parquet.gz")


def test_lines_of_open_quotes_in_csv(tmp_path: Path) -> None:
    """A field that begins with a quote on one line and ends on a later one is named with the line that opened it last.

    The numbers were wrong for whoever had several such fields in a file: a later field was said to begin on the line of
    an earlier one, and a line such as ``Rohr 5",pipe`` behind a closed field was taken for the end of it.
    """
    path = lines(
        tmp_path / "c.csv",
        [
            "source,target",
            '"a',  # 2 opens
            'b",c',  # 3 ends what 2 opened
            'Rohr 5",pipe',  # 4 is text: nothing is open
            '"d',  # 5 opens
            "plain,words",  # 6 has no quote: 5 is still open
            '"e',  # 7 opens, too
            'f",g',  # 8 ends what 7 opened
            'h",i',  # 9 is text: nothing is open
            '"j',  # 10 opens
            '"k","l"',  # 11 has whole fields: nothing is open any more
            'm",n',  # 12 is text
            '"o, p',  # 13 opens
            'q" r,s',  # 14 has a quote within a field, which closes what is open
            't",u',  # 15 is text
            '"v',  # 16 opens
            'w "x" y",z',  # 17 has three quotes, and ends what 16 opened
            '"',  # 18 opens
            '",',  # 19 opens: it begins with a quote that it does not close
            'end",of file',  # 20 ends what 19 opened
        ],
    )
    opened_by = {3: 2, 8: 7, 17: 16, 20: 19}
    expected = [
        (line, "a field begins with a quote that this line does not close") for line in (2, 5, 7, 10, 13, 16, 18, 19)
    ]
    expected += [(line, f"ends a field that line {opening} opened") for line, opening in opened_by.items()]
    with pytest.raises(ParallelTextError) as caught:
        load_pairs(path)
    assert [(fault.line, fault.detail) for fault in caught.value.faults] == sorted(expected)
    assert {fault.kind for fault in caught.value.faults} == {"unclosed quote"}
    assert cells(load_pairs(path, skip_bad_lines=True)) == [
        ('Rohr 5"', "pipe"),
        ("plain", "words"),
        ('h"', "i"),
        ("k", "l"),
        ('m"', "n"),
        ('q" r', "s"),
        ('t"', "u"),
    ]
