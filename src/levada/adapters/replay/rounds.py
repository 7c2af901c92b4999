"""One round of a replay: all queries once, by so many clients.

The clock runs from the first question to the last answer. CPU is that of the database's processes which serve the
clients, and memory what they hold when the round ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from threading import Event

import msgspec

from levada.adapters.replay.client import Client, Tally
from levada.adapters.replay.costs import cpu_seconds, memory_bytes
from levada.adapters.replay.questions import Question
from levada.ports import Clock
from levada.sharding.evaluation import max_by_mean

__all__ = ["Round", "run_round"]

_LOOK_SECONDS = 0.2


class Round(msgspec.Struct, frozen=True):
    """`cpu` and `memory` are of each server, None where not known; `client_cpu` is that of this program.

    `shard_cpu` is that of each shard. `busy`: for how long the server's sessions ran statements, where its CPU is
    not known.
    """

    name: str
    seconds: float
    queries: int
    touches: tuple[int, ...]
    found: int
    answers: int
    lookups: int
    partial: int
    client_cpu: float
    cpu: tuple[float | None, ...]
    memory: tuple[int | None, ...]
    busy: tuple[float | None, ...]
    shard_cpu: tuple[float | None, ...]
    troubles: tuple[str, ...]

    @property
    def shards_per_query(self) -> float:
        return sum(self.touches) / max(self.queries, 1)

    @property
    def load_max_mean(self) -> float:
        return max_by_mean(self.touches)

    @property
    def cpu_total(self) -> float | None:
        return _over(sum, self.cpu)

    @property
    def cpu_busiest(self) -> float | None:
        """Of the busiest server."""
        return _over(max, self.cpu)

    @property
    def cpu_busiest_shard(self) -> float | None:
        return _over(max, self.shard_cpu)

    @property
    def busy_total(self) -> float | None:
        return _over(sum, self.busy)


def run_round(
    name: str,
    clients: Sequence[Client],
    pids: Sequence[Sequence[int | None]],
    shard_pids: Sequence[Sequence[int | None]],
    questions: Sequence[Question],
    clock: Clock,
    *,
    busy: Callable[[], list[float | None]],
    progress: Callable[[int], None] | None = None,
) -> Round:
    """`pids`: of each server, the processes that serve the clients, `shard_pids` of each shard; `busy`: for how
    long a server says that it ran statements; `progress` is told how many were asked."""
    for client in clients:
        client.begin()
    busy_before = busy()
    every = [*pids, *shard_pids]
    before, own = [cpu_seconds(each) for each in every], _own_cpu()
    began = clock.monotonic()
    _run(clients, questions, progress)
    seconds, client_cpu = clock.monotonic() - began, _own_cpu() - own
    spent = [_spent(one, cpu_seconds(each)) for one, each in zip(before, every, strict=True)]
    tally = Tally([0] * len(clients[0].tally.touches))
    for client in clients:
        tally.merge(client.tally)
    return Round(
        name=name,
        seconds=seconds,
        queries=tally.queries,
        touches=tuple(tally.touches),
        found=tally.found,
        answers=tally.answers,
        lookups=tally.lookups,
        partial=tally.partial,
        client_cpu=client_cpu,
        cpu=tuple(spent[: len(pids)]),
        shard_cpu=tuple(spent[len(pids) :]),
        memory=tuple(memory_bytes(each) for each in pids),
        busy=tuple(_spent(one, other) for one, other in zip(busy_before, busy(), strict=True)),
        troubles=tuple(f"{words} ({times:,} times)" for words, times in tally.troubles.items()),
    )


def _run(clients: Sequence[Client], questions: Sequence[Question], progress: Callable[[int], None] | None) -> None:
    places, ended = count(), Event()

    def work(client: Client) -> None:
        while not ended.is_set() and (place := next(places)) < len(questions):
            client.ask(place, questions[place])

    with ThreadPoolExecutor(len(clients)) as pool:
        calls = [pool.submit(work, client) for client in clients]
        try:
            while wait(calls, _LOOK_SECONDS).not_done:
                if progress:
                    progress(sum(client.tally.queries for client in clients))
        finally:
            ended.set()  # Ctrl-C: each client ends with its present query
    for call in calls:
        call.result()


def _over(reckon: Callable[[list[float]], float], values: Sequence[float | None]) -> float | None:
    """None where one of them is not known."""
    known = [each for each in values if each is not None]
    return reckon(known) if known and len(known) == len(values) else None


def _spent(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _own_cpu() -> float:
    times = os.times()
    return times.user + times.system
