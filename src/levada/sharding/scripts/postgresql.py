"""Scripts that shard a PostgreSQL table by an advised key.

Declarative partitions, which postgres_fdw keeps on other servers (PostgreSQL 14 and later). The partitions are in
PostgreSQL's own terms, so that its planner leaves out every server that a query does not need: lists of values,
hashes for unknown values, ranges for plain keys and inside values that are cut. One script for each server, and one
for the coordinator, which holds no documents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from levada.sharding.placement import CutValue, Placement, decoded_key, layout_of
from levada.sharding.values import MISSING

_TOKEN = re.compile(r"""("(?:[^"]|"")*")|'(?:[^']|'')*'|([^\W\d][\w$]*)|([(),])|.""", re.DOTALL)


def column_names(columns: str) -> list[str] | None:
    """Column names as PostgreSQL reads them: in lower case unless quoted; None if LIKE adds unknown ones."""
    names = list(_first_words(columns))
    return None if ("like", False) in names else [name for name, _ in names]


def _first_words(columns: str) -> Iterator[tuple[str, bool]]:
    """The first word of each part between commas, and whether it is quoted."""
    depth, first = 0, True
    for quoted, word, sign in _TOKEN.findall(columns):
        if first and depth == 0 and (quoted or word):
            yield (quoted[1:-1].replace('""', '"') if quoted else word.lower()), bool(quoted)
            first = False
        depth += {"(": 1, ")": -1}.get(sign, 0)
        first = first or (sign == "," and depth == 0)


MOST_LISTED = 10_000  # values that are placed one by one
_LONGEST_NAME = 40


class Server(msgspec.Struct, frozen=True):
    """Address of one shard."""

    host: str
    port: int = 5432
    database: str = "postgres"
    user: str = "postgres"


class PostgresqlScript(msgspec.Struct, frozen=True):
    """The scripts to run on each server, and then on the coordinator."""

    shards: tuple[str, ...]
    coordinator: str


class _Part(msgspec.Struct, frozen=True):
    """A partition on a server (-1: on the coordinator): its parent table `of`, and the `rule` of its values."""

    name: str
    of: str
    rule: str
    shard: int


def postgresql_script(
    table: str, columns: str, placement: Placement, servers: Sequence[Server], values: Sequence[Any] = ()
) -> PostgresqlScript:
    """`columns`: as in CREATE TABLE. `values`: the known values of the key's first field."""
    if len(servers) != placement.shards:
        raise ValueError(f"{placement.shards} shards need as many servers, not {len(servers)}")
    name = _short(table)
    split, parts = _partitions(name, placement, [value for value in values if _literal(value) is not None])
    numbers = range(len(servers))
    shards = tuple(_shard(columns, placement, [part for part in parts if part.shard == n]) for n in numbers)
    made = "\n".join(
        [
            "-- Made by levada shard script postgresql. For the coordinator, after the scripts of all servers.",
            *_warning(placement),
            "CREATE EXTENSION IF NOT EXISTS postgres_fdw;",
            *(_server(name, number, server) for number, server in enumerate(servers)),
            f"CREATE TABLE {_table(table)} ({columns}) PARTITION BY {split};",
            *(_partition(table, name, part) for part in sorted(parts, key=lambda part: part.shard >= 0)),
            *_directory(table, name, placement),
        ]
    )
    return PostgresqlScript(shards, made + "\n")


def _partitions(name: str, placement: Placement, values: Sequence[Any]) -> tuple[str, list[_Part]]:
    key = placement.key
    first = _name(key.parts[0].field)
    if not key.parts[0].hashed:
        return f"RANGE ({', '.join(map(_name, key.fields))})", list(_by_range(name, placement))
    if len(key.parts) == 1 or not values or len(values) > MOST_LISTED:
        return f"HASH ({first})", list(_by_hash(name, name, placement.shards))
    return f"LIST ({first})", list(_by_list(name, first, placement, values))


def _by_list(name: str, first: str, placement: Placement, values: Sequence[Any]) -> Iterator[_Part]:
    layout = layout_of(placement, values)
    for shard, whole in enumerate(layout.whole):
        if whole:
            listed = ", ".join(str(_literal(value)) for value in whole)
            yield _Part(f"{name}_s{shard}", name, f"FOR VALUES IN ({listed})", shard)
    for number, cut in enumerate(layout.cut):
        yield from _by_cut(name, number, placement, cut)
    rest = f"{name}_rest"
    yield _Part(rest, name, f"DEFAULT PARTITION BY HASH ({first})", -1)
    yield from _by_hash(rest, rest, placement.shards)


def _by_cut(name: str, number: int, placement: Placement, cut: CutValue) -> Iterator[_Part]:
    """A value that several servers share, in ranges of what follows it in the key."""
    fields = placement.key.fields[1:]
    own = f"{name}_v{number}"
    split = f"PARTITION BY RANGE ({', '.join(map(_name, fields))})"
    yield _Part(own, name, f"FOR VALUES IN ({_literal(cut.value)}) {split}", -1)
    lows: list[Sequence[Any]] = [(), *cut.cuts]
    yield from _ranged(f"{own}_", own, lows, cut.owners, len(fields))


