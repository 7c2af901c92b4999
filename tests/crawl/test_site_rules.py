"""The rules of sites on a whole crawl: what is asked for, how, and when."""

from __future__ import annotations

from levada.core.reasons import Reason
from levada.core.records import PageState
from levada.crawl.rescheduling import Rescheduling
from tests.crawl.simulated_crawl import World, page, status, text
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


def scope_world(settings: str = "") -> tuple[World, Changing]:
    pages = {f"{SITE}/": page("Front", "/docs/", "/news/", "/list?id=1&sid=7")}
    pages |= {
        f"{SITE}{path}": page(path, words=text(path)) for path in ("/docs/", "/news/", "/list?id=1&sid=7", "/list?id=1")
    }
    world = World(pages, f"[crawl]\nsitemaps = false\n[revisit]\nfirst = 600\nfloor = 600\nceiling = 600\n{settings}")
    world.live = changing = Changing(world)
    return world, changing


def test_pages_that_a_changed_rule_keeps_out_are_not_visited_any_more_and_stay_stored() -> None:
    world, changing = scope_world()
    world.crawl(
        f"{SITE}/",
        seconds=4_000.0,
        meanwhile={1_000.0: changing.to({"site.a.example.exclude": ["/news/*"]})},
    )
    asked = [at for at, url in world.asked(f"{SITE}/news/")]
    assert asked
    assert max(asked) < 1_000.0
    kept_out = world.page(f"{SITE}/news/")
    assert (kept_out.state, kept_out.reason) == (PageState.LIVE, Reason.RULE)
    assert f"{SITE}/news/" in world.stored()
    assert max(at for at, url in world.asked(f"{SITE}/docs/")) > 3_000.0
    assert world.refused() == {}


def test_a_page_that_a_rule_lets_in_again_is_due() -> None:
    world, _ = scope_world('[[site]]\nmatch = "a.example"\nexclude = ["/news/*"]\n')
    before = world.settings
    world.settings = before.replace({"site.a.example.exclude": None})
    world.crawl(f"{SITE}/")
    world.settings = before
    world.clock.advance(700.0)
    world.crawl()
    assert world.page(f"{SITE}/news/").reason is Reason.RULE
    asked = len(world.asked(f"{SITE}/news/"))
    world.settings = before.replace({"site.a.example.exclude": None})
    Rescheduling(world.store, before, world.settings, world.clock.now()).run()
    world.crawl()
    assert len(world.asked(f"{SITE}/news/")) == asked + 1
    assert world.page(f"{SITE}/news/").reason is None


def test_parameters_that_do_not_count_are_left_out_of_the_addresses_of_links() -> None:
    pages = {
        f"{SITE}/": page("Front", "/list?id=1&sid=7", "/list?sid=8&id=1", "/list?utm_x=1&ID=1", "/list?id=2"),
        f"{SITE}/list?id=1": page("1", "/list?id=1&sid=9", head='<link rel="canonical" href="/list?sid=3&id=1">'),
        f"{SITE}/list?id=2": status(301, location="/list?id=3&sid=4"),
        f"{SITE}/list?ID=1": page("3"),
        f"{SITE}/list?id=3": page("4"),
    }
    world = World(pages, '[crawl]\nsitemaps = false\n[[site]]\nmatch = "a.example"\ndrop_query = ["s*d", "UTM_*"]\n')
    world.crawl(f"{SITE}/")
    assert {url for _, url in world.asked() if "robots" not in url} == set(pages)
    assert world.page(f"{SITE}/list?id=2").leads_to == f"{SITE}/list?id=3"


def test_a_page_stored_with_parameters_that_do_not_count_makes_way_for_the_address_without_them() -> None:
    world, changing = scope_world()
    world.crawl(f"{SITE}/", seconds=4_000.0, meanwhile={1_000.0: changing.to({"site.a.example.keep_query": ["id"]})})
    old, new = world.page(f"{SITE}/list?id=1&sid=7"), world.page(f"{SITE}/list?id=1")
    assert (old.state, old.leads_to, old.reason) == (PageState.ELSEWHERE, new.url, Reason.RULE)
    assert new.state is PageState.LIVE
    assert max(at for at, url in world.asked(old.url) if url == old.url) < 1_000.0


def test_with_workers_elsewhere_a_page_that_a_rule_keeps_out_is_not_asked_for() -> None:
    world = Web('[politeness]\ndelay = 1\n[[site]]\nmatch = "a.example"\nexclude = ["*"]\n')
    Several(world).run(300.0)
    assert world.asked(SITE) == []
    assert world.asked("http://b.example")


def test_catalog_workers_take_up_a_changed_rule() -> None:
    world = Web("[politeness]\ndelay = 1\n")
    several = Several(world)
    worker = several._catalog()
    page = world.store.page(world.starts[0])
    assert page is not None
    worker._link_filter.admitted.add("a.example")
    link = f"{SITE}/new?sid=1"
    found, _ = worker._link_filter.select(page, [link], [], nofollow=False)
    assert [each.url for each in found] == [link]
    worker.settings_changed(world.settings.replace({"site.a.example.drop_query": ["sid"], "crawl.scope": "any"}))
    found, _ = worker._link_filter.select(page, [f"{SITE}/other?sid=1"], [], nofollow=False)
    assert [each.url for each in found] == [f"{SITE}/other"]


def test_a_site_that_rested_by_its_hours_is_asked_when_others_hold_at_the_next_start() -> None:
    pages = {f"{SITE}/": page("Front")}
    world = World(pages, '[crawl]\nsitemaps = false\n[[site]]\nmatch = "a.example"\nhours = "daily 8-9"\n')
    world.crawl(f"{SITE}/")
    assert world.asked() == []
    before, world.settings = world.settings, world.settings.replace({"site.a.example.hours": ["daily 20-9"]})
    Rescheduling(world.store, before, world.settings, world.clock.now()).run()
    world.crawl()
    assert f"{SITE}/" in world.stored()
