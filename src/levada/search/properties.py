"""Search by properties of structured data: what of a page is searched, and the conditions of a query.

Every property of every item of a page counts, also of items in items: the price of an offer is a price of the page,
and the name of a brand is what `brand:` looks for. A page is found if for each condition some item fulfils it.

A value is searched by its words, and if it is a number or a date, by its size too. A date without a time stands for
the whole day, month or year: `published:>2026-01` begins with February.
"""

from __future__ import annotations

import math
import re
import struct
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from levada.core.errors import BadQuery
from levada.core.records import Document
from levada.core.structured import Item, StructuredData
from levada.pages.folding import is_indexed, words
from levada.pages.structured.offers import price_of
from levada.search.file_types import file_type
from levada.store.rules import plain_text

# The fields of a query, and the property that each searches.
TEXTS = {
    "author": "author",
    "availability": "availability",
    "brand": "brand",
    "category": "category",
    "currency": "pricecurrency",
    "gtin": "gtin",
    "location": "location",
    "name": "name",
    "publisher": "publisher",
    "sku": "sku",
    "type": "@type",
}
NUMBERS = {"price": "price", "rating": "ratingvalue", "reviews": "reviewcount"}
DATES = {"ends": "enddate", "modified": "datemodified", "published": "datepublished", "starts": "startdate"}
ANY = "data."  # before the name of any other property
FIELDS = (*TEXTS, *NUMBERS, *DATES)

_MOST_WORDS = 2_000  # of a page
_MOST_NUMBERS = 500
_MOST_TYPES = 10
_WORDS_OF_VALUE = 30
_LONGEST_VALUE = 300  # characters: what is longer is prose, and stands in the text
_PROPERTY = re.compile(r"[a-z@][a-z0-9_\-]{0,59}", re.ASCII)
_ALSO = {
    "gtin8": "gtin",
    "gtin12": "gtin",
    "gtin13": "gtin",
    "gtin14": "gtin",
    "headline": "name",
    "highprice": "price",
    "lowprice": "price",
    "ratingcount": "reviewcount",
}
_NUMBER = re.compile(
    r"(?:[$€£₺¥₹]|[A-Z]{3})?\s?[-−]?\d+(?:[.,'’\u00a0\u202f ]\d+)*+\s?[^\W\d]{0,12}[$€£₺¥₹%°]?", re.ASCII
)
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}", re.ASCII)
_COMPARED = re.compile(r"(?P<sign><=|>=|<|>)(?P<bound>.*)|(?P<low>.*?)\.\.(?P<high>.*)")


class WordsOf(msgspec.Struct, frozen=True):
    """A condition: a property has these words one after the other."""

    property: str
    folded: tuple[str, ...]
    prefix: bool = False  # the last word, or any that begins with it


class RangeOf(msgspec.Struct, frozen=True):
    """A condition: a property has a number, or a point in time, from `low` to `high`, both included."""

    property: str
    low: float = -math.inf
    high: float = math.inf


class Properties(msgspec.Struct, frozen=True):
    """The properties of a page as they are searched."""

    values: tuple[tuple[str, tuple[str, ...]], ...] = ()  # properties, and the folded words of a value
    numbers: tuple[tuple[str, float], ...] = ()
    types: tuple[str, ...] = ()  # of its items, as they are written

    def has(self, condition: WordsOf | RangeOf) -> bool:
        """Whether a page with these properties fulfils the condition."""
        name = condition.property
        if isinstance(condition, RangeOf):
            return any(name == each and condition.low <= number <= condition.high for each, number in self.numbers)
        return any(name == each and _occur(condition, found) for each, found in self.values)


def _occur(condition: WordsOf, found: tuple[str, ...]) -> bool:
    length = len(condition.folded)
    *before, last = condition.folded
    for start in range(len(found) - length + 1):
        *here, end = found[start : start + length]
        if here == before and (end.startswith(last) if condition.prefix else end == last):
            return True
    return False


