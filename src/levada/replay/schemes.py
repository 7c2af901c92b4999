"""Schemes: one placement of the documents, loaded and queried in rounds, and how placements compare.

A round runs all queries once, by several clients. Its clock runs from the first query to the last answer. CPU is
that of the database processes that serve the clients, and memory what they hold when the round ends.

Cold is the first round after loading: new sessions without plans or caches of their own, and whatever the server's
buffers hold then. The owner of the servers may restart them before it (`restart`). The operating system's file
cache stays as it is. Warm is every further round, in the same sessions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.errors import StoreError
from levada.core.protocols import Clock
from levada.replay.client import Client, ShardLine, Tally, busy_seconds, cpu_seconds, directory_home, memory_bytes, over
from levada.replay.questions import Question, stored
from levada.replay.servers import SCHEMA, Servers, TableLayout, fill_directory, fill_table, size_of
from levada.sharding.advice import Note, NoteKind, Progress
from levada.sharding.evaluation import max_by_mean
from levada.sharding.placement import Placement
from levada.sharding.values import dig

if TYPE_CHECKING:
    import psycopg


_POLL_SECONDS = 0.2


class ReplayRound(msgspec.Struct, frozen=True):
    """Counts and costs of a round. `cpu` and `memory` are of each server, None if unknown; `client_cpu` is of this
    program.

    `shard_cpu` is that of each shard. `busy` is how long the server's sessions ran statements, if its CPU is
    unknown.
    """

    name: str
    seconds: float
    queries: int
    touches: tuple[int, ...]
    found: int
    answers: int
    lookups: int
    partial: int
    troubles: dict[str, int]
    client_cpu: float
    cpu: tuple[float | None, ...]
    memory: tuple[int | None, ...]
    busy: tuple[float | None, ...]
    shard_cpu: tuple[float | None, ...]

    @property
    def shards_per_query(self) -> float:
        return sum(self.touches) / max(self.queries, 1)

    @property
    def load_max_mean(self) -> float:
        return max_by_mean(self.touches)

    @property
    def cpu_total(self) -> float | None:
        return over(sum, self.cpu)

    @property
    def cpu_busiest(self) -> float | None:
        """The CPU of the busiest server."""
        return over(max, self.cpu)

    @property
    def cpu_busiest_shard(self) -> float | None:
        return over(max, self.shard_cpu)

    @property
    def busy_total(self) -> float | None:
        return over(sum, self.busy)


def run_round(
    name: str,
    clients: Sequence[Client],
    pids: Sequence[Sequence[int | None]],
    shard_pids: Sequence[Sequence[int | None]],
    questions: Sequence[Question],
    clock: Clock,
    busy: Callable[[], list[float | None]],
    progress: Callable[[int], None],
) -> ReplayRound:
    """Run all `questions`. `pids` are the processes that serve the clients, per server, `shard_pids` per shard;
    `busy` gives a server's own statement time; `progress` receives the number of queries so far."""
    for client in clients:
        client.begin()
    busy_before = busy()
    every = [*pids, *shard_pids]
    before, own = list(map(cpu_seconds, every)), _own_cpu()
    began = clock.monotonic()
    _run(clients, questions, progress)
    seconds, client_cpu = clock.monotonic() - began, _own_cpu() - own
    spent = list(map(_spent, before, map(cpu_seconds, every)))
    tally = Tally([0] * len(clients[0].tally.touches))
    for client in clients:
        tally.merge(client.tally)
    return ReplayRound(
        **{**msgspec.structs.asdict(tally), "touches": tuple(tally.touches)},
        name=name,
        seconds=seconds,
        client_cpu=client_cpu,
        cpu=tuple(spent[: len(pids)]),
        shard_cpu=tuple(spent[len(pids) :]),
        memory=tuple(map(memory_bytes, pids)),
        busy=tuple(map(_spent, busy_before, busy())),
    )


def _run(clients: Sequence[Client], questions: Sequence[Question], progress: Callable[[int], None]) -> None:
    places, ended = count(), Event()

    def work(client: Client) -> None:
        while not ended.is_set() and (place := next(places)) < len(questions):
            client.ask(place, questions[place])

    with ThreadPoolExecutor(len(clients)) as pool:
        calls = [pool.submit(work, client) for client in clients]
        try:
            while wait(calls, _POLL_SECONDS).not_done:
                progress(sum(client.tally.queries for client in clients))
        finally:
            ended.set()  # Ctrl-C: each client ends after its current query
    for call in calls:
        call.result()


