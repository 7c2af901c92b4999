"""What the options of the simulate commands say: numbers, settings, and the model to run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from levada.cli.options import ended_at_once
from levada.core.errors import UsageError
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.model import TIMES, Model, StageModel, constant, parse_load
from levada.lab.stages.runs import StageJob, begun, follow, rules_of, simulate


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


def parse_most(times: str | None, workers: str | None, orchestrators: int, catalogs: int) -> tuple[int, ...]:
    if workers is None:
        if times is not None and len(times.split(",")) != 2:
            raise UsageError("--times of other than two stages needs --workers, one number for each")
        return orchestrators, catalogs
    numbers = parse_numbers(workers, "--workers")
    if not all(number.is_integer() for number in numbers):  # nor is any that is not finite
        raise UsageError(f"--workers: {workers!r} is not a list of whole numbers")
    return tuple(int(number) for number in numbers)


_MOST_RECORDED = 10_000_000


def run(job: StageJob, picture: Path | None) -> StageFigures:
    rules = rules_of(job)
    model = begun(job.model, job.most) if job.controller == "static" else job.model
    with ended_at_once():
        if picture is None:
            return simulate(model, rules)
        course = follow(model, rules)
    from levada.lab.stages.runs import draw_course

    draw_course(course, picture)
    return course.figures


def model_of(
    times: str,
    most: tuple[int, ...],
    scanners: float,
    load: str | None,
    seconds: float,
    queue: Mapping[str, Any],
    **options: Any,
) -> Model:
    """The model that these options describe: `queue` are those of every stage, `options` others of the model."""
    stages = tuple(_stage(text.strip(), queue) for text in times.split(","))
    if len(stages) != len(most):
        raise UsageError(f"{len(stages)} stages need as many numbers of workers, not {len(most)}")
    if not 0.0 < seconds <= 1e8:
        raise UsageError(f"--seconds must be above 0 and at most 100000000, not {seconds}")
    if not 0.0 < scanners <= 1e6:
        raise UsageError(f"--scanners must be above 0 and at most 1000000, not {scanners:g}")
    shape = parse_load(load, seconds) if load else constant(scanners)
    return Model(stages=stages, load=shape, seconds=seconds, **options)


def _stage(text: str, queue: Mapping[str, Any]) -> StageModel:
    """A stage by its service time: `5`, `deterministic:5`, `lognormal:5:1` or `recorded:FILE`."""
    kind, _, rest = text.partition(":") if ":" in text else ("", "", text)
    if kind == "recorded":
        return StageModel(service=1.0, times=kind, recorded=_recorded(Path(rest)), **queue)
    try:
        service, *spread = (float(part) for part in rest.split(":"))
    except ValueError:
        raise UsageError(f"--times: {text!r} is not a time") from None
    if kind and kind not in TIMES:
        raise UsageError(f"--times: {text!r} is not a time: such as 5, or {', '.join(f'{each}:' for each in TIMES)}")
    if len(spread) > (kind == "lognormal"):
        raise UsageError(f"--times: {text!r} has too many numbers")
    own: dict[str, Any] = {"spread": spread[0]} if spread else {}
    return StageModel(service=service, times=kind or "exponential", **own, **queue)


def _recorded(path: Path) -> tuple[float, ...]:
    try:
        with path.open(encoding="ascii") as file:
            return tuple(float(word) for word in file.read(_MOST_RECORDED).split())
    except OSError as error:
        raise UsageError(f"cannot read the times in {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"cannot read the times in {path}: they must be numbers, one per line") from None
