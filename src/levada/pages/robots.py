"""May we ask for this page, how often, and where are the sitemaps? robots.txt by RFC 9309, matched by protego.

Rules are read once per agent, and only the groups that concern it: a file that lists thousands of agents above
thousands of rules would otherwise multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from protego import Protego

from levada.pages.product import NOBODY, product_of
from levada.pages.urls import scheme_of

__all__ = ["RobotsRules", "header_directives"]

MAX_DELAY = 300.0
MAX_SITEMAPS = 100

_AGENT_LINE = re.compile(r"\s*user[- ]?agent(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_SITEMAP_LINE = re.compile(r"\s*site-?maps?\s*:\s*(\S+)", re.IGNORECASE)
_DATED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))


class RobotsRules:
    """What one robots.txt says."""

    def __init__(self, text: str) -> None:
        self._lines = text.lstrip("\ufeff").splitlines()
        self._by_agent: dict[str, Protego] = {}

    @classmethod
    def parse(cls, text: str) -> RobotsRules:
        """Read any text; what is not a rule is not there."""
        return cls(text)

    def allows(self, url: str, agent: str) -> bool:
        """Whether `agent` (its product token, or a whole User-Agent header) may ask for `url`."""
        product = product_of(agent)
        return bool(self._rules(product).can_fetch(url, product))

    def delay(self, agent: str) -> float | None:
        """Seconds to leave between two requests, if the site asks for it; at most `MAX_DELAY`."""
        product = product_of(agent)
        rules = self._rules(product)
        wishes: list[float] = []
        if (pause := rules.crawl_delay(product)) is not None:
            wishes.append(float(pause))
        if (rate := rules.request_rate(product)) is not None:
            wishes.append(min(rate.seconds, 10**9) / min(rate.requests, 10**9))
        return min(max(wishes), MAX_DELAY) if wishes else None

    def sitemaps(self) -> list[str]:
        """The http and https addresses of the sitemaps named, each once, as written."""
        found = (match[1] for line in self._lines if (match := _SITEMAP_LINE.match(line)))
        web = dict.fromkeys(address for address in found if scheme_of(address) in ("http", "https"))
        return list(web)[:MAX_SITEMAPS]

    def _rules(self, product: str) -> Protego:
        rules = self._by_agent.get(product)
        if rules is None:
            lines = (_readdress(line, product) for line in self._lines)
            rules = self._by_agent[product] = Protego.parse("\n".join(lines))
        return rules


def header_directives(headers: Iterable[tuple[str, str]], agent: str) -> frozenset[str]:
    """What X-Robots-Tag headers ask of `agent` or of everybody; names of headers in lower case."""
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


def _readdress(line: str, product: str) -> str:
    """An agent line that names us, everybody, or (whoever it is) nobody."""
    found = _AGENT_LINE.match(line)
    if found is None:
        return line
    name = found[1].strip()
    if name == "*":
        return "User-agent: *"
    return f"User-agent: {product if product_of(name) == product else NOBODY}"
