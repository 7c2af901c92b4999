"""Conditions on a change: prices as shops write them, words that came, and how much changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.records import DiffLine
from levada.core.subscriptions import Conditions
from levada.follow.notify.conditions import holds
from levada.pages.numbers import prices

URL = "https://shop.example/tea"


@pytest.mark.parametrize(
    ("written", "price"),
    [
        ("$1,299.99", 1299.99),
        ("1.299,00 €", 1299.0),
        ("€ 1.299,-", 1299.0),
        ("99,- Kr.", 99.0),
        ("EUR 12.–", 12.0),
        ("CHF 1'299.50", 1299.5),
        ("CHF 1’299.50", 1299.5),
        ("1 299,50 kr", 1299.5),
        ("1\u202f299,00\u00a0€", 1299.0),
        ("₹1,29,999", 129_999.0),
        ("Rs. 1,29,999.00", 129_999.0),
        ("1.234.567,89 €", 1_234_567.89),
        ("R$ 1.234,56", 1234.56),
        ("12,50 zł", 12.5),
        ("1 299 Kč", 1299.0),
        ("1 299 грн", 1299.0),
        ("299 руб.", 299.0),
        ("12,800円", 12_800.0),
        ("1,299.00USD", 1299.0),
        ("US$ 99", 99.0),
        ("HK$ 1,234", 1234.0),
        ("99.00 aed", 99.0),
        ("$19.99/month", 19.99),
        ("19,99€*", 19.99),
        ("€0,999 per litre", 0.999),
        ("from 2024 €5", 5.0),
    ],
)
def test_a_price_is_read_as_shops_write_it(written: str, price: float) -> None:
    assert list(prices([f"now {written}!"])) == [price]


@pytest.mark.parametrize("written", ["call 555-1299", "in 2024", "5 stars", "KRON 12", "12 TLS", "1,299.00", "x5"])
def test_a_number_without_a_currency_is_no_price(written: str) -> None:
    assert list(prices([written])) == []


def test_of_a_range_both_ends_are_prices() -> None:
    assert list(prices(["$5-$10", "from 5 € to 1 000 €"])) == [5.0, 10.0, 5.0, 1000.0]


@given(st.text(alphabet="0123456789., '’$€krRs-\u00a0", max_size=2_000))
@settings(max_examples=100, deadline=2_000)
def test_whatever_stands_in_a_line_is_read_soon(line: str) -> None:
    assert all(each >= 0.0 for each in prices([line]))


@pytest.mark.parametrize("row", ["9" * 2_000, "1,23" * 500, "1'234" * 400, "1 234 " * 333, "12,34," * 333])
def test_rows_of_digits_that_lead_nowhere_do_not_hold_it_up(row: str) -> None:
    assert list(prices([row])) == []


def line(sign: str, *pieces: tuple[str, bool]) -> DiffLine:
    return DiffLine(sign, pieces)


CHANGE = (
    line("-", ("Green tea ", False), ("12,00 €", True), (" sold out", True)),
    line("+", ("Green tea ", False), ("9,50 €", True), (" price cut", True)),
)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(), True),
        (Conditions(prefix="https://shop.example/"), True),
        (Conditions(prefix="https://other.example/"), False),
        (Conditions(came=("Price CUT",)), True),
        (Conditions(came=("cut sold",)), False),
        (Conditions(came=("nothing", "cut")), True),
        (Conditions(came=("tea",)), False),
        (Conditions(went=("sold out",)), True),
        (Conditions(least_words=8), True),
        (Conditions(least_words=9), False),
        (Conditions(below=10.0), True),
        (Conditions(below=9.5), False),
        (Conditions(above=9.0, below=10.0), True),
        (Conditions(above=10.0), False),
        (Conditions(below=10.0, near="green"), True),
        (Conditions(below=10.0, near="black"), False),
        (Conditions(below=10.0, came=("free",)), False),
    ],
)
def test_each_condition_that_is_given_must_hold(conditions: Conditions, expected: bool) -> None:
    assert holds(conditions, URL, lambda: CHANGE) is expected
