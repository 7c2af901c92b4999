"""Runs many jobs on all cores, and ends them at once when they are no longer wanted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from levada.core.errors import LevadaError

Progress = Callable[[int, int, str], None]  # runs done, runs in all, name of the last one

Job = TypeVar("Job")
Found = TypeVar("Found")


def on_all_cores(
    run: Callable[[Job], Found],
    jobs: Sequence[Job],
    name: Callable[[Job], str],
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Found]:
    """The results, in the order of the jobs.

    Ctrl-C, or anything else that ends this early, also ends the runs under way: nothing of them is kept.
    """
    count = min(processes or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        return [run(job) for job in jobs]
    others = set(active_children())
    # Spawned, not forked: the caller that shows progress has threads.
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        with _interrupts_held():
            places: dict[Future[Found], int] = {pool.submit(run, job): place for place, job in enumerate(jobs)}
        for done, future in enumerate(as_completed(places), 1):
            future.result()
            if progress:
                progress(done, len(jobs), name(jobs[places[future]]))
        return [future.result() for future in places]
    except BrokenProcessPool:
        raise LevadaError("a process of the laboratory died: is there enough memory?") from None
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C while children start, so that only this process handles it; they inherit the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
