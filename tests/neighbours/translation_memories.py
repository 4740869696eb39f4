"""Translation memories and translation files: TMX, PO and XLIFF."""

from __future__ import annotations

import json
import shutil
import subprocess
import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from st_xling.data import load_pairs
from st_xling.mining import score_texts
from tests.neighbours.encoders import run_command, write_encoder
from tests.neighbours.environment import Environment, NeighborFailed, debian_files
from tests.neighbours.meeting import difference, meeting

#: Markup, quotes, two writing directions, a no-break space, combining marks, and a character outside the BMP.
PAIRS = [
    ("Das Buch ist alt.", "The book is old."),
    ('a < b & b > c, "sagt" sie', "a < b & b > c, 'she' says"),
    ("10\u00a0000 € für das Café", "10,000 € for the cafe\u0301"),
    ("هذا كتاب 📚", "This is a book 📚"),
]


def score_to(folder: Path, pairs: Sequence[tuple[str, str]], ending: str, languages: str = "de-en") -> Path:
    """Write pairs as ``st-xling score`` does, in the format of an ending."""
    table = folder / "pairs.json"
    rows = [{"source": source, "target": target} for source, target in pairs]
    table.write_text(json.dumps(rows), encoding="utf-8")
    vectors = np.eye(len(pairs), dtype=np.float32) + 0.1
    path = folder / f"{languages}.{ending}"
    score_texts(f"{languages}={table}", path, source_embeddings=vectors, target_embeddings=vectors)
    return path


def write_tmx(folder: Path) -> Path:
    """Write the pairs as a translation memory."""
    return score_to(folder, PAIRS, "tmx")


def read_pairs(path: Path, languages: str = "de-en") -> list[tuple[str, str]]:
    """Read pairs as ``st-xling train --data`` does."""
    return [(row["source"], row["target"]) for row in load_pairs(f"{languages}={path}")]


def read_with_translate_toolkit(path: str) -> Any:
    from translate.storage.factory import getobject

    return [[unit.source, unit.target] for unit in getobject(path).units if unit.istranslatable()]


@meeting(
    "translate-toolkit==3.20.4",
    tried="reads our TMX",
    expected="the same texts in the same order",
    users="who opens mined pairs with tools that build on it, such as Pootle and Weblate",
)
def translate_toolkit_reads_tmx(folder: Path, tool: Environment) -> str | None:
    return difference(tool.call(read_with_translate_toolkit, write_tmx(folder)), PAIRS)


def write_with_translate_toolkit(path: str, pairs: list[list[str]]) -> None:
    from translate.storage.tmx import tmxfile

    memory = tmxfile()
    for source, target in pairs:
        memory.addtranslation(source, "de", target, "en")
    memory.savefile(path)


@meeting(
    "translate-toolkit==3.20.4",
    tried="writes TMX for us",
    expected="the same texts in the same order",
    users="who trains on memories that po2tmx or Weblate exports",
)
def translate_toolkit_writes_tmx(folder: Path, tool: Environment) -> str | None:
    path = folder / "theirs.tmx"
    tool.call(write_with_translate_toolkit, path, PAIRS)
    return difference(read_pairs(path), PAIRS)


def read_with_hypomnema(path: str) -> Any:
    import hypomnema

    memory = hypomnema.load(path)
    texts = []
    for unit in memory.body:
        texts.append(["".join(map(str, variant.content)) for variant in unit.variants])
    return texts


@meeting(
    "hypomnema==0.8",
    tried="reads our TMX",
    expected="the same texts in the same order",
    users="who edits memories in Python",
)
def hypomnema_reads_tmx(folder: Path, tool: Environment) -> str | None:
    return difference(tool.call(read_with_hypomnema, write_tmx(folder)), PAIRS)


