"""Checks of the engines that machines of a collection share: `levada doctor --cluster`.

Each engine is asked from this machine, as the user that the crawl uses: whether it answers, whether it is new enough,
what this user may do there, and whether its clock and ours agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from levada.collection.doctor import Check, failed, fine, search_engine_check, worrying
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError
from levada.core.words import plural
from levada.store.base import StoreLimits

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection
    from psycopg import Connection

    from levada.core.settings import Settings

_SECONDS = 5.0
_SPARE_CONNECTIONS = 20
_QUORUM_SINCE = (3, 8)
_FACTS = """SELECT current_setting('server_version'), pg_is_in_recovery(),
    current_setting('server_encoding'),
    has_database_privilege(current_database(), 'CREATE'), current_database(), current_user,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'"""
_SCHEMAS = """SELECT nspname, has_schema_privilege(oid, 'USAGE') FROM pg_namespace
    WHERE nspname = 'levada_shared' OR nspname ~ '^levada_[0-9a-z]+_[0-9]+$' ORDER BY nspname"""


def cluster_checks(settings: Settings, rabbitmq: str) -> Iterator[Check]:
    """Every engine that these settings name, and RabbitMQ at this address ("": not looked at)."""
    for dsn in settings.store.servers:
        yield from _postgresql(dsn)
    if settings.index.engine == "opensearch":
        yield search_engine_check(settings)
    if rabbitmq:
        yield from asyncio.run(_rabbitmq(rabbitmq))


def _postgresql(dsn: str) -> Iterator[Check]:
    from levada.store.postgresql.connection import Address, connect, translated
    from levada.store.postgresql.server_clock import clock_ahead, told

    name = "PostgreSQL"
    try:
        import psycopg

        address = Address(dsn, "levada_shared")
        name = address.place.partition(" (schema ")[0]
        with closing(connect(address, StoreLimits(), read_only=False)) as session:  # nothing is written
            try:
                yield from _server(session, name)
            except psycopg.Error as error:
                raise translated(error, address.place) from error
        ahead = clock_ahead(dsn, SystemClock().now)
    except LevadaError as error:
        yield failed(name, str(error), "see store.servers in the settings, and docs/postgresql.md")
        return
    agrees = fine(f"clock of {name}", "agrees with that of this machine")
    yield worrying(f"clock of {name}", told(ahead).partition(":")[0], "set the clocks by NTP") if ahead else agrees


class _Server(NamedTuple):
    version: str
    is_standby: bool
    encoding: str
    may_create: bool
    database: str
    user: str
    most_connections: int
    connections: int
    fsync: bool
    full_pages: bool


def _server(session: Connection[Any], name: str) -> Iterator[Check]:
    row = session.execute(_FACTS.encode()).fetchone()
    assert row is not None
    facts = _Server(*row)
    found = f"version {facts.version}, {'a standby' if facts.is_standby else 'a primary'}"
    if facts.is_standby:
        advice = "name all hosts of the cluster in the address, and target_session_attrs=read-write"
        yield failed(name, f"{found}, which takes no writes", advice)
        return
    if facts.encoding != "UTF8":
        yield failed(name, f"{found}, encoding {facts.encoding}", "make a database with ENCODING 'UTF8'")
        return
    yield fine(name, found)
    if not (facts.fsync and facts.full_pages):
        advice = "set both on: a power failure may lose what was committed, or damage the database"
        yield worrying(f"durability of {name}", "fsync or full_page_writes is off", advice)
    free = facts.most_connections - facts.connections
    if free < _SPARE_CONNECTIONS:
        advice = "raise max_connections, or put PgBouncer in front"
        yield worrying(f"connections of {name}", f"{free} of {facts.most_connections} are free", advice)
    else:
        yield fine(f"connections of {name}", f"{free} of {facts.most_connections} are free")
    yield from _rights(session, name, facts)


def _rights(session: Connection[Any], name: str, facts: _Server) -> Iterator[Check]:
    schemas = session.execute(_SCHEMAS.encode()).fetchall()
    closed = [schema for schema, usable in schemas if not usable]
    if closed:
        advice = f"GRANT USAGE ON SCHEMA {closed[0]} TO {facts.user}, and the rights on its tables"
        yield failed(f"rights on {name}", f"{facts.user} may not use {', '.join(closed[:3])}", advice)
    elif not schemas and not facts.may_create:
        advice = f"GRANT CREATE ON DATABASE {facts.database} TO {facts.user}"
        yield failed(f"rights on {name}", f"{facts.user} may make no schema in {facts.database}", advice)
    else:
        shards = sum(schema != "levada_shared" for schema, _ in schemas)
        yield fine(f"rights on {name}", f"{facts.user} may use the schemas of {plural(shards, 'shard')}")


async def _rabbitmq(url: str) -> list[Check]:
    from levada.engines.rabbitmq.connection import away, dial, passing, place

    name = "RabbitMQ"
    try:
        name = f"RabbitMQ at {place(url)}"
        try:
            connection = await dial(url, _SECONDS)
        except passing() as error:
            raise away(url, error) from error
        async with connection:
            return await _broker(connection, name)
    except LevadaError as error:
        return [failed(name, str(error), "see LEVADA_RABBITMQ or --rabbitmq, and docs/stages.md")]


async def _broker(connection: AbstractConnection, name: str) -> list[Check]:
    """A queue as the crawl makes it, which is deleted again."""
    from aio_pika.exceptions import AMQPError

    properties = getattr(connection.transport and connection.transport.connection, "server_properties", {}) or {}
    version = str(properties.get("version", "of unknown version"))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if len(numbers) == 2 and numbers < _QUORUM_SINCE:
        return [failed(name, f"version {version}", "3.8 or newer is needed, for quorum queues")]
    clock = SystemClock()
    began = clock.monotonic()
    queue = f"levada-doctor-{token_hex(6)}"
    try:
        channel = await connection.channel()
        await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"}, timeout=_SECONDS)
        await channel.queue_delete(queue, timeout=_SECONDS)
    except (AMQPError, OSError, TimeoutError) as error:
        with suppress(AMQPError, OSError):
            await connection.close()
        advice = "grant this user configure, write and read on queues that begin with levada"
        return [failed(f"rights on {name}", f"no queue can be made ({error})", advice)]
    milliseconds = (clock.monotonic() - began) * 1000
    return [fine(name, f"version {version}; a queue was made and deleted in {milliseconds:.0f} ms")]
