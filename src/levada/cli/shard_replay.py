"""`levada shard replay`: is the advised key really faster, on real servers?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import JsonOption, print_json
from levada.cli.shard_options import (
    CollectionOption,
    IdOption,
    ImmutableOption,
    LogArgument,
    MutableOption,
    SampleArgument,
    check_changes,
)
from levada.errors import LevadaError, UsageError

__all__ = ["register"]

_SCHEMES = ("none", "id", "paper", "ours")
_ROUNDS = ("cold", "warm")
_MOST_CLIENTS, _MOST_SHARDS, _MOST_ROUNDS = 64, 256, 20


def register(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    log: LogArgument,
    sample: SampleArgument,
    target: Annotated[
        list[str],
        typer.Option("--target", metavar="DSN", help="A PostgreSQL server to try it on; may be repeated."),
    ],
    scheme: Annotated[
        list[str] | None,
        typer.Option("--scheme", metavar="S", help="none, id, paper or ours; may be repeated. Default: all."),
    ] = None,
    shards: Annotated[
        int | None, typer.Option("--shards", metavar="K", help="On the servers in turn. Default: one on each.")
    ] = None,
    queries: Annotated[int, typer.Option("--queries", metavar="N", help="Replay so many of the log.")] = 80_000,
    clients: Annotated[int, typer.Option("--clients", metavar="C", help="That ask at the same time.")] = 4,
    rounds: Annotated[
        str, typer.Option("--rounds", metavar="A,B", help="cold, warm; of several warm ones the quickest counts.")
    ] = "cold,warm",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="Documents that a query wants where the log does not say.")
    ] = 20,
    collection: CollectionOption = None,
    id_field: IdOption = None,
    mutable: MutableOption = None,
    immutable: ImmutableOption = None,
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", help="Load so many documents at most.")
    ] = 200_000,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the tables there.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Drop a schema levada_replay that is there already.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Loads documents into PostgreSQL in several ways, replays a log of queries on each, and says which was faster.

    Everything is in a schema levada_replay of its own, which is dropped at the end. Each query goes to the shards
    that its placement names, to all at once, and their answers are merged; what is predicted (shards per query,
    load) stands beside what was measured. Cold is the first round after loading, in new sessions; warm is every
    further one. Writes are replayed as the search for what they would change; inserts are left out.

    Examples:

    ```
    levada shard replay queries.jsonl ads.jsonl --target postgresql://a@db0/test --target postgresql://a@db1/test
    levada shard replay queries.jsonl ads.jsonl --target postgresql://a@db0/test --shards 8 --scheme ours
    levada shard replay queries.jsonl ads.parquet --target postgresql://a@db0/test --rounds cold,warm,warm --json
    ```
    """
    names = _names(scheme)
    order = _order(rounds)
    count = shards if shards is not None else max(len(target), 1)
    _check(log, count, names, clients, min(queries, documents, limit))
    check_changes(mutable, immutable)
    from levada.adapters.replay.servers import check_targets
    from levada.assemble.replaying import ReplayWish
    from levada.cli.shard_advise_run import Asked
    from levada.cli.shard_replay_run import run

    check_targets(target)
    asked = Asked(log, sample, count, collection, id_field, max(queries, 1), documents)
    wish = ReplayWish(tuple(target), queries, clients, order, limit, keep, force)
    result = run(asked, names, wish, mutable or (), immutable or (), quiet=json)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.shard_replay_print import show

        show(result)


def _names(scheme: list[str] | None) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(scheme or _SCHEMES))
    for name in chosen:
        if name not in _SCHEMES:
            raise UsageError(f"--scheme {name[:50]!r} is none of {', '.join(_SCHEMES)}")
    return chosen


def _order(typed: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in typed.split(",") if part.strip())
    if not names or len(names) > _MOST_ROUNDS or any(name not in _ROUNDS for name in names):
        raise UsageError(f"--rounds {typed[:50]!r}: 1 to {_MOST_ROUNDS} of cold and warm are needed")
    if "cold" in names[1:]:
        raise UsageError("--rounds: only the first round can be cold: after it the caches are warm")
    return names


def _check(log: Path, shards: int, names: tuple[str, ...], clients: int, least: int) -> None:
    if shards < 2 and names != ("none",):
        raise UsageError(
            "--shards must be at least 2: with one shard every scheme is the same; "
            "give several --target, or --shards K, or only --scheme none"
        )
    if shards > _MOST_SHARDS:
        raise UsageError(f"--shards must be at most {_MOST_SHARDS}, not {shards}")
    if not 1 <= clients <= _MOST_CLIENTS:
        raise UsageError(f"--clients must be 1 to {_MOST_CLIENTS}, not {clients}")
    if least < 1:
        raise UsageError("--queries, --documents and --limit must be at least 1")
    if not log.is_file():
        raise LevadaError(f"there is no log of queries {log}")
