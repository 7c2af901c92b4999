"""`levada simulate size`."""

from __future__ import annotations

from typing import Annotated

import typer

from levada.cli.options import JsonOption, check_range, print_json
from levada.cli.simulate.options import SecondsOption, parse_numbers


def size(
    rate: Annotated[float, typer.Option(metavar="R", help="Jobs per second.")],
    times: Annotated[str, typer.Option(metavar="A,B", help="Seconds per job, stage by stage.")],
    latency: Annotated[float, typer.Option(metavar="S", help="The mean latency that is wanted.")],
    seconds: SecondsOption = 10_000.0,
    runs: Annotated[int, typer.Option(metavar="N", help="Seeds 1 to N of the simulation.")] = 3,
    json: JsonOption = False,
) -> None:
    """The fewest workers that keep the mean latency: by Erlang's formula, then confirmed by simulation (no job is
    dropped, and no queue is ever more than half full).

    Example:

    ```
    levada simulate size --rate 30 --times 0.25,5 --latency 5.3
    ```
    """
    from levada.cli.lab.tables import require

    require("numpy", "numba")
    check_range("--runs", runs, 1, 1_000)
    from levada.cli.options import ended_at_once
    from levada.lab.stages.sizing import size as sized

    with ended_at_once():
        found = sized(rate, parse_numbers(times, "--times"), latency, seconds, runs)
    if json:
        print_json(found)
        return
    from levada.cli.terminal import printer
    from levada.core.words import plural

    out = printer()
    out.print(f"{' + '.join(map(str, found.workers))} = {plural(sum(found.workers), 'worker')}", style="bold")
    out.print(f"Erlang's formula alone: {' + '.join(map(str, found.formula))}")
    out.print(
        f"simulated: mean latency {found.latency_mean_s:.3f} s, queues of at most "
        f"{' and '.join(map(str, found.queue_max))}, {found.dropped} dropped in {plural(found.runs, 'run')}"
    )
