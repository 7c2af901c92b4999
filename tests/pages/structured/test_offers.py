"""Prices as pages write them, offers among items, and prices over time."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.structured import (
    MOST_EARLIER,
    Item,
    Offer,
    StructuredData,
    amended_data,
    pack_data,
    price_series,
    unpack_data,
)
from levada.pages.structured.offers import MOST_OFFERS, offers_of, price_of
from levada.pages.structured.reading import offers_mark
from levada.testing.common import properties

WRITTEN = [
    ("1299.00", "", "1299.00", ""),
    ("1299", "EUR", "1299", "EUR"),
    ("1.299,00", "TRY", "1299.00", "TRY"),
    ("1.299,00 TL", "", "1299.00", "TRY"),
    ("₺1.299", "", "1299", "TRY"),
    ("$1,299.00", "", "1299.00", "USD"),
    ("US$ 1,299", "", "1299", "USD"),
    ("1 299,00 €", "", "1299.00", "EUR"),
    ("1\u202f299,00\u00a0€", "", "1299.00", "EUR"),
    ("CHF 1'299.–", "", "1299", "CHF"),
    ("1’299.50", "CHF", "1299.50", "CHF"),
    ("£3.459", "", "3.459", "GBP"),
    ("3.459 €", "", "3459", "EUR"),
    ("12.500", "KWD", "12.500", "KWD"),
    ("12.500", "", "12.500", ""),  # as schema.org has it
    ("1,299", "", "1299", ""),
    ("0,999", "", "0.999", ""),
    ("12,5", "", "12.5", ""),
    ("1.234.567", "", "1234567", ""),
    ("1,234,567.89", "", "1234567.89", ""),
    ("12,34,567.00", "INR", "1234567.00", "INR"),
    ("from 19.90 EUR", "", "19.90", "EUR"),
    ("-5", "", "-5", ""),
    ("007", "", "7", ""),
    ("eur 5", "eur", "5", "EUR"),
    ("free", "EUR", "", "EUR"),
    ("", "", "", ""),
    ("1.299,000,5", "", "", ""),
    ("9" * 60, "", "9" * 40, ""),
]


@pytest.mark.parametrize(("written", "currency", "price", "code"), WRITTEN)
def test_a_price_is_read_as_it_is_meant(written: str, currency: str, price: str, code: str) -> None:
    assert price_of(written, currency) == (price, code)


@properties(100)
@given(
    st.decimals(min_value=0, max_value=10**9, places=2),
    st.sampled_from([("", "."), (".", ","), (",", "."), (" ", ",")]),
)
def test_a_price_is_exact_however_thousands_are_marked(amount: Decimal, marks: tuple[str, str]) -> None:
    thousands, point = marks
    written = f"{amount:,.2f}".replace(",", "T").replace(".", point).replace("T", thousands)
    assert Decimal(price_of(f"{written} EUR")[0]) == amount


@properties(200)
@given(st.text(max_size=60))
def test_any_text_is_a_price_or_none(written: str) -> None:
    price, _ = price_of(written)
    assert price == "" or Decimal(price).is_finite()


def offer(price: str = "", currency: str = "", availability: str = "", type: str = "Offer", **more: Item | str) -> Item:
    said = {"price": price, "priceCurrency": currency, "availability": availability} | more
    return Item((type,), {name: (value,) for name, value in said.items() if value})


def test_the_offers_of_products_come_first_and_each_once() -> None:
    course = Item(("Course",), {"name": ("Tea",), "offers": (offer("5"),)})
    thermos = Item(
        ("Product",), {"name": ("Thermos",), "offers": (offer("9.90", "EUR", "InStock"), offer("12", "EUR"))}
    )
    again = Item(("Product",), {"name": ("THERMOS",), "offers": (offer("9.90", "EUR"), offer("9.90"))}, "opengraph")
    assert offers_of([course, thermos, again]) == (
        Offer("9.90", "EUR", "InStock", "Thermos"),
        Offer("12", "EUR", "", "Thermos"),
        Offer("5", "", "", "Tea"),
    )


def test_a_price_stands_in_a_specification_a_range_or_a_variant() -> None:
    specified = offer("", "", "OutOfStock", priceSpecification=offer("7", "EUR", type="UnitPriceSpecification"))
    ranged = Item(("AggregateOffer",), {"lowPrice": ("3",), "highPrice": ("8",), "priceCurrency": ("EUR",)})
    variant = Item(("Product",), {"name": ("Blue",), "offers": (offer("4"),)})
    group = Item(("ProductGroup",), {"name": ("Mugs",), "hasVariant": (variant,)})
    sold_out = Item(("Product",), {"offers": (offer("", "", "SoldOut"),)})
    found = [offers_of([item]) for item in (specified, ranged, group, sold_out)]
    assert found == [
        (Offer("7", "EUR", "OutOfStock"),),
        (Offer("3", "EUR"),),
        (Offer("4", "", "", "Blue"),),
        (Offer("", "", "SoldOut"),),
    ]
    assert len(offers_of([offer(str(n)) for n in range(500)])) == MOST_OFFERS


def data(price: str, name: str = "Thermos") -> StructuredData:
    offers = (Offer(price, "EUR", "InStock", name),) if price else ()
    return StructuredData((Item(("Product",), {"name": (name,)}),), offers)


def test_the_mark_of_a_page_is_that_of_its_offers() -> None:
    assert offers_mark(data("5")) == offers_mark(data("5", "Another name"))
    assert (
        len({offers_mark(data("5")), offers_mark(data("6")), offers_mark(data("")), offers_mark(StructuredData())}) == 4
    )


def test_prices_are_a_series_over_amended_and_new_versions() -> None:
    first = pack_data(data("5"))
    packed = amended_data(first, 100.0, pack_data(data("5", "New title")), 150.0)
    packed = amended_data(packed, 100.0, pack_data(data("6")), 200.0)
    packed = amended_data(packed, 100.0, pack_data(data("7")), 300.0)
    packed = amended_data(packed, 100.0, b"", 400.0)
    series = price_series([(1, 100.0, unpack_data(packed)), (2, 500.0, data("7")), (3, 600.0, data("7"))])
    assert [(each.at, each.price, each.version) for each in series] == [
        (100.0, "5", 1),
        (200.0, "6", 1),
        (300.0, "7", 1),
        (400.0, "", 1),
        (500.0, "7", 2),
    ]
    assert price_series([(1, 1.0, data("")), (2, 2.0, StructuredData())]) == []


def test_the_offers_that_a_version_had_are_bounded() -> None:
    packed = pack_data(data("0"))
    for step in range(1, MOST_EARLIER + 20):
        packed = amended_data(packed, 0.0, pack_data(data(str(step))), float(step))
    found = unpack_data(packed)
    assert len(found.earlier) == MOST_EARLIER
    assert (found.since, found.offers[0].price) == (MOST_EARLIER + 19.0, str(MOST_EARLIER + 19))


@pytest.mark.parametrize("broken", [b"\0", b"x" * 50, pack_data(data("5"))[:-9], b""])
def test_stored_data_that_cannot_be_read_is_none(broken: bytes) -> None:
    assert unpack_data(broken).items == ()
