"""How do the integers of a task come out of PostgreSQL's binary COPY, millions a second?

One row per task: two arrays, and the number of NULL values. In an array each element is its length and its bytes;
with no NULL in it they lie at equal distances, and the whole is read as one table.
Source: the manual's chapter on COPY, "Binary Format", and `array_send`.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from levada.adapters.bulk.packed import PackedRows
from levada.errors import LevadaError

__all__ = ["read_arrays", "read_stream"]

_SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
_HEAD = len(_SIGNATURE) + 8
_ARRAY_HEAD = 20
_CHUNK = 1024 * 1024


def read_arrays(
    line: psycopg.Connection[Any], rows: sql.Composable, limit: int, *, nulls: bool
) -> PackedRows | None:
    """`rows` are k and v; None if there are more than `limit`."""
    only = sql.SQL(" FILTER (WHERE v IS NOT NULL)") if nulls else sql.SQL("")
    missing = sql.SQL("count(*) - count(v)") if nulls else sql.SQL("0::int8")
    asked = sql.SQL(
        "COPY (SELECT array_agg(k){only}, array_agg(v){only}, {missing} FROM ({rows} LIMIT {most}) AS task)"
        " TO STDOUT (FORMAT binary)"
    ).format(only=only, missing=missing, rows=rows, most=limit + 1)
    with line.cursor() as cursor, cursor.copy(asked) as copy:
        data = b"".join(copy)
    if not data.startswith(_SIGNATURE):
        raise LevadaError("PostgreSQL sent something else than a binary COPY")
    keys, at = _array(data, _HEAD + 2)
    values, at = _array(data, at)
    missed = struct.unpack_from("!iq", data, at)[1]
    return None if len(keys) + missed > limit else PackedRows(keys, values, missed)


def _array(data: bytes, at: int) -> tuple[Any, int]:
    """The array whose field begins at `at`, in the machine's own byte order, and where the field ends."""
    (length,) = struct.unpack_from("!i", data, at)
    if length < 0:  # no row at all
        return np.empty(0, np.int64), at + 4
    dimensions, has_null, _, count, _ = struct.unpack_from("!iiIii", data, at + 4)
    size = (length - _ARRAY_HEAD) // max(count, 1) - 4
    if dimensions != 1 or has_null or (size + 4) * count + _ARRAY_HEAD != length:
        raise LevadaError("PostgreSQL sent an array that is not of plain integers")
    element = np.dtype([("length", ">i4"), ("value", f">i{size}")])
    table = np.frombuffer(data, element, count, at + 4 + _ARRAY_HEAD)
    return table["value"].astype(f"=i{size}"), at + 4 + length


def read_stream(line: psycopg.Connection[Any], rows: sql.Composable) -> PackedRows:
    """The same for a key that is too heavy for one array: row by row, kept in arrays."""
    parts: list[tuple[Any, Any]] = []
    missing = 0
    with line.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(rows)) as copy:
        pending, size = list[bytes](), 0
        for piece in copy:
            data = bytes(piece)
            if data.startswith(_SIGNATURE):
                data = data[_HEAD:]
            if data[:2] != b"\0\2":  # the end
                continue
            if data.endswith(b"\xff\xff\xff\xff"):
                missing += 1
                continue
            pending.append(data)
            size += len(data)
            if size > _CHUNK:
                parts.append(_columns(pending))
                pending, size = [], 0
    if pending:
        parts.append(_columns(pending))
    if not parts:
        return PackedRows(np.empty(0, np.int64), np.empty(0, np.int64), missing)
    keys, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PackedRows(keys, values, missing)


def _columns(records: list[bytes]) -> tuple[Any, Any]:
    size = len(records[0]) - 18
    record = np.dtype([("n", ">i2"), ("a", ">i4"), ("k", ">i8"), ("b", ">i4"), ("v", f">i{size}")])
    table = np.frombuffer(b"".join(records), record)
    return table["k"].astype(np.int64), table["v"].astype(f"=i{size}")
