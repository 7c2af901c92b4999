"""`levada simulate sweep`."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.lab.tables import require_lab
from levada.cli.options import JsonOption, check_range, print_result
from levada.cli.simulate.options import (
    CatalogsOption,
    ControllerOption,
    HighestFirstOption,
    LoadOption,
    OrchestratorsOption,
    ScannersOption,
    SecondsOption,
    SetOption,
    parse_numbers,
)
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from levada.lab.stages.jobs import Options, Setting

_MOST_RUNS = 100_000
_FIGURES = ("score", "paid", "latency, s", "dropped, %", "decisions")
_WIDEST = 10_000  # of a pipe, which has no width of its own


def sweep(  # Typer reads options from the signature: what `simulate` has too is listed again
    controller: ControllerOption = "linear",
    settings: SetOption = None,
    scanners: ScannersOption = 3.0,
    orchestrators: OrchestratorsOption = 14,
    catalogs: CatalogsOption = 174,
    seconds: SecondsOption = 10_000.0,
    runs: Annotated[int, typer.Option(metavar="N", help="Seeds 1 to N for each setting.")] = 5,
    load: LoadOption = None,
    highest_first: HighestFirstOption = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a heat map of the scores: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Every combination of the values given, on all cores, with the report's score (3.2 is the best there can be).

    Example:

    ```
    levada simulate sweep --controller linear period=0.25,0.5,1 threshold=75,85,100 history=15,30,60
    ```
    """
    require_lab(picture)
    check_range("--runs", runs, 1, 1_000)
    from levada.cli.simulate.options import SimulationRequest, model_of
    from levada.cli.terminal import progress_bar
    from levada.lab.stages.jobs import sweep as swept

    model = model_of(
        SimulationRequest(
            times="0.25,5",
            most=(orchestrators, catalogs),
            scanners=scanners,
            load=load,
            seconds=seconds,
            seed=1,
            idle_first=not highest_first,
        )
    )
    grid = _grid(settings, runs)
    with progress_bar(json) as progress:
        found = swept(model, controller, (orchestrators, catalogs), grid, range(1, runs + 1), progress)
    if picture:
        _draw(found, picture)
    print_result(json, {"controller": controller, "runs": runs, "settings": found}, _print, found, controller)


def _grid(settings: list[str] | None, runs: int) -> list[Options]:
    axes = []
    for setting in settings or ():
        key, equals, values = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r} is not of the form key=value,value")
        axes.append([(key, parse_numbers(value.replace("/", ","), key)) for value in values.split(",")])
    grid = [tuple(options) for options in product(*axes)]
    if len(grid) * runs > _MOST_RUNS:
        raise UsageError(f"{len(grid)} settings in {runs} runs are more than {_MOST_RUNS}")
    return grid


def _draw(found: list[Setting], picture: Path) -> None:
    """Draw a heat map: the last key across, all others down."""
    import numpy as np

    from levada.lab.stages.picture import draw_sweep

    parts = [setting.name.split(" ")[1:] or ["-"] for setting in found]
    rows = list(dict.fromkeys(" ".join(part[:-1]) for part in parts))
    columns = list(dict.fromkeys(part[-1] for part in parts))
    values = np.full((len(rows), len(columns)), np.nan)
    for part, setting in zip(parts, found, strict=True):
        values[rows.index(" ".join(part[:-1])), columns.index(part[-1])] = setting.score
    draw_sweep(rows, columns, values, "score", picture)


def _print(found: list[Setting], controller: str) -> None:
    from levada.cli.terminal import printer

    out = printer()
    table = _table([_row(each, controller) for each in sorted(found, key=lambda setting: -setting.score)])
    if not out.is_terminal:
        out.width = max(out.width, out.measure(table, options=out.options.update(width=_WIDEST)).maximum)
    out.print(table)


def _row(found: Setting, controller: str) -> tuple[str, ...]:
    return (
        found.name.removeprefix(controller).strip() or "as it is",
        f"{found.score:.3f}",
        f"{found.paid_workers:.1f}",
        f"{found.latency_mean_s:.3f}",
        f"{100 * found.drop_rate:.3f}",
        f"{found.decisions:,.0f}",
    )


def _table(rows: list[tuple[str, ...]]) -> Table:
    """A table whose figures are never broken; settings are broken between words on a narrow screen."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", min_width=max(len(word) for row in rows for word in row[0].split()))
    for number, figure in enumerate(_FIGURES, 1):
        widest = max(len(each) for each in (figure, *(row[number] for row in rows)))
        table.add_column(figure, justify="right", no_wrap=True, min_width=widest)
    for row in rows:
        table.add_row(*row)
    return table
