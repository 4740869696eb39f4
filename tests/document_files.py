"""Documents as people have them, written part by part: EPUB, DOCX, ODT and HTML with the same pieces of text."""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape


class Piece(NamedTuple):
    """Piece of a paragraph: its kind (see :data:`KINDS`) and its text."""

    kind: str
    text: str


Paragraph = Sequence[Piece]

KINDS = ("plain", "bold", "read", "inserted", "deleted", "moved", "note", "box", "break", "comment")
"""Kinds of pieces; of a ``read`` one each word carries a reading. Notes and boxes follow their paragraph."""

SEEN = ("plain", "bold", "read", "inserted", "moved")


def seen_text(paragraphs: Sequence[Paragraph]) -> list[str]:
    """Return the paragraphs that a reader sees: two breaks end one; soft hyphens are not seen."""
    texts = []
    for paragraph in paragraphs:
        text = ""
        for piece in paragraph:
            text += "\n" if piece.kind == "break" else piece.text * (piece.kind in SEEN)
        texts += re.split(r"\n\s*\n", text.strip("\n"))
        texts += [piece.text for piece in paragraph if piece.kind in ("note", "box")]
    joined = [re.sub(r"(?<=[漢字ไทย])\n(?=[漢字ไทย])", "", text).replace("\u00ad", "") for text in texts]
    return [" ".join(text.split()) for text in joined if text.strip()]


