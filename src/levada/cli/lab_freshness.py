"""`levada lab freshness`: which policy keeps pages freshest, and do the paper's tables come out again?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.lab_extra import check_picture, require
from levada.cli.options import JsonOption, print_json
from levada.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from levada.lab.freshness.table import HistoryFile

__all__ = ["register"]

_MOST_SEEDS = 10_000


def register(app: typer.Typer) -> None:
    app.command()(freshness)


def freshness(
    worlds: Annotated[
        str | None, typer.Option("--worlds", metavar="A,B", help="Only these; a wrong name lists all.")
    ] = None,
    policies: Annotated[
        str | None, typer.Option("--policies", metavar="A,B", help="Only these; a wrong name lists all.")
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="1-10", help="Which worlds of each kind.")] = "1-10",
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="Replay the histories of this file instead.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", metavar="N", help="Of the file: the N days with most documents.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it too: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Runs every policy in every world with as many fetches as the paper's rule spends there, and reruns the tables
    of the paper.

    All worlds and ten seeds take one to two minutes on two cores.

    A history file: `#` lines are comments; per document a line with tabs between name, first seen, deleted (or
    empty) and change times joined by commas; minutes from any zero; gzip or plain.

    Examples:

    ```
    levada lab freshness
    levada lab freshness --worlds poisson-7d,ota-1y --seeds 1-3
    levada lab freshness --history changes.tsv.gz --days 30 --json
    ```
    """
    require("numpy", "numba", *(["matplotlib"] if picture else []))
    check_picture(picture)
    from levada.cli.lab_freshness_run import run
    from levada.lab.freshness.simulation import POLICIES

    run_worlds = _worlds(worlds, history, days)
    result = run(run_worlds, _names(policies) or POLICIES, _seeds(seeds), quiet=json)
    if picture:
        from levada.lab.freshness.picture import draw
        from levada.lab.freshness.summary import summarise

        draw(summarise(result.rows), picture)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.lab_freshness_print import show

        show(result)


def _worlds(names: str | None, history: Path | None, days: float | None) -> Sequence[str | HistoryFile]:
    from levada.lab.freshness.table import WORLDS, HistoryFile

    if history is None:
        if days is not None:
            raise UsageError("--days is for --history")
        return _names(names) or WORLDS
    if names is not None:
        raise UsageError("--history replays one file: leave --worlds out")
    return (HistoryFile(history, days),)


def _names(typed: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in (typed or "").split(",") if name.strip()))


def _seeds(typed: str) -> tuple[int, ...]:
    """`1-10`, `3`, `1,2,7-9`."""
    seeds: list[int] = []
    for part in typed.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(part) > 20:
            raise UsageError(f"--seeds: {part[:40]!r} is no number such as 3, nor a range such as 1-10")
        first, last = int(low), int(high) if dash else int(low)
        if last - first >= _MOST_SEEDS or last < first:
            raise UsageError(f"--seeds: {part[:40]!r} is empty or too long a range")
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))
