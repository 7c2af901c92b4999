"""Parts of a page on a whole crawl: noise makes no version, a changed rule no change, a missing part no loss."""

from __future__ import annotations

from random import Random

import pytest

from levada.core.reasons import Reason
from levada.core.records import Outcome, PageState, Response
from tests.crawl.simulated_crawl import DAY, World, page, status
from tests.crawl.test_changed_settings import Changing
from tests.scripted_web import Answer

HOME = "http://shop.test/"
LAMP = HOME + "lamp"
SETTINGS = "[crawl]\nsitemaps = false\n"
RULE = '[[site]]\nmatch = "shop.test"\n'


def product(name: str, price: int, noise: str = "", *links: str, **headers: str) -> Response:
    body = f"<h1>{name}</h1><p class=price>{price} EUR</p><p class=noise>{noise}</p>"
    anchors = "".join(f"<a href={link}>More of it, much more</a>" for link in links)
    kept = tuple((key.replace("_", "-"), value) for key, value in headers.items())
    text = f"<!doctype html><title>{name}</title><main>{body}{anchors}</main>"
    return Response("", 200, (("content-type", "text/html; charset=utf-8"), *kept), text.encode())


def outcomes(world: World, url: str) -> list[Outcome]:
    return [each.visit.outcome for each in world.commits if each.lease.page.url == url]


def text_of(world: World, url: str) -> str:
    document = world.store.document(url)
    assert document is not None
    return document.text


def again(world: World, *urls: str) -> None:
    world.clock.advance(40 * DAY)
    world.crawl(*urls)


def test_noise_makes_no_version_and_the_policy_sees_an_unchanged_page() -> None:
    random = Random(1)
    answers: list[Answer] = [product("Lamp", 10, f"seen {random.random()} times") for _ in range(20)]
    world = World({LAMP: [*answers, product("Lamp", 11)]}, SETTINGS + RULE + 'select = ["h1", ".price"]\n')
    world.crawl(LAMP)
    for _ in range(20):
        again(world)
    assert outcomes(world, LAMP) == [Outcome.FIRST, *[Outcome.UNCHANGED] * 19, Outcome.CHANGED]
    assert (world.page(LAMP).version, text_of(world, LAMP)) == (2, "Lamp\n11 EUR")


def test_a_changed_rule_is_no_change_of_the_page() -> None:
    world = World({LAMP: [product("Lamp", 10, "x"), product("Lamp", 10, "y")]}, SETTINGS)
    world.crawl(LAMP)
    for rule in ('select = [".price"]\n', 'select = ["h1"]\n', 'ignore = ["numbers"]\n', ""):
        world.settings = World({}, SETTINGS + (RULE + rule if rule else "")).settings
        again(world)
    assert outcomes(world, LAMP) == [Outcome.FIRST, *[Outcome.UNCHANGED] * 4]
    assert [each.what.value for each in world.store.change_log(0, 10)] == ["new"]
    assert text_of(world, LAMP) == "Lamp\n10 EUR\ny"


def test_a_changed_rule_asks_for_the_whole_page_once_and_holds_under_a_running_crawl() -> None:
    world = World(
        {LAMP: [product("Lamp", 10, "x", etag='"1"'), status(304)]},
        SETTINGS + "[revisit]\nfirst = 60\nfloor = 60\nceiling = 60\n",
    )
    world.live = changing = Changing(world)
    select = changing.to({"site.shop.test.select": [".price"]})
    changed = [world.script(LAMP, product("Lamp", 10, "y", etag='"1"'), status(304)), select]
    world.crawl(LAMP, seconds=600.0, meanwhile={200.0: lambda: [each() for each in changed]})
    sent = ["If-None-Match" in dict(each.headers) for each in world.web.requests if each.url == LAMP]
    assert sent.count(False) == 2
    assert not sent[0]
    assert sent[-1]
    assert text_of(world, LAMP) == "10 EUR"
    assert world.page(LAMP).version == 1


def test_the_same_bytes_are_read_anew_by_a_new_rule_and_then_no_more() -> None:
    world = World({LAMP: product("Lamp", 10)}, SETTINGS)
    world.crawl(LAMP)
    world.settings = World({}, SETTINGS + RULE + 'select = [".price"]\n').settings
    again(world)
    assert text_of(world, LAMP) == "10 EUR"
    before = world.page(LAMP).text_digest
    again(world)
    assert world.page(LAMP).text_digest == before


def test_a_page_without_what_is_selected_keeps_its_version_and_its_links_are_followed() -> None:
    rule = RULE + 'select = [".price"]\n'
    world = World(
        {
            HOME: page("Shop", "/lamp"),
            LAMP: [product("Lamp", 10), page("Closed for the holidays"), product("Lamp", 10), product("Lamp", 12)],
        },
        SETTINGS + rule,
    )
    world.crawl(HOME)
    front = world.page(HOME)
    assert (front.state, front.reason, front.version) == (PageState.LIVE, Reason.NO_MATCH, 0)
    assert world.stored() == {LAMP}
    again(world)
    lamp = world.page(LAMP)
    assert (lamp.state, lamp.reason, lamp.version) == (PageState.LIVE, Reason.NO_MATCH, 1)
    assert text_of(world, LAMP) == "10 EUR"
    assert world.refused()[Reason.NO_MATCH] >= 2
    again(world)
    assert (world.page(LAMP).reason, world.page(LAMP).version) == (None, 1)
    again(world)
    assert outcomes(world, LAMP) == [Outcome.FIRST, Outcome.UNCHANGED, Outcome.UNCHANGED, Outcome.CHANGED]


