"""Text from users stays text."""

from __future__ import annotations

import html
import json
import re

import pytest
from huggingface_hub import ModelCard

from st_xling.evaluation.results import KeptFigures, keep_figures
from st_xling.hub import CardOptions, write_card
from st_xling.hub.card.escaping import fenced, one_line, paragraphs, plain, span
from st_xling.training.run_folder import RunFolder

HOSTILE = [
    "a|b|c",
    "a\\|b",
    "line\nbreak\r\n| new | row |",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &#60;i&#62;",
    "```\nout\n```",
    "`code` ``more``",
    "---\nlicense: mit\n---",
    "---",
    "# heading",
    "- item",
    "1. item",
    "=====",
    "[click](javascript:alert(1))",
    "![x](http://evil.example/x.png)",
    "<http://evil.example>",
    "**bold** _it_ ~~gone~~ $x$",
    "</code></table>-->",
    "key: value # no comment",
    "'quote\" {{ jinja }} {% raw %}",
    "\u202egnp.exe\u202c \ufeff\x00\x1b[31m",
    "\ud800 half",
    "زبان‌ها 中文 🙂",
]
STRUCTURE = re.compile(r"[<>|`*\[\]\\~$\n\r]")


@pytest.mark.parametrize("text", HOSTILE)
def test_plain_text_has_no_structure_and_reads_as_it_was(text):
    shown = plain(text)
    assert not STRUCTURE.search(shown)
    assert not re.match(r"[-+=#>]|\d+[.)](\s|$)", shown)
    assert html.unescape(shown) == one_line(text)
    assert not re.search(r"&(?!#\d+;)", shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_fences_and_spans_are_longer_than_what_they_hold(text):
    block = fenced(text, "bash").splitlines()
    fence = block[0].removesuffix("bash")
    assert block[-1] == fence and not any(fence in line for line in block[1:-1])
    shown = span(text)
    ticks = re.match(r"`+", shown)[0]
    assert shown.endswith(ticks) and "\n" not in shown
    assert ticks not in [run for run in re.findall(r"`+", shown[len(ticks) : -len(ticks)])]


def test_paragraphs_are_kept_and_lines_are_not():
    assert paragraphs("one\ntwo\r\n\r\n- three\n\n\n# four") == "one two\n\n&#45; three\n\n&#35; four"


@pytest.fixture
def attacked(copy_of):
    """A card every word of which somebody else chose."""
    folder, bad = copy_of("encoder"), " ".join(HOSTILE[:-2])
    manifest = RunFolder(folder).read_manifest()
    data = {text: {"rows": 3, "sha8": "01234567"} for text in HOSTILE[:-2]}
    recipe = {**manifest["recipe"], "name": bad, "summary": bad, bad: {bad: bad}}
    command = "st-xling train 'x\n```\n</code>\n---\n' --data 'a`b|c'"
    RunFolder(folder).write_manifest({**manifest, "data": data, "recipe": recipe, "command": command, "dev": bad})
    leak = {name: {"source": {"rows": 1, "leaked": 0}} for name in data}
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    results["leak"] = {"sets": leak, "train": {bad: {"rows": 1, "leaked": 1}}, "dropped": True, "signature": bad}
    results["training"]["machine"]["processor"] = bad
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    for number, text in enumerate(HOSTILE[:-2]):
        figures = {f"{text}_to_en_accuracy": 1.0, "to_en_accuracy": 1.0, f"{text}_from_en_accuracy": 1.0}
        figures |= {"from_en_accuracy": 1.0, "mean_accuracy": 1.0}
        keep_figures(folder, KeptFigures("tatoeba", figures, f"{number}|data:{text}@0", f"st-xling evaluate '{text}'"))
    given = dict.fromkeys(("title", "purpose", "intended_use", "limits", "license_name", "license_link"), bad)
    options = CardOptions(**given, license="other", authors=(bad,), citation=f"@misc{{x, title={{{bad}}}}}")
    return write_card(folder, options=options).read_text(encoding="utf-8")


def test_a_hostile_card_keeps_its_form(attacked):
    card = ModelCard(attacked, ignore_metadata_errors=False)
    assert card.data.license == "other" and card.data.language is None
    lines, fence, outside = card.text.splitlines(), None, []
    for line in lines:
        ticks = re.match(r"(`{3,})", line)
        if fence is None and ticks:
            fence = ticks[1]
        elif fence is not None and line == fence:
            fence = None
        elif fence is None:
            outside.append(line)
    assert fence is None
    text = "\n".join(outside)
    headings = [line for line in outside if line.startswith("## ")]
    assert headings == [
        f"## {name}"
        for name in ("Use", "Results", "Training", "Intended use", "Limits", "Files", "Versions", "Citations")
    ]
    spans = re.sub(r"(`+)(?:(?!\1).)*\1(?!`)", "", text)
    assert set(re.findall(r"<[^>]*>", spans)) == {"<code>", "</code>"}
    links = re.findall(r"\]\(([^)]*)\)", spans)
    assert all(link.startswith("pictures/") for link in links) and links
    assert "javascript" not in "".join(links)


def test_a_hostile_card_keeps_the_rows_of_its_tables(attacked):
    body, table = ModelCard(attacked).text, []
    for line in [*body.splitlines(), ""]:
        if line.startswith("|"):
            table.append(line.count("|"))
        else:
            assert len(set(table)) <= 1
            table = []


def test_words_of_the_user_are_kept_and_can_be_taken_back(copy_of):
    folder = copy_of("encoder")
    said = CardOptions(title="Mine", license="mit", data_licenses={"de-en": "cc-by-2.0"}, limits="None\n\nat all.")
    write_card(folder, options=said)
    text = write_card(folder, options=CardOptions(authors=("A", "B"))).read_text(encoding="utf-8")
    assert "# Mine\n" in text and "None\n\nat all." in text and "| cc-by-2.0 |" in text and "A, B" in text
    assert ModelCard(text).data.license == "mit"
    text = write_card(folder, options=CardOptions(title="", limits="")).read_text(encoding="utf-8")
    assert "# Mine" not in text and "Texts are cut" in text and ModelCard(text).data.license == "mit"


@pytest.mark.parametrize(
    "given",
    [
        {"license": "a\nb: c"},
        {"license": "<b>"},
        {"data_licenses": {"de-en": "no licence"}},
        {"repo_id": "../up"},
        {"repo_id": "a b/c"},
        {"base_model": "x](y)"},
        {"languages": ("de", "<script>")},
    ],
)
def test_what_is_no_identifier_is_refused(given):
    with pytest.raises(ValueError, match="got|must be|Repo id"):
        CardOptions(**given)
