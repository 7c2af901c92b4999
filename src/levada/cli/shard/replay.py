"""`levada shard replay`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from levada.cli.lab.tables import figures_table, wide_printer
from levada.cli.options import JsonOption, print_result, split_names
from levada.cli.shard.options import (
    CollectionOption,
    IdOption,
    ImmutableOption,
    LogArgument,
    MutableOption,
    SampleArgument,
    check_request,
)
from levada.cli.terminal import progress_bar
from levada.core.errors import UsageError
from levada.core.words import line, plural, size
from levada.sharding.advice import NoteKind

if TYPE_CHECKING:
    from levada.replay.run import ReplayResult
    from levada.replay.schemes import Played, ReplayRound


# Of 80,000 queries, warm; the paper does not say how many shards there were, nor of how much memory the shares are.
_PAPER = {"none": (362, 49), "id": (193, 35), "paper": (60, 23)}
_COLUMNS = (
    "scheme",
    "shards",
    "cold s",
    "warm s",
    "CPU s",
    "busiest server",
    "busiest shard",
    "memory",
    "data",
    "paper: s",
    "memory",
)
_UNKNOWN = "unknown"


def show(result: ReplayResult) -> None:
    out = wide_printer()
    done = result.replay
    asked = plural(done.queries, "query")
    words = f"{result.collection}: {asked}, {plural(done.documents, 'document')}, {plural(done.clients, 'client')}"
    out.print(line(words))
    for each in done.played:
        mark = " (partial)" if each.partial else ""
        out.print(f"  {each.scheme}: {line(each.key)}{mark}")
    out.print(Text("\nWhat it took; CPU of the database, memory and data of the fullest server", style="bold"))
    out.print(_costs(result))
    out.print(Text("\nPredicted | measured", style="bold"))
    out.print(_touches(result))
    out.print(Text("\nHow many times as fast (above 1: the first is faster)", style="bold"))
    out.print(_ratios(result))
    for note in result.notes:
        out.print(Text(line(note), style="red" if note.kind is NoteKind.WRONG else "yellow"))


def _costs(result: ReplayResult) -> Table:
    table = figures_table(_COLUMNS)
    for each in result.replay.played:
        cold, warm = each.quickest("cold"), each.quickest("warm")
        last = warm or cold
        seconds, share = _PAPER.get(each.scheme, ("", ""))
        table.add_row(
            each.scheme,
            str(each.shards),
            _seconds(cold.seconds if cold else None, ""),
            _seconds(warm.seconds if warm else None, ""),
            _cpu(last) if last else _UNKNOWN,
            _seconds(last.cpu_busiest if last else None),
            _seconds(last.cpu_busiest_shard if last else None),
            _most(last.memory) if last else _UNKNOWN,
            _most(each.sizes),
            str(seconds),
            f"{share}%" if share else "",
        )
    return table


def _touches(result: ReplayResult) -> Table:
    table = figures_table(("scheme", "shards per query", "off by", "load max/mean", "off by", "directory"))
    for each in result.replay.played:
        found = each.quickest("warm") or each.quickest("cold")
        if found is not None:
            table.add_row(each.scheme, *_beside(each, found), f"{found.lookups:,}" if found.lookups else "")
    return table


def _beside(played: Played, found: ReplayRound) -> Iterator[str]:
    measured = (found.shards_per_query, found.load_max_mean)
    for expected, met in zip(played.predicted, measured, strict=True):
        yield f"{expected:.3f} | {met:.3f}"
        yield f"{met / expected - 1:+.1%}" if expected else ""


def _ratios(result: ReplayResult) -> Table:
    table = figures_table(("", "seconds", "CPU", "busiest server", "busiest shard"))
    for each in result.replay.ratios:
        figures = (each.seconds, each.cpu, each.busiest, each.busiest_shard)
        table.add_row(f"{each.scheme} against {each.against}", *map(_times, figures))
    for name, (seconds, _) in _PAPER.items():
        if name != "id":
            table.add_row(f"{name} against id, printed", _times(_PAPER["id"][0] / seconds), style="dim")
    return table


def _seconds(value: float | None, unknown: str = _UNKNOWN) -> str:
    return unknown if value is None else f"{value:,.2f}"


def _cpu(found: ReplayRound) -> str:
    """The CPU time of the servers; on other machines, how long they were busy."""
    if found.cpu_total is None and found.busy_total is not None:
        return f"busy {found.busy_total:,.2f}"
    return _seconds(found.cpu_total)


def _times(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.2f}x"


def _most(values: tuple[int | None, ...]) -> str:
    known = [each for each in values if each is not None]
    return size(max(known)) if known else _UNKNOWN


_SCHEMES = ("none", "id", "paper", "ours")
_ROUNDS = ("cold", "warm")
_MOST_CLIENTS, _MOST_SHARDS, _MOST_ROUNDS = 64, 256, 20


def replay(  # Typer reads options from the signature: what `advise` has too is listed again
    log: LogArgument,
    sample: SampleArgument,
    target: Annotated[
        list[str], typer.Option(metavar="DSN", help="A PostgreSQL server to try it on; may be repeated.")
    ],
    scheme: Annotated[
        list[str] | None, typer.Option(metavar="S", help="none, id, paper or ours; may be repeated. Default: all.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="K", help="On the servers in turn. Default: one on each.")
    ] = None,
    queries: Annotated[int, typer.Option(metavar="N", help="Replay so many of the log.")] = 80_000,
    clients: Annotated[int, typer.Option(metavar="C", help="That ask at the same time.")] = 4,
    rounds: Annotated[
        str, typer.Option(metavar="A,B", help="cold, warm; of several warm ones the quickest counts.")
    ] = "cold,warm",
    limit: Annotated[
        int, typer.Option(metavar="N", help="Documents that a query wants where the log does not say.")
    ] = 20,
    collection: CollectionOption = None,
    id_field: IdOption = None,
    mutable: MutableOption = None,
    immutable: ImmutableOption = None,
    documents: Annotated[int, typer.Option(metavar="N", help="Load so many documents at most.")] = 200_000,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the tables there.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Drop a schema levada_replay that is there already.")] = False,
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
    _check(count, names, clients, min(queries, documents, limit))
    check_request(log, mutable, immutable)
    from levada.capture.advice import AdviceRequest
    from levada.replay.run import ReplayOptions, run
    from levada.replay.servers import check_targets

    check_targets(target)
    asked = AdviceRequest(log, sample, count, collection, id_field, max(queries, 1), documents)
    replay_options = ReplayOptions(tuple(target), queries, clients, order, limit, keep, force)
    with progress_bar(json) as progress:
        result = run(asked, names, replay_options, mutable or (), immutable or (), progress=progress)
    print_result(json, result.facts(), show, result)


def _names(scheme: list[str] | None) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(scheme or _SCHEMES))
    for name in chosen:
        if name not in _SCHEMES:
            raise UsageError(f"--scheme {name[:50]!r} is none of {', '.join(_SCHEMES)}")
    return chosen


def _order(typed: str) -> tuple[str, ...]:
    names = split_names(typed)
    if not names or len(names) > _MOST_ROUNDS or any(name not in _ROUNDS for name in names):
        raise UsageError(f"--rounds {typed[:50]!r}: 1 to {_MOST_ROUNDS} of cold and warm are needed")
    if "cold" in names[1:]:
        raise UsageError("--rounds: only the first round can be cold: after it the caches are warm")
    return names


def _check(shards: int, names: tuple[str, ...], clients: int, least: int) -> None:
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
