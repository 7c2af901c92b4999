"""Captured queries are written whole or not at all, and files are rotated."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from levada.capture.query_log import QueryLogWriter, RotatingFile
from levada.sharding.queries import LONGEST_LINE, Condition, QueryEntry, ValueRule, read_queries


def test_half_a_line_is_taken_back_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RotatingFile(tmp_path / "queries.jsonl")
    file.write(b"the first\n")
    write = os.write
    room = [4]

    def until_full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", until_full)
        with pytest.raises(OSError, match="No space"):
            file.write(b"the second\n")
    file.write(b"the third\n")
    file.close()
    assert (tmp_path / "queries.jsonl").read_bytes() == b"the first\nthe third\n"


def test_the_newest_files_are_kept_and_numbers_go_up(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    file = RotatingFile(log, rotate=10, keep=2)
    for number in range(9):
        file.write(f"line {number}\n".encode())
    file.close()
    assert [path.read_text() for path in (log, Path(f"{log}.1"), Path(f"{log}.2"))] == [
        "line 8\n",
        "line 7\n",
        "line 6\n",
    ]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_is_there_is_appended_to_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    log.write_text("before\n")
    file = RotatingFile(log, rotate=20)
    file.write(b"123456789\n")
    file.write(b"another\n")
    file.close()
    assert (log.read_text(), Path(f"{log}.1").read_text()) == ("another\n", "before\n123456789\n")


def test_others_may_not_read_the_log(tmp_path: Path) -> None:
    RotatingFile(tmp_path / "queries.jsonl").close()
    assert (tmp_path / "queries.jsonl").stat().st_mode & 0o077 == 0


def test_a_seed_draws_the_same_sample_again() -> None:
    def drawn(seed: int) -> bytes:
        out = io.BytesIO()
        writer = QueryLogWriter(out, ValueRule(), 0.3, seed)
        for number in range(1000):
            writer.write(QueryEntry("a.b", "find", limit=number + 1))
        assert writer.written.queries + writer.written.sampled_out == 1000
        return out.getvalue()

    assert drawn(1) == drawn(1) != drawn(2)
    assert 200 < drawn(1).count(b"\n") < 400


def test_a_line_too_long_for_readers_is_written_without_values() -> None:
    out = io.BytesIO()
    many = tuple(f"{number:>500}" for number in range(LONGEST_LINE // 500))
    QueryLogWriter(out, ValueRule()).write(QueryEntry("a.b", "find", filter=Condition("a", "in", many, len(many))))
    (query,) = read_queries(out.getvalue().splitlines())
    assert query.filter == Condition("a", "in", (), len(many))
