"""What each answer means, as a table; and the laws that hold for all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.protocols import RevisitPolicy
from levada.core.reasons import Reason
from levada.core.records import (
    DiscoveredBy,
    Lease,
    Outcome,
    PageKind,
    PageRecord,
    PageState,
    RawPage,
    Response,
    Visit,
    VisitResult,
)
from levada.core.settings import Settings, parse_settings
from levada.crawl.link_filter import LinkFilter
from levada.crawl.outcome import PASSING, CanonicalTracker, OutcomeRules
from levada.crawl.visits import Fetched, Visited, parse_if_new
from levada.freshness import PageEstimates, Rule, RuleRevisit, Scale
from levada.freshness.estimates import Evidence
from levada.pages.change import answer_mark
from levada.pages.parse import ParseLimits, parse_page
from levada.parser.inline import InlineParser
from tests.crawl.simulated_crawl import DAY, START, ema_policy, failing, html, page, status, text

URL = "http://a.test/page"
AT = START + 1000.0
FIRST = 3600.0


def known(url: str = URL, **facts: object) -> PageRecord:
    record = PageRecord(1, url, "a.test", PageKind.PAGE, PageState.NEW, DiscoveredBy.LINK, 1, 0, START)
    return replace(record, **facts)


def stored(url: str = URL, title: str = "old", *, noindex: bool = False, **facts: object) -> PageRecord:
    """A page that was stored with this title's text."""
    body = html(title)
    parsed = parse_page(RawPage(url, body, "text/html", noindex=noindex))
    return known(
        url,
        **{
            "state": PageState.LIVE,
            "visits": 1,
            "version": 1,
            "interval": FIRST,
            "memory": Evidence.none().packed([FIRST, 0.0]),
            "history": (Visit(START, Outcome.FIRST, 0.0),),
            "etag": '"old"',
            "body_digest": answer_mark(body),
            "text_digest": parsed.text_digest,
            "sketch": parsed.sketch,
            **facts,
        },
    )


class Judge:
    """A settler with its memories, and the parse step before it."""

    def __init__(self, toml: str = "", policy: RevisitPolicy | None = None) -> None:
        self.settings: Settings = parse_settings(toml, "the test")
        self.parser = InlineParser(ParseLimits(agent=self.settings.politeness.agent))
        self.link_filter = LinkFilter(self.settings.crawl, ["a.test"])
        self.outcome_rules = OutcomeRules(self.settings, policy or ema_policy(floor=300.0), self.link_filter)

    def __call__(self, record: PageRecord, response: Response, rival: PageRecord | None = None) -> VisitResult:
        fetched = Fetched(Lease(record, 7, AT + 600), AT, response)
        coroutine = parse_if_new(fetched, self.parser, self.settings.politeness.agent)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return check(self.outcome_rules.decide(done.value, rival))
        raise AssertionError("the inline parser does not wait")

    def refused(self, record: PageRecord, reason: Reason) -> VisitResult:
        return check(self.outcome_rules.decide(Visited(Fetched(Lease(record, 7, AT + 600), AT, refused=reason))))

    def killed(self, record: PageRecord, how: Reason) -> VisitResult:
        fetched = Fetched(Lease(record, 7, AT + 600), AT, page("x"))
        return check(self.outcome_rules.decide(Visited(fetched, b"digest", killed_parser=how)))


def check(result: VisitResult) -> VisitResult:
    """The laws of every visit."""
    assert result.lease.token == 7
    assert result.visit.at == AT
    assert 0.0 <= result.visit.similarity <= 1.0
    if result.next_visit is None:
        assert result.state is PageState.QUARANTINED
    else:
        assert math.isfinite(result.next_visit)
        assert result.next_visit > AT
    if result.version is not None:
        assert result.state is PageState.LIVE
        assert result.body_digest is not None
    if result.visit.outcome is Outcome.FAILED:
        assert result.reason in PASSING
    return result


