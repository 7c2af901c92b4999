"""How is a replay shown to a person, beside what the paper measured?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, wide_printer
from levada.cli.printing import line, plural, size

if TYPE_CHECKING:
    from levada.adapters.replay.rounds import Round
    from levada.adapters.replay.schemes import Played
    from levada.cli.shard_replay_run import Result

__all__ = ["show"]

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


def show(result: Result) -> None:
    out = wide_printer()
    done = result.replay
    asked = plural(done.queries, "query").replace("querys", "queries")
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
        out.print(Text(line(note), style="red" if note.startswith("Wrong") else "yellow"))


def _costs(result: Result) -> Table:
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


def _touches(result: Result) -> Table:
    table = figures_table(("scheme", "shards per query", "off by", "load max/mean", "off by", "directory"))
    for each in result.replay.played:
        found = each.quickest("warm") or each.quickest("cold")
        if found is not None:
            table.add_row(each.scheme, *_beside(each, found), f"{found.lookups:,}" if found.lookups else "")
    return table


def _beside(played: Played, found: Round) -> Iterator[str]:
    measured = (found.shards_per_query, found.load_max_mean)
    for expected, met in zip(played.predicted, measured, strict=True):
        yield f"{expected:.3f} | {met:.3f}"
        yield f"{met / expected - 1:+.1%}" if expected else ""


def _ratios(result: Result) -> Table:
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


def _cpu(found: Round) -> str:
    """Where the servers are elsewhere, for how long they were busy."""
    if found.cpu_total is None and found.busy_total is not None:
        return f"busy {found.busy_total:,.2f}"
    return _seconds(found.cpu_total)


def _times(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.2f}x"


def _most(values: tuple[int | None, ...]) -> str:
    known = [each for each in values if each is not None]
    return size(max(known)) if known else _UNKNOWN
