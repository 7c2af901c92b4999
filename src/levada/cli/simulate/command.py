"""`levada simulate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from levada.cli.app import make_family
from levada.cli.lab.tables import require_lab
from levada.cli.options import JsonOption, print_result
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
    parse_options,
)
from levada.cli.simulate.size import size
from levada.cli.simulate.sweep import sweep
from levada.cli.terminal import printer
from levada.core.errors import UsageError
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.lab.stages.figures import StageFigures


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
    chain, with a queue before each stage; or a `sweep` over settings; or says what `size` is enough.

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
    from levada.cli.simulate.options import SimulationRequest, run

    asked = SimulationRequest(
        times=times or "0.25,5",
        most=parse_most(times, workers, orchestrators, catalogs),
        scanners=scanners,
        load=load,
        seconds=seconds,
        seed=seed,
        capacity=capacity,
        startup=startup,
        poll=poll,
        crashes=crashes,
        slow_from=slow_from,
        hold=hold,
        budget=budget,
        idle_first=not highest_first,
    )
    figures = run(asked, controller, parse_options(settings), picture)
    print_result(json, figures, show, figures, controller, seconds)


def parse_most(times: str | None, workers: str | None, orchestrators: int, catalogs: int) -> tuple[int, ...]:
    if workers is None:
        if times is not None and len(times.split(",")) != 2:
            raise UsageError("--times of other than two stages needs --workers, one number for each")
        return orchestrators, catalogs
    numbers = parse_numbers(workers, "--workers")
    if not all(number.is_integer() for number in numbers):  # nor is any that is not finite
        raise UsageError(f"--workers: {workers!r} is not a list of whole numbers")
    return tuple(int(number) for number in numbers)


family = make_family(simulate, sweep, size, cls=_Settings, invoke_without_command=True)
