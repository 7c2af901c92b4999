"""Which policy is freshest, world by world, with as many fetches as the paper's rule spends there?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from levada.errors import UsageError
from levada.lab.cores import Progress, on_all_cores
from levada.lab.freshness.measures import Measures, measure
from levada.lab.freshness.processes import MADE_WORLDS, make_world
from levada.lab.freshness.replay import history_world, ota_world
from levada.lab.freshness.simulation import POLICIES, simulate
from levada.lab.freshness.world import World

__all__ = ["OTA", "WORLDS", "HistoryFile", "Progress", "Row", "rows", "run_policies"]

OTA = "ota-1y"
WORLDS = (*MADE_WORLDS, OTA)


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
    run = partial(_run, tuple(policies))
    done = dict(zip(jobs, on_all_cores(run, jobs, _name, progress, workers), strict=True))
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


def _name(job: tuple[str | HistoryFile, int]) -> str:
    world, seed = job
    return f"{world.path.name if isinstance(world, HistoryFile) else world}, seed {seed}"


def _run(policies: Sequence[str], job: tuple[str | HistoryFile, int]) -> list[Row]:
    world, seed = job
    if isinstance(world, HistoryFile):
        return run_policies(history_world(world.path, world.days)[0], policies, seed)
    return run_policies(ota_world() if world == OTA else make_world(world, seed), policies, seed)