def write_zip(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


# HTML and EPUB.


def html_piece(piece: Piece) -> str:
    text = escape(piece.text)
    match piece.kind:
        case "plain":
            return text
        case "bold":
            return f"<b>{text}</b>"
        case "read":
            return f"<ruby>{text}<rp>(</rp><rt>よみ</rt><rp>)</rp></ruby>"
        case "inserted" | "moved":
            return f'<span class="{piece.kind}">{text}</span>'
        case "deleted":
            return f"<span hidden='hidden'>{text}</span>"
        case "break":
            return "<br/>"
        case "comment":
            return f'<!-- {text} --><span epub:type="pagebreak">12</span>'
        case _:
            return '<a epub:type="noteref" href="#n">1</a>'


def html_body(paragraphs: Sequence[Paragraph]) -> str:
    body = ""
    for paragraph in paragraphs:
        notes = [escape(piece.text) for piece in paragraph if piece.kind in ("note", "box")]
        body += f"<p>\n{''.join(map(html_piece, paragraph))}</p>\n"
        body += "".join(f'<aside epub:type="footnote"><p>{note}</p></aside>' for note in notes)
    return body


def html_page(body: str, *, head: str = "<title>A title</title><style>p {}</style>") -> str:
    return f"<!DOCTYPE html>\n<html lang='de'><head><meta charset='utf-8'>{head}</head><body>{body}</body></html>"


def xhtml_page(body: str) -> str:
    doctype = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
    namespaces = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
    head = "<head><title>A title</title></head>"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{doctype}\n<html {namespaces}>{head}<body>{body}</body></html>'


def write_html(path: Path, paragraphs: Sequence[Paragraph]) -> Path:
    page = html_page(f"<nav><a href='/'>Home</a></nav>{html_body(paragraphs)}")
    path.write_text(page, encoding="utf-8")
    return path


EPUB_CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def epub_parts(pages: Sequence[str]) -> dict[str, str]:
    """Return the parts of a book: its pages lie there in reverse, and the contents come first in the spine."""
    items = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    items += '<item id="css" href="style.css" media-type="text/css"/>'
    spine = '<itemref idref="nav"/>'
    parts = {"mimetype": "application/epub+zip", "META-INF/container.xml": EPUB_CONTAINER}
    for number in reversed(range(len(pages))):
        items += f'<item id="p{number}" href="page%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        parts[f"OPS/page {number}.xhtml"] = xhtml_page(pages[number])
    for number in range(len(pages)):
        spine += f'<itemref idref="p{number}"/>'
    parts["OPS/nav.xhtml"] = xhtml_page("<h1>Contents</h1><ol><li>1</li></ol>")
    manifest = f"<manifest>{items}</manifest><spine>{spine}</spine>"
    parts["OPS/book.opf"] = f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0">{manifest}</package>'
    return parts


def write_epub(path: Path, paragraphs: Sequence[Paragraph]) -> Path:
    middle = len(paragraphs) // 2
    return write_zip(path, epub_parts([html_body(paragraphs[:middle]), html_body(paragraphs[middle:])]))


# DOCX.

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCX_NAMESPACES = (
    f'xmlns:w="{WORD}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def docx_run(text: str, tag: str = "t") -> str:
    return f'<w:r><w:{tag} xml:space="preserve">{escape(text)}</w:{tag}></w:r>'


def docx_box(text: str) -> str:
    """Return a text box as Word writes it: twice, for new and for old programs."""
    content = f"<w:txbxContent><w:p>{docx_run(text)}</w:p></w:txbxContent>"
    new = f'<mc:Choice Requires="wps"><w:drawing><wps:txbx>{content}</wps:txbx></w:drawing></mc:Choice>'
    old = f"<mc:Fallback><w:pict><v:textbox>{content}</v:textbox></w:pict></mc:Fallback>"
    return f"<w:r><mc:AlternateContent>{new}{old}</mc:AlternateContent></w:r>"


def docx_piece(piece: Piece, note: int) -> str:
    run = docx_run(piece.text)
    match piece.kind:
        case "plain":
            return run
        case "bold":
            return f"<w:hyperlink>{run.replace('<w:r>', '<w:r><w:rPr><w:b/></w:rPr>')}</w:hyperlink>"
        case "read":
            return f"<w:r><w:ruby><w:rt>{docx_run('よみ')}</w:rt><w:rubyBase>{run}</w:rubyBase></w:ruby></w:r>"
        case "inserted":
            return f'<w:ins w:id="1" w:author="A">{run}</w:ins>'
        case "deleted":
            return f'<w:del w:id="2" w:author="A">{docx_run(piece.text, "delText")}</w:del>'
        case "moved":
            return f'<w:moveFrom w:id="3">{run}</w:moveFrom><w:moveTo w:id="4">{run}</w:moveTo>'
        case "break":
            return "<w:r><w:br/></w:r>"
        case "comment":
            return '<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:commentReference w:id="0"/></w:r>'
        case "box":
            return docx_box(piece.text)
        case _:
            return f'<w:r><w:footnoteReference w:id="{note}"/></w:r>'


def docx_parts(body: str, notes: str = "") -> dict[str, str]:
    relations = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    footnotes = f'<Relationship Id="n" Type="{OFFICE}/footnotes" Target="footnotes.xml"/>'
    styles = f'<Relationship Id="s" Type="{OFFICE}/styles" Target="/word/styles.xml"/>'
    contents_style = '<w:style w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>'
    document = f'<Relationship Id="d" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    return {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f"{relations}{document}</Relationships>",
        "word/_rels/document.xml.rels": f"{relations}{footnotes}{styles}</Relationships>",
        "word/styles.xml": f"<w:styles {DOCX_NAMESPACES}>{contents_style}</w:styles>",
        "word/footnotes.xml": f"<w:footnotes {DOCX_NAMESPACES}>{notes}</w:footnotes>",
        "word/document.xml": f"<w:document {DOCX_NAMESPACES}><w:body>{body}</w:body></w:document>",
    }


def write_docx(path: Path, paragraphs: Sequence[Paragraph]) -> Path:
    body = ""
    notes = ""
    note = 1
    for paragraph in paragraphs:
        runs = ""
        for piece in paragraph:
            if piece.kind == "note":
                note += 1
                notes += f'<w:footnote w:id="{note}"><w:p>{docx_run(piece.text)}</w:p></w:footnote>'
            runs += docx_piece(piece, note)
        body += f"<w:p><w:pPr><w:rPr><w:ins/></w:rPr></w:pPr>\n{runs}</w:p>\n"
    return write_zip(path, docx_parts(body, notes))


# ODT.

ODT_NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


def odt_piece(piece: Piece) -> str:
    text = escape(piece.text)
    match piece.kind:
        case "plain" | "inserted" | "moved":
            return text
        case "bold":
            return f"<text:span>{text}</text:span>"
        case "read":
            ruby = f"<text:ruby-base>{text}</text:ruby-base><text:ruby-text>よみ</text:ruby-text>"
            return f"<text:ruby>{ruby}</text:ruby>"
        case "break":
            return "<text:line-break/>"
        case "comment":
            return f"<office:annotation><dc:creator>A</dc:creator><text:p>{text}</text:p></office:annotation>"
        case "deleted":
            return '<text:change text:change-id="c"/>'
        case "box":
            return f"<draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        case _:
            body = f"<text:note-body><text:p>{text}</text:p></text:note-body>"
            return f"<text:note><text:note-citation>1</text:note-citation>{body}</text:note>"


def odt_parts(body: str) -> dict[str, str]:
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    return {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document-content {ODT_NAMESPACES}>{text}</office:document-content>",
    }


def write_odt(path: Path, paragraphs: Sequence[Paragraph]) -> Path:
    deleted = "<text:tracked-changes><text:deletion><text:p>deleted</text:p></text:deletion></text:tracked-changes>"
    body = "".join(f"<text:p>{''.join(map(odt_piece, paragraph))}</text:p>" for paragraph in paragraphs)
    return write_zip(path, odt_parts(deleted + body))


WRITERS = {".epub": write_epub, ".docx": write_docx, ".odt": write_odt, ".html": write_html}
"""Ending → function that writes paragraphs of pieces to such a file."""


def plain(*texts: str) -> list[Paragraph]:
    """Return paragraphs of plain text."""
    return [[Piece("plain", text)] for text in texts]
