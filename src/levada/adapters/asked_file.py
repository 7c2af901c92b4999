"""Where do captured queries go?

To any output through `AskedWriter`, which samples and treats values; a capture that runs for weeks writes a
`RotatingFile`: `queries.jsonl`, and the ones before it as `queries.jsonl.1`, `.2` and so on.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from levada.sharding.asked import AskedQuery
from levada.sharding.asked_lines import LONGEST_LINE, asked_line
from levada.sharding.asked_values import ValueRule, Values

__all__ = ["AskedWriter", "RotatingFile", "Written"]

_DROP = ValueRule(Values.DROP)


class _Output(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Written(msgspec.Struct):
    """What went into the log, and what did not."""

    queries: int = 0
    sampled_out: int = 0
    bytes: int = 0


class AskedWriter:
    """One line per query, whole or not at all; of `sample` of them, drawn by chance."""

    def __init__(self, out: _Output, rule: ValueRule, sample: float = 1.0, seed: int | None = None) -> None:
        self._out = out
        self._rule = rule
        self._sample = sample
        self._chance = random.Random(seed)  # noqa: S311  no secret hangs on which queries are drawn
        self.written = Written()

    def write(self, query: AskedQuery) -> None:
        if self._sample < 1.0 and self._chance.random() >= self._sample:
            self.written.sampled_out += 1
            return
        line = asked_line(self._rule.apply(query))
        if len(line) > LONGEST_LINE:  # readers take no longer ones
            line = asked_line(_DROP.apply(query))
        self._out.write(line)
        self.written.queries += 1
        self.written.bytes += len(line)


class RotatingFile:
    """Appended to; begun anew when it would be larger than `rotate` bytes; the last `keep` before it are kept."""

    def __init__(self, path: Path, rotate: int | None = None, keep: int = 10) -> None:
        self._path = path
        self._rotate = rotate
        self._keep = max(1, keep)
        self._file = self._open()

    def write(self, line: bytes) -> None:
        """`OSError` where it cannot be written; then nothing of it stays."""
        if self._rotate is not None and self._size and self._size + len(line) > self._rotate:
            self._turn()
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            self._take_back(written)
            raise
        self._size += len(line)

    def close(self) -> None:
        os.close(self._file)

    def _take_back(self, written: int) -> None:
        """Half a line is removed again, unless another process has written behind it."""
        with suppress(OSError):
            end = os.lseek(self._file, 0, os.SEEK_CUR)
            if written and os.fstat(self._file).st_size == end:
                os.ftruncate(self._file, end - written)

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(file).st_size
        return file

    def _turn(self) -> None:
        """Numbers go up by one, the oldest is gone."""
        self._place(self._keep).unlink(missing_ok=True)
        for number in range(self._keep - 1, -1, -1):
            with suppress(FileNotFoundError):
                self._place(number).rename(self._place(number + 1))
        old, self._file = self._file, self._open()
        os.close(old)

    def _place(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path
