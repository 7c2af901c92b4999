"""From the words of a command line to a simulated run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from levada.cli.ending import ended_at_once
from levada.errors import UsageError
from levada.lab.stages.figures import Figures
from levada.lab.stages.jobs import Job, Options, begun, rules_of
from levada.lab.stages.loads import constant, parse_load
from levada.lab.stages.model import TIMES, Model, StageModel
from levada.lab.stages.running import follow, simulate

__all__ = ["Asked", "model_of", "run"]

_MOST_RECORDED = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


def run(asked: Asked, controller: str, options: Options, picture: Path | None = None) -> Figures:
    job = Job(model_of(asked), controller, asked.most, options)
    rules = rules_of(job)
    model = begun(job.model, job.most) if controller == "static" else job.model
    with ended_at_once():
        if picture is None:
            return simulate(model, rules)
        course = follow(model, rules)
    from levada.lab.stages.picture import draw_course

    draw_course(course, picture)
    return course.figures


def model_of(asked: Asked) -> Model:
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


def _stage(text: str, asked: Asked) -> StageModel:
    """`5`, `deterministic:5`, `lognormal:5:1` or `recorded:FILE`."""
    kind, _, rest = text.partition(":") if ":" in text else ("", "", text)
    given = {"capacity": asked.capacity, "startup": asked.startup, "poll": asked.poll}
    if kind == "recorded":
        return StageModel(service=1.0, times=kind, recorded=_recorded(Path(rest)), **given)  # type: ignore[arg-type]
    try:
        service, *spread = (float(part) for part in rest.split(":"))
    except ValueError:
        raise UsageError(f"--times: {text!r} is not a time") from None
    if kind and kind not in TIMES:
        raise UsageError(
            f"--times: {text!r} is not a time: such as 5, or {', '.join(f'{each}:' for each in TIMES)}"
        )
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