# Content


def test_the_first_answer_is_stored() -> None:
    result = Judge()(known(), page("new", "/a", etag='"e"', last_modified="today"))
    assert (result.visit.outcome, result.state, result.reason) == (Outcome.FIRST, PageState.LIVE, None)
    assert result.visit.similarity == 0.0
    assert result.version is not None
    assert result.version.title == "new"
    assert (result.etag, result.last_modified) == ('"e"', "today")
    assert [found.url for found in result.found] == ["http://a.test/a"]
    assert result.next_visit == AT + FIRST


def test_a_changed_text_is_a_new_version_and_a_sooner_visit() -> None:
    result = Judge()(stored(), page("new"))
    assert result.visit.outcome is Outcome.CHANGED
    assert result.version is not None
    assert result.interval == pytest.approx(FIRST / 1.3)


def test_a_small_change_is_more_similar_than_a_large_one() -> None:
    judge = Judge()
    small = judge(stored(), page("other title", words=text("old", 59) + " one")).visit.similarity
    large = judge(stored(), page("new")).visit.similarity
    assert 0.0 <= large < 0.2 < 0.8 < small < 1.0


@pytest.mark.parametrize("response", [page("old"), status(304)])
def test_the_same_bytes_or_304_are_unchanged(response: Response) -> None:
    result = Judge()(stored(), response)
    assert (result.visit.outcome, result.state, result.version) == (Outcome.UNCHANGED, PageState.LIVE, None)
    assert result.visit.similarity == 1.0
    assert result.interval == pytest.approx(FIRST * 1.2)


def test_the_same_text_in_other_bytes_is_unchanged_and_its_links_are_taken() -> None:
    body = (
        html("old").replace(b"<body>", b'<body class="new">').replace(b"</body>", b"<nav><a href=/n>n</a></nav></body>")
    )
    result = Judge()(stored(), status(200, body, content_type="text/html"))
    assert (result.visit.outcome, result.version) == (Outcome.UNCHANGED, None)
    assert result.body_digest == answer_mark(body)
    assert [found.url for found in result.found] == ["http://a.test/n"]


@pytest.mark.parametrize(
    ("modified", "answered", "is_kept"),
    [
        ("Mon, 05 Jan 2026 10:00:00 GMT", "Mon, 05 Jan 2026 10:00:01 GMT", True),
        ("Mon, 05 Jan 2026 10:00:00 GMT", "Mon, 05 Jan 2026 10:00:00 GMT", False),
        ("Mon, 05 Jan 2026 10:00:00 GMT", "soon", True),
    ],
)
def test_a_date_of_the_same_second_is_no_validator(modified: str, answered: str, is_kept: bool) -> None:
    response = page("new", last_modified=modified, date=answered)
    for record in (known(), stored(), stored("new")):
        result = Judge()(record, response)
        assert result.last_modified == (modified if is_kept else None)


def test_304_without_a_stored_copy_is_a_failure() -> None:
    result = Judge()(known(), status(304))
    assert (result.visit.outcome, result.state) == (Outcome.FAILED, PageState.FAILED)
    assert result.reason is Reason.PROTOCOL


@pytest.mark.parametrize("was", [PageState.GONE, PageState.ELSEWHERE])
@pytest.mark.parametrize("response", [page("old"), status(304), page("new")])
def test_a_page_that_was_away_is_live_again_when_it_answers(was: PageState, response: Response) -> None:
    result = Judge()(stored(state=was, interval=None, failures=3), response)
    assert (result.state, result.failures) == (PageState.LIVE, 0)


