"""How do many cells get done on all cores, with somebody watching?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import msgspec

from levada.errors import LevadaError
from levada.lab.grouping.cell import run_cell
from levada.lab.grouping.figures import Figures
from levada.lab.grouping.real_streams import real_stream
from levada.lab.grouping.streams import Stream, country_stream, half_skew_stream

__all__ = ["HALF_SKEW", "Job", "Progress", "Row", "run_jobs"]

HALF_SKEW = "half-skew"

Progress = Callable[[int, int, str], None]  # jobs done, jobs in all, the one just done


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
    count = min(processes or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        return [_run(job) for job in jobs]
    done: dict[Job, Row] = {}
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[Row], Job] = {pool.submit(_run, job): job for job in jobs}
        try:
            for future in as_completed(waiting):
                job = waiting[future]
                done[job] = future.result()
                if progress:
                    progress(len(done), len(jobs), f"{job.method}, {job.stream}, {job.workers} workers")
        except BrokenProcessPool:
            raise LevadaError("a process of the laboratory died: is there enough memory?") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[job] for job in jobs]


def _run(job: Job) -> Row:
    return Row(job, run_cell(job.method, _stream(job), job.workers, job.seed))


def _stream(job: Job) -> Stream:
    if job.stream == HALF_SKEW:
        return half_skew_stream(80.0, job.records, job.seed)
    if job.stream.isdecimal():
        return country_stream(float(job.stream), job.records, job.seed)
    return real_stream(job.stream, job.seed)
