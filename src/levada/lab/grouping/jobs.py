"""How do many cells get done on all cores, with somebody watching?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.lab.cores import Progress, on_all_cores
from levada.lab.grouping.cell import run_cell
from levada.lab.grouping.figures import Figures
from levada.lab.grouping.real_streams import real_stream
from levada.lab.grouping.streams import Stream, country_stream, half_skew_stream

__all__ = ["HALF_SKEW", "Job", "Progress", "Row", "run_jobs"]

HALF_SKEW = "half-skew"


class Job(msgspec.Struct, frozen=True):
    """`stream`: a number is a country set of so much skew, else `half-skew` or the name of a real stream."""

    method: str
    stream: str
    workers: int
    seed: int
    records: int


class Row(msgspec.Struct, frozen=True):
    job: Job
    figures: Figures


def run_jobs(jobs: Sequence[Job], progress: Progress | None = None, processes: int | None = None) -> list[Row]:
    """In the order of the jobs."""
    return on_all_cores(_run, jobs, _name, progress, processes)


def _name(job: Job) -> str:
    return f"{job.method}, {job.stream}, {job.workers} workers"


def _run(job: Job) -> Row:
    return Row(job, run_cell(job.method, _stream(job), job.workers, job.seed))


def _stream(job: Job) -> Stream:
    if job.stream == HALF_SKEW:
        return half_skew_stream(80.0, job.records, job.seed)
    if job.stream.isdecimal():
        return country_stream(float(job.stream), job.records, job.seed)
    return real_stream(job.stream, job.seed)
