"""How are the text and the body of a page packed?

Together, in one zstd frame: the length of the text in four bytes, the text, the body. The body holds most of the
text again, which then takes next to no room: two frames are a third larger, and take longer to make. One
compressor per thread and level, one decompressor per thread.
"""

from __future__ import annotations

import threading

import zstandard

__all__ = ["content_size", "pack_content", "unpack_content", "unpack_text"]

_LENGTH = 4  # bytes
_ONE_BLOCK = 128 * 1024  # zstd unpacks so much at a time, whatever is asked for


class _Own(threading.local):
    """Making one costs more than packing a page with it, and two threads may not share one."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Own()


def pack_content(text: bytes, body: bytes, level: int) -> bytes:
    """One zstd frame that names its own size."""
    compressor = _own.compressors.get(level)
    if compressor is None:
        compressor = _own.compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(len(text).to_bytes(_LENGTH, "little") + text + body)


def content_size(packed: bytes) -> int:
    """How much the frame says it holds, -1 if it does not say; `zstandard.ZstdError` if it is none."""
    return zstandard.frame_content_size(packed)


def unpack_content(packed: bytes) -> tuple[bytes, bytes]:
    """Text and body; `zstandard.ZstdError` or `ValueError` if they are not what was packed."""
    content = _own.decompressor.decompress(packed)
    end = _end_of_text(content, len(content))
    return content[_LENGTH:end], content[end:]


def unpack_text(packed: bytes) -> bytes:
    """The text alone: what follows it in a long page is not unpacked."""
    size = content_size(packed)
    if size <= _ONE_BLOCK:
        content = _own.decompressor.decompress(packed)
        return content[_LENGTH : _end_of_text(content, size)]
    with _own.decompressor.stream_reader(packed) as reader:
        length = _end_of_text(reader.read(_LENGTH), size) - _LENGTH
        text = reader.read(length)
    if len(text) < length:
        raise ValueError("its end is missing")
    return text


def _end_of_text(content: bytes, size: int) -> int:
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if end > size:
        raise ValueError("it is shorter than the text in it")
    return end
