"""`levada lab stages`: do the report's figures come out again, and how does ours compare?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.lab_extra import check_picture, chosen_parts, require
from levada.cli.options import JsonOption, print_json
from levada.errors import UsageError

__all__ = ["register"]

_PARTS = ("checks", "scores", "limits", "comparison")


def register(app: typer.Typer) -> None:
    app.command()(stages)


def stages(
    only: Annotated[
        str | None, typer.Option("--only", metavar="A,B", help="Of checks, scores, limits and comparison.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="Seeds per figure.")] = 5,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", help="Simulated seconds per run, 10000 in the report.")
    ] = 10_000.0,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw cost against latency: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Reruns the figures of the report on a three-stage system, printed beside ours: the M/M/1 check, the first
    queue, static sizes, the overload, both score tables, the cost in money; then says whether ours keeps its
    limits on six loads, and compares all controllers there: of each the cheapest setting that keeps the limits.

    Examples:

    ```
    levada lab stages
    levada lab stages --only checks --runs 2 --seconds 2000
    levada lab stages --only limits,comparison --runs 10 --seconds 3000
    levada lab stages --only comparison --picture stages.svg --json
    ```
    """
    require("numpy", "numba", *(["matplotlib"] if picture else []))
    check_picture(picture)
    parts = chosen_parts(only, _PARTS)
    if not 1 <= runs <= 1_000:
        raise UsageError(f"--runs must be between 1 and 1000, not {runs}")
    if not 10.0 <= seconds <= 1e6:
        raise UsageError(f"--seconds must be between 10 and 1000000, not {seconds}")
    from levada.cli.lab_stages_run import run

    result = run(parts, runs, seconds, quiet=json)
    if picture:
        from levada.lab.stages.picture import draw_comparison

        draw_comparison([(each.controller, each.paid_workers, each.late_s) for each in result.entries], picture)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.lab_stages_print import show

        show(result)
