"""How are texts and bodies packed? zstd, one compressor per thread and level."""

from __future__ import annotations

import threading

import zstandard

__all__ = ["compress"]


class _Compressors(threading.local):
    """Making a compressor costs more than packing a page with it, and two threads may not share one."""

    def __init__(self) -> None:
        self.by_level: dict[int, zstandard.ZstdCompressor] = {}


_own = _Compressors()


def compress(data: bytes, level: int) -> bytes:
    """`data` as one zstd frame that names its own size."""
    compressor = _own.by_level.get(level)
    if compressor is None:
        compressor = _own.by_level[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(data)