# Redirects


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/other", "http://a.test/other"),
        ("other?b=1#there", "http://a.test/other?b=1"),
        ("//a.test/x", "http://a.test/x"),
        ("https://a.test/page", "https://a.test/page"),
    ],
)
def test_a_redirect_leads_elsewhere(code: int, location: str, target: str) -> None:
    result = Judge()(known(), status(code, location=location))
    assert (result.state, result.reason) == (PageState.ELSEWHERE, Reason.REDIRECTED)
    assert [(found.url, found.how, found.hops, found.depth) for found in result.found] == [
        (target, DiscoveredBy.REDIRECT, 1, 1)
    ]
    assert (result.version, result.leads_to) == (None, target)


@pytest.mark.parametrize("location", ["http://b.test/", "https://www.a.test/page", "http://127.0.0.1/"])
def test_a_redirect_out_of_scope_is_said_so(location: str) -> None:
    result = Judge()(known(), status(301, location=location))
    assert result.found == ()
    assert [refusal.reason for refusal in result.refused] == [Reason.SCOPE]


def test_a_redirect_to_another_site_brings_its_front_page_too() -> None:
    result = Judge('[crawl]\nscope = "any"')(known(), status(302, location="http://b.test/x"))
    assert [(found.url, found.how) for found in result.found] == [
        ("http://b.test/", DiscoveredBy.FRONT),
        ("http://b.test/x", DiscoveredBy.REDIRECT),
    ]


@pytest.mark.parametrize(
    ("location", "reason", "outcome"),
    [
        ("file:///etc/passwd", Reason.SCHEME, Outcome.REFUSED),
        ("data:text/html,hello", Reason.SCHEME, Outcome.REFUSED),
        ("ftp://a.test/x", Reason.SCHEME, Outcome.REFUSED),
        ("javascript:alert(1)", Reason.SCHEME, Outcome.REFUSED),
        ("http://", Reason.BAD_URL, Outcome.REFUSED),
        ("http://[::1", Reason.BAD_URL, Outcome.REFUSED),
        ("http://user:secret@a.test/", Reason.BAD_URL, Outcome.REFUSED),
        ("/page", Reason.REDIRECTS, Outcome.REFUSED),
        ("#top", Reason.REDIRECTS, Outcome.REFUSED),
        ("", Reason.PROTOCOL, Outcome.FAILED),
    ],
)
def test_a_redirect_that_leads_nowhere_is_a_recorded_reason(location: str, reason: Reason, outcome: Outcome) -> None:
    result = Judge()(known(), status(302, location=location))
    assert (result.reason, result.visit.outcome, result.found) == (reason, outcome, ())


def test_a_redirect_without_location_is_a_failure() -> None:
    assert Judge()(known(), status(301)).reason is Reason.PROTOCOL


def test_redirects_in_a_row_are_bounded() -> None:
    result = Judge()(known(hops=5), status(301, location="/next"))
    assert result.found == ()
    assert [refusal.reason for refusal in result.refused] == [Reason.REDIRECTS]


# Errors


@pytest.mark.parametrize("code", [404, 410])
def test_a_page_that_is_gone_says_so_and_is_looked_at_again_later(code: int) -> None:
    judge = Judge()
    result = judge(stored(), status(code))
    assert (result.visit.outcome, result.state, result.reason) == (Outcome.GONE, PageState.GONE, Reason.GONE)
    again = judge(stored(state=PageState.GONE, failures=1), status(code))
    assert result.next_visit is not None
    assert again.next_visit is not None
    assert 0.8 * DAY < result.next_visit - AT < again.next_visit - AT


