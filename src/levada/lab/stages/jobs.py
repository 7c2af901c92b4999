"""How do many runs get done on all cores, with somebody watching?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.errors import UsageError
from levada.lab.cores import Progress, on_all_cores
from levada.lab.stages.figures import Figures
from levada.lab.stages.model import Model, mean_time
from levada.lab.stages.running import simulate
from levada.stages.rule import SizingRule
from levada.stages.rules import rule_named

__all__ = ["Job", "Options", "Progress", "begun", "rules_of", "run_jobs"]

Options = tuple[tuple[str, tuple[float, ...]], ...]  # a value for all stages, or one for each


class Job(msgspec.Struct, frozen=True):
    """`most` workers per stage; static ones are there from the beginning."""

    model: Model
    controller: str
    most: tuple[int, ...]
    options: Options = ()

    @property
    def name(self) -> str:
        chosen = (f"{key}={'/'.join(f'{value:g}' for value in values)}" for key, values in self.options)
        return " ".join((self.controller, *chosen))


def begun(model: Model, first: Sequence[int]) -> Model:
    """The model with so many workers at the beginning."""
    pairs = zip(model.stages, first, strict=True)
    return msgspec.structs.replace(
        model, stages=tuple(msgspec.structs.replace(stage, first=count) for stage, count in pairs)
    )


def rules_of(job: Job) -> tuple[SizingRule, ...]:
    """Drain time has to be told the service times, and is where it was not."""
    for key, values in job.options:
        if len(values) not in (1, len(job.most)):
            raise UsageError(f"{key}: one value for all {len(job.most)} stages or one for each, not {len(values)}")
    rules = []
    for place, (most, stage) in enumerate(zip(job.most, job.model.stages, strict=True)):
        own: dict[str, float] = {"startup": stage.startup}
        if job.controller.startswith("drain-time"):
            own["service"] = mean_time(stage)
        own |= {key: values[place] if len(values) > 1 else values[0] for key, values in job.options}
        rules.append(rule_named(job.controller, min(1, most), most, own))
    return tuple(rules)


def run_jobs(jobs: Sequence[Job], progress: Progress | None = None, processes: int | None = None) -> list[Figures]:
    """In the order of the jobs."""
    for job in jobs[:1]:
        rules_of(job)  # a wrong option is said at once, and here
    return on_all_cores(_run, jobs, lambda job: job.name, progress, processes)


def _run(job: Job) -> Figures:
    model = begun(job.model, job.most) if job.controller == "static" else job.model
    return simulate(model, rules_of(job))