def _by_range(name: str, placement: Placement) -> Iterator[_Part]:
    lows = [decoded_key(placement.key, low) for low, _, _ in placement.ranges.each()]
    yield from _ranged(f"{name}_r", name, lows, placement.ranges.owners, len(placement.key.parts))


def _ranged(name: str, of: str, lows: Sequence[Sequence[Any]], owners: Sequence[int], count: int) -> Iterator[_Part]:
    """A range from each of these to the next, and a partition for nulls, which are in no range."""
    ends = [*(_ends(low, count) for low in lows), ["MAXVALUE"] * count]
    for number, owner in enumerate(owners):
        if ends[number] != ends[number + 1]:  # PostgreSQL sees equal ends as an empty range
            rule = f"FOR VALUES FROM ({', '.join(ends[number])}) TO ({', '.join(ends[number + 1])})"
            yield _Part(f"{name}{number}", of, rule, owner)
    yield _Part(f"{name}none", of, "DEFAULT", owners[0])


def _by_hash(name: str, of: str, shards: int) -> Iterator[_Part]:
    for shard in range(shards):
        yield _Part(f"{name}_h{shard}", of, f"FOR VALUES WITH (MODULUS {shards}, REMAINDER {shard})", shard)


def _ends(values: Sequence[Any], count: int) -> list[str]:
    """Literals; a missing value, one that PostgreSQL cannot hold and all after it are MINVALUE."""
    literals: list[str] = []
    for value in values:
        literal = None if value is None or value is MISSING else _literal(value)
        if literal is None:
            break
        literals.append(literal)
    return [*literals, *["MINVALUE"] * (count - len(literals))]


def _warning(placement: Placement) -> Iterator[str]:
    bounds = (decoded_key(placement.key, bound) for bound in placement.ranges.bounds)
    if any(isinstance(value, str) for bound in bounds for value in bound):
        yield '-- Ranges of text go by bytes: its columns in the key must be declared COLLATE "C", everywhere.'


def _shard(columns: str, placement: Placement, parts: Sequence[_Part]) -> str:
    lines = ["-- Made by levada shard script postgresql. For one server."]
    indexed = ", ".join(map(_name, placement.key.fields))
    for part in parts:
        lines.append(f"CREATE TABLE {_name(part.name)} ({columns});")
        lines.append(f"CREATE INDEX ON {_name(part.name)} ({indexed});")
        if placement.directory:
            lines.append(f"CREATE UNIQUE INDEX ON {_name(part.name)} ({_name(placement.directory)});")
    return "\n".join(lines) + "\n"


def _server(name: str, number: int, server: Server) -> str:
    own = _name(f"{name}_server{number}")
    where = f"host {_quoted(server.host)}, port {_quoted(str(server.port))}, dbname {_quoted(server.database)}"
    return (
        f"CREATE SERVER {own} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({where}, async_capable 'true');\n"
        f"CREATE USER MAPPING FOR CURRENT_USER SERVER {own} OPTIONS (user {_quoted(server.user)});"
    )


def _partition(table: str, name: str, part: _Part) -> str:
    parent = _table(table) if part.of == name else _name(part.of)
    made = f"TABLE {_name(part.name)} PARTITION OF {parent} {part.rule}"
    if part.shard < 0:
        return f"CREATE {made};"
    server = _name(f"{name}_server{part.shard}")
    return f"CREATE FOREIGN {made} SERVER {server} OPTIONS (table_name {_quoted(part.name)});"


def _directory(table: str, name: str, placement: Placement) -> Iterator[str]:
    """A table from the id to the key's first field, by which the planner finds the server."""
    if not placement.directory:
        return
    field, first, own = map(_name, (placement.directory, placement.key.fields[0], f"{name}_directory"))
    yield "-- Write the directory with every insert. A query by id alone then asks one server:"
    wanted = f"(SELECT {first} FROM {own} WHERE {field} = $1)"  # noqa: S608  names are quoted
    yield f"-- SELECT * FROM {_table(table)} WHERE {field} = $1 AND {first} = {wanted}"  # noqa: S608
    yield f"CREATE TABLE {own} AS SELECT {field}, {first} FROM {_table(table)};"  # noqa: S608
    yield f"ALTER TABLE {own} ADD PRIMARY KEY ({field});"


def _table(table: str) -> str:
    """`schema.table`, or a table."""
    return ".".join(_name(part) for part in table.split(".", 1))


def _short(table: str) -> str:
    return table.split(".", 1)[-1][:_LONGEST_NAME]


def _name(name: str) -> str:
    return '"' + re.sub("[\\x00-\\x1f]", "?", name).replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(value: Any) -> str | None:
    """A value in SQL; None if PostgreSQL cannot hold it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, str) and "\x00" not in value and "\\" not in value:
        return _quoted(value)
    return None
