"""How is a log of queries written and read, one JSON object per line?

A log is read as far as it can be: a half line, a line that is something else and an operator that nobody knows are
counted, never fatal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from levada.sharding.asked import OPERATORS, AskedQuery, Filter, conditions

__all__ = ["LONGEST_LINE", "LogReading", "asked_line", "read_asked"]

LONGEST_LINE = 1 << 20
_MOST_NAMES = 10_000  # a log that names more than these counts the rest under ""
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(AskedQuery)


class LogReading(msgspec.Struct):
    """What was met while a log was read; complete when the reading has ended."""

    lines: int = 0
    taken: int = 0
    damaged: int = 0  # half lines, other JSON, lines that are too long
    elsewhere: int = 0  # of other collections
    unknown: dict[str, int] = {}  # operators that narrow nothing, by name
    collections: dict[str, int] = {}  # queries of each

    @property
    def partial(self) -> bool:
        return self.damaged > 0


def asked_line(query: AskedQuery) -> bytes:
    """The line, with its end."""
    return _encode(query) + b"\n"


def read_asked(
    lines: Iterable[bytes], reading: LogReading | None = None, collection: str | None = None
) -> Iterator[AskedQuery]:
    """The queries of a log, or those of one collection; `reading` counts what was met."""
    counts = reading if reading is not None else LogReading()
    for line in lines:
        if not line.strip():
            continue
        counts.lines += 1
        query = _read_line(line)
        if query is None:
            counts.damaged += 1
            continue
        _count(counts.collections, query.collection, query.times)
        if collection is not None and query.collection != collection:
            counts.elsewhere += 1
            continue
        counts.taken += 1
        _count_unknown(query.filter, counts.unknown)
        yield query


def _read_line(line: bytes) -> AskedQuery | None:
    if len(line) > LONGEST_LINE:
        return None
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _count_unknown(asked: Filter | None, unknown: dict[str, int]) -> None:
    for condition in conditions(asked):
        if condition.operator not in OPERATORS:
            _count(unknown, condition.operator.removeprefix("other:"), 1)


def _count(counts: dict[str, int], name: str, times: int) -> None:
    known = name if name in counts or len(counts) < _MOST_NAMES else ""
    counts[known] = counts.get(known, 0) + times
