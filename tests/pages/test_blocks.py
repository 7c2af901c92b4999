"""Lines of a page, and what the model adds up for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.records import RawPage
from levada.pages import blocks, tags
from levada.pages.blocks import BlockModel, Line, Page, Weights, block_model
from levada.pages.compression import unpack_text, unpack_text_and_anchors
from levada.pages.html import tree_of
from levada.pages.links import anchors_in
from levada.pages.parse import parse_page
from levada.pages.text import main_text, page_lines
from tests.pages.short_pages import short_pages

TAGS = ("p", "div", "li", "td", "h1", "pre", "span", "a href='/x'", "b", "sup", "section class='related posts'")
TEXTS = ("Ada", "WRITTEN IN CAPITALS", "12 of them", "She wrote a long sentence about engines. " * 3, " ", "\n", "")
DECIDED = (blocks._HOPELESS, blocks._SURE, blocks._HOPELESS_ITSELF, blocks._SURE_ITSELF)
PIECES = st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TEXTS), st.booleans()), max_size=40)


def html_of(pieces: list[tuple[str, str, bool]]) -> str:
    """A page of these elements; some of them stay open and hold those that follow."""
    parts = [f"<{tag}>{text}" + ("" if is_open else f"</{tag.split()[0]}>") for tag, text, is_open in pieces]
    return f"<title>Ada writes engines</title><body>{''.join(parts)}"


def lines_of(html: str) -> tuple[Page, str]:
    read = page_lines(tree_of(html.encode()), block_model())
    assert read is not None
    return read


def told(lines: list[Line]) -> list[tuple[str, int, int, int, bool]]:
    return [(line.text, line.linked, line.depth, line.element, line.under_title) for line in lines]


def learnt() -> Weights:
    weights = block_model()._weights
    unit = blocks._UNIT
    given = (weights.inner, weights.outer, weights.words, weights.first)
    scaled = ({word: weight / unit for word, weight in each.items()} for each in given)
    return Weights(weights.bias / unit, tuple(slot / unit for slot in weights.slots), *scaled)


@given(PIECES)
def test_a_score_is_the_sum_of_the_weights_that_were_looked_at(pieces: list[tuple[str, str, bool]]) -> None:
    page, title = lines_of(html_of(pieces))
    weights = learnt()
    whole = max(page.containers[0].size, 1)
    scores = block_model().scores(page, title)
    for line, slots, score in zip(page.lines, blocks.facts_of(page, title), scores, strict=True):
        around = [
            slot
            for level, container in enumerate(blocks.containers_of(line))
            for slot in blocks.facts_in(container, level, whole)
        ]
        base = weights.bias + (line.inner + line.outer) / blocks._UNIT + sum(weights.slots[slot] for slot in around)
        words = blocks.words_of(line.text) if blocks.is_short(line.text) else []
        said = weights.first.get(blocks.first_word(line.text), 0.0) + sum(
            weights.words.get(each, 0.0) for each in words
        )
        itself = base + sum(weights.slots[slot] for slot in slots if slot < blocks._END) + said
        beside = itself + sum(weights.slots[slot] for slot in slots if slot >= blocks._END)
        low, high, lower, higher = (each / blocks._UNIT for each in DECIDED)
        looked_at = base if not low < base <= high else itself if not lower < itself <= higher else beside
        assert score == pytest.approx(looked_at, abs=1e-9)


def test_the_facts_of_a_line_are_sixteen_and_each_has_a_slot_of_its_own() -> None:
    page, title = lines_of(html_of([("h1", "Ada writes engines", False), ("p", "A sentence.", False)]))
    for slots in blocks.facts_of(page, title):
        ranges = [max(at for at, start in enumerate(blocks._SLOTS) if start <= slot) for slot in slots]
        assert sorted(ranges) == list(range(16))


@given(PIECES, st.integers(1, 60))
def test_a_page_has_the_same_lines_however_it_is_taken_apart(pieces: list[tuple[str, str, bool]], size: int) -> None:
    html = html_of(pieces)
    whole = told(lines_of(html)[0].lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tags, "_PART_LETTERS", size)
        patch.setattr(tags, "_PART_TAGS", size)
        assert told(lines_of(html)[0].lines) == whole


@pytest.mark.parametrize("title", ["a > b", "<b>", "a < b", "< > > <", ">"])
def test_signs_of_tags_in_an_attribute_are_no_tags(title: str) -> None:
    html = '<body><p title="{}">A sentence.</p><p>Another <a href="/" title="{}">one</a>.</p></body>'
    read = BlockModel(learnt()).page(html.format(title, title))
    assert told(read.lines) == told(BlockModel(learnt()).page(html.format("x", "x")).lines)


def test_a_page_is_read_the_same_when_its_tree_is_not_kept() -> None:
    for name, page, html in short_pages():
        written = html.encode()
        assert main_text(None, written) == main_text(tree_of(written), written), (name, page.name)


def test_a_page_of_a_megabyte_is_read_as_a_smaller_one() -> None:
    lines = [f"She wrote sentence {number} about engines and what they compute." for number in range(20_000)]
    body = "".join(f"<p>{line}</p>" for line in lines)
    menu = "<nav><a href='/home'>Home</a><a href='/books'>Books</a></nav>"
    html = f"<title>Engines</title><body>{menu}<main><h1>Engines</h1>{body}</main>".encode()
    assert len(html) > 1_000_000
    parsed = parse_page(RawPage("http://example.org/", html, "text/html"))
    assert unpack_text(parsed.content_zstd).decode().split("\n")[-20_000:] == lines
    assert parsed.links == ("http://example.org/home", "http://example.org/books")


SAID = "".join(f"<p>She wrote sentence {number} about engines and what they compute.</p>" for number in range(30))


@pytest.mark.parametrize("menu", ["<nav>{}</nav>", "<footer>{}</footer>", "<div role='navigation'>{}</div>"])
def test_the_model_is_not_asked_about_menus_but_their_links_count(menu: str) -> None:
    links = menu.format("<a href='/home'>Home of Ada</a><a href='/books'>Books</a>")
    html = f"<title>Engines</title><body>{links}<h1>Engines</h1>{SAID}"
    assert "Home of Ada" not in [line.text for line in lines_of(html)[0].lines]
    parsed = parse_page(RawPage("http://example.org/", html.encode(), "text/html"))
    assert parsed.links == ("http://example.org/home", "http://example.org/books")
    anchors = anchors_in(unpack_text_and_anchors(parsed.content_zstd)[1])
    assert [text for _, text in anchors] == ["Home of Ada", "Books"]


@pytest.mark.parametrize("menu", ["<nav>{}</nav>", "<nav><h1>Engines</h1></nav>{}", "<footer>{}</footer>"])
def test_a_menu_that_holds_the_content_or_the_title_is_read(menu: str) -> None:
    lines = lines_of(f"<title>Engines</title><body>{menu.format(SAID)}")[0].lines
    assert "She wrote sentence 7 about engines and what they compute." in [line.text for line in lines]
    assert ("h1" not in menu) or lines[0].text == "Engines"
