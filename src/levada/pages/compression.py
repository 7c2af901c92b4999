"""How are texts and bodies packed? zstd, one compressor per thread and level, one decompressor per thread."""

from __future__ import annotations

import threading

import zstandard

__all__ = ["compress", "decompress"]


class _Own(threading.local):
    """Making one costs more than packing a page with it, and two threads may not share one."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Own()


def compress(data: bytes, level: int) -> bytes:
    """`data` as one zstd frame that names its own size."""
    compressor = _own.compressors.get(level)
    if compressor is None:
        compressor = _own.compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """What one zstd frame holds, which names its own size; `zstandard.ZstdError` if it is none."""
    return _own.decompressor.decompress(data)
