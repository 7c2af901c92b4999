"""The page's own words, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from levada.pages.text import TrafilaturaExtractor, main_text, tidy_lines

PARAGRAPH = "The council met on Tuesday and decided, after a long debate, that the old bridge will be repaired. " * 3


def read(html: str) -> str:
    data = html.encode()
    return main_text(LexborHTMLParser(data), data).decode()


def test_navigation_and_banners_are_dropped_and_headings_kept() -> None:
    text = read(
        f"""<body class="has-cookie-bar with-sidebar">
        <div id="cookie-banner"><p>We use cookies</p><button>Accept</button></div>
        <header><a href="/">Logo</a><nav><ul><li><a href="/1">News</a><li><a href="/2">Sport</a></ul></nav></header>
        <h1>The bridge</h1><p>{PARAGRAPH}</p><h2>What next</h2><p>Work begins <b>in</b> May.</p>
        <aside>Most read</aside><form><label>Search</label></form><script>var x = 1</script>
        <footer>Imprint</footer></body>"""
    )
    assert text.split("\n") == ["The bridge", PARAGRAPH.strip(), "What next", "Work begins in May."]


def test_menus_are_known_by_their_links() -> None:
    menu = "".join(f'<li><a href="/{n}">Section {n}</a></li>' for n in range(8))
    text = read(
        f'<div><ul>{menu}</ul></div><div><a href="/a">Home</a> | <a href="/b">About</a> | <a href="/c">Help</a>'
        f"</div><p>{PARAGRAPH}</p><p>See <a href=/x>the plan</a>.</p>"
    )
    assert text == f"{PARAGRAPH.strip()}\nSee the plan."


@pytest.mark.parametrize(
    "menu",
    [
        "<p><a href=/a>Home</a> · <a href=/b>About us</a> · <a href=/c>Help</a></p>",
        "<ul><li><a href=/a>Books</a> (1,204)<li><a href=/b>Music</a> (33)<li><a href=/c>Films</a> (7)</ul>",
        "<div>English <a href=/de>Deutsch</a> <a href=/fr>Français</a> <a href=/tr>Türkçe</a></div>",
        "<ul><li>» <a href=/a>Home</a></li><li>» <a href=/b>News</a></li><li>» <a href=/c>Sport</a></li></ul>",
    ],
)
def test_marks_counts_and_the_language_at_hand_do_not_make_a_menu_something_to_read(menu: str) -> None:
    assert read(f"{menu}<p>{PARAGRAPH}</p>") == PARAGRAPH.strip()


def test_names_with_their_figures_or_dates_are_no_menu() -> None:
    table = "".join(
        f"<tr><td>{n}</td><td><a href=/{n}>{club}</a></td><td>{30 - n}</td></tr>"
        for n, club in enumerate(("Galatasaray", "Trabzonspor", "Fenerbahçe", "Beşiktaş"), 1)
    )
    hints = "".join(f"<li><a href=/n{n}>Vergi ödeme takvimi</a> 0{n}.03.2026</li>" for n in range(1, 5))
    lines = read(f"<p>{PARAGRAPH}</p><table>{table}</table><ul>{hints}</ul>").split("\n")
    assert lines[1:3] == ["1 Galatasaray 29", "2 Trabzonspor 28"]
    assert lines[5:7] == ["Vergi ödeme takvimi 01.03.2026", "Vergi ödeme takvimi 02.03.2026"]


def test_headlines_are_no_menu() -> None:
    titles = [f"A long headline number {n} about the bridge" for n in range(12)]
    text = read("<ul>" + "".join(f"<li><a href='/{n}'>{title}</a>" for n, title in enumerate(titles)) + "</ul>")
    assert text.split("\n") == titles


def test_headlines_without_spaces_are_no_menu_and_menus_without_spaces_are() -> None:
    titles = [
        "政府は自治体の住宅建設を支援する新しい提案を発表した",
        "台風の接近に伴い新幹線の運転を見合わせ",
        "市长说新桥明年五月开始施工",
    ]
    menu = "".join(
        f"<li><a href=/m{entry}>{entry}</a>" for entry in ("ホーム", "お問い合わせ", "会社概要", "プライバシーポリシー")
    )
    headlines = "".join(f"<li><a href=/{n}>{title}</a>" for n, title in enumerate(titles))
    assert read(f"<ul>{menu}</ul><p>{PARAGRAPH}</p><ul>{headlines}</ul>").split("\n")[1:] == titles
    assert "ホーム" not in read(f"<ul>{menu}</ul><p>{PARAGRAPH}</p>")


def test_an_empty_main_element_does_not_hide_the_page() -> None:
    assert PARAGRAPH.strip() in read(f"<main><p>Loading</p></main><div><p>{PARAGRAPH}</p></div>")


def test_a_form_around_the_whole_page_is_not_dropped() -> None:
    assert read(f"<form><div><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p></div></form>").count("council") == 6


def test_the_heading_of_an_article_is_kept_and_the_logo_of_the_site_is_not() -> None:
    text = read(f"<header><span>Logo</span></header><div><header><h2>The bridge</h2></header><p>{PARAGRAPH}</p></div>")
    assert text.split("\n")[0] == "The bridge"


def test_what_a_page_says_about_cookies_and_sidebars_is_kept() -> None:
    manual = (
        '<section id="cookies"><h2>Cookies</h2><p>Set one with set_cookie.</p></section>'
        '<div id="consent-api"><p>Ask for it.</p></div>'
        '<section id="sidebar"><h2 class="sidebar-title">Sidebars</h2><p>Left or right.</p></section>'
        '<div class="sidebar">Most read</div>'
    )
    lines = [
        "Cookies",
        "Set one with set_cookie.",
        "Ask for it.",
        "Sidebars",
        "Left or right.",
    ]
    assert read(f"<main>{manual}<p>{PARAGRAPH}</p></main>").split("\n")[:-1] == lines
    lines.remove("Ask for it.")
    assert read(f"<body>{manual}<p>{PARAGRAPH}</p></body>").split("\n")[:-1] == lines


def test_the_only_article_is_the_page_unless_its_title_stands_elsewhere() -> None:
    article, phone = f"<article><h2>Review</h2><p>{PARAGRAPH}</p></article>", "<p>A phone with a screen.</p>"
    assert "A phone" in read(f"<h1>Phone</h1>{phone}{article}")
    assert "A phone" not in read(f"<h2>Phone</h2>{phone}{article}")
    assert "A phone" not in read(f"{phone}{article.replace('h2', 'h1')}")


def test_questions_that_open_their_answers_are_read_with_them() -> None:
    text = read(
        "<main><h1>Questions <button>Copy link</button></h1><button>Show all</button>"
        "<h2><button>How do I return it?</button></h2><div hidden=until-found>Within a month.</div>"
        f"<h3><span><button>Who pays?</button></span></h3><div hidden>Loading</div><p>{PARAGRAPH}</p></main>"
    )
    assert text.split("\n")[:-1] == ["Questions", "How do I return it?", "Within a month.", "Who pays?"]


def test_table_rows_are_lines_and_cells_are_words() -> None:
    rows = "".join(f"<tr><td>Name{n}</td><td>Value{n}</td></tr>" for n in range(30))
    assert read(f"<table>{rows}</table>").split("\n")[3] == "Name3 Value3"


def test_text_after_a_block_starts_a_line() -> None:
    assert read("<div>before<p>inside</p>after <i>all</i></div>") == "before\ninside\nafter all"


def test_no_words_are_glued_together() -> None:
    folded = "<details><summary>Shipping</summary>Ships in a day.</details>after"
    choice = "<fieldset><legend>Colour</legend>black</fieldset><center>middle</center>end"
    assert read(folded + choice).split("\n") == [
        "Shipping",
        "Ships in a day.",
        "after",
        "Colour",
        "black",
        "middle",
        "end",
    ]
    assert read("<p>a finding<sup><a href=#1>1</a></sup> of 5 m<sup>2</sup></p>") == "a finding 1 of 5 m2"


def test_lines_of_a_listing_stay_lines() -> None:
    code = "<pre>first line\r\n  second   <b>in\nbold</b>\n\n<code><i>third</i>\n</code>last</pre>"
    assert read(f"<p>be\nfore</p>{code}<p>af\nter</p>").split("\n") == [
        "be fore",
        "first line",
        "second in",
        "bold",
        "third",
        "last",
        "af ter",
    ]


def test_a_list_of_files_is_no_menu() -> None:
    row = '<a href="{0}">name-of-a-file-{0}.tar.gz</a> {1}\n'
    files = "".join(row.format(n, "01-Jan-2024 10:00 12345" if n < 9 else "") for n in range(12))
    text = read(f"<h1>Index of /pub</h1><pre>{files}</pre><p>{PARAGRAPH}</p>")
    assert text.split("\n")[10:13] == [f"name-of-a-file-{n}.tar.gz" for n in (9, 10, 11)]


def test_all_white_space_is_one_space() -> None:
    assert tidy_lines("a\u00a0 \t b\u2003c\r\n\n \u200b\n d".encode()) == b"a b c\nd"


@given(st.lists(st.text("abç ", min_size=1, max_size=8), min_size=1, max_size=8), st.data())
def test_white_space_never_changes_the_text(words: list[str], data: st.DataObject) -> None:
    spaces = data.draw(
        st.lists(st.text(" \t\n\u00a0", min_size=1, max_size=4), min_size=len(words), max_size=len(words))
    )
    loose = "".join(word + space for word, space in zip(words, spaces, strict=True))
    assert read(f"<p>{loose}</p>") == read(f"<p>{' '.join(loose.split())}</p>")


def test_trafilatura_reads_the_same_article() -> None:
    html = f"<html><body><nav><a href=/>Home</a></nav><article><h1>Bridge</h1><p>{PARAGRAPH}</p></article></body>"
    assert "council met on Tuesday" in TrafilaturaExtractor().extract(html, "http://a.test/")
