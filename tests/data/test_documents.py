"""Documents: what was written is what is read, in order; the traps of each format; and files that are none."""

import gzip
import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from st_xling.data import load_pairs
from st_xling.data.documents import DOCUMENTS, is_document, read_document
from st_xling.data.texts_by_language import load_texts
from st_xling.utils.file_endings import DOCUMENT_ENDINGS
from st_xling.utils.text import LARGEST_DOCUMENT_BYTES, ParallelTextError
from tests.document_files import (
    DOCX_NAMESPACES,
    KINDS,
    WRITERS,
    Piece,
    docx_parts,
    docx_run,
    epub_parts,
    html_page,
    odt_parts,
    plain,
    seen_text,
    write_epub,
    write_zip,
    xhtml_page,
)

WORDS = [
    "Haus ",
    "漢字",
    "ไทย",
    "größer & <kleiner>",
    "عربى ",
    "e\u0301te\u0301",
    "🙂",
    "No. 5",
    "\u00a0– ",
    "a\u00adb",
]


def read(path: Path) -> list[str]:
    return read_document(path).texts


def test_every_document_ending_has_a_reader() -> None:
    assert list(DOCUMENT_ENDINGS) == list(DOCUMENTS)


@pytest.mark.parametrize("ending", WRITERS)
def test_what_was_written_is_read_in_order(ending: str, tmp_path: Path) -> None:
    """Libraries lose words with a reading, insertions, moves and text boxes, or read deletions and readings as text."""
    rng = random.Random(7)
    for number in range(8):
        paragraphs = []
        for _ in range(rng.randrange(2, 12)):
            pieces = rng.randrange(1, 7)
            paragraphs.append([Piece(rng.choice(KINDS), "".join(rng.choices(WORDS, k=2))) for _ in range(pieces)])
        paragraphs.append([Piece("plain", "The end.")])
        path = WRITERS[ending](tmp_path / f"{number}{ending}", paragraphs)
        assert [" ".join(text.split()) for text in read(path)] == seen_text(paragraphs)


def test_lines_of_scripts_without_spaces_are_joined_without_them(tmp_path: Path) -> None:
    paragraph = [
        Piece("plain", "今天很"),
        Piece("break", ""),
        Piece("plain", "冷。"),
        Piece("break", ""),
        Piece("plain", "Ja"),
    ]
    for ending, write in WRITERS.items():
        assert read(write(tmp_path / f"book{ending}", [paragraph])) == ["今天很冷。 Ja"]


