"""Structured data of a page: items with types and properties, the offers among them, and prices over time.

A page says in JSON-LD, microdata, RDFa or meta elements what it is about. `levada.pages.structured` reads that into
`StructuredData`, with the names of schema.org; it is kept packed with each version. A change of it alone makes no
new version, but other offers are noted in the version they are seen in: prices are a series without a gap.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec
from msgspec.structs import replace

MOST_EARLIER = 500  # offers that one version had one after the other
_LONGEST = 4_000_000  # bytes, unpacked
_LEVEL = 1


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thing that a page describes. Values are text as the page writes them, or items.

    >>> levada.Item(("Product",), {"name": ("Thermos",)}).first("name")
    'Thermos'
    """

    type: tuple[str, ...] = ()  # of schema.org: ("Product",)
    properties: dict[str, tuple[str | Item, ...]] = {}
    source: str = ""  # how the page says it: "json-ld", ...; "" inside of another item
    id: str = ""  # by which other items name it

    def first(self, name: str) -> str:
        """The first text of a property; of an item its name. "" if there is none."""
        for value in self.properties.get(name, ()):
            text = value if isinstance(value, str) else value.first("name")
            if text:
                return text
        return ""

    def walk(self) -> Iterator[Item]:
        """The item, and those in it."""
        yield self
        for values in self.properties.values():
            for value in values:
                if isinstance(value, Item):
                    yield from value.walk()


class Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A price, and whether the thing can be had.

    >>> levada.Offer(price="1299.00", currency="TRY").amount
    Decimal('1299.00')
    """

    price: str = ""  # an exact decimal number: "1299.00"; "": not said
    currency: str = ""  # ISO 4217, or as the page writes it
    availability: str = ""  # of schema.org: "InStock"
    name: str = ""  # of what is offered

    def shown(self, name: str) -> str:
        """A field for people: the price with its currency."""
        text: str = getattr(self, name)
        return f"{text} {self.currency}".rstrip() if text and name == "price" else text

    @property
    def amount(self) -> Decimal | None:
        """The price as a number."""
        return Decimal(self.price) if self.price else None


class EarlierOffers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The offers of a version until others took their place."""

    at: float  # when they were first seen
    offers: tuple[Offer, ...] = ()


class StructuredData(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a version of a page says in structured data.

    >>> news.data(start).items  # the bundled web has none
    ()
    """

    items: tuple[Item, ...] = ()
    offers: tuple[Offer, ...] = ()  # the main one first
    notes: tuple[str, ...] = ()  # what could not be read, or was left out
    since: float | None = None  # when these offers were first seen, if that is after the version was stored
    earlier: tuple[EarlierOffers, ...] = ()  # oldest first

    def values(self, name: str) -> list[str]:
        """The texts of a property, each once, of all items and those in them; `price`, `currency` and `availability`
        are those of the offers, the price with its currency.

        >>> news.data(start).values("brand")
        []
        """
        found: dict[str, None] = {}
        name = name.lower()
        if name in _OF_OFFERS:
            return list(dict.fromkeys(text for offer in self.offers if (text := offer.shown(name))))
        for item in self.items:
            for each in item.walk():
                for written, values in each.properties.items():
                    if written.lower() == name:
                        texts = (value.first("name") if isinstance(value, Item) else value for value in values)
                        found.update((text, None) for text in texts if text)
        return list(found)


class PricePoint(msgspec.Struct, frozen=True):
    """The main offer of a page from a point in time on.

    >>> news.prices(start)
    []
    """

    at: float  # epoch seconds, when it was first seen
    price: str = ""
    currency: str = ""
    availability: str = ""
    version: int = 0


_OF_OFFERS = ("price", "currency", "availability")
_NOTHING = StructuredData()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StructuredData).decode


def pack_data(data: StructuredData) -> bytes:
    """The data in few bytes; b"" for none."""
    return b"" if data == _NOTHING else zlib.compress(_encode(data), _LEVEL)


def unpacked_bytes(packed: bytes) -> bytes:
    """The data as bytes, in which a text can be looked for; `zlib.error` if it cannot be read."""
    return zlib.decompressobj().decompress(packed, _LONGEST)


def unpack_data(packed: bytes | None) -> StructuredData:
    """What was packed; no data if that cannot be read."""
    if not packed:
        return _NOTHING
    try:
        return _decode(unpacked_bytes(packed))
    except (zlib.error, msgspec.MsgspecError, RecursionError):
        return StructuredData(notes=("the stored data cannot be read",))


def amended_data(before: bytes | None, stored_at: float, now: bytes | None, at: float) -> bytes:
    """The data of a version that is stored again at `at`, with the offers that it had until then."""
    if not before:
        return now or b""
    old, new = unpack_data(before), unpack_data(now)
    if old.offers == new.offers:
        return pack_data(replace(new, since=old.since, earlier=old.earlier))
    begun = EarlierOffers(stored_at if old.since is None else old.since, old.offers)
    return pack_data(replace(new, since=at, earlier=(*old.earlier, begun)[-MOST_EARLIER:]))


def price_series(versions: Iterable[tuple[int, float, StructuredData]]) -> list[PricePoint]:
    """The main offers of versions over time; each version as number, time and data, the oldest first.

    A point stands for a change: of two equal ones in a row, the first is kept.
    """
    series: list[PricePoint] = []
    for number, stored_at, data in versions:
        latest = EarlierOffers(stored_at if data.since is None else data.since, data.offers)
        for seen in (*data.earlier, latest):
            main = seen.offers[0] if seen.offers else Offer()
            point = PricePoint(seen.at, main.price, main.currency, main.availability, number)
            if (series or seen.offers) and (not series or _said(series[-1]) != _said(point)):
                series.append(point)
    return series


def _said(point: PricePoint) -> tuple[str, str, str]:
    return point.price, point.currency, point.availability
