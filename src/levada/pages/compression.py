"""Compression of a page's text and body in one zstd frame.

The frame holds the length of the text in four bytes, the text and the body. The body repeats most of the text,
which then takes almost no room: two frames are a third larger and slower to make.
"""

from __future__ import annotations

import threading

import zstandard

_LENGTH = 4  # bytes
_ONE_BLOCK = 128 * 1024  # zstd unpacks at least this much at a time


class _Own(threading.local):
    """The compressors of a thread: making one costs more than packing a page, and threads cannot share one."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Own()


def pack_content(text: bytes, body: bytes, level: int) -> bytes:
    """One zstd frame that states its content size."""
    compressor = _own.compressors.get(level)
    if compressor is None:
        compressor = _own.compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(len(text).to_bytes(_LENGTH, "little") + text + body)


def content_size(packed: bytes) -> int:
    """The size that the frame states, -1 if it states none; `zstandard.ZstdError` if it is no frame."""
    return zstandard.frame_content_size(packed)


def unpack_content(packed: bytes) -> tuple[bytes, bytes]:
    """Text and body; `zstandard.ZstdError` or `ValueError` if the frame is damaged."""
    content = _own.decompressor.decompress(packed)
    end = _end_of_text(content, len(content))
    return content[_LENGTH:end], content[end:]


def unpack_text(packed: bytes) -> bytes:
    """The text alone; the body of a long page is not unpacked."""
    size = content_size(packed)
    if size <= _ONE_BLOCK:
        content = _own.decompressor.decompress(packed)
        return content[_LENGTH : _end_of_text(content, size)]
    with _own.decompressor.stream_reader(packed) as reader:
        length = _end_of_text(reader.read(_LENGTH), size) - _LENGTH
        text = reader.read(length)
    if len(text) < length:
        raise ValueError("the end of the text is missing")
    return text


def _end_of_text(content: bytes, size: int) -> int:
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if end > size:
        raise ValueError("the frame is shorter than its text")
    return end