# Pages, and their paragraphs.
PAGES = {
    "blocks": (
        "loose <i>te</i>xt<div>in<p>ner</div>tail<ul><li>one<li>two</ul><table><tr><td>a<td>b</table>",
        ["loose text", "in", "ner", "tail", "one", "two", "a", "b"]),
    "breaks": ("One<br>line.<br><br>Two<br/>\n <br>\n three", ["One line.", "Two", "three"]),
    "preformatted": ("<pre>one\n  line\n\ntwo</pre> a\n\nb", ["one line", "two", "a b"]),
    "characters": ("a&nbsp;b &copy; &amp;lt; 5 < 6 & so &unknown;", ["a\u00a0b © &lt; 5 < 6 & so &unknown;"]),
    "no text": (
        "<script>var a = '<p>';</script><nav>Menu</nav><p>Text<noscript>on</noscript><template>t</template>"
        "<select><option>o</select></p><!-- c --><p hidden>h</p>", ["Text"]),
    "readings": ("<p><ruby>漢<rt>かん<rb>字<rt>じ</ruby>が<ruby>好<rp>(<rt>す<rp>)</ruby>き", ["漢字が好き"]),
    "numbers of notes": (
        '<p>Word<a href="#n1"><sup>1</sup></a> and<sup><a href="b.html#n2">[2]</a></sup> x<sup>2</sup>'
        '<a class="footnote-ref" href="#n3">3</a> '
        '<a href="#c"><sup>Chapter</sup></a> <a href="#y">1990</a>', ["Word and x2 Chapter 1990"]),
    "formula": (
        "<p>Let <math><mi>x</mi><annotation>\\x</annotation></math> be", ["Let x be"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str, tmp_path: Path) -> None:
    body, expected = PAGES[name]
    path = tmp_path / "page.html"
    path.write_text(html_page(body), encoding="utf-8")
    assert read(path) == expected


@pytest.mark.parametrize(
    "content",
    [
        '<meta charset="utf-8"><p>größer “'.encode(),
        b"\xef\xbb\xbf" + "<p>größer “".encode(),
        "\ufeff<p>größer “".encode("utf-16-le"),
        '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1"><p>größer “'.encode("cp1252"),
        "<p>größer “".encode("cp1252"),
        '<?xml version="1.0" encoding="windows-1252"?><html><body><p>größer “</p></body></html>'.encode("cp1252"),
        gzip.compress("<p>größer “".encode(), mtime=0),
    ],
)
def test_encodings_of_pages(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "page.htm"
    path.write_bytes(content)
    assert read(path) == ["größer “"]


def test_a_page_without_limits_is_whole(tmp_path: Path) -> None:
    """lxml returns an empty page for a text of 10 MB, and leaves out what is more than 2,048 tags deep."""
    long_text = tmp_path / "long.html"
    long_text.write_text(f"<p>{'a' * 10_100_000}</p><p>end", encoding="utf-8")
    assert read(long_text)[-1] == "end"
    deep = tmp_path / "deep.html"
    deep.write_text("<b>" * 1500 + "end", encoding="utf-8")
    assert read(deep) == ["end"]
    deep.write_text("<b>" * 3000 + "end", encoding="utf-8")
    with pytest.raises(ParallelTextError, match="deep.html:1: expected HTML, got: Excessive depth"):
        read(deep)


def test_faulty_pages_of_a_book_are_read_as_a_browser_does(tmp_path: Path) -> None:
    pages = ["<p>One &nbsp;&mdash; two<a id='x'/></p>", "<p>A & B<br>c<title/><p>d"]
    assert read(write_zip(tmp_path / "book.epub", epub_parts(pages))) == ["One \u00a0— two", "A & B c", "d"]


def test_contents_of_epub_2_are_left_out(tmp_path: Path) -> None:
    parts = epub_parts(["<p>One</p>", "<p>Contents</p>", "<p>Two</p>"])
    guide = '<guide><reference type="toc" href="page%201.xhtml#top"/></guide></package>'
    parts["OPS/book.opf"] = parts["OPS/book.opf"].replace("</package>", guide)
    assert read(write_zip(tmp_path / "book.epub", parts)) == ["One", "Two"]


def test_parts_of_word_that_are_no_text(tmp_path: Path) -> None:
    toc_style = '<w:pPr><w:pStyle w:val="Verzeichnis1"/></w:pPr>'
    gallery = '<w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
    deleted_end = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
    body = "".join(
        [
            f"<w:p>{toc_style}{docx_run('Contents')}</w:p>",
            f"<w:sdt>{gallery}<w:sdtContent><w:p>{docx_run('Chapter 7')}</w:p></w:sdtContent></w:sdt>",
            f"<w:sdt><w:sdtContent><w:p>{docx_run('In a control.')}</w:p></w:sdtContent></w:sdt>",
            f"<w:p>{deleted_end}{docx_run('Two ')}</w:p><w:p>{docx_run('lines.')}</w:p>",
            f"<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p>{docx_run('gone')}</w:p></w:tc></w:tr></w:tbl>",
            "<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:tab/>"
            "<w:t>c</w:t><w:softHyphen/><w:t>d</w:t></w:r></w:p>",
        ]
    )
    assert read(write_zip(tmp_path / "a.docx", docx_parts(body))) == ["In a control.", "Two lines.", "a\u2011b cd"]


BOMB = f"<w:document {DOCX_NAMESPACES}><!--{' ' * (LARGEST_DOCUMENT_BYTES + 1)}--></w:document>"
LAUGHS = '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><p>&b;</p>'

# Name of a file and its content, or the parts of its archive → what the error says.
FAULTY: dict[str, tuple[str, bytes | dict[str, str], str]] = {
    "no archive": ("a.docx", b"Hello", "a.docx: expected DOCX, which is a zip archive"),
    "old Word": ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Word, or with a password"),
    "empty": ("a.epub", b"", "expected EPUB, which is a zip archive"),
    "another archive": ("a.epub", {"a.txt": "a"}, "got a zip archive without META-INF/container.xml"),
    "a part is missing": ("a.odt", {"a.txt": "a"}, "expected a part content.xml"),
    "a page is missing": (
        "a.epub", {name: text for name, text in epub_parts(["a", "b"]).items() if "page 1" not in name},
        "expected a part OPS/page 1.xhtml"),
    "locked": (
        "a.epub",
        epub_parts(["<p>a</p>"]) | {"META-INF/encryption.xml": '<e><CipherReference URI="OPS/page%200.xhtml"/></e>'},
        r"got OPS/page 0.xhtml locked \(DRM\)"),
    "with a password": (
        "a.odt", odt_parts("") | {"META-INF/manifest.xml": "<m><encryption-data/></m>"}, "without a password"),
    "malformed": (
        "a.docx", docx_parts("") | {"word/document.xml": "<w:document"}, "a.docx/word/document.xml: .*malformed"),
    "no text": ("a.docx", docx_parts("<w:p/>"), "expected a document with text, got none"),
    "empty page": ("a.html", b" ", "expected a document with text|expected a page with text, got none"),
    "bytes of no encoding": ("a.html", b'<meta charset="utf-8"><p>\xe4</p>', "expected utf-8, got byte 0xe4"),
    "unknown encoding": ("a.html", b'<meta charset="klingon"><p>a</p>', "expected an encoding, got 'klingon'"),
    "entities": ("a.xhtml", f'<?xml version="1.0"?>{LAUGHS}'.encode(), "got a definition of entities"),
    "entities in a book": (
        "a.epub", epub_parts([""]) | {"OPS/page 0.xhtml": xhtml_page("").replace("<!DOCTYPE html", "<!ENTITY")},
        "got a definition of entities"),
    "PDF": ("a.pdf", b"%PDF-1.7", r"expected text, EPUB, DOCX, ODT, HTML or subtitles, got PDF; convert it: pdftotext"),
    "Word 97": ("a.doc", b"\xd0\xcf\x11\xe0", "got DOC; convert it: soffice"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_files_get_one_line(name: str, tmp_path: Path) -> None:
    file, content, message = FAULTY[name]
    path = tmp_path / file
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_zip(path, content)
    with pytest.raises(ParallelTextError, match=message) as error:
        assert not is_document(path) or read(path)
    assert "\n" not in str(error.value)


def test_a_small_archive_of_a_huge_document_is_not_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.docx", docx_parts("") | {"word/document.xml": BOMB})
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    with pytest.raises(ParallelTextError, match="expected a document of at most"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_a_damaged_archive_gets_one_line(tmp_path: Path) -> None:
    path = write_epub(tmp_path / "book.epub", plain("Eins. " * 500))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("OPS/page 1.xhtml")
    start = entry.header_offset + 30 + len(entry.filename)
    content[start : start + 8] = bytes(8)
    path.write_bytes(content)
    with pytest.raises(ParallelTextError, match="expected a whole archive"):
        read(path)


def test_texts_of_one_language(tmp_path: Path) -> None:
    path = write_epub(tmp_path / "book.epub", plain("Eins.", "Zwei. Drei."))
    assert load_texts(f"de={path}")["source"][:] == ["Eins.", "Zwei. Drei."]


def test_documents_are_no_pairs(tmp_path: Path) -> None:
    """The error names the command that makes pairs of them."""
    german = write_epub(tmp_path / "book.de.epub", plain("Eins."))
    english = write_epub(tmp_path / "book.en.epub", plain("One."))
    for location in (german, (german, english)):
        with pytest.raises(ParallelTextError, match="st-xling align-documents"):
            load_pairs(location)
    german.with_suffix(".pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(ParallelTextError, match="pdftotext"):
        load_pairs(german.with_suffix(".pdf"))
