"""Offers among the items of a page: exact prices, currency, availability.

`price` of schema.org has a point for decimals and no sign of a currency; pages write it as people do: `1.299,00 TL`,
`$1,299.00`, `1 299,00`, `1'299.-`. A single separator before three digits could be either: a comma is then one of
thousands, and a point one of decimals, as schema.org has it, unless a currency without a point for decimals stands
beside the number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from levada.core.structured import Item, Offer
from levada.pages.numbers import decimal_of

MOST_OFFERS = 20
_SIGNS = {
    "₺": "TRY",
    "tl": "TRY",
    "€": "EUR",
    "$": "USD",
    "us$": "USD",
    "£": "GBP",
    "¥": "JPY",
    "₽": "RUB",
    "₹": "INR",
    "₩": "KRW",
    "₴": "UAH",
    "zł": "PLN",
    "kč": "CZK",
    "ft": "HUF",
    "r$": "BRL",
    "fr.": "CHF",
    "lei": "RON",
    "лв": "BGN",
}
_WITH_POINT = frozenset(  # written with a comma for thousands, or in thousandths
    "AUD BHD CAD CNY GBP HKD ILS INR JOD JPY KRW KWD MXN NZD OMR SGD TND USD".split()  # noqa: SIM905 -- shorter
)
_NUMBER = re.compile(r"[-−]?\d(?:[\d.,'’\u00a0\u202f ]*\d)?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_LONGEST = 40  # characters
_PRICES = ("price", "lowPrice", "highPrice")
_OFFERING = frozenset((*_PRICES, "availability", "priceSpecification"))
_AVAILABILITY = re.compile(r"(?:https?://(?:www\.)?schema\.org/|schema:)?([A-Za-z]{2,40})")


def price_of(written: str, currency: str = "") -> tuple[str, str]:
    """The exact decimal number of a price as pages write it, and its currency; "" for what is not there."""
    written = written.strip()[:_LONGEST]
    found = _NUMBER.search(written)
    if found is None:
        return "", currency
    beside = (written[: found.start()] + written[found.end() :]).strip(" .-–:/\u00a0\u202f")
    currency = currency.strip()[:12].upper() or _currency_of(beside)
    is_plain = not beside or currency in _WITH_POINT
    number = decimal_of(found[0].replace("−", "-"), point_is_decimal=is_plain)
    return number, _SIGNS.get(currency.lower(), currency)


def _currency_of(beside: str) -> str:
    lowered = beside.lower()
    if lowered in _SIGNS:
        return _SIGNS[lowered]
    if code := _CURRENCY.search(beside):
        return code[0]
    return next((code for sign, code in _SIGNS.items() if not sign.isalpha() and sign in lowered), "")


def offers_of(items: Iterable[Item]) -> tuple[Offer, ...]:
    """The offers of the items: those of products first, each once."""
    found: dict[Offer, None] = {}
    products: list[Item] = []
    others: list[Item] = []
    for item in items:
        (products if _is_product(item) else others).append(item)
    for item in products + others:
        for offer in _offers_in(item, item.first("name")):
            if not any(_says_as_much(each, offer) for each in found):
                found[offer] = None
            if len(found) >= MOST_OFFERS:
                return tuple(found)
    return tuple(found)


def _says_as_much(one: Offer, other: Offer) -> bool:
    """Whether the other is the same offer, said again in another syntax, or less of it."""
    return one.price == other.price and all(
        said in ("", known) for known, said in ((one.currency, other.currency), (one.availability, other.availability))
    )


def _is_product(item: Item) -> bool:
    return any(type.startswith(("Product", "IndividualProduct", "Vehicle", "Car", "Book")) for type in item.type)


def _offers_in(item: Item, name: str) -> Iterator[Offer]:
    """The offers that the item is or has; those of its other properties last."""
    name = item.first("name") or name
    own = _own_offer(item, name)
    if own is not None:
        yield own
        return
    inner = [value for value in item.properties.get("offers", ()) if type(value) is Item]
    for key, values in item.properties.items():
        if key != "offers":
            inner += [value for value in values if type(value) is Item]
    for each in inner:
        yield from _offers_in(each, name)


def _own_offer(item: Item, name: str) -> Offer | None:
    """The offer that an item is: it says a price or that the thing can be had."""
    if _OFFERING.isdisjoint(item.properties):
        return None
    availability = _availability(item.first("availability"))
    specified = [each for each in item.properties.get("priceSpecification", ()) if isinstance(each, Item)]
    for each in (item, *specified):
        written = next((text for key in _PRICES if (text := each.first(key))), "")
        price, currency = price_of(written, each.first("priceCurrency") or item.first("priceCurrency"))
        if price:
            return Offer(price, currency, availability, name)
    if availability and any("Offer" in type for type in item.type):
        inner = item.properties.get("offers", ())
        return None if any(isinstance(each, Item) for each in inner) else Offer("", "", availability, name)
    return None


def _availability(written: str) -> str:
    found = _AVAILABILITY.fullmatch(written.strip())
    return found[1] if found else written[:40]
