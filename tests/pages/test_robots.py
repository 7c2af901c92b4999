"""Robots rules of a site."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages import robots
from levada.pages.robots import MAX_DELAY, RobotsRules, header_directives
from tests.needs import package

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


PIECES = ["a", "b", "ab", "/", "?", "=", "%41", "%2f", "%25", "%c3%a9", "é", "&x", ".", ";", "!", "index.html"]
PATHS = st.lists(st.sampled_from([*PIECES, "$"]), max_size=8).map(lambda parts: "/" + "".join(parts))
PATTERNS = st.lists(st.sampled_from([*PIECES, "*", "$"]), max_size=7).map(lambda parts: "/" + "".join(parts))
RULE = st.tuples(st.sampled_from(["Allow", "Disallow", "disalow", "Dissallow", "allow "]), PATTERNS)


@given(st.lists(RULE, min_size=1, max_size=8), PATHS)
def test_the_verdict_is_that_of_protego(rules: list[tuple[str, str]], path: str) -> None:
    protego = package("protego").Protego
    text = "User-agent: levada\n" + "".join(f"{field}: {pattern}\n" for field, pattern in rules)
    url = f"http://example.org{path}"
    assert RobotsRules(text).allows(url, "levada") == protego.parse(text).can_fetch(url, "levada")


@given(st.lists(RULE, min_size=1, max_size=8), PATHS)
def test_too_many_wildcards_never_allow_what_was_forbidden(rules: list[tuple[str, str]], path: str) -> None:
    text = "User-agent: *\n" + "".join(f"{field}: {pattern}\n" for field, pattern in rules)
    exact = RobotsRules(text).allows(f"http://example.org{path}", "levada")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(robots, "_MOST_WILDCARDS", 0)
        rough = RobotsRules(text).allows(f"http://example.org{path}", "levada")
    if rough and not any(field.lower().startswith("a") and "*" in pattern for field, pattern in rules):
        assert exact


def test_links_are_not_compared_with_thousands_of_wildcards() -> None:
    few, many = (
        RobotsRules("User-agent: *\n" + "".join(f"Disallow: /{n}*x\n" for n in range(count))) for count in (200, 201)
    )
    assert few.is_cheap("levada")
    assert not many.is_cheap("levada")
    assert not many.allows("http://example.org/17/x", "levada")
    assert many.allows("http://example.org/17/y", "levada")


@pytest.mark.parametrize(
    "rule", ["/a{n}", "/{n}*b*c*d", "/*{n}*{n}*{n}", "/" + "a" * 60 + "{n}$", "/" + "a/" * 3 + "{n}"]
)
def test_half_a_megabyte_of_rules_is_compared_in_few_steps(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted in rules that are looked at, for a link that is as long as links are."""
    count = 500_000 // (len(rule) + 16)
    rules = RobotsRules("User-agent: *\n" + "".join(f"Disallow: {rule.format(n=n)}\n" for n in range(count)))
    tried = 0
    plain = robots._Wildcard.matches

    def counted(self: robots._Wildcard, path: str) -> bool:
        nonlocal tried
        tried += 1
        return plain(self, path)

    monkeypatch.setattr(robots._Wildcard, "matches", counted)
    rules.allows("http://example.org/" + "a/" * 1_000, "levada")
    assert tried <= robots._MOST_WILDCARDS
