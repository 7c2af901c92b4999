"""Noise is told from content by its form alone: what it may be made of, and what it never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from levada.pages.noise import compared_lines, is_noise
from levada.pages.text import read_main_text

ARTICLE = [
    f"The council of town {number} met on Tuesday and talked for hours about the old bridge." for number in range(20)
]
NOISE = """
1,204 views|Views: 1204|1.2K views|12 comments|Comments (12)|No comments yet|45 Likes 12 Comments 3 Shares|👁 1,234
5 minutes ago|Updated 3 hours ago|Posted 3h ago|an hour ago|just now|Today at 14:03|Last updated: 3 May 2026, 14:03
vor 5 Minuten|vor einer Stunde|il y a 5 minutes|hace 5 minutos|5 минут назад|5 dakika önce|5分前|2 uur geleden
1.204 Aufrufe|1 204 vues|1.204 visitas|Просмотров: 1204|1.204 kez okundu|浏览 1204|조회수 1,204
You are visitor number 12,045|Visitors: 12045|12 users online|12 people are reading this now|Reading now: 12
14:03:22|It is now 14:03 UTC|Local time: 14:03|Thu, 19 Nov 2026 14:03:22 GMT|Page generated in 0.123 seconds
Session 3f9ac01d77e2|Request ID: 3f9ac01d77e2|csrf_token=abc123def456|Ray ID: 8f3a9c1b2d4e
Advertisement|Advertisement: buy two lamps|Anzeige: Lampen|Sponsored by a bank|Offer ends in 2h 13m 45s
"""
WIDGETS = """
Weather: Berlin 14 °C|London 3°C light rain|Hava durumu: İzmir 3°|DAX 15,234.50 +0.40%|EUR/USD 1.0834 (-0.12%)
S&P 500 4,936.80 +38.25|We use cookies to improve your experience. Accept all.
Diese Seite verwendet Cookies. Akzeptieren
"""
CONTENT = """
Price: 12,50 EUR|Final score: 3:2|The current version is 3.4.1.|Version 3.4.1|12 May 2026|Published 3 May 2026|14:05
Kick-off: 20:45|Doors: 19:00|Opening hours: 9:00 - 17:00|Preparation time: 20 minutes|200 g of flour|Bake at 180 °C
Oven 180 °C|Team A 2:1|1,234|$5.99|Level 3|Chapter 12|Comments|10 years|The war ended 80 years ago.|Tel. 030 123456
SHA256: 9f86d081884c7d659a2feaa0c55ad015|Session 3: Storage|Token 2022|Views of the sea|5 likes to run
Founded 120 years ago|The page was read by the minister.|Sponsored walks raise money for the school
Advertising standards were changed in May.
Online since 2012|For 12 people|12:30 Lunch|9 am to 5 pm|Monday to Friday|Release 2026-05-03|Number of members: 240
"""


def listed(text: str) -> list[str]:
    return [each for line in text.strip().split("\n") for each in line.split("|")]


@pytest.mark.parametrize("line", listed(NOISE))
def test_lines_of_noise_do_not_count(line: str) -> None:
    assert compared_lines([*ARTICLE, line]) == ARTICLE


@pytest.mark.parametrize("line", listed(WIDGETS))
def test_widgets_do_not_count_beside_a_text_that_is_not_about_them(line: str) -> None:
    assert compared_lines([*ARTICLE, line], "The bridge") == ARTICLE
    assert compared_lines([line]) == [line]
    assert compared_lines([*ARTICLE, *[line.replace("1", str(more)) + more * " " for more in range(2, 9)]])[20:]


def test_a_widget_counts_where_the_title_speaks_of_it() -> None:
    assert compared_lines([*ARTICLE, "Weather: Berlin 14 °C"], "The weather in Berlin")[20:] == [
        "Weather: Berlin 14 °C"
    ]


@pytest.mark.parametrize("line", listed(CONTENT))
def test_prices_scores_dates_and_sentences_count(line: str) -> None:
    assert compared_lines([*ARTICLE, line], "The bridge") == [*ARTICLE, line]


def test_of_a_line_in_pieces_the_noise_alone_does_not_count() -> None:
    assert compared_lines(["By Ada Lovelace · 5 minutes ago · 12 comments"]) == ["By Ada Lovelace"]
    assert compared_lines(["Berlin · 12 May 2026 · 5 EUR"]) == ["Berlin · 12 May 2026 · 5 EUR"]


@given(st.text(max_size=300))
def test_no_line_is_refused_and_what_counts_was_there(line: str) -> None:
    kept = compared_lines([*ARTICLE, line])
    assert kept[:20] == ARTICLE
    assert not is_noise(line) or len(kept) == 20
    assert len(kept) == 21 or len(line) <= 500


def compared(html: str) -> list[str]:
    page = f"<title>Bridge</title><h1>Bridge</h1>{html}".encode()
    return read_main_text(LexborHTMLParser(page), page).compared.decode().split("\n")


BODY = "".join(f"<p>{line}</p>" for line in ARTICLE)


def test_what_an_element_names_or_a_label_says_to_be_an_advertisement_does_not_count() -> None:
    one = compared(f"<main>{BODY}<div class='ad-slot'>The best lamps of town</div>{BODY}</main>")
    assert one == compared(f"<main>{BODY}<div class='ad-slot'>The best sofas of town</div>{BODY}</main>")
    box = "<div><p>ADVERTISEMENT</p><p>The best {} of town</p></div>"
    assert compared(f"<main>{BODY}{box.format('lamps')}{BODY}</main>") == compared(
        f"<main>{BODY}{box.format('sofas')}{BODY}</main>"
    )


def test_an_element_with_most_of_the_text_is_no_advertisement_whatever_its_name() -> None:
    assert set(ARTICLE) <= set(compared(f"<main><div class=ad>{BODY}</div></main>"))


def test_the_text_is_stored_with_its_noise() -> None:
    page = f"<title>Bridge</title><main><h1>Bridge</h1>{BODY}<p>1,204 views</p>{BODY}</main>".encode()
    read = read_main_text(LexborHTMLParser(page), page)
    assert b"1,204 views" in read.text
    assert b"1,204 views" not in read.compared


def test_the_only_price_beside_a_text_counts_and_a_list_of_products_does_not() -> None:
    frame = "<div class=sidebar><div><span>Price: {} EUR</span></div></div>"
    assert compared(f"<main>{BODY}</main>{frame.format(5)}") != compared(f"<main>{BODY}</main>{frame.format(6)}")
    products = "".join(frame.format(f"{number}{{}}") for number in range(1, 9))
    assert compared(f"<main>{BODY}</main>{products.replace('{}', '5')}") == compared(
        f"<main>{BODY}</main>{products.replace('{}', '6')}"
    )
