"""Which stored page does the user mean?"""

from __future__ import annotations

from difflib import get_close_matches

from levada.assemble.reading import Collection
from levada.errors import BadUrl, NotFound
from levada.pages.urls import canonical, front_page, scheme_of, site_of
from levada.records import PageRecord
from levada.telling.refused import refusal_words
from levada.telling.words import shortened

__all__ = ["known_page", "spellings", "url_of"]

_LOOKED_AT = 200  # addresses of a site that are compared with the one that was typed


def spellings(typed: str) -> list[str]:
    """The addresses that `typed` may stand for, the likeliest first; `BadUrl` if none."""
    # "example.org:8080/x" has no scheme, although it looks like one.
    if "://" in typed or scheme_of(typed) in ("http", "https"):
        tries = [typed]
    else:
        tries = [f"https://{typed}", f"http://{typed}"]
    try:
        found = [canonical(each) for each in tries]
    except BadUrl as error:
        if tries == [typed]:
            raise
        raise BadUrl(str(error).replace("'https://", "'")) from None  # which nobody has typed
    if not found[0].startswith(("http://", "https://")):
        raise BadUrl(
            f"{shortened(typed, 200)!r} is not an http or https address: write it like https://example.org"
        )
    return found


def known_page(collection: Collection, addresses: list[str]) -> PageRecord:
    """What is known of the page at one of these addresses; `NotFound` says why not, or names addresses like it."""
    for url in addresses:
        if page := collection.store.page(url):
            return page
    missing = f"no page {addresses[0]} is known in {collection.folder.path}"
    if refused := refusal_words(collection, addresses):
        raise NotFound(f"{missing}: {refused}")
    near = _near(collection, addresses)
    raise NotFound(f"{missing}; known there: {', '.join(near)}" if near else missing)


def url_of(collection: Collection, page_id: int) -> str | None:
    """The address of a page by its number."""
    return collection.store.url_of(page_id)


def _near(collection: Collection, addresses: list[str], most: int = 3) -> list[str]:
    """Addresses of the same site that are spelled alike: those around it, and the first ones."""
    found: dict[str, None] = {}
    for url in addresses:
        front = front_page(url)
        stems = [url[: max(len(front), len(url) - cut)] for cut in (0, 1, 2, 4, 8, 16)]
        for start in (*stems, front):
            found |= dict.fromkeys(collection.store.urls_like(start, _LOOKED_AT))
    return _closest(addresses, list(found), most)


def _closest(addresses: list[str], known: list[str], most: int) -> list[str]:
    target = addresses[0].partition("://")[2]
    by_rest = {url.partition("://")[2]: url for url in known if len(url) <= 500}
    alike = get_close_matches(target[:500], by_rest, n=most, cutoff=0.6)
    front = [url for url in known if url == front_page(url) and site_of(url) == site_of(addresses[0])]
    return [by_rest[rest] for rest in alike] or front[:1]
