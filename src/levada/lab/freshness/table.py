"""Which policy is freshest, world by world, with as many fetches as the paper's rule spends there?"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec

from levada.errors import LevadaError, UsageError
from levada.lab.freshness.measures import Measures, measure
from levada.lab.freshness.processes import MADE_WORLDS, make_world
from levada.lab.freshness.replay import history_world, ota_world
from levada.lab.freshness.simulation import POLICIES, simulate
from levada.lab.freshness.world import World

__all__ = ["OTA", "WORLDS", "HistoryFile", "Progress", "Row", "rows", "run_policies"]

OTA = "ota-1y"
WORLDS = (*MADE_WORLDS, OTA)

Progress = Callable[[int, int, str], None]  # jobs done, jobs in all, the one just done


class Row(msgspec.Struct, frozen=True):
    """What one policy did in one world of one seed; durations in seconds."""

    world: str
    policy: str
    seed: int
    fetches: int
    freshness: float
    age: float
    caught: float
    delay_p50: float | None
    delay_p90: float | None
    changes_per_fetch: float
    gap_closed: float | None  # 0 is the paper's rule, 1 the oracle; None if there is no gap


class HistoryFile(NamedTuple):
    path: Path
    days: float | None = None


def rows(
    worlds: Sequence[str | HistoryFile],
    policies: Sequence[str] = POLICIES,
    seeds: Sequence[int] = tuple(range(1, 11)),
    progress: Progress | None = None,
    workers: int | None = None,
) -> list[Row]:
    """In the order of worlds, seeds and policies. A history has no chance in it: it is run once, for all seeds."""
    _check(worlds, policies, seeds)
    jobs = [(world, seed) for world in worlds for seed in (seeds[:1] if _is_history(world) else seeds)]
    done: dict[tuple[str | HistoryFile, int], list[Row]] = {}
    for number, (job, found) in enumerate(_results(jobs, policies, workers), 1):
        done[job] = found
        if progress is not None:
            progress(number, len(jobs), f"{found[0].world}, seed {job[1]}" if found else "")
    return [row for world in worlds for seed in seeds for row in _of_seed(done, world, seed, seeds[0])]


def run_policies(world: World, policies: Sequence[str], seed: int) -> list[Row]:
    """The paper's rule first: what it spends is everyone's budget."""
    ema = measure(world, simulate(world, "ema", seed=seed))
    found = {"ema": ema}
    for policy in dict.fromkeys(("oracle", *policies)):
        if policy not in found:
            found[policy] = measure(world, simulate(world, policy, fetches=ema.fetches, seed=seed))
    gap = found["oracle"].freshness - ema.freshness
    return [_row(world.name, policy, seed, found[policy], ema.freshness, gap) for policy in policies]


def _row(world: str, policy: str, seed: int, measured: Measures, ema: float, gap: float) -> Row:
    return Row(
        world,
        policy,
        seed,
        measured.fetches,
        measured.freshness,
        measured.age,
        measured.caught,
        measured.delay_p50,
        measured.delay_p90,
        measured.changes_per_fetch,
        (measured.freshness - ema) / gap if gap > 1e-12 else None,
    )


def _check(worlds: Sequence[str | HistoryFile], policies: Sequence[str], seeds: Sequence[int]) -> None:
    for name, given, known in (("world", worlds, WORLDS), ("policy", policies, POLICIES)):
        wrong = next((each for each in given if isinstance(each, str) and each not in known), None)
        if wrong is not None:
            raise UsageError(f"no {name} is called {str(wrong)[:40]!r}; there are {', '.join(known)}")
    if not seeds or min(seeds) < 0:
        raise UsageError("seeds are whole numbers from 0 up, at least one of them")


def _is_history(world: str | HistoryFile) -> bool:
    return isinstance(world, HistoryFile) or world == OTA


def _of_seed(
    done: dict[tuple[str | HistoryFile, int], list[Row]], world: str | HistoryFile, seed: int, first: int
) -> list[Row]:
    if not _is_history(world):
        return done[world, seed]
    return [msgspec.structs.replace(row, seed=seed) for row in done[world, first]]


def _job(world: str | HistoryFile, policies: Sequence[str], seed: int) -> list[Row]:
    if isinstance(world, HistoryFile):
        return run_policies(history_world(world.path, world.days)[0], policies, seed)
    return run_policies(ota_world() if world == OTA else make_world(world, seed), policies, seed)


def _results(
    jobs: Sequence[tuple[str | HistoryFile, int]], policies: Sequence[str], workers: int | None
) -> Iterator[tuple[tuple[str | HistoryFile, int], list[Row]]]:
    """On all cores, in the order in which they are done."""
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    if workers <= 1:
        yield from ((job, _job(job[0], policies, job[1])) for job in jobs)
        return
    # Spawned, not forked: whoever shows progress has threads.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_ignore_interrupts)
    try:
        pending: dict[Future[list[Row]], tuple[str | HistoryFile, int]] = {
            pool.submit(_job, world, policies, seed): (world, seed) for world, seed in jobs
        }
        for future in as_completed(pending):
            yield pending[future], future.result()
    except BrokenProcessPool:
        raise LevadaError("a process of the laboratory was ended from outside, perhaps out of memory") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
