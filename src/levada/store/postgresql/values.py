"""Values on their way to PostgreSQL and back: in binary, each Python type as one type of the server.

By default an integer travels as the smallest type that holds it: then each mix of small and large numbers would be
another statement to prepare.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper

from levada.store.postgresql.dialect import restored, storable

_TEXT = psycopg.adapters.types["text"].oid


class _TextDumper(Dumper):
    format = Format.BINARY
    oid = _TEXT

    def dump(self, obj: str) -> bytes:
        return storable(obj).encode()


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return restored(bytes(data).decode())


def speak_binary(connection: psycopg.Connection[Any]) -> None:
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(float, FloatBinaryDumper)
    adapters.register_dumper(list, ListBinaryDumper)
    adapters.register_loader("text", _TextLoader)
