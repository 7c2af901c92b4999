"""How does a version of a page look as HTML?

Nothing here depends on the time of asking: the same page and version are the same bytes. Links within a site are
paths; links to other sites carry `port`, the ":8000" of the address under which the reader came.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from levada.demo.chance import mix
from levada.demo.model import World
from levada.demo.places import Page, PageRole, Site
from levada.demo.prose import Story, capital, headline, sentence, story
from levada.demo.words import Words, words_of

__all__ = ["linked_pages", "old_path", "private_path", "render"]

_NAVIGATION = 12
_RELATED = 4
_NOTES = 3


def private_path(site: Site) -> str:
    """The area that robots.txt closes."""
    return f"/{words_of(site.language, site.category).labels['private']}/"


def old_path(page: Page) -> str:
    """The address that a page had before the site moved it."""
    return f"/old/{page.number}"


def linked_pages(page: Page) -> list[Page]:
    """The pages that the main part of this one lists."""
    site = page.site
    if page.role is PageRole.FRONT:
        return [*site.sections, *([] if site.section_names else _linkable(site.items))]
    if page.role is PageRole.SECTION:
        return site.listed_in(page.section)
    # Related pages are neighbours in the site, so that no page has to know its whole section.
    first = page.number - site.front.number
    step = max(1, len(site.section_names))
    around = (site.pages[i] for i in range(first + step, len(site.pages), step))
    return _linkable(islice(around, _RELATED + 1))[:_RELATED]


def _linkable(pages: Iterable[Page]) -> list[Page]:
    return [page for page in pages if not page.only_in_sitemap]


def _title(page: Page) -> str:
    if page.role is PageRole.FRONT:
        return capital(page.site.label, page.language)
    if page.role is PageRole.SECTION:
        return capital(page.site.section_names[page.section], page.language)
    return headline(page.language, page.site.category, page.hash, 0)


def _trending(world: World, page: Page, words: Words, version: int) -> str:
    """The word of the day, on one version in eight."""
    dice = mix(page.hash, 6_000_000 + version)
    day = int(world.changed_at(page, version) // 86_400)
    return words.trending[mix(world.seed, day) % len(words.trending)] if dice % 8 == 0 else ""


def _tell(world: World, page: Page, version: int) -> Story:
    words = words_of(page.language, page.site.category)
    newest = range(version, max(1, version - _NOTES), -1) if page.site.category == "news" else ()
    clocks = tuple(time.strftime("%H:%M", time.gmtime(world.changed_at(page, v))) for v in newest)
    # From two thirds to four thirds of the size asked for, less what is around the text.
    size = world.page_bytes * (667 + page.hash % 667) // 1000 - 1_500
    return story(
        words, page.site.category, page.hash, version, clocks, _trending(world, page, words, version), size
    )


def _anchor(page: Page) -> str:
    return f'<a href="{page.path}">{escape(_title(page))}</a>'


def _navigation(site: Site) -> str:
    pages = [site.front, *site.sections[:_NAVIGATION]]
    label = words_of(site.language, site.category).labels["private"]
    links = [f"<li>{_anchor(page)}</li>" for page in pages]
    links.append(f'<li><a href="{private_path(site)}">{capital(label, site.language)}</a></li>')
    return f"<nav><ul>{''.join(links)}</ul></nav>"


def _listing(page: Page, listed: Sequence[Page], words: Words, version: int) -> str:
    """Links, each with a teaser; one teaser in the list is new in every version."""
    fresh = version % len(listed) if listed else 0
    lines = []
    for place, other in enumerate(listed):
        wrote = mix(other.hash, version if place == fresh and version > 1 else 0)
        lines.append(f"<li>{_anchor(other)} {escape(sentence(words, wrote), quote=False)}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _footer(world: World, page: Page, words: Words, port: str) -> str:
    links = [f'<a href="{old_path(other)}">{words.labels["archive"]}</a>' for other in _moved(page)]
    if page.role is PageRole.FRONT:
        here = world.sites.index(page.site)
        neighbours = [world.sites[(here + step) % len(world.sites)] for step in (1, 2, 3)]
        links += [f'<a href="http://{site.host}{port}/">{site.label}</a>' for site in neighbours]
        links.append(f'<a href="http://www.{page.site.host}{port}/">www</a>')
    return f"<footer>{' '.join(links)}</footer>"


def _moved(page: Page) -> list[Page]:
    """A section still links two of its items under their old addresses."""
    return page.site.listed_in(page.section)[:2] if page.role is PageRole.SECTION else []


def _head(page: Page, told: Story) -> str:
    feed = (
        '<link rel="alternate" type="application/rss+xml" href="/rss.xml">' if page.site.category == "news" else ""
    )
    name = page.site.label if page.role is PageRole.FRONT else _title(page)
    title = told.headline if page.role is PageRole.ITEM else f"{capital(name, page.language)}: {told.headline}"
    return (
        f'<!doctype html>\n<html lang="{page.language}">\n<head><meta charset="utf-8">\n'
        f'<title>{escape(title)}</title>\n<meta name="description" content="{escape(told.figure)}">\n'
        f'<link rel="canonical" href="{page.path}">{feed}</head>'
    )


def render(world: World, page: Page, version: int, port: str = "") -> bytes:
    """The page's HTML in this version."""
    words = words_of(page.language, page.site.category)
    told = _tell(world, page, version)
    notes = "".join(f'<p class="note">{escape(note, quote=False)}</p>\n' for note in told.notes)
    text = "".join(f"<p>{escape(paragraph, quote=False)}</p>\n" for paragraph in told.paragraphs)
    listed = linked_pages(page)
    listing = _listing(page, listed, words, version) if page.role is not PageRole.ITEM else ""
    related = "".join(f"<li>{_anchor(other)}</li>" for other in listed) if page.role is PageRole.ITEM else ""
    aside = f"<aside><h2>{words.labels['related']}</h2><ul>{related}</ul></aside>\n" if related else ""
    return (
        f"{_head(page, told)}\n<body>\n<header>{_navigation(page.site)}</header>\n<main><article>\n"
        f"<h1>{escape(told.headline)}</h1>\n"
        f'<p class="figure">{escape(told.figure)}</p>\n{notes}{text}</article>\n{listing}</main>\n{aside}'
        f"{_footer(world, page, words, port)}\n</body></html>\n"
    ).encode()
