"""How many workers has each stage of a running crawl, how many should it have, and why?

The step looks at each stage, lets the controllers of `levada.stages` decide, and tells the stages. It decides
nothing itself but one thing: a process that worked a moment ago stays, since starting it anew costs more. What it
cannot make sense of changes nothing, and is logged once.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Sequence

import msgspec

from levada.errors import LevadaError
from levada.flow.progress import StageSummary
from levada.ports import Clock, Workforce
from levada.records import Crew
from levada.stages import Chain, Sizes, SizingRule, StageSample

__all__ = ["Post", "Staffing", "StageView"]

log = logging.getLogger(__name__)

_EVEN_SECONDS = 1.0
_Counts = tuple[float, float, float]  # arrived, done, work
_NOBODY_KNOWS = Crew(queue=math.nan, on=math.nan, busy=math.nan)


class StageView(msgspec.Struct, frozen=True):
    """One stage, for whoever looks."""

    name: str
    queue: int
    busy: int
    on: int
    starting: int
    wanted: int
    why: str = ""


class Post(msgspec.Struct, frozen=True):
    """A stage to be staffed; its last worker stays for `idle` seconds after its last job."""

    name: str
    workers: Workforce
    rule: SizingRule
    idle: float = 0.0


class _Course:
    """How a stage was staffed so far."""

    def __init__(self) -> None:
        self._looks = self._sum = self._longest = self._decisions = self._most = 0
        self._least = sys.maxsize
        self._last = StageView("", 0, 0, 0, 0, 0)

    def see(self, view: StageView) -> None:
        self._looks += 1
        self._sum += view.on
        self._least, self._most = min(self._least, view.on), max(self._most, view.on)
        self._longest = max(self._longest, view.queue)
        self._decisions += view.wanted != view.on
        self._last = view

    def summary(self, crew: Crew) -> StageSummary:
        last = self._last
        return StageSummary(
            name=last.name,
            jobs=_whole(crew.done),
            least=self._least,
            mean=round(self._sum / self._looks, 2),
            most=self._most,
            longest_queue=self._longest,
            decisions=self._decisions,
            queue=last.queue,
            busy=last.busy,
            on=last.on,
            wanted=last.wanted,
            why=last.why,
        )


class _Seen:
    """What the looks so far showed of a stage.

    Pages come and go in handfuls (leases, commits, batches), not one by one: counts are evened out over a second,
    or the controllers would take every handful for a change of the load.
    """

    def __init__(self, crew: Crew, at: float) -> None:
        self.worked_at = at
        self.course = _Course()
        self._at = at
        self._raw = self._even = (crew.arrived, crew.done, crew.work)

    def sample(self, crew: Crew, at: float, held: float) -> StageSample:
        """Busy are as many as worked on average since the look before: service times follow from measured work."""
        counts, elapsed, busy = (crew.arrived, crew.done, crew.work), at - self._at, crew.busy
        if crew.queue > 0 or crew.busy > 0 or crew.done > self._raw[1]:
            self.worked_at = at
        if all(map(math.isfinite, counts)):
            before = self._even
            self._even = self._evened(counts, elapsed)
            if elapsed > 0:
                busy = (self._even[2] - before[2]) / elapsed
            self._raw, self._at = counts, at
            counts = self._even
        else:
            busy = math.nan  # whatever else it says
        return StageSample(
            at=at,
            queue=crew.queue,
            on=crew.on,
            busy=busy,
            starting=crew.starting,
            arrived=counts[0],
            done=counts[1],
            held=held,
            capacity=crew.capacity,
        )

    def _evened(self, counts: _Counts, elapsed: float) -> _Counts:
        if any(new < old for new, old in zip(counts, self._raw, strict=True)):
            return counts  # they began anew: the controller must see that
        share = 1.0 - math.exp(-max(0.0, elapsed) / _EVEN_SECONDS)
        arrived, done, work = (old + (new - old) * share for new, old in zip(counts, self._even, strict=True))
        return arrived, done, work


class Staffing:
    """All seconds are of the wall: workers do not work faster where the crawled world's time does."""

    def __init__(
        self, posts: Sequence[Post], clock: Clock, *, speed: float = 1.0, budget: int | None = None
    ) -> None:
        self.posts = tuple(posts)
        self.views: tuple[StageView, ...] = ()
        self.hold_source = False
        self._chain = Chain([post.rule for post in posts], budget)
        self._budget = budget
        self._clock = clock
        self._speed = speed
        self._at: float | None = None
        self._held = 0.0
        self._seen: dict[str, _Seen] = {}
        self._logged: set[tuple[str, str]] = set()

    async def run(self, on_step: Callable[[], None], is_paused: Callable[[], bool] = lambda: False) -> None:
        """Until cancelled; whoever waits for a worker hears of every step."""
        period = min(post.rule.period for post in self.posts)
        while True:
            self.step(is_paused())
            on_step()
            await self._clock.sleep(period * self._speed)

    def step(self, paused: bool = False) -> Sizes:
        """One look, one decision. While the crawl is paused or the source held, silence is no news."""
        at = self._clock.monotonic() / self._speed
        if self._at is not None and (paused or self.hold_source):
            self._held += max(0.0, at - self._at)
        crews = [self._look(post) for post in self.posts]
        sizes = self._chain.decide([self._sample(*each, at) for each in zip(self.posts, crews, strict=True)])
        self.hold_source = sizes.hold_source
        wanted = self._kept(sizes, crews, at)
        why = [
            f"{reason}; one stays a while" if kept > asked else reason
            for reason, kept, asked in zip(sizes.why, wanted, sizes.wanted, strict=True)
        ]
        self.views = tuple(self._apply(*each) for each in zip(self.posts, crews, wanted, why, strict=True))
        self._at = at
        return sizes

    def summary(self) -> tuple[StageSummary, ...]:
        """From the first look to the latest."""
        posts = [post for post in self.posts if post.name in self._seen]
        return tuple(self._seen[post.name].course.summary(self._look(post)) for post in posts)

    def _look(self, post: Post) -> Crew:
        try:
            return post.workers.look()
        except (LevadaError, OSError) as error:
            self._say_once(post.name, str(error))
            return _NOBODY_KNOWS

    def _sample(self, post: Post, crew: Crew, at: float) -> StageSample:
        seen = self._seen.get(post.name)
        if seen is None:
            seen = self._seen[post.name] = _Seen(crew, at)
        return seen.sample(crew, at, self._held)

    def _kept(self, sizes: Sizes, crews: Sequence[Crew], at: float) -> list[int]:
        wanted = list(sizes.wanted)
        for place, (post, crew) in enumerate(zip(self.posts, crews, strict=True)):
            worked = at - self._seen[post.name].worked_at < post.idle
            if not wanted[place] and crew.on >= 1 and worked:
                wanted[place] = 1
        return wanted if self._budget is None or sum(wanted) <= self._budget else list(sizes.wanted)

    def _apply(self, post: Post, crew: Crew, wanted: int, why: str) -> StageView:
        trouble = self._chain.controllers[self.posts.index(post)].trouble
        if trouble:  # the last safe size is the one that it has
            self._say_once(post.name, trouble)
            wanted = _whole(crew.on)
        else:
            self._tell(post, wanted)
        on, starting = _whole(crew.on), _whole(crew.starting)
        view = StageView(post.name, _whole(crew.queue), _whole(crew.busy), on, starting, wanted, why)
        self._seen[post.name].course.see(view)
        return view

    def _tell(self, post: Post, wanted: int) -> None:
        try:
            post.workers.resize(wanted)
        except (LevadaError, OSError) as error:  # a process that cannot be started now may be later
            self._say_once(post.name, str(error))

    def _say_once(self, stage: str, trouble: str) -> None:
        if (stage, trouble) not in self._logged:
            self._logged.add((stage, trouble))
            log.warning("stage %s keeps its size: %s", stage, trouble)


def _whole(number: float) -> int:
    return int(number) if math.isfinite(number) else 0