def _spent(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _own_cpu() -> float:
    times = os.times()
    return times.user + times.system


class Scheme(msgspec.Struct, frozen=True):
    """A placement to try. `predicted`: shards per query and load max/mean, as the evaluator computes them."""

    name: str
    key: str
    placement: Placement
    predicted: tuple[float, float]


class Played(msgspec.Struct, frozen=True):
    """The results of a scheme. `documents`: on each shard; `sizes`: bytes on each server."""

    scheme: str
    key: str
    shards: int
    predicted: tuple[float, float]
    documents: tuple[int, ...]
    sizes: tuple[int | None, ...]
    rounds: tuple[ReplayRound, ...]
    away: tuple[str, ...]

    def quickest(self, name: str) -> ReplayRound | None:
        """The quickest round of this name."""
        return min((each for each in self.rounds if each.name == name), key=lambda each: each.seconds, default=None)

    @property
    def partial(self) -> bool:
        return bool(self.away) or any(each.partial for each in self.rounds)


class Rounds(msgspec.Struct, frozen=True):
    """What all schemes have in common."""

    documents: Sequence[dict[str, Any]]
    layout: TableLayout
    questions: Sequence[Question]
    names: tuple[str, ...]
    clients: int


def play(
    scheme: Scheme,
    work: Rounds,
    servers: Servers,
    clock: Clock,
    *,
    restart: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> Played:
    homes = [scheme.placement.place(document) for document in work.documents]
    if progress:
        progress(1, len(work.questions), f"{scheme.name}: loading")
    _load(scheme, work, servers, homes)
    sizes = servers.each(lambda server, connection: size_of(connection))
    if restart is not None:
        restart()
    rounds = _rounds(scheme, work, servers, clock, progress)
    return Played(
        scheme=scheme.name,
        key=scheme.key,
        shards=scheme.placement.shards,
        predicted=scheme.predicted,
        documents=tuple(homes.count(shard) for shard in range(scheme.placement.shards)),
        sizes=tuple(sizes),
        rounds=tuple(rounds),
        away=tuple(servers.away.values()),
    )


def _rounds(
    scheme: Scheme, work: Rounds, servers: Servers, clock: Clock, progress: Progress | None
) -> list[ReplayRound]:
    with ExitStack() as sessions:
        clients = [_client(scheme, servers, sessions) for _ in range(work.clients)]
        if not any(client.sessions for client in clients):
            raise StoreError(f"no server can be used: {'; '.join(servers.away.values())}")
        pids = _pids(clients)
        shard_pids = [[client.pid_of(shard) for client in clients] for shard in range(scheme.placement.shards)]
        busy = partial(_busy, clients, pids, servers)

        def run(name: str) -> ReplayRound:
            def tell(done: int) -> None:
                if progress:
                    progress(max(done, 1), len(work.questions), f"{scheme.name}: {name}")

            return run_round(name, clients, [*pids.values()], shard_pids, work.questions, clock, busy, tell)

        return [run(name) for name in work.names]


def _load(scheme: Scheme, work: Rounds, servers: Servers, homes: Sequence[int]) -> None:
    placement = scheme.placement

    def load(server: int, connection: psycopg.Connection[Any]) -> None:
        for shard in range(server, placement.shards, len(servers)):
            rows = (
                work.layout.row(number, document)
                for number, document in enumerate(work.documents)
                if homes[number] == shard
            )
            fill_table(connection, _table(scheme, shard), work.layout, rows, placement.key.fields)
        if placement.directory:
            ids = (stored(dig(document, placement.directory)) for document in work.documents)
            entries = dict(zip(ids, homes, strict=True)).items()
            own = ((id, home) for id, home in entries if directory_home(id, len(servers)) == server)
            fill_directory(connection, _directory(scheme), own)

    servers.each(load)


def _client(scheme: Scheme, servers: Servers, sessions: ExitStack) -> Client:
    shards = range(scheme.placement.shards)
    lines = [_line(servers, shard % len(servers), _table(scheme, shard), sessions) for shard in shards]
    directories = []
    if scheme.placement.directory:
        directories = [_line(servers, each, _directory(scheme), sessions) for each in range(len(servers))]
    return Client(scheme.placement, lines, directories)


def _line(servers: Servers, server: int, table: str, sessions: ExitStack) -> ShardLine | None:
    if server in servers.away:
        return None
    try:
        connection = servers.addresses[server].connect()
    except StoreError as error:
        servers.away[server] = str(error)
        return None
    sessions.callback(connection.close)
    return ShardLine(connection, table, server)


def _pids(clients: Sequence[Client]) -> dict[int, list[int | None]]:
    """The processes of each server that has a shard."""
    sessions = [line for client in clients for line in client.sessions]
    used = sorted({line.server for line in sessions})
    return {server: [line.pid for line in sessions if line.server == server] for server in used}


def _busy(clients: Sequence[Client], pids: dict[int, list[int | None]], servers: Servers) -> list[float | None]:
    """Read only from servers whose processes are not visible."""
    unseen = {server for server, known in pids.items() if None in known}
    for line in (line for client in clients for line in client.sessions):
        if line.server in unseen:
            line.report()
    return [servers.use(server, busy_seconds) if server in unseen else None for server in pids]


def _table(scheme: Scheme, shard: int) -> str:
    return f"{SCHEMA}.{scheme.name}_{shard}"


def _directory(scheme: Scheme) -> str:
    return f"{SCHEMA}.{scheme.name}_directory"


class Ratios(msgspec.Struct, frozen=True):
    """Above 1: this scheme needs less than the other. None if one of the two was not run or is unknown.

    `busiest` is the CPU of the busiest server, `busiest_shard` that of the busiest shard: what would be left of the
    time if each had a machine of its own.
    """

    scheme: str
    against: str
    seconds: float | None
    cpu: float | None
    busiest: float | None
    busiest_shard: float | None


def compared(played: Sequence[Played], round_name: str, against: Sequence[str] = ("id", "none")) -> list[Ratios]:
    """Each scheme with each of `against`, in their quickest rounds of this name."""
    rounds = {each.scheme: found for each in played if (found := each.quickest(round_name)) is not None}
    costs = ("seconds", "cpu_total", "cpu_busiest", "cpu_busiest_shard")
    return [
        Ratios(name, other, *(_ratio(getattr(rounds[other], cost), getattr(own, cost)) for cost in costs))
        for name, own in rounds.items()
        for other in against
        if other in rounds and other != name
    ]


def differences(played: Sequence[Played]) -> Iterator[Note]:
    """A sentence for each round whose answers differ from those of the first complete one."""
    first: tuple[str, ReplayRound] | None = None
    for each in played:
        for found in each.rounds:
            if found.partial or each.away:
                continue
            if first is None:
                first = (each.scheme, found)
            elif found.answers != first[1].answers:
                yield Note(f"{each.scheme} ({found.name}) found other documents than {first[0]} did.", NoteKind.WRONG)


def _ratio(other: float | None, own: float | None) -> float | None:
    return other / own if other is not None and own else None
