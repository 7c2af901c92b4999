"""robots.txt by RFC 9309, matched by protego.

The rules are parsed once per agent, and only the groups for it: in a file with thousands of agents above thousands
of rules, the two would multiply.

A group begins with its agent lines and ends with the first agent line after a rule (RFC 9309, 2.2). protego ends it
too early, after any line that it does not know and after a delay; so it is not given the former, and gets the latter
in groups of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from protego import Protego

from levada.pages.urls import scheme_of

NOBODY = "\x7fnobody\x7f"
_PRODUCT = re.compile(r"[A-Za-z_\-]+")


@lru_cache(maxsize=64)
def product_of(agent: str) -> str:
    """The product token of an agent name or a User-Agent header, in lower case; `NOBODY` if there is none."""
    found = _PRODUCT.match(agent.strip())
    return found[0].lower() if found else NOBODY


MAX_DELAY = 300.0
MAX_SITEMAPS = 100
_AGENT_LINE = re.compile(r"\s*user[- ]?agent(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_RULE_LINE = re.compile(r"\s*(?:(?:dis|diss)?allow|diss?alow|diasllow|disallaw)(?:\s*:|\s)", re.IGNORECASE)
_DELAY_LINE = re.compile(r"\s*(?:crawl[- ]?delay|request[- ]?rate)(?:\s*:|\s)", re.IGNORECASE)
_SITEMAP_LINE = re.compile(r"\s*site-?maps?\s*:\s*(\S+)", re.IGNORECASE)
_DATED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))


class RobotsRules:
    """The rules of one robots.txt; lines that are not rules are ignored."""

    def __init__(self, text: str) -> None:
        self._lines = text.lstrip("\ufeff").splitlines()
        self._by_agent: dict[str, Protego] = {}

    def allows(self, url: str, agent: str) -> bool:
        """Whether `agent` (a product token or a User-Agent header) may fetch `url`."""
        product = product_of(agent)
        return bool(self._rules(product).can_fetch(url, product))

    def delay(self, agent: str) -> float | None:
        """Seconds between two requests, if the site asks for a delay; at most `MAX_DELAY`."""
        product = product_of(agent)
        rules = self._rules(product)
        delays: list[float] = []
        if (pause := rules.crawl_delay(product)) is not None:
            delays.append(float(pause))
        if (rate := rules.request_rate(product)) is not None:
            delays.append(min(rate.seconds, 10**9) / min(rate.requests, 10**9))
        return min(max(delays), MAX_DELAY) if delays else None

    def sitemaps(self) -> list[str]:
        """The http and https URLs of the sitemaps, each once, as written."""
        found = (match[1] for line in self._lines if (match := _SITEMAP_LINE.match(line)))
        web = dict.fromkeys(address for address in found if scheme_of(address) in ("http", "https"))
        return list(web)[:MAX_SITEMAPS]

    def _rules(self, product: str) -> Protego:
        rules = self._by_agent.get(product)
        if rules is None:
            rules = self._by_agent[product] = Protego.parse("\n".join(_grouped(self._lines, product)))
        return rules


def header_directives(headers: Iterable[tuple[str, str]], agent: str) -> frozenset[str]:
    """The directives of X-Robots-Tag headers for `agent` or everybody; header names are in lower case."""
    asked: set[str] = set()
    for name, value in headers:
        if name != "x-robots-tag":
            continue
        whom, colon, rest = value.partition(":")
        if colon and "," not in whom and whom.strip().lower() not in _DATED:
            if product_of(whom) != product_of(agent):
                continue
            value = rest
        asked.update(word.strip().lower() for word in value.split(","))
    return frozenset(asked)


def _grouped(lines: Iterable[str], product: str) -> Iterator[str]:
    """The groups of a robots.txt as protego reads them, with `NOBODY` for every agent but `product` and "*"."""
    delays: list[str] = []
    agents: dict[str, None] = {}
    has_rules = False
    for line in lines:
        found = _AGENT_LINE.match(line)
        if found is not None:
            if has_rules:
                agents, has_rules = {}, False
            agent = _addressed(found[1].strip(), product)
            if agent not in agents:
                agents[agent] = None
                yield agent
        elif _RULE_LINE.match(line):
            has_rules = True
            yield line
        elif _DELAY_LINE.match(line):
            delays += (*agents, line)
    yield from delays


def _addressed(name: str, product: str) -> str:
    """An agent line for `product` or everybody, or else for `NOBODY`."""
    return f"User-agent: {'*' if name == '*' else product if product_of(name) == product else NOBODY}"
