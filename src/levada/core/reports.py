"""Records that describe a run: the report of a crawl, and the autoscaler's rounds, views and summaries."""

from __future__ import annotations

import math

import msgspec


class StageSummary(msgspec.Struct, frozen=True):
    """How a stage was scaled, from the first round to the last."""

    name: str
    jobs: int  # done
    least: int  # workers, in any round
    mean: float
    most: int
    longest_queue: int
    decisions: int  # to have more or fewer
    queue: int = 0  # this and the following fields: in the last round
    busy: int = 0
    on: int = 0
    wanted: int = 0
    why: str = ""


class Report(msgspec.Struct, frozen=True):
    """The result of a crawl.

    >>> report = news.crawl(once=True)
    >>> report.stopped, report.failed
    ('done', {})
    """

    pages: int  # stored, in all
    fetched: int  # exchanges that brought an answer
    new: int
    changed: int
    unchanged: int
    gone: int
    failed: dict[str, int]  # by reason
    refused: dict[str, int]  # by reason
    found: int
    unvisited: int  # addresses that are left
    bytes: int
    seconds: float
    believed_current: float | None
    stopped: str  # done, limit, interrupted, offline (the network is down)
    stages: tuple[StageSummary, ...] = ()
    plugin_failures: dict[str, int] = {}  # by setting and name


class StageView(msgspec.Struct, frozen=True):
    """One stage as the screen and the dashboard show it."""

    name: str
    queue: int
    busy: int
    on: int
    starting: int
    wanted: int
    why: str = ""


class StageRound(msgspec.Struct, frozen=True):
    """What one round saw and decided about one stage; a line of `levada control --json` has these fields."""

    stage: str
    queue: float | None  # None: unknown
    busy: float | None
    on: int
    wanted: int
    why: str = ""
    trouble: str = ""

    def view(self, starting: float = 0.0) -> StageView:
        return StageView(
            self.stage, whole(self.queue), whole(self.busy), self.on, whole(starting), self.wanted, self.why
        )


class Round(msgspec.Struct, frozen=True):
    """What one round of the autoscaler saw and decided."""

    at: float
    stages: tuple[StageRound, ...]
    hold_source: bool
    trouble: str = ""


def whole(number: float | None) -> int:
    """The number without its fraction; 0 if it is unknown."""
    return int(number) if number is not None and math.isfinite(number) else 0
