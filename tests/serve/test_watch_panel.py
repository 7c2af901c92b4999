"""The panel "Watch one part" of a page's view, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import levada
from tests.serve.browser_session import SIZES, Walk, open_page
from tests.serve.served import served
from tests.story.test_try import Shop, crawled, here, shop

__all__ = ["crawled", "here", "shop"]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def address(shop: Shop, crawled: Path) -> Iterator[str]:
    """A dashboard over a collection of the shop's lamp, whose price has fallen since."""
    shop.write(price="99", clock="11:00:00")
    with served(crawled / "levada-data") as found:
        yield found


def test_a_rule_is_tried_while_it_is_typed_and_saved_by_a_button(
    opened: Browser, shop: Shop, here: Path, address: str
) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go_page(shop.lamp)
        before = len(shop.asked)
        page.locator("summary", has_text="Watch one part").click()
        text, save = page.get_by_role("region", name="The page's text"), page.get_by_role("button", name="Save as")
        expect(text.locator("mark")).to_have_count(5)
        page.get_by_label("What counts").fill(".price\n.stock")
        expect(text.locator("mark")).to_have_text(["99 EUR", "Sold out"])
        page.get_by_label("Told only when").fill("appears: in stock")
        expect(page.get_by_text("nobody is told: no trigger is met")).to_be_visible()
        page.get_by_label("Told only when").fill("price below 100")
        expect(page.get_by_text("The live page is a new version, and it is told.")).to_be_visible()
        expect(page.locator(".watch .pair .add")).to_have_text("99 EUR")
        page.get_by_label("What counts").fill("p:::")
        expect(page.get_by_role("alert")).to_contain_text("is no CSS selector that can be used")
        expect(save).to_be_disabled()
        page.get_by_label("What counts").fill(".price")
        expect(text.locator("mark")).to_have_text(["99 EUR"])
        save.click()
        expect(page.get_by_text(f"Saved as the rule of {shop.name}/lamp.")).to_be_visible()
        assert shop.asked[before:].count("/lamp") == 1
        assert not walk.is_too_wide()
        assert [each for each in walk.complaints if "400" not in each] == []
    with levada.open(here / "levada-data", create=False) as collection:
        assert [each.keys for each in collection.rules()] == [{"select": [".price"], "trigger": ["price below 100"]}]


def test_what_is_typed_before_the_rule_in_force_is_known_stays(
    opened: Browser, shop: Shop, here: Path, address: str
) -> None:
    with levada.open(here / "levada-data", create=False) as collection:
        collection.set_rule(f"{shop.name}/lamp", ignore=["dates"], select=["h1"])
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go_page(shop.lamp)
        page.evaluate("""() => {
            document.querySelector(".watch").open = true;
            document.querySelector(".watch").dispatchEvent(new Event("toggle"));
            document.querySelector(".watch textarea[name=select]").value = ".stock";
        }""")
        expect(page.get_by_role("region", name="The page's text").locator("mark")).to_have_text(["Sold out"])
        expect(page.get_by_label("What is not compared")).to_have_value("dates")
        assert walk.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_panel_fits_and_shows_the_rule_in_force(
    opened: Browser, shop: Shop, here: Path, address: str, size: str, scheme: str, tmp_path: Path
) -> None:
    with levada.open(here / "levada-data", create=False) as collection:
        collection.set_rule(f"{shop.name}/lamp", ignore=["dates", "numbers"], remove=[".ad"])
    with open_page(opened, size, scheme) as page:
        walk = Walk(page, address)
        walk.go_page(shop.lamp)
        page.locator("summary", has_text="Watch one part").click()
        expect(page.get_by_label("What is not compared")).to_have_value("dates\nnumbers")
        expect(page.get_by_text("What differs does not count: the page has not changed.")).to_be_visible()
        expect(page.get_by_role("region", name="The page's text")).to_contain_text("Buy two!")
        assert not walk.is_too_wide()
        page.screenshot(path=str(tmp_path / f"watch-{size}-{scheme}.png"), full_page=True)
        assert walk.complaints == []
