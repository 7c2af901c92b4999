"""Robots rules of a site."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages.robots import MAX_DELAY, RobotsRules, header_directives

RULES = """\ufeff
User-agent: *
Disallow: /private/
Allow: /private/open$
Crawl-delay: 2.5

User-agent: Levada
User-agent: other
Disallow: /not-for-levada
Request-rate: 1/10s
Sitemap: https://example.org/map.xml
Sitemap: file:///etc/passwd
"""


def test_the_group_that_names_us_is_ours() -> None:
    rules = RobotsRules(RULES)
    assert not rules.allows("http://example.org/not-for-levada/x", "Levada/0.1 (+http://example.org)")
    assert rules.allows("http://example.org/private/", "levada")
    assert rules.allows("http://example.org/not-for-levada", "somebody")
    assert not rules.allows("http://example.org/private/x", "somebody")
    assert rules.allows("http://example.org/private/open", "somebody")


def test_a_name_that_only_begins_like_ours_is_another() -> None:
    rules = RobotsRules("User-agent: lev\nUser-agent: levadabot\nDisallow: /\n")
    assert rules.allows("http://example.org/", "levada")


def test_delays_and_rates_are_seconds_between_requests() -> None:
    rules = RobotsRules(RULES)
    assert rules.delay("somebody") == 2.5
    assert rules.delay("levada") == 10.0
    assert RobotsRules("").delay("levada") is None
    assert RobotsRules("User-agent: *\nCrawl-delay: 86400").delay("levada") == MAX_DELAY
    assert RobotsRules("User-agent: *\nCrawl-delay: nan").delay("levada") is None


def test_only_web_addresses_are_sitemaps() -> None:
    assert RobotsRules(RULES).sitemaps() == ["https://example.org/map.xml"]


def test_thousands_of_agents_do_not_multiply_thousands_of_rules() -> None:
    agents = "".join(f"User-agent: agent{n}\n" for n in range(4000))
    rules = RobotsRules(agents + "User-agent: levada\n" + "".join(f"Disallow: /{n}\n" for n in range(8000)))
    assert not rules.allows("http://example.org/7999", "levada")


@given(st.text(max_size=300), st.text(max_size=40))
def test_any_text_is_read(text: str, url: str) -> None:
    rules = RobotsRules(text + "\nUser-agent: *\nDisallow: /a*b$\n" + text)
    rules.allows("http://example.org/" + url, "levada")
    delay = rules.delay("levada")
    assert delay is None or 0 <= delay <= MAX_DELAY
    rules.sitemaps()


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        ("noindex", {"noindex"}),
        ("NoIndex, NOFOLLOW", {"noindex", "nofollow"}),
        ("levada: noindex", {"noindex"}),
        ("otherbot: noindex", set()),
        ("unavailable_after: 25 Jun 2026 15:00:00 GMT", {"unavailable_after: 25 jun 2026 15:00:00 gmt"}),
        ("", {""}),
    ],
)
def test_a_header_asks_what_a_meta_element_would(value: str, asked: set[str]) -> None:
    assert header_directives([("x-robots-tag", value), ("content-type", "noindex")], "levada/1.0") == asked


@pytest.mark.parametrize(
    "between", ["Foo: bar", "a line of prose", "Sitemap: http://x/s.xml", "Crawl-delay: 3", "# x", ""]
)
def test_only_a_rule_ends_the_names_of_a_group(between: str) -> None:
    """As RFC 9309 has it: other records, known or not, must not interfere."""
    rules = RobotsRules(f"User-agent: levada\n{between}\nUser-agent: other\nDisallow: /private\n")
    for agent in ("levada", "other"):
        assert not rules.allows("http://example.org/private/x", agent)
    ended = RobotsRules(f"User-agent: levada\nAllow: /x\n{between}\nUser-agent: other\nDisallow: /private\n")
    assert ended.allows("http://example.org/private/x", "levada")


def test_a_delay_is_that_of_the_agents_above_it() -> None:
    rules = RobotsRules("User-agent: levada\nCrawl-delay: 3\nUser-agent: other\nDisallow: /private\nCrawl-delay: 5\n")
    assert (rules.delay("levada"), rules.delay("other")) == (5.0, 5.0)
    rules = RobotsRules("User-agent: levada\nCrawl-delay: 3\nUser-agent: other\nDisallow: /private\n")
    assert (rules.delay("levada"), rules.delay("other")) == (3.0, None)
