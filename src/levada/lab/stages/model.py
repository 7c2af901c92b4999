"""Model of a simulated system: a source with its load, and stages of workers with queues."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from levada.core.errors import UsageError

SHAPES = ("constant:3", "steps:1,5,3,8,2", "bursts:2,10,10,120", "daily:1,5,2000", "recorded:FILE")
_PIECES = 96  # of a day that are each constant
_MOST_LINES = 1_000_000
_MOST_PIECES = 10_000_000


class Load(msgspec.Struct, frozen=True):
    """From each of `starts` on there are this many `scanners`; repeated after `length` seconds."""

    starts: tuple[float, ...]
    scanners: tuple[float, ...]
    length: float

    def __post_init__(self) -> None:
        if not self.scanners or not all(0.0 <= each <= 1e6 for each in self.scanners):
            raise UsageError("a load has one number of scanners or more, each between 0 and 1000000")
        if not self.length > 0.0:
            raise UsageError("a load must last longer than 0 s")

    def mean(self, seconds: float) -> float:
        """The mean number of scanners over the first `seconds`."""
        total = 0.0
        for start, scanners in self.pieces(seconds):
            total += scanners * (seconds - start)
        return total / seconds

    def pieces(self, seconds: float) -> list[tuple[float, float]]:
        """The times at which the number of scanners changes, and by how much."""
        if seconds / self.length * len(self.starts) > _MOST_PIECES:
            raise UsageError(f"a load that repeats every {self.length:g} s is too fast for {seconds:g} s")
        found, before, begin = [], 0.0, 0.0
        while begin < seconds:
            for start, scanners in zip(self.starts, self.scanners, strict=True):
                if begin + start < seconds and scanners != before:
                    found.append((begin + start, scanners - before))
                    before = scanners
            begin += self.length
        return found


def constant(scanners: float) -> Load:
    return Load((0.0,), (scanners,), math.inf)


def steps(levels: tuple[float, ...], seconds: float) -> Load:
    """Each level for the same time."""
    return Load(tuple(place * seconds / len(levels) for place in range(len(levels))), levels, seconds)


def bursts(calm: float, busy: float, burst_seconds: float, every: float) -> Load:
    """A burst at the end of every period."""
    if not 0.0 < burst_seconds < every:
        raise UsageError(f"a burst of {burst_seconds} s does not fit into {every} s")
    return Load((0.0, every - burst_seconds), (calm, busy), every)


def daily(low: float, high: float, day: float) -> Load:
    """A smooth curve from `low` at the start of the day to `high` in its middle."""
    if not day > 0.0:
        raise UsageError(f"a day must be longer than 0 s, not {day}")
    pieces = range(_PIECES)
    middle, swing = (low + high) / 2, (high - low) / 2
    curve = tuple(middle - swing * math.cos(2 * math.pi * (piece + 0.5) / _PIECES) for piece in pieces)
    return Load(tuple(piece * day / _PIECES for piece in pieces), curve, day)


def recorded(path: Path) -> Load:
    """A file with one number of scanners per line, one line per second."""
    try:
        with path.open(encoding="ascii") as file:
            lines = file.read(20 * _MOST_LINES).split()
    except OSError as error:
        raise UsageError(f"cannot read the load {path}: {error.strerror or error}") from None
    except UnicodeError:
        raise UsageError(f"cannot read the load {path}: it is not text, one number per line") from None
    return Load(tuple(map(float, range(len(lines)))), _numbers(lines, str(path)), float(len(lines)))


def parse_load(text: str, seconds: float) -> Load:
    """A load as on the command line: `steps:1,5,3,8,2`."""
    shape, _, rest = text.partition(":")
    if shape == "recorded":
        return recorded(Path(rest))
    numbers = _numbers(rest.split(","), text) if rest else ()
    match shape, numbers:
        case "constant", (scanners,):
            return constant(scanners)
        case "steps", (_, *_):
            return steps(numbers, seconds)
        case "bursts", (calm, busy, burst_seconds, every):
            return bursts(calm, busy, burst_seconds, every)
        case "daily", (low, high, day):
            return daily(low, high, day)
    raise UsageError(f"no load is written {text!r}: one of {', '.join(SHAPES)}")


def _numbers(texts: list[str], where: str) -> tuple[float, ...]:
    try:
        return tuple(float(text) for text in texts)
    except ValueError:
        raise UsageError(f"{where!r}: a load is made of numbers, as one of {', '.join(SHAPES)}") from None


TIMES = ("exponential", "deterministic", "lognormal", "recorded")
_MOST_JOBS = 100_000_000
_MOST_CRASHES = 1_000


class StageModel(msgspec.Struct, frozen=True, kw_only=True):
    """One stage; times in seconds. A worker that finds its queue empty polls again after `poll`, on average."""

    service: float
    times: str = "exponential"
    spread: float = 1.0  # of log-normal times: the standard deviation of their logarithm
    recorded: tuple[float, ...] = ()  # to draw from, if times are `recorded`
    capacity: int = 100
    entry: float = 0.001
    poll: float = 0.002
    startup: float = 0.0
    first: int = 1  # workers at the start


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated system and the length of its run."""

    stages: tuple[StageModel, ...]
    load: Load
    seconds: float = 10_000.0
    seed: int = 1
    interval: float = 0.1  # between the jobs of one scanner
    idle_first: bool = True  # switch off an idle worker first; the report takes the highest number
    slow_from: float = math.inf  # from then on every service takes `slow_factor` times as long
    slow_factor: float = 2.0
    crashes: float = 0.0  # per worker and second; its job goes back to the head of its queue
    hold: bool = False  # let the controller hold the source
    budget: int | None = None  # of workers over all stages

    def __post_init__(self) -> None:
        if not 1 <= len(self.stages) <= 100:
            raise UsageError(f"a model has 1 to 100 stages, not {len(self.stages)}")
        for stage in self.stages:
            _check(stage)
        if not (self.interval > 0.0 and self.slow_factor > 0.0 and self.slow_from >= 0.0):
            raise UsageError("interval and slow_factor must be above 0, slow_from 0 or more")
        if not 0.0 <= self.crashes <= _MOST_CRASHES:
            raise UsageError(f"crashes must be 0 to {_MOST_CRASHES} per worker and second, not {self.crashes:g}")
        if not (self.seconds > 0.0 and self.jobs <= _MOST_JOBS):
            raise UsageError(f"a run must have more than 0 s and at most {_MOST_JOBS} jobs")
        if self.budget is not None and self.budget < len(self.stages):
            raise UsageError(f"a budget of {self.budget} workers is not one for each of {len(self.stages)} stages")
        if not 0 <= self.seed < 2**32:
            raise UsageError(f"the seed must be between 0 and 2^32 - 1, not {self.seed}")

    @property
    def jobs(self) -> float:
        """The mean number of jobs of a run."""
        return self.load.mean(self.seconds) * self.seconds / self.interval

    @property
    def busy_floor(self) -> float:
        """Mean number of busy workers under any controller: fewer cannot do the work."""
        slow = max(0.0, self.seconds - self.slow_from)
        stretched = 1.0 + (self.slow_factor - 1.0) * slow / self.seconds
        return self.jobs / self.seconds * self.service * stretched

    @property
    def service(self) -> float:
        """Seconds of work per job, on average."""
        return sum(mean_time(stage) for stage in self.stages)