@meeting(
    "tmxutil==1.3",
    tried="reads our TMX",
    expected="the same texts in the same order",
    users="who filters memories with the tools of Bitextor and ParaCrawl",
    remedy="its -o tab quotes as CSV does, and our TSV does not: -o tmx keeps the texts",
)
def tmxutil_reads_tmx(folder: Path, tool: Environment) -> str | None:
    tool.install()
    columns = ["--output-languages", "de", "en", "--output-columns", "de.text", "en.text"]
    out = tool.run(tool.folder / "bin" / "tmxutil", write_tmx(folder), "-q", "-o", "tab", *columns)
    return difference([line.split("\t") for line in out.splitlines()], PAIRS)


@meeting(
    "tmxutil==1.3",
    tried="writes TMX for us",
    expected="the same texts in the same order",
    users="who trains on memories of ParaCrawl",
)
def tmxutil_writes_tmx(folder: Path, tool: Environment) -> str | None:
    table = folder / "pairs.tsv"
    table.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    path = folder / "theirs.tmx"
    tool.install()
    columns = ["-i", "tab", "-l", "de", "en", "-c", "text-1", "text-2"]
    tool.run(tool.folder / "bin" / "tmxutil", table, "-q", *columns, "-o", "tmx", "--output", path)
    return difference(read_pairs(path), PAIRS)


PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"Language: de\\n"

msgid "Open the file"
msgstr "Die Datei öffnen"

msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#, fuzzy
msgid "Close"
msgstr "Offen"

msgid "Not yet"
msgstr ""
"""
#: What is finished in it.
MESSAGES = [
    ("Open the file", "Die Datei öffnen"),
    ("Open", "Öffnen"),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
]


def convert_po(tool: Environment, folder: Path, program: str, ending: str, *options: str) -> Path:
    """Convert the messages with a program of translate-toolkit."""
    tool.install()
    (folder / "de.po").write_text(PO, encoding="utf-8")
    path = folder / f"theirs.{ending}"
    tool.run(tool.folder / "bin" / program, "--progress=none", *options, folder / "de.po", path)
    return path


@meeting(
    "translate-toolkit==3.20.4",
    tried="po2tmx, for us",
    expected="finished messages, each plural form a pair",
    users="who trains on translations of software",
)
def po2tmx(folder: Path, tool: Environment) -> str | None:
    path = convert_po(tool, folder, "po2tmx", "tmx", "-l", "de")
    return difference(read_pairs(path, "en-de"), MESSAGES)


@meeting(
    "translate-toolkit==3.20.4",
    tried="po2xliff, for us",
    expected="finished messages, each plural form a pair",
    users="who trains on translations of software",
)
def po2xliff(folder: Path, tool: Environment) -> str | None:
    path = convert_po(tool, folder, "po2xliff", "xlf")
    return difference(read_pairs(path, "en-de"), MESSAGES)


def write_po_with_polib(path: str, po: str) -> None:
    import polib

    polib.pofile(po).save(path)


@meeting(
    "polib==1.2.0",
    tried="writes PO for us",
    expected="finished messages, each plural form a pair",
    users="who keeps translations of Python software",
)
def polib_writes_po(folder: Path, tool: Environment) -> str | None:
    path = folder / "theirs.po"
    tool.call(write_po_with_polib, path, PO)
    return difference(read_pairs(path, "en-de"), MESSAGES)


def read_tmx_as_tables(path: str, out: str) -> None:
    from translate.storage.tmx import tmxfile

    memory = tmxfile.parsefile(path)
    memory.savefile(out)


@meeting(
    "translate-toolkit==3.20.4",
    tried="reads our TMX, saves it, and we read that",
    expected="the same texts, and the score of each pair",
    users="who corrects mined pairs in a tool, and trains on them",
)
def translate_toolkit_saves_our_tmx(folder: Path, tool: Environment) -> str | None:
    from st_xling.data.scored import read_scored

    ours = write_tmx(folder)
    theirs = folder / "saved.tmx"
    tool.call(read_tmx_as_tables, ours, theirs)
    return difference(read_pairs(theirs), PAIRS) or difference([*read_scored(theirs)], [*read_scored(ours)])


def write_opus_corpus(folder: Path) -> list[str | Path]:
    """Write pairs as OPUS keeps a corpus: zip files of XML, and links; returns options of opus_read."""
    languages = ("de", "en")
    packed = []
    for side, language in enumerate(languages):
        lines = []
        for number, pair in enumerate(PAIRS, 1):
            lines.append(f'<s id="{number}">{escape(pair[side])}</s>')
        text = "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<document>", *lines, "</document>"])
        path = folder / f"Books_raw_{language}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"Books/raw/{language}/book.xml", text)
        packed.append(path)
    links = folder / "links.xml"
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<cesAlign version="1.0">']
    lines.append('<linkGrp targType="s" fromDoc="de/book.xml.gz" toDoc="en/book.xml.gz">')
    for number, _ in enumerate(PAIRS, 1):
        lines.append(f'<link id="SL{number}" xtargets="{number};{number}"/>')
    links.write_text("\n".join([*lines, "</linkGrp>", "</cesAlign>"]), encoding="utf-8")
    corpus = ["-d", "Books", "-s", languages[0], "-t", languages[1], "-r", "latest", "-p", "raw"]
    return [*corpus, "-af", links, "-sz", packed[0], "-tz", packed[1]]


@meeting(
    "opustools==1.9.0",
    tried="opus_read -wm tmx, for us",
    expected="the same texts in the same order",
    users="who trains on OPUS",
)
def opus_read_writes_tmx(folder: Path, tool: Environment) -> str | None:
    path = folder / "theirs.tmx"
    tool.install()
    tool.run(tool.folder / "bin" / "opus_read", *write_opus_corpus(folder), "-wm", "tmx", "-w", path)
    return difference(read_pairs(path), PAIRS)


OMEGAT_PROJECT = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<omegat><project version="1.0">
<source_dir>__DEFAULT__</source_dir><target_dir>__DEFAULT__</target_dir><tm_dir>__DEFAULT__</tm_dir>
<glossary_dir>__DEFAULT__</glossary_dir><glossary_file>__DEFAULT__</glossary_file>
<dictionary_dir>__DEFAULT__</dictionary_dir>
<source_lang>de</source_lang><target_lang>{target}</target_lang>
<source_tok>org.omegat.tokenizer.LuceneGermanTokenizer</source_tok>
<target_tok>org.omegat.tokenizer.LuceneEnglishTokenizer</target_tok>
<sentence_seg>true</sentence_seg><support_default_translations>true</support_default_translations>
</project></omegat>
"""
#: Without the Arabic one, which has no German.
OMEGAT_PAIRS = PAIRS[:3]


