"""Cache warming: a restarted node runs recent queries before users reach it.

The last queries of a log run on their own tables, at a bounded rate, until enough have run or the time is up.
Nothing is written: the session is read-only, and writes become searches for what they would change. Values are sent
as text, and the server reads each as its column's type.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.errors import NotFound
from levada.core.suggestions import near_names
from levada.replay.questions import SqlText, tells_all, where
from levada.sharding.advice import Progress
from levada.sharding.queries import Condition, QueryEntry, Scalar
from levada.store.postgresql.connection import Address, is_away, translated

if TYPE_CHECKING:
    import psycopg

_STATEMENT_SECONDS = 10.0


class WarmUp(msgspec.Struct, frozen=True):
    """`rate`: queries a second at most; `limit`: rows of each; `table`: used instead of the one in the log."""

    queries: int = 10_000
    seconds: float = 60.0
    rate: float = 200.0
    limit: int = 100
    table: str = ""


class WarmUpResult(msgspec.Struct):
    """`hidden`: queries without values in the log; `foreign`: queries of tables that are not here."""

    asked: int = 0
    rows: int = 0
    failed: int = 0
    hidden: int = 0
    foreign: int = 0
    seconds: float = 0.0
    ended: str = "log"  # what ended it: log, queries or seconds
    trouble: str = ""  # the first one


def warm_up(
    queries: Iterable[QueryEntry],
    dsn: str,
    options: WarmUp,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    progress: Progress | None = None,
) -> WarmUpResult:
    """Run `queries` in their order."""
    import psycopg

    address = Address(dsn, "public")
    done = WarmUpResult()
    began = monotonic()
    with address.connect() as connection:
        try:
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {round(_STATEMENT_SECONDS * 1000)}")
            if options.table and not _columns(connection, options.table):
                raise NotFound(
                    f"this server has no table {options.table[:80]!r}; {_similar_tables(connection, options.table)}"
                )
            _ask_all(connection, queries, options, done, lambda: monotonic() - began, sleep, progress)
        except psycopg.Error as error:
            raise translated(error, address.place) from None
    done.seconds = monotonic() - began
    return done


def _ask_all(
    connection: psycopg.Connection[Any],
    queries: Iterable[QueryEntry],
    options: WarmUp,
    done: WarmUpResult,
    elapsed: Callable[[], float],
    sleep: Callable[[float], None],
    progress: Progress | None,
) -> None:
    import psycopg

    tables: dict[str, frozenset[str]] = {}
    for query in queries:
        if done.asked >= options.queries:
            done.ended = "queries"
            return
        wait = done.asked / options.rate - elapsed()
        if max(elapsed(), elapsed() + wait) >= options.seconds:
            done.ended = "seconds"
            return
        name = options.table or query.collection
        if name not in tables:
            tables[name] = _columns(connection, name)
        if not tables[name]:
            done.foreign += 1
            continue
        if not tells_all(query.filter):
            done.hidden += 1
            continue
        statement = _sql(name, query, tables[name], options.limit)
        if wait > 0:
            sleep(wait)
        done.asked += 1
        try:
            done.rows += len(connection.execute(statement.words, statement.values).fetchall())
        except psycopg.Error as error:
            if is_away(error):
                raise
            done.failed += 1
            done.trouble = done.trouble or str(error).splitlines()[0]
        if progress:
            progress(done.asked, options.queries, "warming up")


def _columns(connection: psycopg.Connection[Any], table: str) -> frozenset[str]:
    """The table's columns; empty if there is no such table."""
    rows = connection.execute(
        """SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped""",
        (_quoted(table).replace("%%", "%"),),
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _similar_tables(connection: psycopg.Connection[Any], table: str) -> str:
    """Names near this table's; a table on the search path is named without its schema."""
    rows = connection.execute(
        """SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_|^information_schema$' LIMIT 10000"""
    ).fetchall()
    return near_names(table, (name for (name,) in rows))


def _sql(table: str, query: QueryEntry, columns: frozenset[str], limit: int) -> SqlText[str]:
    def say(condition: Condition) -> SqlText[str] | None:
        return _condition(_quoted_name(condition.field), condition) if condition.field in columns else None

    found = where(query.filter, say)
    ways = [
        f"{_quoted_name(each.field)} {'ASC' if each.ascending else 'DESC'}"
        for each in query.sort
        if each.field in columns
    ]
    order = f" ORDER BY {', '.join(ways)}" if ways else ""
    most = min(query.limit or limit, limit)
    return SqlText(f"SELECT * FROM {_quoted(table)} WHERE {found.words}{order} LIMIT {most:d}", found.values)  # noqa: S608


def _condition(column: str, condition: Condition) -> SqlText[str] | None:
    operator, values = condition.operator, condition.values
    if operator in ("eq", "in") and values:
        return _among(column, values)
    if operator == "range" and len(values) == 2 and values != (None, None):
        ends = [(sign, value) for sign, value in zip((">=", "<="), values, strict=True) if value is not None]
        words = " AND ".join(f"{column} {sign} %s" for sign, _ in ends)
        return SqlText(f"({words})", tuple(_text(value) for _, value in ends))
    if operator == "prefix" and len(values) == 1:
        return SqlText(f"starts_with({column}::text, %s)", (_text(values[0]),))
    if operator == "exists" and values:
        return SqlText(f"{column} IS {'NOT ' if values[0] else ''}NULL")
    return None


def _among(column: str, values: tuple[Scalar, ...]) -> SqlText[str]:
    known = tuple(_text(value) for value in values if value is not None)
    named = [f"{column} IN ({', '.join(['%s'] * len(known))})"] if known else []
    empty = [f"{column} IS NULL"] if None in values else []
    return SqlText(f"({' OR '.join([*named, *empty])})", known)


def _text(value: Scalar) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value).replace("\0", "")


def _quoted(table: str) -> str:
    return ".".join(_quoted_name(part) for part in table.split("."))


def _quoted_name(name: str) -> str:
    """The name quoted for SQL with parameters."""
    return '"' + name.replace('"', '""').replace("%", "%%").replace("\0", "") + '"'


def nothing_replayed(done: WarmUpResult, log: str) -> NotFound | None:
    """The reason, if no query could run."""
    if done.asked or done.ended == "seconds":
        return None
    if done.hidden:
        return NotFound(
            f"{log} does not hold the values of its queries (they were dropped or hashed): "
            "capture with --values keep to warm up with it"
        )
    if done.foreign:
        return NotFound(f"this server has none of the tables of the {done.foreign:,} queries: name one with --table")
    return NotFound(f"there is no query in {log} that looks for documents")
