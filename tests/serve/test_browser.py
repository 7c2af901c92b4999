"""A real browser opens every view of a running demo."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from levada.collection.live import LiveStatus, live_content
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, Outcome, PageState, Visit, VisitResult
from levada.pages.urls import canonical
from levada.store.sqlite import SqliteStore
from tests.cli.collection import FRONT, HOUR, NOW, VAPUR, build, drop, version
from tests.serve.browser_session import VIEWS, Walk, demo, open_page
from tests.serve.served import served

pytestmark = pytest.mark.timeout(300)

ADMIN, READER = "a-token-for-everything-0123456789", "a-token-for-reading-0123456789"
TOKENS = {"LEVADA_TOKEN": ADMIN, "LEVADA_READ_TOKEN": READER}


@pytest.fixture(scope="module")
def address(opened: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo(tmp_path_factory.mktemp("demo") / "data") as found:
        yield found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = os.environ.get("LEVADA_PICTURES")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_every_view_opens_fits_and_complains_of_nothing(
    opened: Browser, address: str, pictures: Path, size: str
) -> None:
    with open_page(opened, size) as page:
        walk = Walk(page, address)
        walk.go("now")
        page.wait_for_selector("#line.on")
        changed = walk.changed_page()
        walk.ask_some()
        for view in VIEWS:
            if view == "page":
                walk.go_page(changed)
            else:
                walk.go("search?q=istanbul" if view == "search" else view)
            page.wait_for_selector("main .card, main .note")
            assert not walk.is_too_wide(), view
            assert page.locator(".note.error").count() == 0, (view, page.locator(".note.error").all_inner_texts())
            walk.picture(pictures / f"dashboard-{view}-{size}.png")
        assert walk.complaints == []
    assert len(list(pictures.glob(f"*-{size}.png"))) == len(VIEWS)


def test_check_now_shows_the_outcome_and_the_new_diff(opened: Browser, address: str, pictures: Path) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("now")
        walk.go_page(walk.changed_page())
        button, said = page.get_by_role("button", name="Check now"), page.get_by_role("status")
        for _ in range(3):
            button.click()
            expect(said.filter(has_text="The crawl visits it").or_(said.filter(has_text="Checked: "))).to_be_visible()
            expect(button).to_be_enabled(timeout=60_000)
            expect(said.filter(has_text="Checked: ")).to_be_visible()
        walk.picture(pictures / "check-page.png")
        page.locator("a[href^='#/sites/']").first.click()
        page.get_by_role("button", name="Check all pages now").click()
        expect(said.filter(has_text="The crawl visits the")).to_be_visible()
        walk.picture(pictures / "check-site.png")
        assert walk.complaints == []


def test_search_finds_a_page_and_leads_to_it(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.changed_page()  # the crawl is under way, and the index has pages
        walk.go("search")
        page.get_by_role("searchbox").fill("istanb")
        expect(page.locator(".hit mark").first).to_contain_text("stanb")  # found before anything is sent
        assert page.url.endswith("#/search")
        typed = page.locator(".hit").first.element_handle()
        page.get_by_role("searchbox").fill("istanbul")
        page.keyboard.press("Enter")
        page.wait_for_url("**/#/search?q=istanbul")
        assert typed is not None
        typed.wait_for_element_state("hidden")
        first = page.locator(".hit h3 a").first
        title = first.inner_text()
        assert page.locator(".hit mark").count() > 0
        first.click()
        page.wait_for_selector("h1")
        page.wait_for_function("title => document.querySelector('main h1')?.textContent === title", arg=title)
        assert walk.complaints == []


def test_the_diff_shows_what_the_web_has_just_changed(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("now")
        for _ in range(20):  # the web goes on changing: a page may have changed once more since it was stored
            url = walk.changed_page()
            walk.go_page(url)
            page.wait_for_selector(".pair .add")
            came = page.locator(".pair .add").all_inner_texts()
            served = words_of(asked_of_the_web(url))
            if all(words_of(line) in served for line in came):
                break
            page.wait_for_timeout(500)
        else:
            pytest.fail("no change that was shown stood on the page that is served")
        assert walk.complaints == []


def test_a_collection_that_cannot_be_read_is_told_of_with_what_to_do(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    (data / "levada.db").write_bytes(b"something else" * 1000)
    with served(data) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("now")
        said = page.get_by_role("alert").first
        expect(said).to_contain_text("is damaged or not a database")
        expect(said).to_contain_text("restore a copy")
        expect(page.locator("main")).to_contain_text("levada doctor")
        assert not walk.is_too_wide()
        assert walk.complaints == []


def test_a_page_is_forgotten_once_that_is_confirmed(opened: Browser, tmp_path: Path, pictures: Path) -> None:
    asked: list[str] = []

    def answer(*, yes: bool) -> Callable[[Dialog], None]:
        def answered(dialog: Dialog) -> None:
            asked.append(dialog.message)
            dialog.accept() if yes else dialog.dismiss()

        return answered

    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go_page(VAPUR)
        button = page.get_by_role("button", name="Forget…")
        for yes in (False, True):
            page.once("dialog", answer(yes=yes))
            with page.expect_event("dialog"):
                button.click()
            if not yes:
                expect(button).to_be_enabled()
                expect(page.get_by_role("combobox", name="Before")).to_have_value("2")
                expect(page.get_by_role("combobox", name="After")).to_have_value("3")
                assert walk.ask(f"/page?url={quote(VAPUR, safe='')}")["url"] == VAPUR
                walk.picture(pictures / "forget-before.png")
        expect(page.get_by_role("status").filter(has_text="Forgot")).to_have_text("Forgot 1 page with 3 versions.")
        expect(page.locator("main")).to_have_text("ForgottenForgot 1 page with 3 versions.")
        walk.picture(pictures / "forget-after.png")
        assert asked == [f"Delete 1 page with 3 versions of {VAPUR} for good? It does not come back by links."] * 2
        assert not walk.is_too_wide()
        assert walk.complaints == []
        walk.go("search?q=vapur")
        page.wait_for_selector("main .card, main .note")
        expect(page.locator(f"main a[href*='{quote(VAPUR, safe='')}']")).to_have_count(0)


def test_a_dropped_site_is_shown_as_one(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    drop(data, "example.org")
    with served(data) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("sites")
        expect(page.get_by_role("row").filter(has_text="example.org")).to_contain_text("dropped: add it again")
        walk.go("sites/example.org")
        expect(page.locator("main h1")).to_have_text("example.org")
        expect(page.locator("main")).to_contain_text("dropped: add it again")
        expect(page.get_by_role("button", name="Visit it no more")).to_have_count(0)
        walk.go_page(FRONT)
        expect(page.get_by_role("row").filter(has_text="next visit")).to_contain_text("never")
        assert not walk.is_too_wide()
        assert walk.complaints == []


BROKEN_WORDS = """() => [...document.querySelectorAll("main th, main .num")].flatMap((cell) => {
  const inside = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  while (inside.nextNode()) for (const word of inside.currentNode.data.matchAll(/\\S+/g)) {
    const range = document.createRange();
    range.setStart(inside.currentNode, word.index);
    range.setEnd(inside.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((part) => part.top)).size > 1) broken.push(word[0]);
  }
  return broken;
})"""


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_no_head_or_number_of_a_table_is_broken_within_a_word(opened: Browser, tmp_path: Path, size: str) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, size) as page:
        walk = Walk(page, address)
        for view in ("sites", "sites/example.org", f"page?url={quote(FRONT, safe='')}", "balance"):
            walk.go(view)
            page.wait_for_selector("main .card, main .note")
            assert page.evaluate(BROKEN_WORDS) == [], view
            assert not walk.is_too_wide(), view


def test_every_view_is_within_reach_on_a_phone_and_cards_have_room(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("lab")
        for link in page.locator("#nav a").all():
            expect(link).to_be_in_viewport(ratio=1)
        upper, lower = (summary.bounding_box() for summary in page.locator("main .card").all()[:2])
        assert upper
        assert lower
        assert upper["y"] + upper["height"] < lower["y"]
        walk.go("search?q=vapur")
        summary, hit = (page.locator(part).first.bounding_box() for part in ("main .card", "main .hit"))
        assert summary
        assert hit
        assert summary["x"] + 5 < hit["x"]


def test_what_to_type_names_the_folder_that_is_shown(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "all of Ada's")
    with served(data) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        for view in ("now", "stages"):
            walk.go(view)
            typed = page.locator("main .note code").inner_text()
            assert shlex.split(typed) == ["levada", "crawl", "--data", str(data)]
            assert not walk.is_too_wide()


def test_who_may_only_read_sees_no_buttons_for_others_and_is_told_why(opened: Browser, tmp_path: Path) -> None:
    theirs = ("Check now", "Check all pages now", "Visit it no more", "Forget…", "Add a site", "Add", "Run it")
    views = (f"page?url={quote(FRONT, safe='')}", "sites/example.org", "sites", "notifications", "lab")
    with served(build(tmp_path / "data"), environment=TOKENS) as found:
        for token, may in ((READER, False), (ADMIN, True)):
            seen = set()
            with open_page(opened, "wide") as page:
                page.goto(found)
                log_in(page, token)
                walk = Walk(page, found)
                page.wait_for_selector("html[data-may]")
                for view in views:
                    walk.go(view)
                    page.wait_for_selector("main .card:visible")
                    seen |= {name for name in theirs if page.get_by_role("button", name=name, exact=True).count()}
                    told = page.get_by_text("Changing this is for editors and admins")
                    if view != "sites":  # which has nothing but the form that is hidden
                        expect(told.first).to_be_visible(visible=not may)
            assert seen == (set(theirs) if may else set())


def log_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Open").click()


@pytest.mark.parametrize("token", [ADMIN, READER])
def test_a_person_logs_in_with_a_token(opened: Browser, tmp_path: Path, token: str) -> None:
    with served(build(tmp_path / "data"), environment=TOKENS) as address, open_page(opened, "wide") as page:
        page.goto(address)
        log_in(page, token)
        expect(page.locator("main h1")).to_have_text("Changes")
        expect(page.locator("#line")).to_have_text("no crawl runs")


def test_after_a_restart_an_open_dashboard_asks_for_the_token_again(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with open_page(opened, "wide") as page:
        with served(data, environment=TOKENS) as address:
            page.goto(address)
            log_in(page, ADMIN)
            expect(page.locator("#line")).to_have_text("no crawl runs")
        expect(page.locator("#line")).to_have_text("line lost, trying again")
        with served(data, environment=TOKENS, port=int(address.rpartition(":")[2])):
            expect(page.get_by_label("Token")).to_be_visible(timeout=20_000)
            log_in(page, ADMIN)
            expect(page.locator("#line")).to_have_text("no crawl runs")


def test_times_are_those_of_the_world_before_the_first_event_too(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        page.route("**/api/v1/live/stream", lambda route: route.abort())
        walk = Walk(page, address)
        now = str(walk.ask("/status")["now"])
        page.clock.set_fixed_time(datetime.fromisoformat(now) + timedelta(days=3650))
        walk.go("search?q=vapur")
        expect(page.locator(".hit").first).to_contain_text(" ago ")
        expect(page.locator(".hit").first).not_to_contain_text(re.compile(r"changed \d,\d+ d ago"))
        walk.go("sites/example.org")
        expect(page.locator("main h1")).to_have_text("example.org")
        expect(page.locator("main")).not_to_contain_text(re.compile(r"\d,\d+ d ago"))


def asked_of_the_web(url: str) -> str:
    """The bundled web's sites are names below localhost, which not every machine looks up."""
    parts = urlsplit(url)
    web = HTTPConnection("127.0.0.1", parts.port, timeout=20)
    try:
        web.request("GET", parts.path, headers={"Host": parts.netloc})
        return web.getresponse().read().decode()
    finally:
        web.close()


