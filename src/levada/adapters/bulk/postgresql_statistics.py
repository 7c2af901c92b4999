"""How are the keys of a table spread, as PostgreSQL's own statistics have it?

The last ANALYZE left the most common keys with their shares, and bounds that the other keys lie between in equal
numbers. For integers that is as good as a sample, and costs nothing. Where it is stale, tasks that turn out too big
are split while the load runs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import psycopg

__all__ = ["keys_by_statistics", "spread"]

_FEW = 50  # bounds: fewer say too little
_ASKED = """
SELECT s.histogram_bounds::text::int8[], s.most_common_vals::text::int8[], s.most_common_freqs, s.null_frac
FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname
WHERE c.oid = %s AND s.attname = %s AND NOT s.inherited
"""


def keys_by_statistics(line: psycopg.Connection[Any], oid: int, column: str, size: int) -> list[int]:
    """About `size` integer keys, in order, spread like those of the table; none if too little is known."""
    row = line.execute(_ASKED, (oid, column)).fetchone()
    if row is None or row[0] is None or len(row[0]) < _FEW:
        return []
    bounds, common, shares, nulls = row[0], row[1] or [], row[2] or [], row[3]
    return spread(bounds, dict(zip(common, shares, strict=True)), 1.0 - nulls, size)


def spread(bounds: list[int], common: dict[int, float], whole: float, size: int) -> list[int]:
    """Keys as often as their share of `whole` says; between two bounds, evenly."""
    often = [key for key, share in common.items() for _ in range(round(size * share / whole))]
    steps = max(1, (size - len(often)) // (len(bounds) - 1))
    between = [low + (high - low) * step // steps for low, high in pairwise(bounds) for step in range(steps)]
    return sorted([*often, *between, bounds[-1]])