@pytest.mark.parametrize(
    ("response", "reason", "outcome", "least"),
    [
        (status(400), Reason.HTTP_4XX, Outcome.REFUSED, 0.8 * DAY),
        (status(401), Reason.HTTP_4XX, Outcome.REFUSED, 0.8 * DAY),
        (status(403), Reason.HTTP_4XX, Outcome.REFUSED, 0.8 * DAY),
        (status(451), Reason.HTTP_4XX, Outcome.REFUSED, 0.8 * DAY),
        (status(429), Reason.RETRY_AFTER, Outcome.FAILED, 250),
        (status(429, retry_after="7200"), Reason.RETRY_AFTER, Outcome.FAILED, 7200),
        (status(429, retry_after="99999999999999999999"), Reason.RETRY_AFTER, Outcome.FAILED, DAY),
        (status(429, retry_after="Wed, 15 Nov 2023 00:00:00 GMT"), Reason.RETRY_AFTER, Outcome.FAILED, 5000),
        (status(429, retry_after="Wed, 15 Nov 1993 00:00:00 GMT"), Reason.RETRY_AFTER, Outcome.FAILED, 250),
        (status(429, retry_after="soon, promise"), Reason.RETRY_AFTER, Outcome.FAILED, 250),
        (status(429, retry_after="-5"), Reason.RETRY_AFTER, Outcome.FAILED, 250),
        (status(500), Reason.HTTP_5XX, Outcome.FAILED, 250),
        (status(503), Reason.HTTP_5XX, Outcome.FAILED, 250),
        (status(503, retry_after="7200"), Reason.RETRY_AFTER, Outcome.FAILED, 7200),
        (status(503, retry_after="later"), Reason.HTTP_5XX, Outcome.FAILED, 250),
        (status(599), Reason.HTTP_5XX, Outcome.FAILED, 250),
        (status(100), Reason.HTTP_4XX, Outcome.REFUSED, 250),
    ],
)
@pytest.mark.parametrize("is_stored", [False, True])
def test_an_error_is_recorded_and_what_is_stored_stays(
    response: Response, reason: Reason, outcome: Outcome, least: float, is_stored: bool
) -> None:
    result = Judge()(stored() if is_stored else known(), response)
    assert (result.visit.outcome, result.reason, result.failures) == (outcome, reason, 1)
    assert result.state is (PageState.LIVE if is_stored else PageState(outcome.name.lower()))
    assert result.next_visit is not None
    assert result.next_visit - AT >= least
    assert bool(result.refused) == (outcome is Outcome.REFUSED)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_of_a_failed_fetch_settles(reason: Reason) -> None:
    for result in (Judge()(known(), failing(reason)), Judge().refused(stored(), reason)):
        assert result.reason is reason
        assert result.visit.outcome is (Outcome.FAILED if reason in PASSING else Outcome.REFUSED)
        assert result.version is None


def test_waits_double_up_to_their_bound() -> None:
    judge = Judge()
    waits = [(judge(stored(failures=n), status(500)).next_visit or 0) - AT for n in range(100)]
    assert waits == sorted(waits)
    assert waits[1] == pytest.approx(2 * waits[0])
    assert waits[-1] <= 1.1 * DAY


# Copies


def canonical_to(url: str, title: str = "copy", **headers: str) -> Response:
    return page(title, "/linked", head=f'<link rel="canonical" href="{url}">', **headers)


@pytest.mark.parametrize("target", [URL, "/page", "https://a.test/page", URL + "#part"])
def test_a_page_that_names_itself_canonical_is_stored(target: str) -> None:
    assert Judge()(known(), canonical_to(target)).version is not None


def test_a_page_that_names_another_canonical_leads_there() -> None:
    result = Judge()(known(), canonical_to("/real"))
    assert (result.state, result.reason) == (PageState.ELSEWHERE, Reason.DUPLICATE)
    assert [(found.url, found.how) for found in result.found] == [("http://a.test/real", DiscoveredBy.CANONICAL)]
    assert result.leads_to == "http://a.test/real"


def test_a_canonical_on_a_site_out_of_scope_is_not_followed_and_the_page_is_kept() -> None:
    result = Judge()(known(), canonical_to("http://elsewhere.test/"))
    assert result.version is not None


def test_a_canonical_on_another_site_brings_its_front_page_too() -> None:
    result = Judge('[crawl]\nscope = "any"')(known(), canonical_to("http://b.test/x"))
    assert [found.url for found in result.found] == ["http://b.test/", "http://b.test/x"]