def words_of(page: str) -> str:
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", page)
    return " ".join(re.findall(r"\w+", unescape(text)))


def test_a_pause_stops_the_fetching_and_the_charts_move_again_after_it(opened: Browser, address: str) -> None:
    with open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("now")
        page.get_by_role("button", name="Pause").click()
        page.wait_for_function("() => document.getElementById('line').textContent === 'paused'")
        page.wait_for_timeout(1_500)  # what was under way finishes
        before = walk.ask("/status")["live"]
        page.wait_for_timeout(2_500)
        after = walk.ask("/status")["live"]
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        assert after["paused"]
        assert after["fetched"] == before["fetched"]
        page.get_by_role("button", name="Resume").click()
        page.wait_for_function("() => document.getElementById('line').textContent === 'crawling'")
        page.wait_for_selector(".chart path")
        drawn = page.locator(".chart path").first.get_attribute("d")
        page.wait_for_function("drawn => document.querySelector('.chart path').getAttribute('d') !== drawn", arg=drawn)
        assert walk.complaints == []


def test_a_pause_that_is_refused_says_why_and_leaves_the_view(opened: Browser, address: str) -> None:
    with open_page(opened, "narrow") as page:
        refusal = {"error": {"code": "read-only", "message": "this token may only read"}}
        page.route("**/api/v1/pause", lambda route: route.fulfill(status=403, json=refusal))
        walk = Walk(page, address)
        walk.go("now")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("alert")).to_have_text("this token may only read")
        expect(page.locator("main h1")).to_have_text("Now")
        assert not walk.is_too_wide()
        page.locator("#nav a", has_text="Sites").click()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_an_address_that_was_typed_wrong_still_leads_somewhere(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("search?q=vapur&from=abc")
        expect(page.locator("main")).to_contain_text("shown from 1")
        assert walk.complaints == []
        walk.go("sites/%")
        expect(page.get_by_role("alert")).to_have_text("no site % is known")


def test_a_crawl_without_a_limit_per_hour_is_not_said_to_have_no_budget(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    live = LiveStatus(os.getpid(), 1.0, 1.0, 2.0, 3, 4, 5, 6, 7, 0.5, 0, None, {}, {})
    with served(data) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("now")
        expect(page.locator(".figures")).to_contain_text("of the budget")
        DataFolder(data).save_live(live_content(live))
        expect(page.locator(".figures")).to_contain_text("no limit per hour")


def test_the_keyboard_is_enough(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("stages")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "view"
        assert page.evaluate("location.hash") == "#/stages"
        page.locator("#nav a").nth(2).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#nav a[aria-current=page]")).to_have_text("Sites")
        assert page.evaluate("location.hash") == "#/sites"
        theme = page.evaluate("document.documentElement.dataset.theme")
        page.locator("#theme").focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.documentElement.dataset.theme") != theme
        assert walk.complaints == []


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_what_outsiders_write_is_shown_as_text(opened: Browser, tmp_path: Path, size: str) -> None:
    title, path = (
        '<script>document.title="taken"</script><img src=x onerror=alert(1)>',
        "/a'b\"c<d>&e%20f{}|^`é?q=<b>#x",
    )
    data = build(tmp_path / "data")
    url = odd_page(data, path, title)
    with served(data) as address, open_page(opened, size) as page:
        walk = Walk(page, address)
        page.on("dialog", lambda dialog: walk.complaints.append(dialog.message))
        for view in (f"search?q={quote('onerror')}", "now", "changes", f"sites/{quote('odd.example', safe='')}"):
            walk.go(view)
            page.wait_for_selector("main a")
        walk.go_page(url)
        assert page.locator("main h1").inner_text() == title
        assert page.title() == "Page · Levada"
        assert page.locator("main img, main script").count() == 0
        assert not walk.is_too_wide()
        assert walk.complaints == []


def test_a_title_turns_nothing_round_that_stands_beside_it(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    odd_page(data, "/round", "\u202etitle")
    with served(data) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("now")
        item = page.get_by_role("listitem").filter(has_text="odd.example")
        title, beside = (item.locator(part).bounding_box() for part in ("a", ".soft"))
        assert title
        assert beside
        assert title["x"] + title["width"] <= beside["x"]


def odd_page(data: Path, path: str, title: str) -> str:
    url = canonical(f"https://odd.example{path}")
    store = SqliteStore(DataFolder(data).database)
    store.add([FoundUrl(url, "odd.example", admit=True)], [], NOW)
    lease = next(each for each in store.lease(NOW, 100, 60.0) if each.page.url == url)
    store.commit(
        [VisitResult(lease, Visit(NOW, Outcome.FIRST), PageState.LIVE, HOUR, NOW + HOUR, version=version(title, title))]
    )
    store.close()
    return url
