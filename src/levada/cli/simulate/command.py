"""`levada simulate`."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer.core import TyperGroup

from levada.cli.app import make_family
from levada.cli.lab.tables import require_lab
from levada.cli.options import ControllerOption, JsonOption, check_range, ended_at_once, print_result
from levada.cli.simulate.cluster import cluster
from levada.cli.simulate.options import model_of, parse_most, parse_numbers, parse_options, run
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import UsageError
from levada.core.words import plural
from levada.lab.stages.runs import StageJob

if TYPE_CHECKING:
    from levada.lab.stages.figures import StageFigures
    from levada.lab.stages.runs import Options, Setting
    from levada.lab.stages.sizing import Sizing

ScannersOption = Annotated[float, typer.Option("--scanners", metavar="N", help="Each makes ten jobs per second.")]
OrchestratorsOption = Annotated[int, typer.Option("--orchestrators", metavar="N", help="At most; 0.25 s per job.")]
CatalogsOption = Annotated[int, typer.Option("--catalogs", metavar="N", help="At most; 5 s per job.")]
SecondsOption = Annotated[float, typer.Option("--seconds", metavar="S", help="How long, in simulated seconds.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Tell the controller; --set may be left out.")
]
HighestFirstOption = Annotated[
    bool, typer.Option("--highest-first", help="Switch off the highest number, as the report does, not idle ones.")
]
LoadOption = Annotated[
    str | None,
    typer.Option("--load", metavar="SHAPE", help="steps:1,5,3 bursts:2,10,10,120 daily:1,5,2000 recorded:FILE"),
]


def show(figures: StageFigures, controller: str, seconds: float) -> None:
    out = printer()
    out.print(f"{controller}: {plural(figures.generated, 'job')} in {seconds:,.0f} simulated seconds", style="bold")
    out.print(
        f"completed {figures.completed:,}, dropped {figures.dropped:,} ({100 * figures.drop_rate:.2f} %), "
        f"{figures.throughput_per_min:,.0f} per minute"
    )
    out.print(
        f"latency   mean {figures.latency_mean_s:.3f} s, half within {figures.latency_p50_s:.2f} s, "
        f"99 % within {figures.latency_p99_s:.2f} s, all within {figures.latency_max_s:.2f} s"
    )
    for stage, on in enumerate(figures.on_workers):
        out.print(
            f"stage {stage + 1}   {on:.2f} workers on, {figures.paid_workers[stage]:.2f} paid, "
            f"{figures.busy_workers[stage]:.2f} busy; queue {figures.queue_mean[stage]:.2f} on average, "
            f"{figures.queue_max[stage]} at most"
        )
    out.print(f"in all    {sum(figures.paid_workers):.2f} paid workers, {plural(figures.decisions, 'decision')}")
    if figures.held_s:
        out.print(f"the source was held back for {figures.held_s:,.1f} s")


_SETTING = re.compile(r"[a-z_]+=")


class _Settings(TyperGroup):
    """A group that accepts `key=value` without `--set`, anywhere on the line."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args[:1] == ["cluster"]:  # it has no controller to tell
            return super().parse_args(ctx, args)
        words: list[str] = []
        for word in args:
            words += ["--set", word] if _SETTING.match(word) and words[-1:] != ["--set"] else [word]
        return super().parse_args(ctx, words)