def translate_with_omegat(project: Path, memory: Path, tool: Environment, target: str = "en") -> str:
    """Translate the German sentences by a memory; returns the text, next to which OmegaT writes three memories."""
    root = debian_files(tool.folder.parent, "omegat")
    for name in ("source", "target", "tm/auto", "omegat", "glossary", "dictionary"):
        (project / name).mkdir(parents=True)
    (project / "omegat.project").write_text(OMEGAT_PROJECT.format(target=target), encoding="utf-8")
    text = "\n\n".join(source for source, _ in OMEGAT_PAIRS)
    (project / "source" / "text.txt").write_text(text, encoding="utf-8")
    shutil.copy(memory, project / "tm" / "auto")
    java = root / "usr" / "share" / "java"
    omegat = root / "usr" / "share" / "omegat"
    classes = f"{omegat}/OmegaT.jar:{omegat}/lib/*:{java}/*"
    home = project / "home"
    words = ["-cp", classes, f"-Duser.home={home}", "org.omegat.Main", project, "--mode=console-translate"]
    done = subprocess.run(["java", *words, f"--config-dir={home}"], capture_output=True, text=True)
    if done.returncode:
        raise NeighborFailed(done.stderr.strip().splitlines()[-1])
    return (project / "target" / "text.txt").read_text(encoding="utf-8").strip()