@pytest.mark.parametrize("state", list(PageState))
def test_a_canonical_that_leads_away_itself_is_not_believed(state: PageState) -> None:
    """Two pages that name each other, a canonical that redirects back, or is gone: the content is kept."""
    rival = known("http://a.test/real", state=state)
    result = Judge()(known(), canonical_to("/real"), rival)
    is_kept = state not in (PageState.NEW, PageState.LIVE)
    assert (result.version is not None) == is_kept


TARGET = "http://a.test/real"


def waiting(judge: Judge, record: PageRecord, *, committed: bool = True) -> VisitResult:
    """A page that is set aside for the target."""
    result = judge(record, canonical_to("/real"))
    assert result.state is PageState.ELSEWHERE
    if committed:
        assert judge.outcome_rules.canonicals.after(result) == []
    return result


@pytest.mark.parametrize(
    "answer", [status(404), failing(Reason.SECONDS), status(403), status(301, location="/page")], ids=str
)
def test_a_canonical_that_holds_nothing_disappoints_those_set_aside_for_it(answer: Response) -> None:
    judge = Judge()
    waiting(judge, known(visits=3))
    result = judge(known(TARGET, id=2, how=DiscoveredBy.CANONICAL), answer)
    assert judge.outcome_rules.canonicals.after(result) == [known(visits=4)]
    assert judge.outcome_rules.canonicals.after(result) == []


def test_a_page_that_is_committed_after_its_canonical_disappointed_is_told_of_then() -> None:
    judge = Judge()
    aside = waiting(judge, known(), committed=False)
    assert judge.outcome_rules.canonicals.after(judge(known(TARGET, id=2), status(404))) == []
    assert judge.outcome_rules.canonicals.after(aside) == [known(visits=1)]


def test_nobody_waits_for_a_canonical_that_is_stored() -> None:
    judge = Judge()
    target = known(TARGET, id=2, how=DiscoveredBy.CANONICAL)
    waiting(judge, known())
    assert judge.outcome_rules.canonicals.after(judge(target, page("x"))) == []
    judge(known(), canonical_to("/real"), replace(target, state=PageState.LIVE))
    assert judge.outcome_rules.canonicals.after(judge(target, status(404))) == []


def test_nobody_waits_twice_for_the_same_page() -> None:
    aside = known(state=PageState.ELSEWHERE, leads_to=TARGET, visits=1, interval=FIRST)
    for rival in (None, known(TARGET, id=2)):
        assert Judge()(aside, canonical_to("/real"), rival).version is not None


def test_what_is_stored_stays_until_its_canonical_is() -> None:
    for rival in (None, known(TARGET, id=2), known(TARGET, id=2, state=PageState.FAILED)):
        assert Judge()(stored(), canonical_to("/real"), rival).state is PageState.LIVE
    assert Judge()(stored(), canonical_to("/real"), stored(TARGET, id=2)).state is PageState.ELSEWHERE


def test_of_two_that_name_each_other_and_are_read_together_one_is_kept() -> None:
    judge = Judge()
    other = known(TARGET, id=2)
    assert judge(known(), canonical_to("/real"), other).state is PageState.ELSEWHERE
    assert judge(other, canonical_to(URL), known()).version is not None


def test_how_many_wait_for_others_is_bounded() -> None:
    canonicals = CanonicalTracker(most_kept=2)
    for n in range(5):
        canonicals.set_aside(known(id=n), f"http://a.test/{n}")
        canonicals.set_aside(known(id=n), f"http://a.test/{n}")
    assert [canonicals.counts_on(f"http://a.test/{n}") for n in range(5)] == [False, False, False, True, True]


# What the page asks for


def test_noindex_is_stored_but_not_searchable_and_its_links_are_followed() -> None:
    result = Judge()(known(), page("x", "/a", head='<meta name="robots" content="noindex">'))
    assert result.version is not None
    assert not result.version.searchable
    assert (result.state, result.reason) == (PageState.LIVE, Reason.NOINDEX)
    assert result.found