def simulate(
    ctx: typer.Context,
    scanners: ScannersOption = 3.0,
    orchestrators: OrchestratorsOption = 14,
    catalogs: CatalogsOption = 174,
    times: Annotated[
        str | None, typer.Option(metavar="A,B", help="Another chain: 0.25,lognormal:5:1,deterministic:2,recorded:FILE.")
    ] = None,
    workers: Annotated[str | None, typer.Option(metavar="N,M", help="Most workers of each stage of --times.")] = None,
    seconds: SecondsOption = 10_000.0,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, another run.")] = 1,
    controller: ControllerOption = "static",
    settings: SetOption = None,
    load: LoadOption = None,
    capacity: Annotated[int, typer.Option(metavar="N", help="Jobs that a queue holds.")] = 100,
    startup: Annotated[float, typer.Option(metavar="S", help="Seconds a worker needs to start.")] = 0.0,
    poll: Annotated[float, typer.Option(metavar="S", help="Seconds between looks at an empty queue.")] = 0.002,
    crashes: Annotated[
        float, typer.Option(metavar="R", help="Crashes per worker and second; the job is done again.")
    ] = 0.0,
    slow_from: Annotated[
        float | None, typer.Option(metavar="S", help="From then on every service takes twice as long.")
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Let the source be held back when a queue fills.")] = False,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Workers at most over all stages together.")] = None,
    highest_first: HighestFirstOption = False,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw queues and workers: .svg or .png.")] = None,
    json: JsonOption = False,
) -> None:
    """Simulates scanners that make jobs, orchestrators that prepare them and catalogs that finish them, or another
    chain, with a queue before each stage; or a `sweep` over settings; or says what `size` is enough, or how large a
    `cluster` must be.

    Controllers: static, linear, drain-time (both as really run; with -as-written as the report has them), hpa,
    keda, ds2, and feed-forward, which is ours. What one can be told is given as key=value, per stage as a/b.

    Examples:

    ```
    levada simulate --scanners 3 --orchestrators 14 --catalogs 174 --json
    levada simulate --controller linear threshold=75 history=15 --load steps:1,5,3,8,2
    levada simulate --controller feed-forward --load bursts:2,10,10,120 --picture bursts.svg
    levada simulate sweep --controller linear threshold=75,85,100 history=15,30,60
    levada simulate size --rate 30 --times 0.25,5 --latency 5.3
    ```
    """
    if ctx.invoked_subcommand:
        return
    require_lab(picture)
    most, options = parse_most(times, workers, orchestrators, catalogs), parse_options(settings)
    model = model_of(
        times or "0.25,5",
        most,
        scanners,
        load,
        seconds,
        {"capacity": capacity, "startup": startup, "poll": poll},
        seed=seed,
        crashes=crashes,
        slow_from=math.inf if slow_from is None else slow_from,
        hold=hold,
        budget=budget,
        idle_first=not highest_first,
    )
    figures = run(StageJob(model, controller, most, options), picture)
    print_result(json, figures, show, figures, controller, seconds)


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
    from levada.lab.stages.runs import sweep as swept

    most = orchestrators, catalogs
    model = model_of("0.25,5", most, scanners, load, seconds, {}, idle_first=not highest_first)
    grid = _grid(settings, runs)
    with progress_bar(json) as progress:
        found = swept(model, controller, most, grid, range(1, runs + 1), progress)
    if picture:
        _draw(found, picture)
    print_result(json, {"controller": controller, "runs": runs, "settings": found}, _print_sweep, found, controller)


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

    from levada.lab.stages.runs import draw_sweep

    parts = [setting.name.split(" ")[1:] or ["-"] for setting in found]
    rows = list(dict.fromkeys(" ".join(part[:-1]) for part in parts))
    columns = list(dict.fromkeys(part[-1] for part in parts))
    values = np.full((len(rows), len(columns)), np.nan)
    for part, setting in zip(parts, found, strict=True):
        values[rows.index(" ".join(part[:-1])), columns.index(part[-1])] = setting.score
    draw_sweep(rows, columns, values, "score", picture)


def _print_sweep(found: list[Setting], controller: str) -> None:
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
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", min_width=max(len(word) for row in rows for word in row[0].split()))
    for number, figure in enumerate(_FIGURES, 1):
        widest = max(len(each) for each in (figure, *(row[number] for row in rows)))
        table.add_column(figure, justify="right", no_wrap=True, min_width=widest)
    for row in rows:
        table.add_row(*row)
    return table


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
    require_lab()
    check_range("--runs", runs, 1, 1_000)
    from levada.lab.stages.sizing import size as sized

    with ended_at_once():
        found = sized(rate, parse_numbers(times, "--times"), latency, seconds, runs)
    print_result(json, found, _print_size)


def _print_size(found: Sizing) -> None:
    out = printer()
    out.print(f"{' + '.join(map(str, found.workers))} = {plural(sum(found.workers), 'worker')}", style="bold")
    out.print(f"Erlang's formula alone: {' + '.join(map(str, found.formula))}")
    out.print(
        f"simulated: mean latency {found.latency_mean_s:.3f} s, queues of at most "
        f"{' and '.join(map(str, found.queue_max))}, {found.dropped} dropped in {plural(found.runs, 'run')}"
    )


family = make_family(simulate, sweep, size, cluster, cls=_Settings, invoke_without_command=True)
