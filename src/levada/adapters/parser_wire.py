"""How do parent and parser child talk? Length, then MessagePack; nothing that could run code."""

from __future__ import annotations

from struct import Struct

import msgspec

from levada.records import ParsedPage, RawPage

__all__ = ["HEAD", "READY", "decode_page", "decode_parsed", "frame"]

HEAD = Struct("<I")
READY = HEAD.pack(0)  # what a child says first
_encoder = msgspec.msgpack.Encoder()
decode_page = msgspec.msgpack.Decoder(RawPage).decode
decode_parsed = msgspec.msgpack.Decoder(ParsedPage).decode


def frame(message: RawPage | ParsedPage) -> bytearray:
    buffer = bytearray(HEAD.size)
    _encoder.encode_into(message, buffer, HEAD.size)
    HEAD.pack_into(buffer, 0, len(buffer) - HEAD.size)
    return buffer
