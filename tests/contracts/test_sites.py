"""The law of the `Sites` port."""

from __future__ import annotations

from msgspec.structs import replace

from levada.reasons import Reason
from levada.records import Found, Refusal, RobotsRecord, SiteRecord
from tests.visits import Store, links


def test_a_site_is_known_as_soon_as_a_page_of_it_is_held(store: Store) -> None:
    store.add(links("a", 2), [], 0.0)
    assert store.site("a") == SiteRecord("a", pages=2)
    assert store.site("b") is None


def test_what_is_saved_is_given_back(store: Store) -> None:
    robots = (
        ("http", RobotsRecord("User-agent: *\nDisallow: /x", 1.0, 2.0)),
        ("https", RobotsRecord("", 3.0, 4.0, trouble=Reason.HTTP_5XX)),
    )
    record = SiteRecord("a", admitted=True, failures=3, rest_until=9.5, delay=1.5, robots=robots)
    store.save(record)
    assert store.site("a") == record
    store.save(replace(record, delay=None, robots=robots[:1], failures=0))
    assert store.site("a") == replace(record, delay=None, robots=robots[:1], failures=0)


def test_counts_are_the_stores_own(store: Store) -> None:
    store.add(links("a", 2), [Refusal("http://a/x", "a", Reason.ROBOTS)], 0.0)
    store.save(SiteRecord("a", pages=99, refused=((Reason.DEPTH, 7, "no"),)))
    assert store.site("a") == SiteRecord("a", pages=2, refused=((Reason.ROBOTS, 1, "http://a/x"),))


def test_a_site_is_admitted_by_what_the_user_asked_for(store: Store) -> None:
    store.add([Found("http://a/1", "a"), Found("http://b/1", "b", admit=True)], [], 0.0)
    assert {site.site: site.admitted for site in store.sites()} == {"a": False, "b": True}
    store.add([Found("http://a/1", "a", admit=True)], [], 0.0)
    assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}
    store.add([Found("http://a/2", "a")], [], 0.0)
    assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}


def test_all_sites_are_listed(store: Store) -> None:
    store.add([Found(f"http://s{n}/", f"s{n}") for n in range(500)], [], 0.0)
    assert sorted(site.site for site in store.sites()) == sorted(f"s{n}" for n in range(500))


def test_saving_a_site_that_is_not_known_makes_it_known(store: Store) -> None:
    store.save(SiteRecord("a", admitted=True))
    assert store.standing(0.0).sites == 1
    assert store.site("a") == SiteRecord("a", admitted=True)
    assert store.lease(0.0, 10, 60.0) == []
