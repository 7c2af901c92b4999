"""Shards on servers: each is asked on a thread of its own, and nobody waits long for one that does not answer.

A call that has run too long without an answer, or that ends with `StoreAway`, opens the shard's circuit breaker:
the shard is away, and every further call fails at once. The late answer of the call that hangs closes it again, and
so does a probe, which the shard's own thread makes every few seconds.

What nobody waits for any more may still happen. So a write keeps the shard plan steady until it has ended
(`RemoteShard.keep`): no page is written to a shard by a plan that was replaced meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Generic, TypeVar, cast

from levada.core.clock import SystemClock
from levada.core.errors import StoreAway, StoreError
from levada.core.protocols import Clock
from levada.store.base import Capability, Shard, ShardAway, Sliced, StoreLimits, WithLimits

T = TypeVar("T")

# At most, of the wall clock. A shard that used to answer soon is given less: `_SLOWER` times its slowest answer lately.
ANSWER_SECONDS = 1.5  # for somebody who waits for an answer
WRITE_SECONDS = 5.0  # for a crawl: a commit on a busy disk takes its time
_LEAST_SECONDS = 1.0
_SLOWER = 20.0
_FORGOTTEN = 0.95  # by each answer, how slow those before it were
PROBE_SECONDS = 2.0  # between two probes of a shard that is away
_UNBOUNDED = frozenset(
    {
        "adopt_tombstones",
        "bury",
        "check",
        "compact",
        "erase",
        "erase_traces",
        "import_pages",
        "let_go",
        "scan",
        "thin_out",
    }
)
_STREAMED = {"sample": 200, "scan": 20, "sites": 200}  # how many are read in one call


class RemoteShard:
    """A `levada.store.base.Shard` that is opened on its own thread, and again after it was away.

    `where` is shown to users, and `open_it` is called with the limits. Threads may share an instance.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.SHARD, Capability.FORGET, Capability.LIMITS, Capability.BODIES, Capability.SLICES}
    )

    def __init__(
        self,
        number: int,
        where: str,
        open_it: Callable[[StoreLimits], Shard],
        limits: StoreLimits,
        *,
        seconds: float = ANSWER_SECONDS,
        probe_seconds: float = PROBE_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._number = number
        self._where = where
        self._open_it = open_it
        self._limits = limits
        self._seconds = seconds
        self._probe_seconds = probe_seconds
        self._clock = clock or SystemClock()
        self._shard: Shard | None = None
        self._slices: frozenset[int] | None = None
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._running: _Call[Any] | None = None
        self._away: ShardAway | None = None
        self._is_closed = False
        self._slowest: float | None = None  # seconds of an answer lately
        self.returns = 0  # how often it came back
        # A daemon: a call that hangs does not hold up the end of the process.
        threading.Thread(target=self._work, name=f"shard {number}", daemon=True).start()

    @property
    def away(self) -> ShardAway | None:
        """Since when it is away, and why; None while it answers."""
        return self._away

    @property
    def format(self) -> int:
        return self.ask(lambda shard: shard.format)

    @property
    def shards(self) -> tuple[Shard]:
        return (cast(Shard, self),)

    logs = shards

    def set_limits(self, limits: StoreLimits) -> None:
        self._limits = limits
        if self._shard is not None:
            cast(WithLimits, self._shard).set_limits(limits)

    def own(self, slices: frozenset[int] | None) -> None:
        self._slices = slices
        if self._shard is not None:
            cast(Sliced, self._shard).own(slices)

    def ask(self, operation: Callable[[Shard], T]) -> T:
        """The answer; `StoreAway` if there is none in time."""
        return self.begin(operation)()

    def begin(
        self,
        operation: Callable[[Shard], T],
        late: Callable[[Shard, T], object] | None = None,
        *,
        bounded: bool = True,
    ) -> Callable[[], T]:
        """Start to ask; what is returned waits for the answer. `late` is called with one that comes too late."""
        self._refuse()
        call = _Call(operation, late, bounded)
        self._calls.put(call)
        return lambda: self._answer(call)

    def keep(self, hold: Callable[[], Callable[[], None]]) -> None:
        """If a call goes on that nobody waits for: take hold of something now, and let it go when the call ends."""
        with self._lock:
            running = self._running
            if running is None or not running.is_abandoned or running.is_kept:
                return
            running.is_kept = True
        let_go = hold()
        self._calls.put(_Call(lambda _: let_go(), None, bounded=False, needs_shard=False))

    def close(self) -> None:
        """End the thread; one that hangs ends by itself."""
        if self._is_closed:
            return
        self._is_closed = True
        call = _Call(lambda _: self._shard.close() if self._shard else None, None, bounded=False, needs_shard=False)
        self._calls.put(call)
        self._calls.put(None)
        call.ended.wait(self._seconds if self._away is None else 0.0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _STREAMED:
            return lambda *given: self._streamed(name, given)

        def called(*given: Any, **named: Any) -> Any:
            asked = self.begin(lambda shard: getattr(shard, name)(*given, **named), bounded=name not in _UNBOUNDED)
            return asked()

        return called

    def _streamed(self, name: str, given: tuple[Any, ...]) -> Iterator[Any]:
        rows = self.ask(lambda shard: iter(getattr(shard, name)(*given)))

        def some(_: Shard) -> list[Any]:
            return list(islice(rows, _STREAMED[name]))

        while batch := self.begin(some, bounded=name not in _UNBOUNDED)():
            yield from batch

    def _refuse(self) -> None:
        if self._is_closed:
            raise StoreError(f"shard {self._number} is closed")
        if away := self._away:
            raise StoreAway(str(away))

    def _answer(self, call: _Call[T]) -> T:
        while not call.ended.wait(self._patience(call)):
            with self._lock:
                hanging = self._running
                if hanging is None or call.ended.is_set() or self._left(hanging) > 0:
                    continue  # it waits for one that began a moment ago
                call.is_abandoned = True
                self._is_away(f"{self._where} has not answered for {self._most():.1f} s")
            raise StoreAway(str(self._away))
        return call.answer()

    def _patience(self, call: _Call[Any]) -> float | None:
        """Seconds until the call that runs has taken too long; None if it may take its time."""
        with self._lock:
            running = self._running
        if running is None:
            return self._seconds  # it begins in this moment
        return max(0.001, self._left(running)) if running.is_bounded else None if running is call else self._seconds

    def _left(self, running: _Call[Any]) -> float:
        if not running.is_bounded:
            return self._seconds
        return running.began + self._most() - self._clock.monotonic()

    def _most(self) -> float:
        """Seconds that an answer may take now."""
        usual = self._seconds if self._slowest is None else max(_LEAST_SECONDS, _SLOWER * self._slowest)
        return min(usual, self._seconds)

    def _is_away(self, why: str) -> None:
        if self._away is None:
            self._away = ShardAway(self._number, self._clock.now(), why)

    def _answers(self) -> None:
        with self._lock:
            if self._away is not None:
                self._away = None
                self.returns += 1

    def _work(self) -> None:
        while True:
            try:
                call = self._calls.get(timeout=self._probe_seconds if self._away else None)
            except Empty:
                call = _Call(lambda shard: shard.newest_seq(), None, bounded=False)
            if call is None:
                return
            self._run(call)

    def _run(self, call: _Call[Any]) -> None:
        with self._lock:
            if call.is_abandoned:
                call.ended.set()
                return
            call.began = self._clock.monotonic()
            self._running = call
        try:
            shard = self._opened() if call.needs_shard else None
            began = self._clock.monotonic()
            call.value = call.operation(cast(Shard, shard))
            if call.needs_shard:
                if call.is_bounded and not call.is_abandoned:
                    self._slowest = max(self._clock.monotonic() - began, _FORGOTTEN * (self._slowest or 0.0))
                self._answers()
        except StoreAway as error:
            call.error = error
            with self._lock:
                self._is_away(str(error))
        except BaseException as error:  # it belongs to the caller
            call.error = error
            if self._shard is not None:
                self._answers()
        with self._lock:
            self._running = None
            is_late = call.is_abandoned and call.error is None
            call.ended.set()
        if is_late and call.late is not None:
            with suppress(StoreError):
                call.late(cast(Shard, self._shard), call.value)

    def _opened(self) -> Shard:
        if self._shard is None:
            self._shard = self._open_it(self._limits)
            if Capability.SLICES in self._shard.capabilities:
                cast(Sliced, self._shard).own(self._slices)
        return self._shard


class _Call(Generic[T]):
    """A question to a shard, and its answer."""

    def __init__(
        self,
        operation: Callable[[Shard], T],
        late: Callable[[Shard, T], object] | None,
        bounded: bool,
        needs_shard: bool = True,
    ) -> None:
        self.operation = operation
        self.late = late
        self.is_bounded = bounded
        self.needs_shard = needs_shard
        self.began = 0.0
        self.ended = threading.Event()
        self.is_abandoned = False  # nobody waits for it
        self.is_kept = False
        self.value: T | None = None
        self.error: BaseException | None = None

    def answer(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


def remote_shards(shards: Sequence[Shard]) -> dict[int, RemoteShard]:
    """Those of the shards that are on servers, by number."""
    return {number: cast(RemoteShard, shard) for number, shard in enumerate(shards) if isinstance(shard, RemoteShard)}


def begin(
    shard: Shard, operation: Callable[[Shard], T], late: Callable[[Shard, T], object] | None = None
) -> Callable[[], T]:
    """Start to ask a shard; what is returned waits for the answer. A shard in a file is asked only then."""
    if isinstance(shard, RemoteShard):
        try:
            return shard.begin(operation, late)
        except StoreAway as error:
            return _raising(error)
    return lambda: operation(shard)


def _raising(error: StoreAway) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def answers(
    shards: Mapping[int, Shard],
    ask: Callable[[int, Shard], T],
    late: Callable[[Shard, T], object] | None = None,
    *,
    some: bool = True,
) -> dict[int, T]:
    """The answers of the shards that answer, all asked at the same time.

    `StoreAway` if none of them does; without `some`, if one does not. `late` is called with an answer that comes when
    nobody waits for it any more.
    """
    waiting = {
        number: begin(shard, lambda there, number=number: ask(number, there), late)  # type: ignore[misc]
        for number, shard in shards.items()
    }
    found: dict[int, T] = {}
    trouble: StoreAway | None = None
    for number, answer in waiting.items():
        try:
            found[number] = answer()
        except StoreAway as error:
            trouble = trouble or error
    if trouble is not None and not (some and found):
        raise trouble
    return found
