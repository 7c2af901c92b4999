"""Scope of the rules in a collection: the known pages that they keep out, and those that a rule would keep out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, get_args, get_origin

import msgspec

from levada.collection.site_rules.changes import rule_changes
from levada.core.errors import NotFound, UsageError
from levada.core.site_rules.rules import SiteRules, fits_site
from levada.core.site_rules.section import RULE_TYPES, choices_of, tidy_match
from levada.crawl.link_filter import page_kept_out
from levada.store.base import Store
from levada.store.reading import OpenedCollection


class PageOutOfScope(msgspec.Struct, frozen=True):
    """A known page that the rules of its site keep out: it is not visited any more, and what is stored of it stays.

    >>> changes = news.set_rule("nowhere.example", exclude=["*"])
    >>> list(news.out_of_scope("nowhere.example"))
    []
    """

    url: str
    site: str
    key: str  # of the rule that keeps it out
    match: str  # of the rule
    stored: bool  # a version of it is stored


class ScopeTrial(msgspec.Struct, frozen=True):
    """What a rule would keep out that is not kept out now.

    >>> news.try_scope(start, exclude=["*"]).pages > 0
    True
    """

    match: str
    sites: int  # known ones that it matches
    pages: int  # known ones that it would keep out
    looked_at: int  # pages of these sites
    is_least: bool  # there may be more: not all pages were looked at
    examples: tuple[PageOutOfScope, ...]


def out_of_scope(collection: OpenedCollection, site: str = "") -> Iterator[PageOutOfScope]:
    """The known pages of a site, or of all, that the rules keep out now."""
    rules, store = SiteRules(collection.settings.site), collection.store
    names = [site.lower()] if site else sorted(record.site for record in store.sites())
    for name in names:
        if rules.limits(name):
            for url in urls_of(store, name, MOST_OF_A_SITE):
                if (found := kept_out_now(rules, store, url)) is not None:
                    yield found


def urls_out_of_scope(collection: OpenedCollection, site: str, *, is_alone: bool) -> tuple[str, ...]:
    """What `levada forget --out-of-scope` is for; `is_alone`: nothing else is named but a site."""
    if not is_alone:
        raise UsageError("out of scope are whole pages: name a site beside it, or nothing")
    urls = tuple(page.url for page in out_of_scope(collection, site))
    if not urls:
        raise NotFound("no page is out of scope: nothing to forget")
    return urls


def try_scope(collection: OpenedCollection, match: str, keys: Mapping[str, Any]) -> ScopeTrial:
    """What the rules would keep out of the known pages, had this one these keys; nothing changes."""
    before = collection.settings
    after = before.replace(rule_changes(match, keys))
    rules, rules_before, store = SiteRules(after.site), SiteRules(before.site), collection.store
    tidy = tidy_match(match)
    sites = sorted(record.site for record in store.sites() if fits_site(tidy, record.site))
    urls = list(islice((url for site in sites for url in urls_of(store, site, MOST_LOOKED_AT)), MOST_LOOKED_AT + 1))
    found = [each for url in urls[:MOST_LOOKED_AT] if (each := kept_out_now(rules, store, url)) is not None]
    news = [each for each in found if kept_out_now(rules_before, store, each.url) is None]
    is_least = len(urls) > MOST_LOOKED_AT
    return ScopeTrial(tidy, len(sites), len(news), len(urls) - is_least, is_least, tuple(news[:_SHOWN]))


def key_kinds() -> list[tuple[str, str]]:
    """The keys that a rule may have, each with what its value is."""
    return [(key, _kind(kind)) for key, kind in RULE_TYPES.items()]


def _kind(kind: Any) -> str:
    if choices_of(kind):
        return "choice"
    for each in get_args(kind):
        plain = get_args(each)[0] if get_origin(each) is Annotated else each
        if get_origin(plain) in _KINDS or plain in _KINDS:
            return _KINDS[get_origin(plain) or plain]
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
            return _KINDS[dict]
    return "text"


_KINDS: dict[Any, str] = {tuple: "list", dict: "table", bool: "flag", int: "count", float: "number", str: "text"}
_SHOWN = 20  # pages, as examples


def urls_of(store: Store, site: str, most: int) -> Iterator[str]:
    for scheme in ("https", "http"):
        yield from store.urls_like(f"{scheme}://{site}/", most)


def kept_out_now(rules: SiteRules, store: Store, url: str) -> PageOutOfScope | None:
    page = store.page(url)
    key = page_kept_out(rules, page) if page is not None else ""
    if page is None or not key:
        return None
    return PageOutOfScope(url, page.site, key, rules.rule_for(url).sources[key], page.version > 0)


MOST_OF_A_SITE = 10_000_000
MOST_LOOKED_AT = 20_000  # pages of all sites together, where no site is named
