"""`levada shard warm-up`."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import JsonOption, print_result
from levada.cli.shard.options import LogArgument, check_request
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import UsageError
from levada.core.words import line, plural

if TYPE_CHECKING:
    from levada.replay.cache_warming import WarmUpResult
    from levada.sharding.queries import QueryEntry

_MOST_QUERIES = 1_000_000


def warm_up(
    log: LogArgument,
    target: Annotated[str, typer.Option(metavar="DSN", help="The PostgreSQL server to warm up.")],
    queries: Annotated[int, typer.Option(metavar="N", help="Ask the last N of the log at most.")] = 10_000,
    seconds: Annotated[float, typer.Option(metavar="S", help="End after so long at most.")] = 60.0,
    rate: Annotated[float, typer.Option(metavar="R", help="Queries in a second at most.")] = 200.0,
    limit: Annotated[int, typer.Option(metavar="N", help="Rows of each query at most.")] = 100,
    collection: Annotated[str | None, typer.Option(metavar="NAME", help="Queries of this one only.")] = None,
    table: Annotated[str, typer.Option(metavar="NAME", help="Ask this table; default: as the log names it.")] = "",
    json: JsonOption = False,
) -> None:
    """Asks a restarted server the last queries of a log, so that its caches are warm before users reach it.

    It ends when so many were asked or the time is up, whichever comes first. Nothing is written. Each query is a
    SELECT from the table that it was asked of, with a limit. Let users in when this command has ended.

    Examples:

    ```
    levada shard warm-up queries.jsonl --target postgresql://db0/shop
    levada shard warm-up queries.jsonl --target postgresql://db0/shop --queries 5000 --seconds 30 --rate 500
    levada shard warm-up queries.jsonl --target postgresql://db0/shop --collection board.ads --table public.ads
    ```
    """
    if not 1 <= queries <= _MOST_QUERIES:
        raise UsageError(f"--queries must be 1 to {_MOST_QUERIES:,}, not {queries}")
    if not all(0 < bound < math.inf for bound in (seconds, rate, limit)):
        raise UsageError("--seconds, --rate and --limit must be above 0, and finite")
    check_request(log)
    from levada.replay.cache_warming import WarmUp, nothing_replayed
    from levada.replay.cache_warming import warm_up as warm

    warm_up_options = WarmUp(queries, seconds, rate, limit, table)
    with progress_bar(json) as progress:
        done = warm(_last(log, collection, queries), target, warm_up_options, progress=progress)
    if (nothing := nothing_replayed(done, str(log))) is not None:
        raise nothing
    print_result(json, done, _say)


def _last(log: Path, collection: str | None, most: int) -> deque[QueryEntry]:
    """The newest queries, in the order in which they were asked."""
    from levada.capture.advice import log_lines
    from levada.sharding.queries import read_queries

    found = read_queries(log_lines(log), collection=collection)
    return deque((query for query in found if query.op != "insert"), most)


def _say(done: WarmUpResult) -> None:
    out = printer()
    asked = plural(done.asked, "query")
    ended = {"log": "the end of the log", "queries": "--queries", "seconds": "--seconds"}[done.ended]
    out.print(f"{asked} in {done.seconds:.1f} s, {plural(done.rows, 'row')} read; ended by {ended}")
    left_out = {
        "were refused by the server": done.failed,
        "were left out: the log does not tell their values (dropped or hashed)": done.hidden,
        "were left out: this server has no such table (--table)": done.foreign,
    }
    for words, count in left_out.items():
        if count:
            out.print(f"partial: {count:,} {words}")
    if done.trouble:
        out.print(line(f"the server said: {done.trouble}"))
