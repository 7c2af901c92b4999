"""What was a compressed message before it was compressed?

Sizes are claims of a stranger: nothing is unpacked beyond what the message says, nor beyond the largest message.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from io import BytesIO

from levada.adapters.mongodb.frames import Unreadable
from levada.errors import MissingExtra

__all__ = ["Compressor", "unpack"]


class Compressor(IntEnum):
    NOOP = 0
    SNAPPY = 1
    ZLIB = 2
    ZSTD = 3


def unpack(compressor: int, packed: bytes, claimed: int, largest: int) -> bytes:
    """The bytes behind `packed`, which must be exactly as many as claimed."""
    if not 0 <= claimed <= largest:
        raise Unreadable(f"claims {claimed} bytes")
    try:
        data = _UNPACK[Compressor(compressor)](packed, claimed)
    except MissingExtra:
        raise
    except Exception as error:  # each library has its own; every one of them means that the bytes are wrong
        raise Unreadable(f"does not unpack: {type(error).__name__}") from error
    if len(data) != claimed:
        raise Unreadable(f"claims {claimed} bytes and has another size")
    return data


def _noop(packed: bytes, claimed: int) -> bytes:
    return packed


def _snappy(packed: bytes, claimed: int) -> bytes:
    if _snappy_length(packed) != claimed:  # the format says how much it will take, before it takes it
        raise ValueError("another size")
    try:
        import snappy
    except ImportError:
        raise MissingExtra("python-snappy", "mongodb") from None
    return bytes(snappy.uncompress(packed))


def _snappy_length(packed: bytes) -> int:
    length = 0
    for place, byte in enumerate(packed[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return length
    raise ValueError("no length")


def _zlib(packed: bytes, claimed: int) -> bytes:
    return zlib.decompressobj().decompress(packed, claimed + 1)  # one more than claimed shows a lie


def _zstd(packed: bytes, claimed: int) -> bytes:
    import zstandard

    window = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with window.stream_reader(BytesIO(packed)) as reader:
        return bytes(reader.read(claimed + 1))


_UNPACK = {Compressor.NOOP: _noop, Compressor.SNAPPY: _snappy, Compressor.ZLIB: _zlib, Compressor.ZSTD: _zstd}
