"""Contract of the frontier and its sites: which URLs are known, and which may be visited now."""

from __future__ import annotations

from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import (
    FOREVER,
    DiscoveredBy,
    FoundUrl,
    Outcome,
    PageKind,
    PageRecord,
    PageState,
    PlanSelection,
    Refusal,
    RobotsRecord,
    Signals,
    SiteRecord,
    Visit,
)
from levada.core.site_rules.pace import SitePaces
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import SiteSettings
from levada.store.base import Store, StoreLimits
from levada.testing.store.visits import (
    OpenStore,
    StoreSuite,
    changed,
    document_of,
    failed,
    first,
    gone,
    leased,
    links,
    page_of,
    unchanged,
    urls_of,
    visit,
    visited,
)


class FrontierContract(StoreSuite):
    """A page has one holder at a time, sites take turns, and a visit is committed once."""

    def test_a_url_is_held_once_however_often_it_is_found(self, store: Store) -> None:
        assert store.add([*links("a", 3), *links("a", 3)], [], 1.0) == 3
        assert store.add(links("a", 4), [], 2.0) == 1
        assert store.stats(2.0).known == 4
        page = page_of(store, "http://a/0")
        assert (page.found_at, page.state, page.visits, page.found_on) == (1.0, PageState.NEW, 0, None)

    def test_what_was_found_is_remembered_with_how(self, store: Store) -> None:
        found = FoundUrl("http://a/map.xml", "a", PageKind.SITEMAP, DiscoveredBy.SITEMAP, depth=3, hops=2, priority=7)
        store.add([found], [], 5.0)
        page = page_of(store, found.url)
        assert (page.kind, page.how) == (PageKind.SITEMAP, DiscoveredBy.SITEMAP)
        assert (page.depth, page.hops, page.site, page.next_visit) == (3, 2, "a", 5.0)
        assert store.page("http://a/other") is None

    def test_new_pages_are_leased_by_priority_then_in_the_order_found(self, store: Store) -> None:
        store.add([FoundUrl("http://a/late", "a", priority=9), *links("a", 2)], [], 1.0)
        store.add([FoundUrl("http://a/front", "a", priority=-5)], [], 2.0)
        assert urls_of(store.lease(3.0, 10, 60.0)) == ["http://a/front", "http://a/0", "http://a/1", "http://a/late"]

    def test_a_leased_page_is_nobody_elses_until_it_expires(self, store: Store) -> None:
        old = leased(store, 2, 1.0)
        assert store.lease(60.9, 10, 60.0) == []
        new = store.lease(61.0, 10, 60.0)
        assert set(urls_of(new)) == set(urls_of(old))
        assert min(lease.token for lease in new) > max(lease.token for lease in old)

    def test_only_the_newest_lease_of_a_page_can_commit(self, store: Store) -> None:
        (old,) = leased(store, now=1.0)
        (new,) = store.lease(61.0, 10, 60.0)
        stale = first(old, 62.0, "stale", tuple(links("b", 1)), refused=(Refusal("x", "a", Reason.DEPTH),))
        assert store.commit([stale, first(new, 63.0, "fresh")]) == [False, True]
        assert store.page("http://b/0") is None
        assert store.stats(63.0).refused == {}
        assert document_of(store, "http://a/0").text == "fresh"

    def test_a_late_holder_may_commit_until_the_page_is_leased_again(self, store: Store) -> None:
        one, two = leased(store, 2, 1.0)
        (again,) = store.lease(500.0, 1, 60.0)
        assert again.page.id == one.page.id
        assert store.commit([first(one, 501.0, "x"), first(two, 501.0, "y")]) == [False, True]

    def test_a_lease_commits_once(self, store: Store) -> None:
        (lease,) = leased(store, now=1.0)
        visit = first(lease, 2.0, "text")
        assert store.commit([visit, visit]) == [True, False]
        assert store.commit([visit]) == [False]
        assert store.stats(2.0).versions == 1

    def test_a_page_is_leased_by_its_address_before_it_is_due(self, store: Store) -> None:
        store.add(links("a", 2), [], 1.0)
        first_lease = store.lease_url("http://a/1", 1.0, 60.0)
        assert first_lease is not None
        assert (first_lease.page.url, first_lease.expires_at) == ("http://a/1", 61.0)
        store.commit([first(first_lease, 2.0, "text", interval=100.0)])
        again = store.lease_url("http://a/1", 3.0, 60.0)
        assert again is not None
        assert again.page.next_visit == 102.0
        assert urls_of(store.lease(3.0, 10, 60.0)) == ["http://a/0"]

    def test_a_page_that_somebody_holds_is_not_leased_by_its_address(self, store: Store) -> None:
        (held,) = leased(store, now=1.0)
        assert store.lease_url("http://a/0", 60.9, 60.0) is None
        newer = store.lease_url("http://a/0", 61.0, 60.0)
        assert newer is not None
        assert store.commit([first(held, 62.0, "stale"), first(newer, 62.0, "fresh")]) == [False, True]
        assert store.lease_url("http://a/unknown", 70.0, 60.0) is None

    def test_a_page_leased_by_its_address_takes_its_sites_turn(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(delay=5.0))
        store.add(links("a", 2), [], 1.0)
        lease = store.lease_url("http://a/0", 1.0, 60.0)
        assert lease is not None
        assert store.lease(5.9, 10, 60.0) == []
        assert store.lease_url("http://a/1", 5.9, 60.0) is None
        store.release([lease])
        assert store.lease_url("http://a/1", 5.9, 60.0) is not None
        store.save(SiteRecord("a", rest_until=50.0))
        assert store.lease_url("http://a/0", 49.9, 60.0) is None
        assert store.lease_url("http://a/0", 50.0, 60.0) is not None

    def test_out_of_turn_a_page_is_leased_although_its_site_waits_and_the_turns_after_it_stay_polite(
        self, open_store: OpenStore
    ) -> None:
        store = open_store(StoreLimits(delay=5.0))
        store.add(links("a", 4), [], 1.0)
        assert store.lease_url("http://a/0", 1.0, 60.0) is not None  # the next turn is at 6
        assert store.lease_url("http://a/1", 2.0, 60.0) is None
        assert store.lease_url("http://a/1", 2.0, 60.0, out_of_turn=True) is not None
        assert store.lease_url("http://a/1", 2.0, 60.0, out_of_turn=True) is None, "somebody holds it"
        assert store.lease(10.9, 10, 60.0) == []
        assert len(store.lease(11.0, 1, 60.0)) == 1
        store.save(SiteRecord("a", rest_until=50.0))
        assert store.lease_url("http://a/3", 49.9, 60.0, out_of_turn=True) is None

    def test_planned_pages_are_walked_over_by_their_numbers(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits())
        store.add([*links("a", 3), *links("b", 2)], [], 0.0)
        leases = store.lease(0.0, 5, 60.0)
        plans = dict(zip((lease.page.url for lease in leases), (100.0, 210.0, 300.0, 150.0, 250.0), strict=True))
        store.commit([first(lease, 0.0, lease.page.url, interval=plans[lease.page.url]) for lease in leases])
        store.add(links("c", 1), [], 1.0)
        every = sorted(lease.page.id for lease in leases)

        def walked(selection: PlanSelection, limit: int = 2) -> list[PageRecord]:
            found: list[PageRecord] = []
            while some := store.planned(selection, found[-1].id if found else 0, limit):
                assert len(some) <= limit
                found += some
            return found

        def chosen(selection: PlanSelection) -> set[str]:
            found = {page.url for page in walked(selection)}
            assert store.count_planned(selection, 0.0) == len(found)
            return found

        assert [page.id for page in walked(PlanSelection())] == every
        assert store.planned(PlanSelection(), 0, 0) == []
        assert chosen(PlanSelection()) == set(plans)
        assert chosen(PlanSelection(site="b")) == {url for url in plans if "//b/" in url}
        assert chosen(PlanSelection(site="nowhere")) == set()
        assert chosen(PlanSelection(later_than=150.0, until=250.0)) == {url for url in plans if 150 < plans[url] <= 250}
        assert chosen(PlanSelection(failing=True)) == set()
        (again,) = store.lease(120.0, 1, 60.0)
        store.commit([failed(again, 120.0)])
        assert chosen(PlanSelection(failing=True)) == {again.page.url}
        assert walked(PlanSelection(failing=True)) == [page_of(store, again.page.url)]

    def test_pages_of_resting_sites_are_not_counted_as_planned(self, store: Store) -> None:
        for site in ("a", "b"):
            visited(store, f"http://{site}/", site, "x", 0.0)
        store.save(SiteRecord("a", rest_until=50.0))
        assert store.count_planned(PlanSelection(), 49.0) == 1
        assert store.count_planned(PlanSelection(site="a"), 49.0) == 0
        assert store.count_planned(PlanSelection(site="a"), 50.0) == 1

    def test_a_visited_page_comes_back_when_its_next_visit_is_due(self, store: Store) -> None:
        (lease,) = leased(store, now=1.0)
        store.commit([first(lease, 2.0, "text", interval=100.0)])
        assert store.stats(2.0).next_due == 102.0
        assert store.lease(101.9, 10, 60.0) == []
        (again,) = store.lease(102.0, 10, 60.0)
        page = again.page
        assert (page.visits, page.interval, page.next_visit, page.version) == (1, 100.0, 102.0, 1)
        assert (page.etag, page.sketch) == ('"text"', b"text")
        assert (page.body_digest, page.text_digest) == (b"btext", b"ttext")
        assert page.history == (Visit(2.0, Outcome.FIRST, 0.0),)

    def test_a_page_without_a_next_visit_never_comes_back(self, store: Store) -> None:
        (lease,) = leased(store, now=1.0)
        store.commit([gone(lease, 2.0)])
        assert store.lease(1e12, 10, 60.0) == []
        assert store.stats(2.0).next_due is None

    def test_the_latest_ten_visits_are_kept_oldest_first(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        for step in range(13):
            visit(store, step * 60.0, unchanged)
        page = page_of(store, "http://a/0")
        assert page.visits == 13
        assert [visit.at for visit in page.history] == [step * 60.0 for step in range(3, 13)]

    def test_similarity_is_kept_in_fine_steps(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        visit(store, 0.0, unchanged, visit=Visit(0.1234567, Outcome.CHANGED, 0.3333))
        (kept,) = page_of(store, "http://a/0").history
        assert kept.at == 0.1234567
        assert abs(kept.similarity - 0.3333) <= 0.5 / 255

    def test_signals_are_kept_with_each_visit(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        said = [Signals.NOTHING, *Signals, Signals.NOT_MODIFIED | Signals.SITEMAP, Signals(0xFF)]
        visits = [Visit(n * 60.0, Outcome.UNCHANGED, 1.0, each) for n, each in enumerate(said)]
        for each in visits:
            visit(store, each.at, unchanged, visit=each)
        assert page_of(store, "http://a/0").history == tuple(visits)

    def test_what_the_policy_remembers_is_kept_until_it_remembers_something_else(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        kept = []
        for step, memory in enumerate([b"", b"one", b"", bytes(range(256)), b"", b"\0"]):
            lease = visit(store, step * 60.0, failed if step % 4 == 2 else unchanged, memory=memory)
            kept.append(lease.page.memory)
        kept.append(page_of(store, "http://a/0").memory)
        assert kept == [b"", b"", b"one", b"one", bytes(range(256)), bytes(range(256)), b"\0"]

    def test_failures_and_their_reason_are_kept(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        visit(store, 1.0, failed, reason=Reason.DNS)
        page = page_of(store, "http://a/0")
        assert (page.state, page.reason, page.failures, page.visits) == (PageState.FAILED, Reason.DNS, 1, 1)
        assert store.stats(1.0).states == {"failed": 1}

    def test_where_a_page_leads_is_kept_as_long_as_it_leads_there(self, store: Store) -> None:
        leads = []
        store.add(links("a", 1), [], 0.0)
        for at, target in enumerate(("http://b/x", "http://b/y?z=1", None)):
            state = PageState.ELSEWHERE if target else PageState.LIVE
            lease = visit(store, 60.0 * at, unchanged, state=state, leads_to=target)
            leads.append(lease.page.leads_to)
        leads.append(page_of(store, "http://a/0").leads_to)
        assert leads == [None, "http://b/x", "http://b/y?z=1", None]

    def test_released_pages_are_due_as_before(self, store: Store) -> None:
        leases = leased(store, 3, 1.0)
        store.release(leases[1:])
        assert urls_of(store.lease(1.0, 10, 60.0)) == ["http://a/1", "http://a/2"]
        assert store.commit([first(leases[1], 2.0, "x")]) == [False]
        store.release([leases[1]])
        assert store.lease(1.0, 10, 60.0) == []

    def test_a_release_gives_the_site_its_turn_back(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(delay=10.0))
        store.release(leased(store, 3, 1.0))
        assert len(store.lease(1.0, 3, 60.0)) == 3

    def test_a_batch_is_spread_over_sites(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(run=1))
        for site in "abcde":
            store.add(links(site, 100), [], 1.0)
        sites = [lease.page.site for lease in store.lease(1.0, 20, 60.0)]
        assert {site: sites.count(site) for site in "abcde"} == dict.fromkeys("abcde", 4)

    def test_a_single_site_fills_a_batch(self, store: Store) -> None:
        store.add(links("a", 100), [], 1.0)
        assert len(store.lease(1.0, 50, 60.0)) == 50

    def test_what_small_sites_leave_goes_to_large_ones(self, store: Store) -> None:
        store.add(links("small", 1), [], 1.0)
        store.add(links("large", 100), [], 1.0)
        assert len(store.lease(1.0, 50, 60.0)) == 50

    def test_sites_take_turns_even_if_time_stands_still(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(run=1))
        for site in "abc":
            store.add(links(site, 10), [], 1.0)
        order = "".join(store.lease(1.0, 1, 60.0)[0].page.site for _ in range(9))
        assert sorted(order[:3]) == ["a", "b", "c"]  # any site may come first
        assert order == order[:3] * 3

    def test_a_site_with_a_delay_has_its_next_turn_when_its_pages_can_have_been_fetched(
        self, open_store: OpenStore
    ) -> None:
        store = open_store(StoreLimits(delay=2.0))
        store.add(links("a", 10), [], 0.0)
        assert len(store.lease(0.0, 4, 60.0)) == 4
        assert store.lease(7.9, 4, 60.0) == []
        assert len(store.lease(8.0, 4, 60.0)) == 4

    def test_new_links_do_not_bring_a_polite_turn_forward(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(delay=2.0))
        (lease,) = leased(store)
        store.commit([first(lease, 0.5, "text", tuple(links("a", 5, start=1)))])
        assert store.lease(1.9, 4, 60.0) == []
        assert len(store.lease(2.0, 4, 60.0)) == 4

    def test_no_more_is_leased_than_can_politely_be_fetched_in_time(self, store: Store) -> None:
        store.save(SiteRecord("a", delay=20.0))
        store.add(links("a", 10), [], 0.0)
        assert len(store.lease(0.0, 10, 60.0)) == 3

    def test_a_site_in_backoff_is_left_alone_until_it_ends(self, store: Store) -> None:
        store.add([*links("a", 2), *links("b", 2)], [], 1.0)
        store.save(SiteRecord("a", rest_until=50.0))
        assert {lease.page.site for lease in store.lease(49.0, 10, 10.0)} == {"b"}
        assert {lease.page.site for lease in store.lease(50.0, 10, 10.0)} == {"a"}

    def test_a_backoff_may_end_early(self, store: Store) -> None:
        store.add(links("a", 2), [], 1.0)
        store.save(SiteRecord("a", rest_until=500.0))
        store.save(SiteRecord("a"))
        assert len(store.lease(2.0, 10, 60.0)) == 2

    def test_new_and_due_pages_alternate_from_lease_to_lease(self, store: Store) -> None:
        store.commit([first(lease, 0.0, "x", interval=10.0) for lease in leased(store, 4)])
        store.add(links("a", 4, start=4), [], 20.0)
        visits = [store.lease(20.0, 1, 60.0)[0].page.visits for _ in range(6)]
        assert sorted(visits) == [0, 0, 0, 1, 1, 1]

    def test_due_pages_fill_up_where_there_are_no_new_ones(self, store: Store) -> None:
        store.commit([first(lease, 0.0, "x", interval=10.0) for lease in leased(store, 4)])
        assert len(store.lease(20.0, 4, 60.0)) == 4

    def test_with_a_cutoff_pages_due_after_it_wait(self, store: Store) -> None:
        one, two = leased(store, 2)
        store.commit([first(one, 0.0, "x", interval=10.0), first(two, 0.0, "y", interval=30.0)])
        assert urls_of(store.lease(50.0, 10, 60.0, 20.0)) == ["http://a/0"]
        assert store.lease(50.0, 10, 60.0, 20.0) == []
        assert urls_of(store.lease(50.0, 10, 60.0)) == ["http://a/1"]

    def test_sites_with_nothing_before_the_cutoff_do_not_hide_the_others(self, store: Store) -> None:
        for site in "abc":
            visited(store, f"http://{site}/", site, "x", 0.0)
        store.add(links("new", 1), [], 90.0)
        assert [lease.page.site for lease in store.lease(100.0, 1, 60.0, 50.0)] == ["new"]

    def test_forgotten_leases_are_free_at_once_and_end_with_the_next_one(self, store: Store) -> None:
        one, two = leased(store, 2, seconds=600.0)
        store.forget_leases()
        assert store.stats(1.0).leased == 0
        (again,) = store.lease(1.0, 1, 600.0)
        assert again.page.id == one.page.id
        assert store.commit([first(one, 2.0, "x"), first(two, 2.0, "y")]) == [False, True]

    def test_what_a_wrong_clock_planned_is_due_when_waits_are_limited(self, store: Store) -> None:
        wrong, now, latest = 1_000_000.0, 100.0, 5_000.0
        store.add(links("ahead", 2), [], wrong)
        visit(store, wrong, first, "x", found=tuple(links("found", 1)))
        assert store.lease(now, 10, 60.0) == []
        assert store.limit_waits(now, latest) == 2
        leases = store.lease(now, 10, 60.0)
        assert set(urls_of(leases)) == {"http://ahead/0", "http://ahead/1", "http://found/0"}
        assert all(lease.page.next_visit == now for lease in leases)
        assert store.limit_waits(now, latest) == 0

    def test_a_far_page_is_found_also_on_a_site_that_has_others_to_visit(self, store: Store) -> None:
        far, near = leased(store, 2)
        store.commit([first(far, 0.0, "x", interval=9_000.0), first(near, 0.0, "y", interval=60.0)])
        assert store.limit_waits(10.0, 5_000.0) == 1
        assert [lease.page.id for lease in store.lease(20.0, 10, 60.0)] == [far.page.id]
        assert page_of(store, near.page.url).next_visit == 60.0

    def test_a_backoff_that_is_too_long_ends_and_a_dropped_site_stays_dropped(self, store: Store) -> None:
        for site, until in (("a", 9_000.0), ("b", 300.0), ("c", FOREVER)):
            store.add(links(site, 1), [], 0.0)
            store.save(SiteRecord(site, rest_until=until))
        assert store.limit_waits(10.0, 5_000.0) == 1
        rests = {record.site: record.rest_until for record in store.sites()}
        assert rests == {"a": 10.0, "b": 300.0, "c": FOREVER}
        assert [lease.page.site for lease in store.lease(10.0, 10, 60.0)] == ["a"]

    def test_limiting_waits_leaves_pages_alone_that_somebody_holds(self, store: Store) -> None:
        visited(store, "http://a/", "a", "x", 0.0)
        (lease,) = store.lease(70.0, 1, 60.0)
        assert store.limit_waits(10.0, 50.0) == 1, "its turn"
        assert store.lease(10.0, 10, 60.0) == []
        assert page_of(store, "http://a/").next_visit == 60.0
        assert store.commit([unchanged(lease, 80.0)]) == [True]

    def test_over_a_sites_page_limit_urls_are_refused_and_counted(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(max_pages_per_site=3))
        assert store.add(links("a", 5), [], 1.0) == 3
        assert store.add(links("a", 2), [], 1.0) == 0
        assert store.stats(1.0).refused == {"site-full": 2}
        site = store.site("a")
        assert site is not None
        assert (site.pages, site.refused) == (3, ((Reason.SITE_FULL, 2, "http://a/3"),))

    def test_a_site_has_the_page_limit_and_the_delay_of_its_rule(self, open_store: OpenStore) -> None:
        rules = SiteRules([SiteSettings(match="a", max_pages=4, delay=30.0), SiteSettings(match="b", per_hour=60)])
        store = open_store(StoreLimits(max_pages_per_site=9, delay=5.0, paces=SitePaces(rules, delay=5.0)))
        assert [store.add(links(site, 6), [], 1.0) for site in "abc"] == [4, 6, 6]
        leases = store.lease(1.0, 100, 60.0)
        assert {site: sum(lease.page.site == site for lease in leases) for site in "abc"} == {"a": 2, "b": 1, "c": 6}
        assert {lease.page.site for lease in store.lease(60.0, 100, 10.0)} == set(), "no site has had its turn"
        assert {"a", "b"} <= {lease.page.site for lease in store.lease(61.0, 100, 10.0)}

    def test_links_of_a_visited_page_are_kept_with_where_they_were_found(self, store: Store) -> None:
        (lease,) = leased(store, now=1.0)
        store.commit([first(lease, 7.0, "x", tuple(links("b", 2)))])
        page = page_of(store, "http://b/1")
        assert (page.found_on, page.found_at) == (lease.page.id, 7.0)
        assert {each.page.site for each in store.lease(7.0, 10, 60.0)} == {"b"}

    def test_an_address_that_cannot_be_written_down_is_refused(self, store: Store) -> None:
        assert store.add([FoundUrl("http://a/\ud800", "a"), FoundUrl("http://a/ü", "a")], [], 1.0) == 1
        assert store.stats(1.0).refused == {"bad-url": 1}
        assert store.page("http://a/\ud800") is None

    def test_refusals_are_counted_with_one_example(self, store: Store) -> None:
        store.add(links("a", 1), [Refusal(f"http://a/{path}", "a", Reason.ROBOTS) for path in "xy"], 1.0)
        store.add([], [Refusal("http://far/" + "z" * 5000, "far", Reason.SCOPE)], 1.0)
        site = store.site("a")
        assert site is not None
        assert site.refused == ((Reason.ROBOTS, 2, "http://a/x"),)
        assert store.site("far") is None
        assert store.stats(1.0).refused == {"robots": 2, "scope": 1}

    def test_the_statistics_count_what_is_there(self, store: Store) -> None:
        store.add([*links("a", 3), *links("b", 1)], [], 0.0)
        one, two, *_ = store.lease(0.0, 3, 10.0)
        store.commit([first(one, 1.0, "x", interval=4.0), first(two, 1.0, "y", interval=100.0)])
        stats = store.stats(5.0)
        assert (stats.sites, stats.known, stats.unvisited) == (2, 4, 2)
        assert (stats.due, stats.leased, stats.stored, stats.versions) == (1, 1, 2, 2)
        assert stats.states == {"live": 2, "new": 2}
        assert stats.next_due == 0.0

    def test_a_leased_page_is_due_again_at_its_expiry(self, store: Store) -> None:
        leased(store, seconds=30.0)
        assert store.stats(1.0).next_due == 30.0

    def test_a_304_without_validators_keeps_what_is_stored(self, store: Store) -> None:
        visited(store, "http://a/0", "a", "x", 0.0)
        visit(store, 60.0, unchanged)
        page = page_of(store, "http://a/0")
        assert (page.etag, page.body_digest, page.text_digest, page.version) == ('"x"', b"bx", b"tx", 1)

    def test_other_bytes_with_the_same_text_renew_the_validators_only(self, store: Store) -> None:
        visited(store, "http://a/0", "a", "x", 0.0)
        visit(store, 60.0, unchanged, etag='"2"', body_digest=b"b2", text_digest=b"tx")
        page = page_of(store, "http://a/0")
        assert (page.etag, page.body_digest, page.text_digest, page.version) == ('"2"', b"b2", b"tx", 1)
        assert page.last_modified == "Mon, 01 Jan 2024 00:00:00 GMT"
        assert store.changes(1, 10) == []

    def test_a_new_version_brings_its_own_validators(self, store: Store) -> None:
        visited(store, "http://a/0", "a", "x", 0.0)
        visit(store, 60.0, changed, "y")
        page = page_of(store, "http://a/0")
        assert (page.etag, page.last_modified, page.body_digest, page.version) == (None, None, b"by", 2)

    def test_validators_of_what_is_not_stored_are_kept_too(self, store: Store) -> None:
        store.add([FoundUrl("http://a/map.xml", "a", PageKind.SITEMAP)], [], 0.0)
        read = Visit(0.0, Outcome.FIRST)
        visit(store, 0.0, unchanged, visit=read, kind=PageKind.SITEMAP, etag='"m"', body_digest=b"m")
        page = page_of(store, "http://a/map.xml")
        assert (page.etag, page.body_digest, page.version) == ('"m"', b"m", 0)
        assert store.document("http://a/map.xml") is None
        assert store.changes(0, 10) == []

    def test_empty_calls_do_nothing(self, store: Store) -> None:
        assert store.lease(0.0, 10, 60.0) == []
        assert store.commit([]) == []
        store.release([])
        assert store.add([], [], 0.0) == 0
        store.add(links("a", 1), [], 0.0)
        assert store.lease(0.0, 0, 60.0) == []
        assert store.lease(0.0, -1, 60.0) == []


class SiteContract(StoreSuite):
    """The store keeps the robots rules, delay and backoff of a site, and counts its pages itself."""

    def test_a_site_is_known_as_soon_as_a_page_of_it_is_held(self, store: Store) -> None:
        store.add(links("a", 2), [], 0.0)
        assert store.site("a") == SiteRecord("a", pages=2)
        assert store.site("b") is None

    def test_what_is_saved_is_given_back(self, store: Store) -> None:
        robots = (
            ("http", RobotsRecord("User-agent: *\nDisallow: /x", 1.0, 2.0)),
            ("https", RobotsRecord("", 3.0, 4.0, trouble=Reason.HTTP_5XX)),
        )
        record = SiteRecord("a", admitted=True, failures=3, rest_until=9.5, delay=1.5, robots=robots)
        store.save(record)
        assert store.site("a") == record
        store.save(replace(record, delay=None, robots=robots[:1], failures=0))
        assert store.site("a") == replace(record, delay=None, robots=robots[:1], failures=0)

    def test_counts_are_the_stores_own(self, store: Store) -> None:
        store.add(links("a", 2), [Refusal("http://a/x", "a", Reason.ROBOTS)], 0.0)
        store.save(SiteRecord("a", pages=99, refused=((Reason.DEPTH, 7, "no"),)))
        assert store.site("a") == SiteRecord("a", pages=2, refused=((Reason.ROBOTS, 1, "http://a/x"),))

    def test_a_site_is_admitted_by_a_start_url(self, store: Store) -> None:
        store.add([FoundUrl("http://a/1", "a"), FoundUrl("http://b/1", "b", admit=True)], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": False, "b": True}
        store.add([FoundUrl("http://a/1", "a", admit=True)], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}
        store.add([FoundUrl("http://a/2", "a")], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}

    def test_all_sites_are_listed(self, store: Store) -> None:
        store.add([FoundUrl(f"http://s{n}/", f"s{n}") for n in range(500)], [], 0.0)
        assert sorted(site.site for site in store.sites()) == sorted(f"s{n}" for n in range(500))

    def test_saving_a_site_that_is_not_known_makes_it_known(self, store: Store) -> None:
        store.save(SiteRecord("a", admitted=True))
        assert store.stats(0.0).sites == 1
        assert store.site("a") == SiteRecord("a", admitted=True)
        assert store.lease(0.0, 10, 60.0) == []