def mean_time(stage: StageModel) -> float:
    return sum(stage.recorded) / len(stage.recorded) if stage.times == "recorded" else stage.service


def report_model(scanners: float = 3.0, *, seconds: float = 10_000.0, seed: int = 1, poll: float = 0.002) -> Model:
    """The report's system: scanners of 0.1 s, orchestrators of 0.25 s, catalogs of 5 s; the highest number goes
    first."""
    stages = tuple(StageModel(service=service, poll=poll) for service in (0.25, 5.0))
    return Model(stages=stages, load=constant(scanners), seconds=seconds, seed=seed, idle_first=False)


def _check(stage: StageModel) -> None:
    if stage.times not in TIMES:
        raise UsageError(f"times are one of {', '.join(TIMES)}, not {stage.times!r}")
    given = stage.recorded if stage.times == "recorded" else (stage.service,)
    if not given or not all(0.0 < time < math.inf for time in given):
        raise UsageError("a service takes more than 0 s, and recorded times are not empty")
    if not 1 <= stage.capacity <= 10_000_000:
        raise UsageError(f"a queue holds 1 to 10000000 jobs, not {stage.capacity}")
    if not all(0.0 <= value < math.inf for value in (stage.spread, stage.entry, stage.poll, stage.startup)):
        raise UsageError("spread, entry, poll and startup must be 0 or more")
    if not 0 <= stage.first <= 100_000:
        raise UsageError(f"a stage begins with 0 to 100000 workers, not {stage.first}")
