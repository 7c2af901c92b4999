"""Options of the simulate commands, and the run they describe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import ended_at_once
from levada.core.errors import UsageError
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.jobs import Options, StageJob, begun, rules_of
from levada.lab.stages.model import TIMES, Model, StageModel, constant, parse_load
from levada.lab.stages.runs import follow, simulate

ScannersOption = Annotated[float, typer.Option("--scanners", metavar="N", help="Each makes ten jobs per second.")]
OrchestratorsOption = Annotated[int, typer.Option("--orchestrators", metavar="N", help="At most; 0.25 s per job.")]
CatalogsOption = Annotated[int, typer.Option("--catalogs", metavar="N", help="At most; 5 s per job.")]
SecondsOption = Annotated[float, typer.Option("--seconds", metavar="S", help="How long, in simulated seconds.")]
ControllerOption = Annotated[
    str, typer.Option("--controller", metavar="NAME", help="Who says how many; a wrong name lists all.")
]
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


def parse_numbers(text: str, where: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{where}: {text!r} is not a list of numbers") from None


def parse_options(settings: list[str] | None) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Options of a controller: `key=value`, or `key=a/b` with a value for each stage."""
    found = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r} is not of the form key=value")
        found[key] = parse_numbers(value.replace("/", ","), key)
    return tuple(found.items())


_MOST_RECORDED = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    times: str
    most: tuple[int, ...]
    scanners: float
    load: str | None
    seconds: float
    seed: int
    capacity: int = 100
    startup: float = 0.0
    poll: float = 0.002
    crashes: float = 0.0
    slow_from: float | None = None
    hold: bool = False
    budget: int | None = None
    idle_first: bool = True


def run(asked: SimulationRequest, controller: str, options: Options, picture: Path | None = None) -> StageFigures:
    job = StageJob(model_of(asked), controller, asked.most, options)
    rules = rules_of(job)
    model = begun(job.model, job.most) if controller == "static" else job.model
    with ended_at_once():
        if picture is None:
            return simulate(model, rules)
        course = follow(model, rules)
    from levada.lab.stages.picture import draw_course

    draw_course(course, picture)
    return course.figures


def model_of(asked: SimulationRequest) -> Model:
    stages = tuple(_stage(text.strip(), asked) for text in asked.times.split(","))
    if len(stages) != len(asked.most):
        raise UsageError(f"{len(stages)} stages need as many numbers of workers, not {len(asked.most)}")
    if not 0.0 < asked.seconds <= 1e8:
        raise UsageError(f"--seconds must be above 0 and at most 100000000, not {asked.seconds}")
    if not 0.0 < asked.scanners <= 1e6:
        raise UsageError(f"--scanners must be above 0 and at most 1000000, not {asked.scanners:g}")
    return Model(
        stages=stages,
        load=parse_load(asked.load, asked.seconds) if asked.load else constant(asked.scanners),
        seconds=asked.seconds,
        seed=asked.seed,
        idle_first=asked.idle_first,
        slow_from=math.inf if asked.slow_from is None else asked.slow_from,
        crashes=asked.crashes,
        hold=asked.hold,
        budget=asked.budget,
    )


def _stage(text: str, asked: SimulationRequest) -> StageModel:
    """A stage by its service time: `5`, `deterministic:5`, `lognormal:5:1` or `recorded:FILE`."""
    kind, _, rest = text.partition(":") if ":" in text else ("", "", text)
    given = {"capacity": asked.capacity, "startup": asked.startup, "poll": asked.poll}
    if kind == "recorded":
        return StageModel(service=1.0, times=kind, recorded=_recorded(Path(rest)), **given)  # type: ignore[arg-type]
    try:
        service, *spread = (float(part) for part in rest.split(":"))
    except ValueError:
        raise UsageError(f"--times: {text!r} is not a time") from None
    if kind and kind not in TIMES:
        raise UsageError(f"--times: {text!r} is not a time: such as 5, or {', '.join(f'{each}:' for each in TIMES)}")
    if len(spread) > (kind == "lognormal"):
        raise UsageError(f"--times: {text!r} has too many numbers")
    own = {"spread": spread[0]} if spread else {}
    return StageModel(service=service, times=kind or "exponential", **own, **given)  # type: ignore[arg-type]


def _recorded(path: Path) -> tuple[float, ...]:
    try:
        with path.open(encoding="ascii") as file:
            return tuple(float(word) for word in file.read(_MOST_RECORDED).split())
    except OSError as error:
        raise UsageError(f"cannot read the times in {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"cannot read the times in {path}: they must be numbers, one per line") from None
