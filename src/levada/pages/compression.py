"""Compression of a page's text and body in one zstd frame.

The frame holds the length of the text in four bytes, the text and the body. The body repeats most of the text,
which then takes almost no room: two frames are a third larger and slower to make. Between text and body may stand what
the page calls others where it links to them (`levada.pages.links`): the highest bit of the length says so, and four
bytes more give its length.

A picture of the page may follow, in a frame that every reader of zstd skips (RFC 8878, 3.1.2). It ends with its length
and a mark, so that it is found from the end.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import zstandard

_LENGTH = 4  # bytes
_HAS_ANCHORS = 1 << 31  # in the length of the text
_SKIPPED = b"\x5c\x2a\x4d\x18"  # the first bytes of the frame of a picture
_MARK = b"\0picture"
_ONE_BLOCK = 128 * 1024  # zstd unpacks at least this much at a time


class _Own(threading.local):
    """The compressors of a thread: making one costs more than packing a page, and threads cannot share one."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Own()


def pack_content(text: bytes, body: bytes, level: int, anchors: bytes = b"") -> bytes:
    """One zstd frame that states its content size."""
    compressor = _own.compressors.get(level)
    if compressor is None:
        compressor = _own.compressors[level] = zstandard.ZstdCompressor(level=level)
    if anchors:
        lengths = (len(text) | _HAS_ANCHORS, len(anchors))
        head = b"".join(length.to_bytes(_LENGTH, "little") for length in lengths)
        return compressor.compress(head + text + anchors + body)
    return compressor.compress(len(text).to_bytes(_LENGTH, "little") + text + body)


def content_size(packed: bytes) -> int:
    """The size that the frame states, -1 if it states none; `zstandard.ZstdError` if it is no frame."""
    return zstandard.frame_content_size(packed)


def unpack_content(packed: bytes) -> tuple[bytes, bytes]:
    """Text and body; `zstandard.ZstdError` or `ValueError` if the frame is damaged."""
    content = _own.decompressor.decompress(packed)
    parts = _parts(content, len(content))
    return content[parts.text], content[parts.body :]


def unpack_text(packed: bytes) -> bytes:
    """The text alone; the body of a long page is not unpacked."""
    return unpack_text_and_anchors(packed)[0]


def unpack_text_and_anchors(packed: bytes) -> tuple[bytes, bytes]:
    """The text, and what the page calls others; the body of a long page is not unpacked."""
    size = content_size(packed)
    if size <= _ONE_BLOCK:
        content = _own.decompressor.decompress(packed)
    else:
        with _own.decompressor.stream_reader(packed) as reader:
            content = reader.read(2 * _LENGTH)
            content += reader.read(max(0, _parts(content, size).body - len(content)))
    parts = _parts(content, size)
    if len(content) < parts.body:
        raise ValueError("the end of the text is missing")
    return content[parts.text], content[parts.anchors]


def with_picture(packed: bytes, picture: bytes) -> bytes:
    """Packed content with a picture behind it; the content alone for b""."""
    if not picture:
        return packed
    skipped = picture + len(picture).to_bytes(_LENGTH, "little") + _MARK
    return packed + _SKIPPED + len(skipped).to_bytes(_LENGTH, "little") + skipped


def picture_of(packed: bytes) -> bytes:
    """The picture behind packed content; b"" if there is none.

    >>> picture_of(with_picture(pack_content(b"text", b"body", 1), b"picture"))
    b'picture'
    """
    if not packed.endswith(_MARK):
        return b""
    end = len(packed) - len(_MARK) - _LENGTH
    start = end - int.from_bytes(packed[end : end + _LENGTH], "little")
    is_frame = start >= 2 * _LENGTH and packed.startswith(_SKIPPED, start - 2 * _LENGTH)
    return packed[start:end] if is_frame else b""


class _Parts(NamedTuple):
    """Where the parts of a frame stand."""

    text: slice
    anchors: slice
    body: int


def _parts(start: bytes, size: int) -> _Parts:
    """The parts by the first bytes of a frame of `size` bytes."""
    length = int.from_bytes(start[:_LENGTH], "little")
    has_anchors = bool(length & _HAS_ANCHORS)
    first = 2 * _LENGTH if has_anchors else _LENGTH
    end = first + (length & ~_HAS_ANCHORS)
    body = end + (int.from_bytes(start[_LENGTH:first], "little") if has_anchors else 0)
    if body > size:
        raise ValueError("the frame is shorter than its text")
    return _Parts(slice(first, end), slice(end, body), body)