def test_what_was_never_met_is_tried_less_and_less_often() -> None:
    for record, most in ((known(failures=30), 30 * DAY), (stored(failures=30), DAY)):
        result = Judge()(record, status(500))
        assert result.next_visit is not None
        assert 0.9 * most <= result.next_visit - AT <= 1.1 * most


@pytest.mark.parametrize("answer", [failing(Reason.SECONDS), status(503), status(403)])
@pytest.mark.parametrize("state", [PageState.GONE, PageState.ELSEWHERE])
def test_a_failure_brings_nothing_back_that_was_out_of_search(state: PageState, answer: Response) -> None:
    target = "http://a.test/new" if state is PageState.ELSEWHERE else None
    result = Judge()(stored(state=state, leads_to=target), answer)
    assert (result.state, result.leads_to) == (state, target)


def test_nofollow_is_obeyed_and_said_so() -> None:
    result = Judge()(known(), page("x", "/a", "/b", head='<meta name="robots" content="nofollow">'))
    assert result.found == ()
    assert [refusal.reason for refusal in result.refused] == [Reason.NOFOLLOW] * 2
    assert result.version is not None


def test_a_page_may_ask_us_by_the_name_that_the_settings_give() -> None:
    asks = page("x", head='<meta name="mybot" content="noindex">')
    assert Judge('[politeness]\nagent = "mybot"')(known(), asks).reason is Reason.NOINDEX
    assert Judge()(known(), asks).reason is None


def test_a_page_that_turns_noindex_or_back_is_stored_anew_though_its_text_is_the_same() -> None:
    hidden = page("old", head='<meta name="robots" content="noindex">')
    now_hidden = Judge()(stored(), hidden)
    assert now_hidden.version is not None
    assert not now_hidden.version.searchable
    assert now_hidden.visit.outcome is Outcome.UNCHANGED
    now_shown = Judge()(stored(noindex=True, body_digest=b"other"), page("old"))
    assert now_shown.version is not None
    assert now_shown.version.searchable
    assert Judge()(stored(noindex=True), status(304)).reason is Reason.NOINDEX


def test_a_header_that_asks_for_noindex_or_no_longer_is_heard_though_not_a_byte_changed() -> None:
    now_hidden = Judge()(stored(), page("old", **{"x-robots-tag": "noindex"}))
    assert now_hidden.version is not None
    assert not now_hidden.version.searchable
    assert (now_hidden.reason, now_hidden.visit.outcome) == (Reason.NOINDEX, Outcome.UNCHANGED)
    now_shown = Judge()(stored(noindex=True), page("old"))
    assert now_shown.version is not None
    assert now_shown.version.searchable
    assert now_shown.reason is None
    assert Judge()(stored(), page("old")).version is None
    assert Judge()(stored(noindex=True), page("old", **{"x-robots-tag": "none"})).version is None


def test_a_failure_does_not_make_noindex_forgotten() -> None:
    hidden = stored(noindex=True)
    failure = Judge()(hidden, failing(Reason.SECONDS))
    failed = replace(hidden, state=failure.state, reason=failure.reason, failures=failure.failures)
    assert Judge()(failed, status(304)).reason is Reason.NOINDEX
    now_shown = Judge()(failed, page("old"))
    assert now_shown.version is not None
    assert now_shown.version.searchable


def test_another_title_alone_is_stored_but_is_no_change() -> None:
    result = Judge()(stored(title="old"), page("new", words=text("old")))
    assert result.version is not None
    assert result.version.title == "new"
    assert (result.visit.outcome, result.visit.similarity) == (Outcome.UNCHANGED, 1.0)


