"""The rules of sites on a whole crawl: what is asked for, how, and when."""

from __future__ import annotations

from tests.crawl.simulated_crawl import World, page
from tests.crawl.test_changed_settings import Changing
from tests.crawl.test_several_workers import Several, Web

SITE = "http://a.example"


def agents(world: World) -> dict[str, str | None]:
    return {each.url: dict(each.headers).get("User-Agent") for each in world.web.requests}


def test_the_headers_of_a_rule_go_with_every_request_of_its_pages() -> None:
    world = World(
        {f"{SITE}/": page("Front", "/docs/", "/other"), f"{SITE}/docs/": page("Docs"), f"{SITE}/other": page("Other")},
        '[crawl]\nsitemaps = false\n[[site]]\nmatch = "a.example/docs/"\nagent = "docs"\n',
    )
    world.crawl(f"{SITE}/")
    found = agents(world)
    assert (found[f"{SITE}/docs/"], found[f"{SITE}/other"]) == ("docs", None)


def test_links_that_a_rule_keeps_out_never_reach_the_frontier() -> None:
    pages = {
        f"{SITE}/": page("Front", "/docs/", "/docs/a.pdf", "/news"),
        f"{SITE}/docs/": page("Docs", "/docs/b", "/news/2"),
        f"{SITE}/docs/b": page("B"),
    }
    world = World(
        pages, '[crawl]\nsitemaps = false\n[[site]]\nmatch = "a.example"\ninclude = ["/docs/*"]\nexclude = ["*.pdf"]\n'
    )
    report = world.crawl(f"{SITE}/")
    assert {url for url in agents(world) if "robots" not in url} == set(pages)
    assert report.refused == {"rule": 3}


def test_with_depth_0_only_the_start_is_visited_and_no_sitemap() -> None:
    world = World(
        {f"{SITE}/a": page("A", "/b"), f"{SITE}/sitemap.xml": page("Map", "/c")},
        '[[site]]\nmatch = "a.example"\ndepth = 0\n',
    )
    world.crawl(f"{SITE}/a")
    assert [url for url in agents(world) if "robots" not in url] == [f"{SITE}/a"]


def test_a_changed_rule_holds_from_the_next_request_on() -> None:
    world = World({f"{SITE}/": page("Front")}, "[crawl]\nsitemaps = false\n[revisit]\nfirst = 60\nfloor = 60\n")
    world.live = changing = Changing(world)
    world.crawl(f"{SITE}/", seconds=500.0, meanwhile={30.0: changing.to({"site.a.example.agent": "later"})})
    sent = [dict(each.headers).get("User-Agent") for each in world.web.requests if each.url == f"{SITE}/"]
    assert sent[0] is None
    assert set(sent[1:]) == {"later"}


def test_workers_elsewhere_get_the_rule_with_the_page() -> None:
    world = Web('[[site]]\nmatch = "a.example"\nagent = "reader"\n')
    Several(world).run(300.0)
    found = agents(world)
    assert {agent for url, agent in found.items() if "a.example" in url and "robots" not in url} == {"reader"}
    assert {agent for url, agent in found.items() if "b.example" in url} == {None}
