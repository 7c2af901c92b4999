"""How do many runs get done on all cores, with somebody watching?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import msgspec

from levada.errors import LevadaError
from levada.lab.stages.figures import Figures
from levada.lab.stages.model import Model, mean_time
from levada.lab.stages.running import simulate
from levada.stages.rule import SizingRule
from levada.stages.rules import rule_named

__all__ = ["Job", "Options", "Progress", "begun", "rules_of", "run_jobs"]

Progress = Callable[[int, int, str], None]  # runs done, runs in all, the one just done
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
    count = min(processes or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        return [_run(job) for job in jobs]
    done: dict[int, Figures] = {}
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[Figures], int] = {pool.submit(_run, job): place for place, job in enumerate(jobs)}
        try:
            for future in as_completed(waiting):
                place = waiting[future]
                done[place] = future.result()
                if progress:
                    progress(len(done), len(jobs), jobs[place].name)
        except BrokenProcessPool:
            raise LevadaError("a process of the laboratory died: is there enough memory?") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[place] for place in range(len(jobs))]


def _run(job: Job) -> Figures:
    model = begun(job.model, job.most) if job.controller == "static" else job.model
    return simulate(model, rules_of(job))
