"""How many scanners are at work, and when? Constant, in steps, in bursts, by the day, or as recorded."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from levada.errors import UsageError

__all__ = ["SHAPES", "Load", "bursts", "constant", "daily", "parse_load", "recorded", "steps"]

SHAPES = ("constant:3", "steps:1,5,3,8,2", "bursts:2,10,10,120", "daily:1,5,2000", "recorded:FILE")
_PIECES = 96  # of a day that are each constant
_MOST_LINES = 1_000_000
_MOST_PIECES = 10_000_000


class Load(msgspec.Struct, frozen=True):
    """From each of `starts` on there are so many `scanners`; begun again after `length` seconds."""

    starts: tuple[float, ...]
    scanners: tuple[float, ...]
    length: float

    def __post_init__(self) -> None:
        if not self.scanners or not all(0.0 <= each <= 1e6 for each in self.scanners):
            raise UsageError("a load has one number of scanners or more, each between 0 and 1000000")
        if not self.length > 0.0:
            raise UsageError("a load must last longer than 0 s")

    def mean(self, seconds: float) -> float:
        """Scanners on average over the first so many seconds."""
        total = 0.0
        for start, scanners in self.pieces(seconds):
            total += scanners * (seconds - start)
        return total / seconds

    def pieces(self, seconds: float) -> list[tuple[float, float]]:
        """When the number of scanners changes, and by how much."""
        if seconds / self.length * len(self.starts) > _MOST_PIECES:
            raise UsageError(f"a load that begins again every {self.length:g} s is too fast for {seconds:g} s")
        found, before, begin = [], 0.0, 0.0
        while begin < seconds:
            for start, scanners in zip(self.starts, self.scanners, strict=True):
                if begin + start < seconds and scanners != before:
                    found.append((begin + start, scanners - before))
                    before = scanners
            begin += self.length
        return found


def constant(scanners: float) -> Load:
    return Load((0.0,), (scanners,), math.inf)


def steps(levels: tuple[float, ...], seconds: float) -> Load:
    """Each level for the same time."""
    return Load(tuple(place * seconds / len(levels) for place in range(len(levels))), levels, seconds)


def bursts(calm: float, busy: float, burst_seconds: float, every: float) -> Load:
    """A burst at the end of every period."""
    if not 0.0 < burst_seconds < every:
        raise UsageError(f"a burst of {burst_seconds} s does not fit into {every} s")
    return Load((0.0, every - burst_seconds), (calm, busy), every)


def daily(low: float, high: float, day: float) -> Load:
    """A smooth curve from low at its beginning to high at its middle."""
    if not day > 0.0:
        raise UsageError(f"a day must be longer than 0 s, not {day}")
    pieces = range(_PIECES)
    middle, swing = (low + high) / 2, (high - low) / 2
    curve = tuple(middle - swing * math.cos(2 * math.pi * (piece + 0.5) / _PIECES) for piece in pieces)
    return Load(tuple(piece * day / _PIECES for piece in pieces), curve, day)


def recorded(path: Path) -> Load:
    """One number of scanners per line, for a second each."""
    try:
        with path.open(encoding="ascii") as file:
            lines = file.read(20 * _MOST_LINES).split()
    except OSError as error:
        raise UsageError(f"cannot read the load {path}: {error.strerror or error}") from None
    except UnicodeError:
        raise UsageError(f"cannot read the load {path}: it is not text, one number per line") from None
    return Load(tuple(map(float, range(len(lines)))), _numbers(lines, str(path)), float(len(lines)))


def parse_load(text: str, seconds: float) -> Load:
    """As on the command line: `steps:1,5,3,8,2`."""
    shape, _, rest = text.partition(":")
    if shape == "recorded":
        return recorded(Path(rest))
    numbers = _numbers(rest.split(","), text) if rest else ()
    match shape, numbers:
        case "constant", (scanners,):
            return constant(scanners)
        case "steps", (_, *_):
            return steps(numbers, seconds)
        case "bursts", (calm, busy, burst_seconds, every):
            return bursts(calm, busy, burst_seconds, every)
        case "daily", (low, high, day):
            return daily(low, high, day)
    raise UsageError(f"no load is written {text!r}: one of {', '.join(SHAPES)}")


def _numbers(texts: list[str], where: str) -> tuple[float, ...]:
    try:
        return tuple(float(text) for text in texts)
    except ValueError:
        raise UsageError(f"{where!r}: a load is made of numbers, as one of {', '.join(SHAPES)}") from None
