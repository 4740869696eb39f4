"""The page to look at pairs: what it shows, in which order, and that texts of others cannot become part of it."""

from html.parser import HTMLParser
from pathlib import Path

from st_xling.data.pair_page import PageGroup, PageLine, PairPage, page_of_scored


class Page(HTMLParser):
    """Elements of a page, and the text of each group: attributes of ``section``, ``span`` and ``li``, and all names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.groups: list[dict[str, str | None]] = []
        self.texts: list[list[str]] = []
        self.spans: list[dict[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if tag == "section":
            self.groups.append(dict(attrs))
            self.texts.append([])
        if tag == "span" and "li" in self.open:
            self.spans.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "section" in self.open and data.strip():
            self.texts[-1].append(data.strip())


EVIL = "</span></section><script>alert('1')</script><img src=x onerror=alert(2)> &amp; \"q\""


def test_both_sides_problems_and_directions() -> None:
    """An unpaired line must be visible as one, and Arabic is read from the right in an English page."""
    page = PairPage("book.ar", ("ar", None), signature="align_documents|…")
    page.add(
        "book.ar",
        [
            PageGroup(
                [PageLine("1", "صباح الخير"), PageLine("2", "كيف حالك؟")], [PageLine("1", "Good morning.")], 0.75
            ),
            PageGroup([PageLine("3", "غدًا")], [], problem="no partner"),
            PageGroup([PageLine("4", "6")], [PageLine("2", "6")], 1.0, "copy"),
        ],
    )
    shown = Page(page.render())
    assert shown.texts == [
        ["1", "صباح الخير", "2", "كيف حالك؟", "0.7500", "1", "Good morning."],
        ["3", "غدًا", "no partner"],
        ["4", "6", "1.0000", "copy", "2", "6"],
    ]
    assert [group["class"] for group in shown.groups] == ["group", "group problem", "group problem"]
    assert [group.get("data-score") for group in shown.groups] == ["0.75", None, "1.0"]
    assert {span["dir"] for span in shown.spans} == {"auto"}
    assert [span.get("lang") for span in shown.spans[:3]] == ["ar", "ar", None]
    assert shown.open == [] and "1 pairs" in page.render() and "align_documents|…" in page.render()


def test_texts_are_no_part_of_the_page() -> None:
    """Mined pages of the web contain scripts, which must not run in the browser of who looks at them."""
    page = PairPage(EVIL, signature=EVIL)
    page.add(EVIL, [PageGroup([PageLine(EVIL, EVIL)], [PageLine("", EVIL)], float("nan"), EVIL)])
    shown = Page(page.render())
    assert shown.names.count("script") == 1 and "img" not in shown.names and len(shown.groups) == 1
    assert shown.texts == [[EVIL, EVIL, "nan", EVIL, EVIL]]
    # It loads nothing, from nowhere.
    assert "default-src 'none'" in page.render() and not {"link", "iframe", "object"} & {*shown.names}


def test_a_page_has_room_for_so_many(tmp_path: Path) -> None:
    """A million pairs on one page stop a browser; those around the score that was asked for are shown."""
    page = PairPage("books", most=3)
    for name in ("a", "b", "c"):
        page.add(name, [PageGroup([PageLine("1", name)], [PageLine("1", name)], 0.5)] * 2)
    assert [(name, len(groups)) for name, groups in page.documents] == [("a", 2), ("b", 1)]
    assert page.omitted == 3 and "3 more are not shown" in page.render()

    scores = [1.0, 1.4, 1.1, float("nan"), 1.3, 1.2]
    rows = "".join(f"{score}\t{row}\t{row}\tQuelle {row}\ttarget {row}\n" for row, score in enumerate(scores))
    path = tmp_path / "pairs.tsv"
    path.write_text("score\tsource_id\ttarget_id\tsource\ttarget\n" + rows, encoding="utf-8")

    def shown(**options: float) -> list[float | None]:
        (_, groups) = page_of_scored(path, **options).documents[0]  # type: ignore[arg-type]
        return [group.score for group in groups]

    assert shown()[:5] == [1.4, 1.3, 1.2, 1.1, 1.0] and len(shown()) == 6
    assert shown(size=2) == [1.4, 1.1]
    assert shown(around=1.12, size=3) == [1.2, 1.1, 1.0]
    assert page_of_scored(path, around=1.12, size=3).omitted == 3


def test_the_lowest_tenth_is_doubtful() -> None:
    page = PairPage("book")
    page.add("book", [PageGroup([PageLine("", "a")], [PageLine("", "b")], score / 20) for score in range(20)])
    assert 'value="0.1"' in page.render()
    assert 'value="0.7"' in PairPage("book", doubtful_below=0.7).render()
