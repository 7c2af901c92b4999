"""Which streams are grouped here? The thesis's country sets, real ones from data packages, and anybody's lines.

The thesis's sets have 204 country names; r percent of the records are one of them (Turkey, as the figures of key
and partial key grouping tell), the rest is spread over all 204.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from levada.errors import NotFound, UsageError

__all__ = ["HOT_COUNTRY", "Stream", "country_names", "country_stream", "half_skew_stream", "line_stream", "of_keys"]

HOT_COUNTRY = "Turkey"
_LONGEST_LINE = 16 << 20

Integers = np.ndarray[Any, np.dtype[np.int64]]


class Stream(NamedTuple):
    """Records as places in `names`."""

    names: list[bytes]
    keys: Integers


def country_names() -> list[bytes]:
    text = (resources.files("levada.lab") / "data" / "country_names.txt").read_text(encoding="utf-8")
    return [name.encode() for name in text.splitlines()]


def country_stream(skew: float, records: int, seed: int) -> Stream:
    """`skew` percent of the records are one country, for the whole stream."""
    return _countries(np.full(1, skew), records, seed)


def half_skew_stream(skew: float, records: int, seed: int) -> Stream:
    """As much skew in the first half, none in the second."""
    return _countries(np.where(np.arange(records) < records // 2, skew, 0.0), records, seed)


def _countries(skew: np.ndarray[Any, np.dtype[np.float64]], records: int, seed: int) -> Stream:
    if records < 1:
        raise UsageError(f"a stream needs at least one record, not {records}")
    if not (np.all(skew >= 0.0) and np.all(skew <= 100.0)):
        raise UsageError("the skew must be between 0 and 100 percent")
    names = country_names()
    chance = np.random.default_rng(seed)
    keys = chance.integers(0, len(names), records)
    keys[chance.random(records) * 100.0 < skew] = names.index(HOT_COUNTRY.encode())
    return Stream(names, keys)


def line_stream(path: Path) -> Stream:
    """One key per line, of any bytes, from a file (gzip or not) or, for `-`, standard input."""
    try:
        if str(path) == "-":
            stream = of_keys(_lines(sys.stdin.buffer))
        else:
            with path.open("rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                stream = of_keys(_lines(gzip.GzipFile(fileobj=file) if packed else file))
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read the stream {path}: {reason}") from error
    if not len(stream.keys):
        raise NotFound(f"the stream {path} is empty: it needs one key per line")
    return stream


def of_keys(keys: Iterable[bytes]) -> Stream:
    """Any keys, each name kept once."""
    places: dict[bytes, int] = {}
    order = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.int64)
    return Stream(list(places), order)


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Without their ends; the last one counts although its end is missing."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            raise UsageError(f"a line of the stream is longer than {_LONGEST_LINE >> 20} MB")
        yield line.removesuffix(b"\n").removesuffix(b"\r")