def properties_of_page(document: Document) -> Properties:
    """What is searched of a page's data, and the type of its file."""
    of_data = properties_of(document.data) if document.packed_data else Properties()
    kind = file_type(document)
    return Properties((*of_data.values, ("@type", (kind,))), of_data.numbers, (kind, *of_data.types))


def properties_of(data: StructuredData) -> Properties:
    """What of a page's data is searched, within limits."""
    values: dict[tuple[str, tuple[str, ...]], None] = {}
    numbers: dict[tuple[str, float], None] = {}
    types: dict[str, None] = {}
    left = _MOST_WORDS
    for name, text in _texts(data):
        if name not in DATES.values() and len(numbers) < _MOST_NUMBERS and (size := _size_of(text, name)) is not None:
            numbers[name, size] = None
        elif len(numbers) < _MOST_NUMBERS and (moment := _moment_of(text, name)) is not None:
            numbers[name, moment] = None
        if len(text) > _LONGEST_VALUE or text.startswith(("http://", "https://")):
            continue
        folded = tuple(filter(is_indexed, words(text)))[:_WORDS_OF_VALUE]
        if folded and left >= len(folded) and (name, folded) not in values:
            values[name, folded] = None
            left -= len(folded)
            if name == "@type":
                types[plain_text(text)] = None
    return Properties(tuple(values), tuple(numbers), tuple(types)[:_MOST_TYPES])


def _texts(data: StructuredData) -> Iterator[tuple[str, str]]:
    """Each property in small letters, under each of its names, with each text."""
    for offer in data.offers:
        yield "price", offer.price
        yield "pricecurrency", offer.currency
        yield "availability", offer.availability
    for item in data.items:
        for each in item.walk():
            for type in each.type:
                yield "@type", type
            for written, found in each.properties.items():
                name = written.lower()
                if _PROPERTY.fullmatch(name):
                    for value in found:
                        text = value.first("name") if isinstance(value, Item) else value
                        yield name, text
                        if name in _ALSO:
                            yield _ALSO[name], text


def _size_of(text: str, name: str) -> float | None:
    """The number that a value is, with a unit or a currency or without."""
    if len(text) > 40 or not _NUMBER.fullmatch(text) or (_DATE.fullmatch(text) and "date" in name):
        return None
    number, _ = price_of(text)
    return float(number) if number else None


def _moment_of(text: str, name: str) -> float | None:
    """The point in time that a value is: the first of a day, month or year."""
    if len(text) > 40 or not text[:4].isdecimal():
        return None
    if _DATE.fullmatch(text):
        span = date_span(text) if "date" in name or len(text) > 4 else None
        return None if span is None else span[0]
    try:
        return _utc(datetime.fromisoformat(text)) if _TIME.match(text) else None
    except (ValueError, OverflowError):
        return None