def text_difference(got: list[Any], expected: list[Any]) -> str | None:
    """Describe the first item that differs; only so if it differs by more than composed letters."""
    found = difference(got, expected)
    if found and not difference(composed(got), composed(expected)):
        return "letters and their accents are composed (NFC)"
    return found


def composed(values: list[Any]) -> Any:
    """Return texts in NFC, also in pairs."""
    return json.loads(unicodedata.normalize("NFC", json.dumps(values, ensure_ascii=False)))


@meeting(
    "OmegaT==3.6.0",
    from_registry=False,
    tried="translates a text by our TMX (tm/auto)",
    expected="each sentence by its pair",
    users="who translates with mined pairs",
    remedy="to find a sentence again, compose yours, too: unicodedata.normalize('NFC', text)",
)
def omegat_reads_tmx(folder: Path, tool: Environment) -> str | None:
    text = translate_with_omegat(folder / "project", write_tmx(folder), tool)
    return text_difference(text.split("\n\n"), [target for _, target in OMEGAT_PAIRS])


@meeting(
    "OmegaT==3.6.0",
    from_registry=False,
    tried="its memories of level 1, level 2 and its own, for us",
    expected="the same pairs in each",
    users="who trains on what was translated",
    remedy="to find a sentence again, compose yours, too: unicodedata.normalize('NFC', text)",
)
def omegat_writes_tmx(folder: Path, tool: Environment) -> str | None:
    translate_with_omegat(folder / "project", write_tmx(folder), tool)
    for level in ("level1", "level2", "omegat"):
        pairs = read_pairs(folder / "project" / f"project-{level}.tmx")
        if found := text_difference(sorted(pairs), sorted(OMEGAT_PAIRS)):
            return f"{level}: {found}"
    return None


#: Units of a sentence each, with its translation in three variants of Portuguese.
VARIANTS = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en"
srclang="de" datatype="plaintext"/><body>
<tu><tuv xml:lang="de"><seg>Das Buch ist alt.</seg></tuv>
<tuv xml:lang="pt-PT"><seg>O livro é velho, pois.</seg></tuv>
<tuv xml:lang="pt-BR"><seg>O livro é velho, viu.</seg></tuv>
<tuv xml:lang="pt-AO"><seg>O livro é velho, ya.</seg></tuv></tu>
<tu><tuv xml:lang="de"><seg>a &lt; b &amp; b &gt; c, "sagt" sie</seg></tuv>
<tuv xml:lang="pt-AO"><seg>diz ela, ya</seg></tuv>
<tuv xml:lang="pt-PT"><seg>diz ela, pois</seg></tuv>
<tuv xml:lang="pt-BR"><seg>diz ela, viu</seg></tuv></tu></body></tmx>
"""
#: What a Brazilian expects.
BRAZILIAN_PAIRS = [("Das Buch ist alt.", "O livro é velho, viu."), ('a < b & b > c, "sagt" sie', "diz ela, viu")]


@meeting(
    "OmegaT==3.6.0",
    from_registry=False,
    tried="units in pt-PT, pt-BR and pt-AO, project in pt-BR, its memory for train",
    expected="the Brazilian sentences, as pt-BR-de= reads it; train takes it",
    users="who has several variants of a language in a memory",
)
def omegat_chooses_variant(folder: Path, tool: Environment) -> str | None:
    memory = folder / "variants.tmx"
    memory.write_text(VARIANTS, encoding="utf-8")
    translate_with_omegat(folder / "project", memory, tool, "pt-BR")
    translated = folder / "project" / "project-level2.tmx"
    ours = read_pairs(memory, "de-pt-BR")
    theirs = read_pairs(translated, "de-pt-BR")
    if found := difference(ours, BRAZILIAN_PAIRS) or difference(sorted(theirs), BRAZILIAN_PAIRS):
        return found
    start = write_encoder(folder)
    run_command("train", "tr", "--model", start, "--data", f"de-pt-BR={translated}", "--out", folder / "trained")
    return None
