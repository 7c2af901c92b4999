"""Policies compared world by world, at equal fetches: rows, summaries and their chart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec

from levada.core.errors import UsageError
from levada.core.plugins import find
from levada.lab.freshness.histories import history_world, ota_world
from levada.lab.freshness.measures import Measures, measure
from levada.lab.freshness.simulation import POLICIES, simulate
from levada.lab.freshness.worlds import SYNTHETIC_WORLDS, LabWorld, make_world
from levada.lab.parallel import Progress, on_all_cores
from levada.lab.pictures import blank_figure, save_picture

OTA = "ota-1y"
WORLDS = (*SYNTHETIC_WORLDS, OTA)


class PolicyRow(msgspec.Struct, frozen=True):
    """The measures of one policy in one world of one seed; durations in seconds."""

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
    """A world from a file, cut to the fullest window of days."""

    path: Path
    days: float | None = None


def rows(
    worlds: Sequence[str | HistoryFile],
    policies: Sequence[str] = POLICIES,
    seeds: Sequence[int] = tuple(range(1, 11)),
    progress: Progress | None = None,
    workers: int | None = None,
) -> list[PolicyRow]:
    """In the order of worlds, seeds and policies. A history has no randomness: it is run once, for all seeds."""
    _check(worlds, policies, seeds)
    jobs = [(world, seed) for world in worlds for seed in (seeds[:1] if _is_history(world) else seeds)]
    run = partial(_run, tuple(policies))
    done = dict(zip(jobs, on_all_cores(run, jobs, _name, progress, workers), strict=True))
    return [
        msgspec.structs.replace(row, seed=seed)
        for world in worlds
        for seed in seeds
        for row in done[world, seeds[0] if _is_history(world) else seed]
    ]


def run_policies(world: LabWorld, policies: Sequence[str], seed: int) -> list[PolicyRow]:
    """The paper's rule runs first: its fetches are the budget of all policies."""
    ema = measure(world, simulate(world, "ema"))
    found = {"ema": ema}
    for policy in dict.fromkeys(("oracle", *policies)):
        if policy not in found:
            found[policy] = measure(world, simulate(world, policy, ema.fetches))
    gap = found["oracle"].freshness - ema.freshness
    return [_row(world.name, policy, seed, found[policy], ema.freshness, gap) for policy in policies]


def _row(world: str, policy: str, seed: int, measured: Measures, ema: float, gap: float) -> PolicyRow:
    closed = (measured.freshness - ema) / gap if gap > 1e-12 else None
    return PolicyRow(world, policy, seed, **msgspec.structs.asdict(measured), gap_closed=closed)


def _check(worlds: Sequence[str | HistoryFile], policies: Sequence[str], seeds: Sequence[int]) -> None:
    wrong = next((each for each in worlds if isinstance(each, str) and each not in WORLDS), None)
    if wrong is not None:
        raise UsageError(f"no world is called {wrong[:40]!r}; there are {', '.join(WORLDS)}")
    for policy in policies:
        if policy not in POLICIES:
            find("levada.policies", policy[:40], "--policies")
    if not seeds or min(seeds) < 0:
        raise UsageError("give at least one seed, each a whole number from 0 up")


def _is_history(world: str | HistoryFile) -> bool:
    return isinstance(world, HistoryFile) or world == OTA


def _name(job: tuple[str | HistoryFile, int]) -> str:
    world, seed = job
    return f"{world.path.name if isinstance(world, HistoryFile) else world}, seed {seed}"


def _run(policies: Sequence[str], job: tuple[str | HistoryFile, int]) -> list[PolicyRow]:
    world, seed = job
    if isinstance(world, HistoryFile):
        return run_policies(history_world(world.path, world.days)[0], policies, seed)
    return run_policies(ota_world() if world == OTA else make_world(world, seed), policies, seed)


class Spread(NamedTuple):
    """Mean and standard deviation over the seeds; None for both if no seed has a value."""

    mean: float | None
    deviation: float | None


class Summary(NamedTuple):
    """One policy in one world, over all seeds."""

    world: str
    policy: str
    fetches: Spread
    freshness: Spread
    age: Spread
    caught: Spread
    delay_p50: Spread
    delay_p90: Spread
    changes_per_fetch: Spread
    gap_closed: Spread


_FIGURES = Summary._fields[2:]


def summarise(rows: Sequence[PolicyRow]) -> list[Summary]:
    """One summary per world and policy, in the order of the rows."""
    groups: dict[tuple[str, str], list[PolicyRow]] = {}
    for row in rows:
        groups.setdefault((row.world, row.policy), []).append(row)
    return [
        Summary(*key, *(_spread([getattr(row, figure) for row in group]) for figure in _FIGURES))
        for key, group in groups.items()
    ]


def _spread(values: Sequence[float | None]) -> Spread:
    known = [float(value) for value in values if value is not None]
    if not known:
        return Spread(None, None)
    return Spread(fmean(known), stdev(known) if len(known) > 1 else 0.0)


_LEFT, _RIGHT = -1.05, 1.1
_MARKS = "osD^v<>Ph*"
_OURS = "learned"


def draw(summaries: Sequence[Summary], path: Path) -> None:
    """Chart of the share of the gap that each policy closes: one line per world, one mark per policy with its
    spread. 0 is the paper's rule, 1 the oracle. Marks further left are drawn at the edge."""
    worlds = list(dict.fromkeys(each.world for each in summaries))
    policies = list(dict.fromkeys(each.policy for each in summaries))
    figure = blank_figure(9, 1.6 + 0.55 * len(worlds))
    axes = figure.subplots()
    for number, policy in enumerate(policies):
        _draw_policy(axes, policy, number, [each for each in summaries if each.policy == policy], worlds)
    _label_axes(axes, worlds)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    save_picture(figure, path)


def _draw_policy(axes: Any, policy: str, number: int, found: Sequence[Summary], worlds: list[str]) -> None:
    known = [each for each in found if each.gap_closed.mean is not None]
    axes.errorbar(
        [max(_LEFT + 0.05, each.gap_closed.mean or 0.0) for each in known],
        [worlds.index(each.world) for each in known],
        xerr=[each.gap_closed.deviation or 0.0 for each in known],
        fmt=_MARKS[number % len(_MARKS)],
        color="black" if policy == _OURS else f"C{number}",
        markersize=9 if policy == _OURS else 6,
        label=policy,
        zorder=3 if policy == _OURS else 2,
    )


def _label_axes(axes: Any, worlds: list[str]) -> None:
    axes.set_yticks(range(len(worlds)), worlds)
    axes.set_ylim(len(worlds) - 0.5, -0.5)
    axes.set_xlim(_LEFT, _RIGHT)
    axes.set_xlabel("share of the gap in freshness between the paper's rule (0) and the oracle (1), at equal fetches")
    axes.grid(axis="x", alpha=0.3)
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.axvline(1.0, color="grey", linewidth=0.8)
