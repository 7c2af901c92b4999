"""What each site answers, at exactly which time: pure, without sockets."""

from __future__ import annotations

import gzip
import re
from functools import cache
from xml.etree import ElementTree

import pytest

from levada.demo.http import Answer, WebRequest, parse_http_date
from levada.demo.sites import SiteAnswers, old_path, private_path
from levada.demo.world import DemoSite, DemoWorld, Dynamics, Page, PageRole, ValidatorKind

_DAY = 86_400.0


@cache
def the_web() -> SiteAnswers:
    return SiteAnswers(DemoWorld.build(seed=1))


def _ask(host: str, path: str, at: float = 0.0, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return the_web().answer(WebRequest("GET", host, ":8000", path, headers=named), the_web().world.origin + at)


def _header(answer: Answer, name: str) -> str:
    return dict(answer.headers)[name]


def _lively(validators: ValidatorKind = ValidatorKind.BOTH) -> Page:
    return next(
        page
        for page in the_web().world.pages
        if page.dynamics not in (Dynamics.STATIC, Dynamics.LOW) and page.site.traits.validators is validators
    )


def _site(label: str) -> DemoSite:
    return the_web().world.by_host[f"{label}.localhost"]


def test_bytes_change_exactly_at_change_times() -> None:
    world = the_web().world
    page = _lively()
    times = world.changes_between(page, world.origin, world.origin + _DAY)
    assert times
    before = _ask(page.site.host, page.path).body
    for at in times:
        still = _ask(page.site.host, page.path, at - world.origin - 0.001).body
        after = _ask(page.site.host, page.path, at - world.origin).body
        assert still == before != after
        before = after


def test_a_tag_is_not_modified_until_the_page_changes() -> None:
    world = the_web().world
    page = _lively()
    change = world.changes_between(page, world.origin, world.origin + 9 * _DAY)[0] - world.origin
    first = _ask(page.site.host, page.path)
    tag = _header(first, "ETag")
    assert _ask(page.site.host, page.path, change - 1, if_none_match=tag).status == 304
    assert _ask(page.site.host, page.path, change - 1, if_none_match=f'"x", W/{tag}').body == b""
    later = _ask(page.site.host, page.path, change, if_none_match=tag)
    assert later.status == 200
    assert _header(later, "ETag") != tag


def test_a_date_is_not_modified_until_the_page_changes() -> None:
    world = the_web().world
    page = _lively(ValidatorKind.MODIFIED)
    change = world.changes_between(page, world.origin, world.origin + 9 * _DAY)[0] - world.origin
    first = _ask(page.site.host, page.path)
    since = _header(first, "Last-Modified")
    assert "ETag" not in dict(first.headers)
    assert _ask(page.site.host, page.path, change - 1, if_modified_since=since).status == 304
    later = _ask(page.site.host, page.path, change, if_modified_since=since)
    assert later.status == 200
    assert parse_http_date(_header(later, "Last-Modified")) == change + world.origin


def test_a_tag_outweighs_a_date() -> None:
    page = _lively()
    since = _header(_ask(page.site.host, page.path), "Last-Modified")
    assert _ask(page.site.host, page.path, if_none_match='"other"', if_modified_since=since).status == 200


def test_a_site_without_validators_always_sends_the_page() -> None:
    page = _lively(ValidatorKind.NONE)
    answer = _ask(page.site.host, page.path, if_none_match="*", if_modified_since="Fri, 01 Jan 2100 00:00:00 GMT")
    assert answer.status == 200
    assert not {"ETag", "Last-Modified"} & set(dict(answer.headers))


def test_an_unreadable_date_is_ignored() -> None:
    page = _lively()
    assert _ask(page.site.host, page.path, if_modified_since="yesterday, I think").status == 200


def test_gzip_is_the_same_page_and_its_tag_is_recognised() -> None:
    page = _lively()
    plain, packed = _ask(page.site.host, page.path), _ask(page.site.host, page.path, accept_encoding="gzip, br")
    assert _header(packed, "Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert _header(packed, "ETag") != _header(plain, "ETag")
    assert _ask(page.site.host, page.path, if_none_match=_header(packed, "ETag")).status == 304


def test_the_memory_of_rendered_pages_is_bounded() -> None:
    world = DemoWorld.build(seed=1, pages=60)
    small = SiteAnswers(world, cache_bytes=30_000)
    pages = [small.answer(WebRequest("GET", page.site.host, "", page.path), world.origin) for page in world.pages * 2]
    assert sum(len(body) for body in small._cache.values()) <= 30_000
    assert pages[: len(world.pages)] == pages[len(world.pages) :]


def test_robots_closes_an_area_names_the_sitemap_and_may_ask_for_a_delay() -> None:
    text = _ask("trendyol.localhost", "/robots.txt").body.decode()
    assert f"Disallow: {private_path(_site('trendyol'))}" in text
    assert "Sitemap: http://trendyol.localhost:8000/sitemap.xml" in text
    delays = [s.label for s in the_web().world.sites if b"Crawl-delay" in _ask(s.host, "/robots.txt").body]
    assert delays == ["haremaltin"]
    assert _ask("trendyol.localhost", private_path(_site("trendyol"))).status == 200


def _sitemap_entries(host: str, path: str, at: float = 0.0) -> dict[str, str]:
    """Addresses and lastmods of a sitemap, through its index if it has one."""
    body = _ask(host, path, at).body
    root = ElementTree.fromstring(gzip.decompress(body) if path.endswith(".gz") else body)
    entries: dict[str, str] = {}
    for child in root:
        loc, *rest = (part.text or "" for part in child)
        if child.tag.endswith("}sitemap"):
            entries |= _sitemap_entries(host, loc.removeprefix(f"http://{host}:8000"), at)
        else:
            entries[loc] = rest[0]
    return entries


def test_the_sitemap_names_every_page() -> None:
    world = the_web().world
    for site in world.sites:
        assert set(_sitemap_entries(site.host, "/sitemap.xml")) == {world.url(page, 8000) for page in site.pages}


def test_lastmod_is_honest_but_for_one_site() -> None:
    early, late = (_sitemap_entries("trendyol.localhost", "/sitemap.xml", at) for at in (0.0, 3600.0))
    world = the_web().world
    changed = {
        world.url(page, 8000)
        for page in _site("trendyol").pages
        if world.changes_between(page, world.origin, world.origin + 3600)
    }
    assert {url for url in early if early[url] != late[url]} == changed
    lies, again = (_sitemap_entries("ensonhaber.localhost", "/sitemap.xml", at) for at in (0.0, 3600.0))
    assert all(lies[url] != again[url] for url in lies)


def test_a_large_web_has_sitemap_indexes_with_packed_parts() -> None:
    body = _ask("sondakika.localhost", "/sitemap.xml").body
    assert b"<sitemapindex" in body
    assert b".xml.gz" in body
    assert _ask("sondakika.localhost", "/sitemap-99.xml").status == 404


def test_only_news_sites_have_a_feed_with_their_latest_items() -> None:
    root = ElementTree.fromstring(_ask("hurriyet.localhost", "/rss.xml", 3600).body)
    links = [link.text or "" for link in root.findall("./channel/item/link")]
    assert len(links) == 20
    assert all(the_web().world.find(link) for link in links)
    assert _ask("trendyol.localhost", "/rss.xml").status == 404


def test_old_addresses_lead_to_new_ones() -> None:
    page = next(page for page in _site("boun").items)
    answer = _ask("boun.localhost", old_path(page))
    assert answer.status in (301, 302, 307, 308)
    assert _header(answer, "Location") == page.path
    for wrong in ("/old/0", "/old/x", "/old/" + "9" * 30, "/old/²"):
        assert _ask("boun.localhost", wrong).status == 404


def test_the_www_name_leads_to_the_bare_one() -> None:
    answer = _ask("www.boun.localhost", "/x")
    assert (answer.status, _header(answer, "Location")) == (301, "http://boun.localhost:8000/x")


@pytest.mark.parametrize("path", ["/nothing", "/sitemap-0.xml", "/sitemapX", "//", "/../etc/passwd"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert _ask("boun.localhost", path).status == 404
    assert _ask("unknown.localhost", path).status == 404


def test_all_links_of_all_pages_lead_somewhere() -> None:
    world = the_web().world
    for site in world.sites[::5]:
        for page in site.pages:
            body = _ask(site.host, page.path).body.decode()
            for href in set(re.findall(r'href="([^"]+)"', body)):
                host, path = (site.host, href) if href[0] == "/" else re.findall(r"http://([^:/]+):8000(.*)", href)[0]
                assert _ask(host, path).status in (200, 301, 302, 307, 308), href


def test_links_on_served_pages_reach_every_page_but_those_only_in_the_sitemap() -> None:
    site = _site("doviz")
    todo, seen = ["/"], {"/"}
    while todo:
        for href in re.findall(r'<a href="(/[^"]*)"', _ask(site.host, todo.pop()).body.decode()):
            if href not in seen:
                seen.add(href)
                todo.append(href)
    assert {page.path for page in site.pages if not page.only_in_sitemap} <= seen
    assert not {page.path for page in site.pages if page.only_in_sitemap} & seen
    assert any(page.role is PageRole.SECTION for page in site.pages)
