"""How does a PostgreSQL find the rows of a span?"""

from __future__ import annotations

from psycopg import sql

from levada.adapters.bulk.postgresql_catalog import Relation
from levada.bulk.generations import LoadPlan
from levada.bulk.spans import BlockRange, Cut, HashShare, KeyRange, Modulus, NullKeys, Span
from levada.errors import LevadaError

__all__ = ["condition"]


def condition(
    span: Span, table: Relation, plan: LoadPlan, since: str | None, *, values: bool = False
) -> sql.Composable:
    """What stands behind WHERE; with `values`, NULL values are left out there already."""
    key, value = sql.Identifier(table.key.name), sql.Identifier(table.value.name)
    parts = [_of_span(span, key, table)]
    if values:
        parts.append(sql.SQL("{} IS NOT NULL").format(value))
    if since is not None and table.watermark is not None:
        newer = sql.SQL("{} >= {}").format(sql.Identifier(table.watermark.name), since)
        if plan.collect:  # a key that has one new row is gathered anew, from all its rows
            newer = sql.SQL("{} IN (SELECT {} FROM {} WHERE {})").format(key, key, table.name, newer)
        parts.append(newer)
    return sql.SQL(" AND ").join(parts)


def _of_span(span: Span, key: sql.Composable, table: Relation) -> sql.Composable:
    if isinstance(span, NullKeys):
        return sql.SQL("{} IS NULL").format(key)
    parts: list[sql.Composable] = [sql.SQL("{} IS NOT NULL").format(key)] if table.key.nullable else []
    if isinstance(span, KeyRange):
        parts += [_beyond(key, span.low, ">", ">=")] if span.low is not None else []
        parts += [_beyond(key, span.high, "<=", "<")] if span.high is not None else []
    elif isinstance(span, BlockRange):
        parts += [sql.SQL("ctid >= {}::tid").format(f"({span.first},0)")]
        parts += [sql.SQL("ctid < {}::tid").format(f"({span.end},0)")] if span.end is not None else []
    elif isinstance(span, Modulus | HashShare):
        number = key if isinstance(span, Modulus) else sql.SQL("hashtextextended({}::text, 0)").format(key)
        asked = sql.SQL("mod(mod({}, {}) + {}, {}) = {}")
        parts.append(asked.format(number, span.divisor, span.divisor, span.divisor, span.remainder))
    else:
        raise LevadaError("a table of PostgreSQL has no row numbers")
    return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true")


def _beyond(key: sql.Composable, cut: Cut, after: str, before: str) -> sql.Composable:
    return sql.SQL("{} {} {}").format(key, sql.SQL(after if cut.after else before), cut.key)
