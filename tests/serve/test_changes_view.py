"""The dashboard's first page, and the notifications beside it, in a real browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from levada.core.folder import DataFolder
from levada.core.records import Outcome, PageState, Visit, VisitResult
from levada.store.sqlite import SqliteStore
from tests.cli.collection import HOUR, NOW, VAPUR, build, version
from tests.serve.browser_session import Walk, open_page
from tests.serve.served import served
from tests.serve.test_notifications import allow
from tests.servers.mail import mail_server

pytestmark = pytest.mark.timeout(300)


def change(data: Path, text: str, times: int = 1) -> None:
    """The page changes so often, each time by this text."""
    store = SqliteStore(DataFolder(data).database)
    for number in range(times):
        turn = NOW + 2e9 + 1_000.0 * next(iter(store.versions(VAPUR))).version  # of a site that has been asked before
        leases = store.lease(turn, 100, 60.0)
        store.release([each for each in leases if each.page.url != VAPUR])
        lease = next(each for each in leases if each.page.url == VAPUR)
        new, at = version("Vapur saatleri", f"{text} {number}", 0.5), NOW - 60 + number
        visit = Visit(at, Outcome.CHANGED, 0.5)
        assert store.commit([VisitResult(lease, visit, PageState.LIVE, HOUR, at + HOUR, version=new)]) == [True]
    store.close()


def titles(page: Page) -> list[str]:
    return page.locator(".change .of-page").all_inner_texts()


def test_the_first_page_is_a_timeline_with_what_came_and_went(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        page.goto(address)
        expect(page.locator("main h1")).to_have_text("Changes")
        expect(page.locator(".day")).to_have_text(
            ["Today, Friday 15 January 2027", "Yesterday, Thursday 14 January 2027"]
        )
        first = page.locator(".change").first
        expect(first).to_contain_text("Vapur saatleri (yeni)")
        expect(first.locator(".tag")).to_have_text("changed")
        expect(first).to_contain_text("example.org · 25% of the words")
        expect(first.locator("summary")).to_have_text("2 lines came, 1 went")
        expect(first.locator(".diff del")).to_have_text(["Beşiktaş 10:00"])
        expect(first.locator(".diff ins b")).to_have_text(["45 ve 11:"])
        expect(page.locator("#unread")).to_have_text("Nothing is unread.")
        first.locator(".of-page").click()
        expect(page.locator("main h1")).to_have_text("Vapur saatleri (yeni)")
        assert walk.complaints == []


def test_filters_are_in_the_address_and_lead_to_a_feed_and_a_notification(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("changes")
        page.get_by_label("Only this site").fill("example.org")
        page.get_by_label("Least share").fill("20")
        page.get_by_label("Only this site").press("Enter")
        page.wait_for_function("() => location.hash === '#/changes?site=example.org&least=0.2'")
        page.get_by_label("changed", exact=True).check()
        expect(page.locator(".change .of-page")).to_have_text(["Vapur saatleri (yeni)"])
        assert not walk.is_too_wide()
        feed = page.get_by_role("link", name="Atom feed").get_attribute("href")
        assert feed == "/api/v1/changes.atom?site=example.org&kind=changed&least=0.2"
        page.get_by_role("link", name="Be told of these").click()
        expect(page.get_by_label("Site", exact=True)).to_have_value("example.org")
        expect(page.get_by_label("Least share of the words")).to_have_value("20")
        expect(page.get_by_label("changed")).to_be_checked()
        walk.go("changes?words=nowhere")
        expect(page.locator("main")).to_contain_text("No change fits.")
        page.get_by_role("link", name="Show all").click()
        expect(page.locator(".change")).to_have_count(9)
        assert walk.complaints == []


def test_a_filter_that_cannot_be_understood_is_said_beside_the_form(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        walk, asked = Walk(page, address), list[str]()
        page.on("request", lambda request: asked.append(request.url))
        walk.go("changes?site=a%20b")
        expect(page.get_by_role("alert")).to_contain_text("'a b' is not a host name")
        expect(page.get_by_label("Only this site")).to_have_value("a b")
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
        page.wait_for_timeout(2_500)  # the status comes twice meanwhile
        assert sum("/changes/latest" in each for each in asked) == 1  # what is wrong is not asked again


def test_new_changes_wait_in_a_bar_and_are_unread_until_they_are_marked(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with served(data) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("changes")
        before = titles(page)
        change(data, "denize")
        bar = page.locator(".arrivals button")
        expect(bar).to_have_text("1 new change")
        change(data, "yine denize", times=2)
        expect(bar).to_have_text("3 new changes")
        assert titles(page) == before
        expect(page.locator("#unread")).to_contain_text("3 unread")
        page.keyboard.press("n")
        expect(page.locator(".change.unread")).to_have_count(3)
        assert titles(page)[3:] == before
        expect(page.locator(".change").first.locator("ins")).to_contain_text("yine denize 1")
        expect(bar).to_have_count(0)
        page.reload()  # what was not marked stays so
        expect(page.locator(".change.unread")).to_have_count(3)
        page.locator("#nav a", has_text="Sites").click()
        expect(page.locator("#nav .badge")).to_contain_text("3")
        page.locator("#nav a", has_text="Changes").click()
        page.locator(".change.unread .of-page").first.click()
        page.go_back()
        expect(page.locator(".change.unread")).to_have_count(2)
        expect(page.locator("#unread")).to_contain_text("2 unread")
        page.get_by_role("button", name="Mark all as read").click()
        expect(page.locator(".change.unread")).to_have_count(0)
        page.reload()
        expect(page.locator("#unread")).to_have_text("Nothing is unread.")
        expect(page.locator(".change")).to_have_count(len(before) + 3)
        assert walk.complaints == []


def test_more_is_loaded_to_the_first_change_and_what_came_can_be_folded(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    change(data, "denize", times=40)
    with served(data) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go("changes")
        expect(page.locator(".change")).to_have_count(30)
        page.get_by_role("button", name="Load more").click()
        expect(page.locator(".change")).to_have_count(49)
        expect(page.locator("main")).to_contain_text("That is all that the change log holds.")
        ids = page.locator(".change").evaluate_all("all => all.map((each) => each.dataset.id)")
        assert len(set(ids)) == 49
        page.get_by_role("button", name="Only the titles").click()
        expect(page.locator(".change details[open]")).to_have_count(0)
        page.reload()
        expect(page.locator(".change")).to_have_count(30)
        expect(page.locator(".change details[open]")).to_have_count(0)
        page.get_by_role("button", name="Show what came and went").click()
        expect(page.locator(".change details[open]").first).to_be_visible()
        assert not walk.is_too_wide()
        assert walk.complaints == []


def test_the_timeline_is_walked_by_keys(opened: Browser, tmp_path: Path) -> None:
    with served(build(tmp_path / "data")) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("changes")
        held = "() => document.activeElement.dataset.id"
        ids = page.locator(".change").evaluate_all("all => all.map((each) => each.dataset.id)")
        for key, wanted in (("j", ids[0]), ("j", ids[1]), ("k", ids[0])):
            page.keyboard.press(key)
            assert page.evaluate(held) == wanted
        page.keyboard.press("o")
        expect(page.locator(".change").first.locator("details[open]")).to_have_count(0)
        page.get_by_label("Only pages with these words").fill("jon")  # a field takes letters as letters
        assert page.evaluate("document.activeElement.value") == "jon"


def test_a_server_that_is_away_is_said_and_found_again(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with open_page(opened, "narrow") as page:
        with served(data) as address:
            Walk(page, address).go("changes")
            expect(page.locator("#line")).to_have_text("no crawl runs")
        expect(page.locator(".lost-line")).to_contain_text("The server does not answer. What you see is from")
        expect(page.locator(".change").first).to_be_visible()
        with served(data, port=int(address.rpartition(":")[2])):
            expect(page.locator(".lost-line")).to_have_count(0, timeout=20_000)


def test_before_the_first_crawl_it_says_what_to_type(opened: Browser, tmp_path: Path) -> None:
    with served(tmp_path / "none") as address, open_page(opened, "wide") as page:
        page.goto(address)
        expect(page.locator("main .note code")).to_contain_text("levada crawl https://example.org --data")
        build(tmp_path / "made").rename(tmp_path / "none")
        expect(page.locator(".change")).to_have_count(9, timeout=20_000)


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_a_notification_is_set_up_tested_paused_and_removed_in_the_browser(
    opened: Browser, tmp_path: Path, size: str
) -> None:
    data = build(tmp_path / "data")
    with mail_server(tmp_path / "mail") as mailbox, open_page(opened, size) as page:
        allow(data, mailbox.place)
        with served(data) as address:
            walk = Walk(page, address)
            walk.go("notifications")
            expect(page.locator("main .note")).to_contain_text("Nobody is told of changes yet.")
            page.get_by_label("Target", exact=True).fill(
                f"mailto://me:a-long-password@{mailbox.place}/?to=me@example.org"
            )
            page.get_by_label("Name", exact=True).fill("me")
            page.get_by_label("Least share of the words").fill("20")
            page.get_by_label("Least words that came or went").fill("3")
            page.get_by_label("gone").check()
            page.get_by_label("A message comes").select_option("daily")
            page.get_by_label("At", exact=True).fill("07:30")
            page.get_by_label("Time zone").fill("Europe/Lisbon")
            page.get_by_role("button", name="Add").click()
            mine = page.locator("section.card").filter(has=page.get_by_role("heading", name="me mail"))
            expect(mine).to_contain_text(
                "Told of pages that are gone of at least 20% of the words of at least 3 words,"
                " daily at 07:30 Europe/Lisbon."
            )
            expect(mine).to_contain_text(f"mailto://me:***@{mailbox.place}/?to=me@example.org")
            mine.get_by_role("button", name="Edit").click()
            edited = page.locator("section.card").filter(has=page.get_by_role("heading", name="Edit me"))
            expect(edited.get_by_label("Least share of the words")).to_have_value("20")
            expect(edited.get_by_label("At", exact=True)).to_have_value("07:30")
            expect(edited.get_by_label("gone")).to_be_checked()
            edited.get_by_label("Least share of the words").fill("")
            edited.get_by_label("A message comes").select_option("hourly")
            if picture := os.environ.get("LEVADA_PICTURES"):
                page.screenshot(path=f"{picture}/edit-{size}.png")
            assert not walk.is_too_wide()
            edited.get_by_role("button", name="Save").click()
            expect(mine).to_contain_text("Told of pages that are gone of at least 3 words, every hour.")
            expect(page.get_by_role("heading", name="Add a notification")).to_be_visible()
            mine.get_by_role("button", name="Pause").click()
            expect(mine.locator("h2")).to_contain_text("paused")
            mine.get_by_role("button", name="Resume").click()
            expect(mine.get_by_role("button", name="Pause")).to_be_visible()
            mine.get_by_role("button", name="Remove").click()
            mine.get_by_role("button", name="Keep it").click()
            mine.get_by_role("button", name="Remove").click()
            assert not walk.is_too_wide()
            mine.get_by_role("button", name="Really remove it").click()
            expect(page.locator("main .note").first).to_contain_text("Nobody is told of changes yet.")
            assert "a-long-password" not in page.content()
            assert walk.complaints == []


def test_a_test_message_shows_the_servers_answer_and_the_log_what_was_sent(opened: Browser, tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with mail_server(tmp_path / "mail") as mailbox, open_page(opened, "wide") as page:
        allow(data, mailbox.place)
        with served(data) as address:
            walk = Walk(page, address)
            walk.go("notifications")
            page.get_by_label("Target", exact=True).fill(mailbox.target())
            page.get_by_label("Tell also of everything").check()
            page.get_by_role("button", name="Add").click()
            mine = page.locator("section.card").filter(has=page.get_by_role("heading", name="mail mail"))
            mine.get_by_role("button", name="Send a test").click()
            expect(mine.get_by_role("status")).to_have_text("Taken: 250 2.0.0 taken", timeout=20_000)
            expect(page.get_by_role("row").filter(has_text="9 changes on 3 sites")).to_contain_text(
                "sent", timeout=20_000
            )
            page.get_by_label("Target", exact=True).fill("me@example.org")
            page.get_by_role("button", name="Add").click()
            expect(page.get_by_role("alert")).to_contain_text("names no mail server")
    assert [each["Subject"] for each in mailbox.mails()].count("Changed: This is a test") == 1
