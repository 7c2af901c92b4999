"""What a real browser shows of the structured data of a page, and the answers of the API behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import msgspec
import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

import levada
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, VisitResult
from levada.core.structured import Item, Offer, StructuredData, pack_data
from levada.serve.mcp.tools import tools
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, first, new_version, unchanged
from tests.cli.collection import HOUR, NOW, build
from tests.serve.browser_session import Walk, open_page
from tests.serve.served import served

pytestmark = pytest.mark.timeout(120)

URL = "https://shop.example/thermos"
DAY = 24 * HOUR
PRICES = [
    ("1299.00", "InStock"),
    ("1199.00", "InStock"),
    ("1199.00", "OutOfStock"),
    ("", ""),
    ("1399.50", "InStock"),
    ("1349.00", "LimitedAvailability"),
]


def thermos(price: str, availability: str, note: str = "") -> bytes:
    offer = Item(("Offer",), {"price": (price,), "availability": (availability,), "itemCondition": ("<b>new</b>",)})
    brand = Item(("Brand",), {"name": ("Acme",)})
    said: dict[str, tuple[str | Item, ...]] = {
        "name": ("Thermos 1 l",),
        "brand": (brand,),
        "color": ("red", "blue"),
        "offers": (offer,),
    }
    item = Item(("Product",), said, "json-ld")
    offers = (Offer(price, "TRY", availability, "Thermos 1 l"),) if price else ()
    return pack_data(StructuredData((item,), offers, (note,) if note else ()))


def visit(store: SqliteStore, number: int, at: float) -> VisitResult:
    (lease,) = store.lease(at, 1, 30.0)
    assert lease.page.url == URL  # nothing else was due then
    price, availability = PRICES[number]
    text = f"Keeps tea hot for {1 + number // 4} days."
    kept = replace(new_version(text, similarity=1.0), data=thermos(price, availability, "JSON-LD 2 is no JSON: x"))
    if number in (0, 4):
        return (changed if number else first)(lease, at, text, interval=HOUR, version=kept)
    digest = str(number).encode()
    return unchanged(lease, at, interval=HOUR, version=kept, body_digest=digest, text_digest=digest)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = build(tmp_path_factory.mktemp("shop") / "data")
    store = SqliteStore(DataFolder(data).database)
    try:
        store.add([FoundUrl(URL, "shop.example")], [], NOW - 30 * DAY)
        for number in range(len(PRICES)):
            assert store.commit([visit(store, number, NOW - (29 - 5 * number) * DAY)]) == [True]
    finally:
        store.close()
    return data


@pytest.fixture(scope="module")
def address(data: Path) -> Iterator[str]:
    with served(data) as found:
        yield found


def asked(address: str, path: str) -> Any:
    with urlopen(f"{address}/api/v1{path}") as answer:
        return msgspec.json.decode(answer.read())


def test_the_api_gives_items_offers_and_prices_over_time(address: str) -> None:
    told = asked(address, f"/page/data?url={quote(URL)}")
    assert told["items"][0]["type"] == ["Product"]
    assert told["items"][0]["properties"]["brand"] == [{"type": ["Brand"], "properties": {"name": ["Acme"]}}]
    assert told["offers"] == [
        {"price": "1349.00", "currency": "TRY", "availability": "LimitedAvailability", "name": "Thermos 1 l"}
    ]
    assert [(each["price"], each["availability"]) for each in told["prices"]] == PRICES
    assert [each["version"] for each in told["prices"]] == [1, 1, 1, 1, 2, 2]
    assert asked(address, f"/page/data?version=1&url={quote(URL)}")["offers"] == []


def test_an_assistant_that_reads_the_page_gets_its_data_in_short(data: Path) -> None:
    with levada.open(data) as collection:
        read = tools(allow_check=False)["page"].ask_of(collection, {"url": URL})
    text, _, after = read.partition("Structured data: ")
    assert "Keeps tea hot" in text
    assert after.startswith('[{"type":["Product"],"properties":{"name":["Thermos 1 l"]')
    assert after.count("[END ") == 1


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_the_view_of_a_page_draws_its_prices_and_shows_what_it_describes(
    opened: Browser, address: str, tmp_path: Path, size: str
) -> None:
    with open_page(opened, size) as page:
        walk = Walk(page, address)
        walk.go_page(URL)
        card = page.locator("section.card", has=page.get_by_role("heading", name="Price over time"))
        expect(card).to_contain_text("1349.00 TRY, LimitedAvailability for Thermos 1 l since 4.0 d ago")
        chart = card.get_by_role("img", name="The price over time, from 1299.00 TRY, InStock to 1349.00 TRY")
        expect(chart.locator("path")).to_have_count(5)  # a gap where there is no price
        expect(chart.locator("path[stroke-dasharray]")).to_have_count(1)
        expect(card.locator("tbody tr")).to_have_count(len(PRICES))
        things = page.locator("section.card", has=page.get_by_role("heading", name="Structured data"))
        things.get_by_text("Product: Thermos 1 l").click()
        expect(things).to_contain_text("red, blue")
        expect(things).to_contain_text("<b>new</b>")
        expect(things).to_contain_text("JSON-LD 2 is no JSON: x")
        assert not walk.is_too_wide()
        folder = Path(os.environ.get("LEVADA_PICTURES") or tmp_path)
        walk.picture(folder / f"structured-{size}.png")
        assert walk.complaints == []


def test_a_page_without_structured_data_has_no_cards_for_it(opened: Browser, address: str) -> None:
    with open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go_page("https://example.org/")
        expect(page.get_by_role("heading", name="Versions")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert page.get_by_role("heading", name="Structured data").count() == 0
        assert page.get_by_role("heading", name="Price over time").count() == 0
        assert walk.complaints == []
