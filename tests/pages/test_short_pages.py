"""A page with little text of its own is read without the frame of its site."""

from __future__ import annotations

import pytest

from levada.pages.html import tree_of
from levada.pages.markdown import markdown_of
from levada.pages.text import main_text
from tests.pages.short_pages import LAYOUTS, PAGES, ShortPage, frame_words, short_pages

MENU = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in ("Home", "Books", "Music", "Films", "Help"))
LEAST_LEFT_OUT = 0.97  # of the words of all frames
LEAST_BY_LAYOUT = 0.9


def read(html: str) -> str:
    page = html.encode()
    return main_text(tree_of(page), page).decode()


def kept_and_all(read_pages: list[tuple[ShortPage, str, str]]) -> tuple[int, int]:
    """How many words of the frame are in the texts, and how many are on the pages."""
    kept = present = 0
    for page, html, text in read_pages:
        words = {word for word in frame_words(page) if word in html}
        present += len(words)
        kept += sum(word in text for word in words)
    return kept, present


def test_the_set_has_many_pages_in_many_layouts() -> None:
    assert len(PAGES) >= 24
    assert len({page.site.language for page in PAGES}) >= 6
    assert len(LAYOUTS) >= 8


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_short_page_is_read_with_all_its_sentences_and_without_its_frame(layout: str) -> None:
    pages = [(page, html, read(html)) for name, page, html in short_pages() if name == layout]
    missing = [(page.name, said) for page, _, text in pages for said in page.own if said not in text]
    assert missing == []
    kept, present = kept_and_all(pages)
    assert kept <= (1 - LEAST_BY_LAYOUT) * present


def test_nearly_no_word_of_a_menu_is_read_on_short_pages() -> None:
    kept, present = kept_and_all([(page, html, read(html)) for _, page, html in short_pages()])
    assert present > 10_000
    assert kept <= (1 - LEAST_LEFT_OUT) * present


@pytest.mark.parametrize("layout", ["a main element", "divs without names", "layout tables", "shop"])
def test_the_markdown_of_a_short_page_is_without_its_frame_too(layout: str) -> None:
    for name, page, html in short_pages():
        if name == layout:
            written = markdown_of(html.encode(), "https://example.org/")
            assert page.title in written
            assert page.site.teasers[0] not in written, page.name
            assert page.site.rights not in written, page.name


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"<nav><ul>{MENU}</ul></nav><footer>Imprint</footer>", ""),
        (f"<nav><ul>{MENU}</ul></nav><h1>Archive</h1><footer>Imprint</footer>", "Archive"),
        (f"<div><ul>{MENU}</ul></div><div><h1>Archive</h1></div><div><p>© 2024 Club</p></div>", "Archive"),
        (f"<nav><ul>{MENU}</ul></nav><main></main><footer>Imprint</footer>", ""),
    ],
)
def test_a_page_without_text_has_its_title_or_nothing_for_its_text(body: str, text: str) -> None:
    assert read(body) == text


@pytest.mark.parametrize(
    "body",
    [
        "<nav><a href=/>Top</a></nav><h1>Districts</h1><ul>{}</ul>",
        "<nav><a href=/>Top</a></nav><main><h1>Districts</h1><ul>{}</ul></main><footer>Imprint</footer>",
    ],
)
def test_the_links_of_an_index_are_its_text(body: str) -> None:
    names = ("North", "Harbour", "Old town", "Mill lane")
    assert read(body.format("".join(f"<li><a href=/{n}>{name}</a></li>" for n, name in enumerate(names)))) == (
        "\n".join(("Districts", *names))
    )


def test_what_stands_only_in_an_aside_or_in_a_form_is_read() -> None:
    assert read(f"<ul>{MENU}</ul><aside>The ferry is late.</aside>") == "The ferry is late."
    assert read(f"<ul>{MENU}</ul><form><p>Tell us what you saw.</p></form>") == "Tell us what you saw."


def test_a_class_that_says_what_the_page_has_beside_its_content_drops_nothing() -> None:
    assert read("<div class='page with-sidebar has-footer'><p>All pumps run.</p></div><p>Until noon.</p>") == (
        "All pumps run.\nUntil noon."
    )


def test_a_short_list_of_headlines_is_read() -> None:
    titles = [f"A headline number {n} about the old bridge" for n in range(5)]
    items = "".join(f"<li><a href=/{n}>{title}</a></li>" for n, title in enumerate(titles))
    assert read(f"<h1>News</h1><ul>{items}</ul>").split("\n") == ["News", *titles]


@pytest.mark.parametrize("tag", ["div class=sidebar", "b", "ul", "div", "form", "h2"])
def test_blocks_in_blocks_without_end_are_read(tag: str) -> None:
    assert read(f"<title>x</title>{f'<{tag}>' * 2000}All pumps run.") in ("All pumps run.", "")