def test_a_page_without_text_but_with_links_leads_on() -> None:
    body = b'<html><body><a href="/a"><img src=x></a><a href="/b"><img src=y></a></body></html>'
    result = Judge()(known(), status(200, body, content_type="text/html"))
    assert [found.url for found in result.found] == ["http://a.test/a", "http://a.test/b"]
    assert result.state is PageState.LIVE


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"", "text/html", Reason.EMPTY),
        (b"   ", "text/html", Reason.EMPTY),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png", Reason.CONTENT_TYPE),
    ],
)
def test_an_answer_with_nothing_on_it_is_a_recorded_reason(body: bytes, kind: str, reason: Reason) -> None:
    result = Judge()(known(), status(200, body, content_type=kind))
    assert (result.state, result.reason) == (PageState.REFUSED, reason)


SITEMAP = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.test/%s</loc></url></urlset>'
FEED = b"<rss version='2.0'><channel><item><link>http://a.test/%s</link></item></channel></rss>"


@pytest.mark.parametrize(("body", "kind"), [(SITEMAP, PageKind.SITEMAP), (FEED, PageKind.FEED)])
def test_sitemaps_and_feeds_lead_on_and_are_no_documents(body: bytes, kind: PageKind) -> None:
    judge = Judge()
    result = judge(known(kind=kind), status(200, body % b"one", content_type="application/xml"))
    assert (result.state, result.kind, result.version) == (PageState.LIVE, kind, None)
    assert [found.url for found in result.found] == ["http://a.test/one"]
    again = known(kind=kind, text_digest=result.text_digest, body_digest=result.body_digest, interval=FIRST, visits=1)
    assert judge(again, status(200, body % b"one")).visit.outcome is Outcome.UNCHANGED
    assert judge(again, status(200, body % b"two")).visit.outcome is Outcome.CHANGED
    assert judge(again, status(500)).found == ()


# Pages that kill their parser


@pytest.mark.parametrize("how", [Reason.PARSER_DIED, Reason.PARSE_SECONDS])
def test_the_third_kill_quarantines(how: Reason) -> None:
    judge = Judge()
    record = known()
    for failures in (1, 2):
        result = judge.killed(record, how)
        assert (result.state, result.reason, result.failures) == (PageState.FAILED, how, failures)
        record = known(state=result.state, reason=result.reason, failures=result.failures, visits=failures)
    result = judge.killed(record, how)
    assert (result.state, result.reason, result.next_visit) == (PageState.QUARANTINED, Reason.QUARANTINED, None)
    assert [refusal.reason for refusal in result.refused] == [Reason.QUARANTINED]


def test_failures_of_another_kind_do_not_count_as_kills() -> None:
    result = Judge().killed(known(failures=9, reason=Reason.CONNECT), Reason.PARSER_DIED)
    assert (result.state, result.failures) == (PageState.FAILED, 1)


# Laws


class Wild(RuleRevisit):
    """A policy that says whatever it was told."""

    def __init__(self, answer: float) -> None:
        rule = Rule("wild", lambda memory, parameters, elapsed, outcome: answer, 0)
        super().__init__(rule, PageEstimates(Scale.between(60.0, DAY)))


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_policy_can_put_a_visit_into_the_past_or_beyond_the_ceiling(answer: float) -> None:
    judge = Judge(policy=Wild(answer))
    for response in (page("new"), page("old"), status(304), status(301, location="/x")):
        result = judge(stored(), response)
        assert result.next_visit is not None
        assert AT < result.next_visit <= AT + judge.settings.revisit.ceiling


@given(
    st.integers(100, 599),
    st.binary(max_size=200),
    st.lists(st.tuples(st.sampled_from(["location", "retry-after", "etag", "content-type"]), st.text(max_size=30))),
    st.sampled_from(["new", "stored", "gone"]),
)
def test_any_answer_settles(code: int, body: bytes, headers: list[tuple[str, str]], before: str) -> None:
    record = known() if before == "new" else stored()
    if before == "gone":
        record = replace(record, state=PageState.GONE, interval=None)
    Judge()(record, Response("", code, tuple(headers), body))
