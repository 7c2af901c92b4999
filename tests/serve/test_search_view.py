"""The dashboard's search, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.cli.collection import build
from tests.serve.browser_session import Walk, open_page
from tests.serve.served import served

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def address(opened: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(build(tmp_path_factory.mktemp("searched") / "data")) as found:
        yield found


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_a_typing_error_leads_to_what_was_meant(opened: Browser, address: str, size: str) -> None:
    with open_page(opened, size) as page:
        walk = Walk(page, address)
        walk.go("search?q=istanbul%20vapru")
        expect(page.locator(".hit h3 mark").first).to_have_text("Vapur")
        page.get_by_role("link", name="istanbul vapur").click()
        expect(page.get_by_role("searchbox")).to_have_value("istanbul vapur")
        expect(page.locator("main")).not_to_contain_text("Did you mean")
        expect(page.locator(".hit")).not_to_have_count(0)
        assert not walk.is_too_wide()
        assert walk.complaints == []


def test_a_facet_narrows_the_search_and_is_taken_away_again(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go(f"search?q={quote('ferry OR istanbul')}")
        expect(page.locator(".hit")).to_have_count(4)
        page.locator(".facet button", has_text="plain.example:8080").click()
        expect(page.locator(".hit")).to_have_count(1)
        page.get_by_role("button", name="site: plain.example:8080").click()
        expect(page.locator(".hit")).to_have_count(4)
        page.locator(".facet button", has_text="last hour").click()
        expect(page.locator(".hit")).to_have_count(1)
        assert "since=1h" in page.url
        assert walk.complaints == []


def test_hits_are_put_in_another_order_and_under_one_of_their_site(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go("search?q=istanbul")
        page.get_by_label("Order").select_option("last checked first")
        expect(page.locator(".hit").first).to_contain_text("checked 10 min ago")
        page.get_by_label("One hit for each").select_option("one per site")
        expect(page.locator(".hit")).to_have_count(1)
        page.get_by_text("1 more").click()
        expect(page.locator(".hit details li")).to_have_count(1)
        page.get_by_role("button", name="All of example.org").click()
        expect(page.locator(".hit")).to_have_count(2)
        assert re.search("sort=checked", page.url)
        assert walk.complaints == []


def test_what_cannot_be_understood_and_what_is_no_field_are_said(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go(f"search?q={quote('(vapur')}")
        expect(page.get_by_role("alert")).to_have_text("column 1: this ( is never closed")
        walk.go(f"search?q={quote('foo:saatleri vapur')}")
        expect(page.locator("main")).to_contain_text("there is no field foo:")
        expect(page.locator(".hit")).not_to_have_count(0)
