"""How do parent and parser child talk? Length, then MessagePack; nothing that could run code.

A page's bytes lie on the desk (`parser_desk`) if there is room.
"""

from __future__ import annotations

from struct import Struct

import msgspec

from levada.adapters.parser_desk import DeskReader, Place
from levada.records import PageKind, ParsedPage, RawPage

__all__ = ["HEAD", "READY", "Errand", "decode_errand", "decode_parsed", "errand", "frame", "page_of"]

HEAD = Struct("<I")
READY = HEAD.pack(0)  # what a child says first


class Errand(msgspec.Struct, frozen=True, array_like=True):
    """A page to be read, and where its bytes are."""

    url: str
    body: Place | bytes
    content_type: str
    kind: PageKind
    known_text: bytes | None
    noindex: bool


_encoder = msgspec.msgpack.Encoder()
decode_errand = msgspec.msgpack.Decoder(Errand).decode
decode_parsed = msgspec.msgpack.Decoder(ParsedPage).decode


def errand(page: RawPage, place: Place | None) -> Errand:
    body = page.body if place is None else place
    return Errand(page.url, body, page.content_type, page.kind, page.known_text, page.noindex)


def page_of(errand: Errand, desk: DeskReader) -> RawPage:
    body = errand.body if isinstance(errand.body, bytes) else desk.page(errand.body)
    return RawPage(errand.url, body, errand.content_type, errand.kind, errand.known_text, errand.noindex)


def frame(message: Errand | ParsedPage) -> bytearray:
    buffer = bytearray(HEAD.size)
    _encoder.encode_into(message, buffer, HEAD.size)
    HEAD.pack_into(buffer, 0, len(buffer) - HEAD.size)
    return buffer