def _utc(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def date_span(text: str) -> tuple[float, float] | None:
    """The beginning and the end of a year, month or day in UTC; the end is not part of it."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        first = datetime(year, month or 1, day or 1, tzinfo=UTC)
        last = datetime(year, month or 12, day or monthrange(year, month or 12)[1], tzinfo=UTC)
        return first.timestamp(), last.timestamp() + 86_400.0
    except (ValueError, OverflowError):
        return None


def condition_of(field: str, value: str, since: float | None) -> WordsOf | RangeOf | None:
    """The condition that `field:value` stands for; None if there is nothing to look for.

    `since` is the time that the value means if it counts back from now, such as 7d.
    """
    if field in NUMBERS:
        return _range_of(NUMBERS[field], value, field, dated=False)
    if field in DATES:
        if since is not None:
            return RangeOf(DATES[field], low=since)
        return _range_of(DATES[field], value, field, dated=True)
    name = TEXTS.get(field) or field.removeprefix(ANY)
    compared = _COMPARED.fullmatch(value)
    if field not in TEXTS and compared and any(map(str.isdecimal, value)):
        bounds = [part for part in (compared["bound"], compared["low"], compared["high"]) if part]
        dated = all(_DATE.fullmatch(each) and ("-" in each or "date" in name) for each in bounds)
        return _range_of(name, value, field, dated=dated)
    folded = tuple(words(value))
    return WordsOf(name, folded, value.endswith("*")) if folded else None


def _range_of(name: str, value: str, field: str, *, dated: bool) -> RangeOf:
    found = _COMPARED.fullmatch(value)
    if found is None:
        low, high = _bounds(value, value, field, dated=dated)
        return RangeOf(name, low, high)
    if found["sign"] is None:
        begins, ends = found["low"].strip(), found["high"].strip()
        if not begins and not ends:
            raise _no_range(value, field, dated=dated)
        low, high = _bounds(begins or ends, ends or begins, field, dated=dated)
        return RangeOf(name, low if begins else -math.inf, high if ends else math.inf)
    first, last = _bounds(found["bound"], found["bound"], field, dated=dated)
    match found["sign"]:
        case "<":
            return RangeOf(name, high=math.nextafter(first, -math.inf))
        case "<=":
            return RangeOf(name, high=last)
        case ">":
            return RangeOf(name, low=math.nextafter(last, math.inf))
        case _:
            return RangeOf(name, low=first)


def _bounds(low: str, high: str, field: str, *, dated: bool) -> tuple[float, float]:
    """From the beginning of one to the end of the other, which is included."""
    if dated:
        first, last = date_span(low.strip()), date_span(high.strip())
        if first is None or last is None:
            raise _no_range(low if first is None else high, field, dated=True)
        return first[0], math.nextafter(last[1], -math.inf)
    numbers = []
    for written in (low, high):
        number = price_of(written)[0] if _NUMBER.fullmatch(written.strip()) else ""
        if not number:
            raise _no_range(written, field, dated=False)
        numbers.append(float(number))
    return numbers[0], numbers[1]


def _no_range(value: str, field: str, *, dated: bool) -> BadQuery:
    if dated:
        return BadQuery(f"{value!r} is not a date, such as {field}:>2026-01-31, {field}:2026-01..2026-03 or {field}:7d")
    return BadQuery(f"{value!r} is not a number, such as {field}:<100 or {field}:10..20")


_DIGITS = "0123456789abcdef"
_WIDTH = 16


def ordered(number: float) -> str:
    """Sixteen hexadecimal digits that sort as the numbers do."""
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")
    return f"{bits ^ ((1 << 64) - 1 if bits >> 63 else 1 << 63):016x}"


def range_pattern(condition: RangeOf) -> str:
    """A regular expression for the digits of `ordered` from the low to the high end; "" if none can match."""
    low, high = ordered(condition.low), ordered(condition.high)
    return "" if low > high else _between(low, high)


def _between(low: str, high: str) -> str:
    """Digits of the same length from `low` to `high`."""
    start = next((at for at, (a, b) in enumerate(zip(low, high, strict=True)) if a != b), len(low))
    if start == len(low):
        return low
    same, first, last = low[:start], low[start], high[start]
    between = _some(_DIGITS[_DIGITS.index(first) + 1 : _DIGITS.index(last)], len(low) - start - 1)
    parts = [f"{first}{_beyond(low[start + 1 :], up=True)}", between, f"{last}{_beyond(high[start + 1 :], up=False)}"]
    return f"{same}(?:{'|'.join(filter(None, parts))})"


def _beyond(digits: str, *, up: bool) -> str:
    """Digits as many as these, and not below them (`up`) or not above them."""
    if not digits:
        return ""
    at = _DIGITS.index(digits[0])
    others = _some(_DIGITS[at + 1 :] if up else _DIGITS[:at], len(digits) - 1)
    own = f"{digits[0]}{_beyond(digits[1:], up=up)}"
    return f"(?:{own}|{others})" if others else own


def _some(digits: str, more: int) -> str:
    """One of these digits, and as many more of any kind; "" if there are none of these."""
    rest = f"[0-9a-f]{{{more}}}" if more else ""
    return f"[{digits}]{rest}" if digits else ""