def test_the_reason_stays_while_the_bytes_are_the_same_and_no_page_is_fetched_whole_for_it() -> None:
    front = page("Shop", etag='"1"')
    world = World({HOME: [front, status(304)]}, SETTINGS)
    world.crawl(HOME)
    world.settings = World({}, SETTINGS + RULE + 'select = [".price"]\n').settings
    world.web.script(HOME, front, status(304))
    for _ in range(3):
        again(world)
    assert world.page(HOME).reason is Reason.NO_MATCH
    asked = ["If-None-Match" in dict(each.headers) for each in world.web.requests if each.url == HOME]
    assert asked == [False, False, True, True]


def test_what_a_rule_finds_at_last_is_no_change_if_the_stored_text_is_from_before_the_rule() -> None:
    world = World({LAMP: [product("Lamp", 10), page("Soon"), product("Lamp", 10), product("Lamp", 11)]}, SETTINGS)
    world.crawl(LAMP)
    world.settings = World({}, SETTINGS + RULE + 'select = [".price"]\n').settings
    for _ in range(3):
        again(world)
    assert outcomes(world, LAMP) == [Outcome.FIRST, Outcome.UNCHANGED, Outcome.UNCHANGED, Outcome.CHANGED]
    assert text_of(world, LAMP) == "11 EUR"


@pytest.mark.parametrize("rule", ['select = ["xpath://p[1]", ".price"]\n', 'ignore = ["numbers"]\n'])
def test_pages_with_equal_parts_are_no_duplicates(rule: str) -> None:
    names = [f"item{n}" for n in range(30)]
    words = " ".join(f"word{n}" for n in range(30))
    web: dict[str, Answer] = {HOME: page("Shop", *(f"/{name}" for name in names))}
    web |= {HOME + name: product(f"{n}", 10, words) for n, name in enumerate(names)}
    world = World(web, SETTINGS + "near_duplicate_run = 4\n" + RULE + rule)
    world.crawl(HOME)
    near = world.refused().get(Reason.NEAR_DUPLICATES, 0)
    assert world.refused().get(Reason.DUPLICATE, 0) == 0
    assert near == (0 if "select" in rule else near)
    assert not [each for each in names if world.page(HOME + each).state is PageState.ELSEWHERE]


def test_removed_parts_do_not_keep_duplicates_from_being_found() -> None:
    words = " ".join(f"word{n}" for n in range(30))
    web: dict[str, Answer] = {HOME: page("Shop", "/a", "/b"), HOME + "a": product("x", 1, words)}
    web[HOME + "b"] = Response("", 200, (("content-type", "text/html"),), product("x", 1, words).body + b"<p id=ad>ad")
    world = World(web, SETTINGS + RULE + 'remove = ["#ad"]\n')
    world.crawl(HOME)
    assert [world.page(HOME + each).reason for each in "ab"].count(Reason.DUPLICATE) == 1


def test_a_page_that_a_rule_keeps_from_being_read_in_time_is_tried_again() -> None:
    class Slow:
        async def parse(self, raw: object) -> object:
            from levada.core.errors import ParserDied

            raise ParserDied("too long", Reason.PARSE_SECONDS)

    for rule, state in (("", PageState.QUARANTINED), (RULE + 'select = ["p"]\n', PageState.FAILED)):
        world = World({LAMP: product("Lamp", 1)}, SETTINGS + rule, parser=Slow())  # type: ignore[arg-type]
        for _ in range(4):
            again(world, LAMP)
        assert world.page(LAMP).state is state


def test_only_what_meets_a_trigger_is_told_and_every_version_is_stored() -> None:
    prices = [120, 110, 99, 95, 130, 98]
    world = World(
        {LAMP: [product("Lamp", price) for price in prices]}, SETTINGS + RULE + 'trigger = ["price below 100"]\n'
    )
    world.crawl(LAMP)
    for _ in prices[1:]:
        again(world)
    assert outcomes(world, LAMP) == [Outcome.FIRST, *[Outcome.CHANGED] * 5]
    assert world.page(LAMP).version == len(prices)
    assert [(each.what.value, each.version) for each in world.store.change_log(0, 10)] == [
        ("changed", 3),
        ("changed", 6),
    ]


def test_a_page_that_is_gone_is_told_whatever_the_triggers_wait_for() -> None:
    world = World({LAMP: [product("Lamp", 120), status(404)]}, SETTINGS + RULE + 'trigger = ["price below 100"]\n')
    world.crawl(LAMP)
    again(world)
    assert [each.what.value for each in world.store.change_log(0, 10)] == ["gone"]


def test_a_trigger_outlives_visits_on_which_nothing_is_found() -> None:
    answers = [product("Lamp", 99), page("Closed for the holidays"), product("Lamp", 98), product("Lamp", 120)]
    rule = RULE + 'select = [".price"]\ntrigger = ["price below 100"]\n'
    world = World({LAMP: [*answers, product("Lamp", 97)]}, SETTINGS + rule)
    world.crawl(LAMP)
    for _ in range(4):
        again(world)
    assert [(each.what.value, each.version) for each in world.store.change_log(0, 10)] == [("new", 1), ("changed", 4)]
