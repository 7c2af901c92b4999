"""One way to place the documents, loaded and asked: what does it come to?

Cold is the first round after loading: new sessions without plans or caches of their own, and whatever the server's
buffers hold then. Whoever owns the servers may restart them before it (`restart`). The operating system's own cache
of files stays as it is. Warm is every further round, in the same sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from levada.adapters.replay.client import Client, directory_home
from levada.adapters.replay.costs import busy_seconds
from levada.adapters.replay.questions import Question, stored
from levada.adapters.replay.rounds import Round, run_round
from levada.adapters.replay.servers import Servers
from levada.adapters.replay.shard_line import ShardLine
from levada.adapters.replay.tables import SCHEMA, Layout, fill_directory, fill_table
from levada.errors import StoreError
from levada.ports import Clock
from levada.sharding.placement import Placement
from levada.sharding.values import dig

if TYPE_CHECKING:
    import psycopg

__all__ = ["Played", "Rounds", "Scheme", "play"]

Progress = Callable[[int, int, str], None]


class Scheme(msgspec.Struct, frozen=True):
    """`predicted`: shards per query and load max/mean, as the evaluator has them."""

    name: str
    key: str
    placement: Placement
    predicted: tuple[float, float]


class Played(msgspec.Struct, frozen=True):
    """`documents`: on each shard; `sizes`: bytes on each server."""

    scheme: str
    key: str
    shards: int
    predicted: tuple[float, float]
    documents: tuple[int, ...]
    sizes: tuple[int | None, ...]
    rounds: tuple[Round, ...]
    away: tuple[str, ...]

    def quickest(self, name: str) -> Round | None:
        """Of the rounds of this name."""
        return min((each for each in self.rounds if each.name == name), key=lambda each: each.seconds, default=None)

    @property
    def partial(self) -> bool:
        return bool(self.away) or any(each.partial for each in self.rounds)


class Rounds(msgspec.Struct, frozen=True):
    """What all schemes have in common."""

    documents: Sequence[dict[str, Any]]
    layout: Layout
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
    sizes = servers.sizes()
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


def _rounds(scheme: Scheme, work: Rounds, servers: Servers, clock: Clock, progress: Progress | None) -> list[Round]:
    with ExitStack() as sessions:
        clients = [_client(scheme, servers, sessions) for _ in range(work.clients)]
        if not any(client.sessions for client in clients):
            raise StoreError(f"no server can be used: {'; '.join(servers.away.values())}")
        pids = _pids(clients)
        run = partial(
            run_round,
            clients=clients,
            pids=list(pids.values()),
            shard_pids=[[client.pid_of(shard) for client in clients] for shard in range(scheme.placement.shards)],
            questions=work.questions,
            clock=clock,
            busy=partial(_busy, clients, pids, servers),
        )
        return [run(name, progress=_told(progress, scheme, name, work)) for name in work.names]


def _told(progress: Progress | None, scheme: Scheme, name: str, work: Rounds) -> Callable[[int], None] | None:
    if progress is None:
        return None
    return lambda done: progress(max(done, 1), len(work.questions), f"{scheme.name}: {name}")


def _load(scheme: Scheme, work: Rounds, servers: Servers, homes: Sequence[int]) -> None:
    placement = scheme.placement

    def load(server: int, connection: psycopg.Connection[Any]) -> bool:
        for shard in range(server, placement.shards, len(servers)):
            rows = (
                work.layout.row(number, document)
                for number, document in enumerate(work.documents)
                if homes[number] == shard
            )
            fill_table(connection, _table(scheme, shard), work.layout, rows, placement.key.fields)
        if placement.directory:
            fill_directory(connection, _directory(scheme), _entries(placement, work, homes, server, len(servers)))
        return True

    servers.each(load)


def _entries(
    placement: Placement, work: Rounds, homes: Sequence[int], server: int, servers: int
) -> Iterator[tuple[bytes, int]]:
    entries = {
        stored(dig(each, placement.directory)): home for each, home in zip(work.documents, homes, strict=True)
    }
    return ((id, home) for id, home in entries.items() if directory_home(id, servers) == server)


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
    """Of each server that has a shard."""
    sessions = [line for client in clients for line in client.sessions]
    used = sorted({line.server for line in sessions})
    return {server: [line.pid for line in sessions if line.server == server] for server in used}


def _busy(clients: Sequence[Client], pids: dict[int, list[int | None]], servers: Servers) -> list[float | None]:
    """Asked only of servers whose processes cannot be seen."""
    unseen = {server for server, known in pids.items() if None in known}
    for line in (line for client in clients for line in client.sessions):
        if line.server in unseen:
            line.report()
    return [servers.use(server, busy_seconds) if server in unseen else None for server in pids]


def _table(scheme: Scheme, shard: int) -> str:
    return f"{SCHEMA}.{scheme.name}_{shard}"


def _directory(scheme: Scheme) -> str:
    return f"{SCHEMA}.{scheme.name}_directory"
