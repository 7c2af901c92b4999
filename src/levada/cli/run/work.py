"""`levada work`."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer

from levada.cli.options import (
    CollectionOption,
    JsonOption,
    OptionalDataOption,
    RabbitOption,
    ServerOption,
    environment_folder,
    print_json,
)
from levada.cli.run.control import HealthOption, address, listen_to_logs
from levada.core.errors import UsageError


def work(
    stage: Annotated[str, typer.Option(metavar="fetch|catalog", help="Which work to do.")],
    rabbitmq: RabbitOption = "amqp://localhost/",
    store: ServerOption = None,
    collection: CollectionOption = None,
    data: OptionalDataOption = None,
    health: HealthOption = None,
    json: JsonOption = False,
) -> None:
    """Fetches pages that `levada control --data` hands out, or stores what was fetched; any number of times.

    Runs until Ctrl-C or SIGTERM: then it finishes the message that it has, and ends. However it ends, nothing is
    lost and nothing stored twice. `levada control --data` starts and stops workers by itself; start some by hand
    where it is not to, on any machine: where PostgreSQL holds the collection, --store is all that they need.

    Examples:

        levada work --stage fetch --data news --rabbitmq amqp://guest:guest@localhost/

        levada work --stage catalog --data news

        levada work --stage fetch --store postgresql://levada@db.example/levada --rabbitmq amqp://mq.example/
    """
    import uvloop

    from levada.collection.machines.waiting import Readiness, answering_health
    from levada.collection.working import STAGES, find_workplace
    from levada.collection.working import work as do_work

    if stage not in STAGES:
        raise UsageError(f"--stage is one of {', '.join(STAGES)}, not {stage[:50]!r}")
    if collection is not None and store is None:
        raise UsageError("--collection names one of several on a server: name that with --store")
    if data is None and store is None:
        data = environment_folder()
    probed = None if health is None else address(health, "--health")
    listen_to_logs()

    async def run() -> int:
        stop, readiness = asyncio.Event(), Readiness()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        with answering_health(probed, readiness):
            # A folder that is named counts for more than LEVADA_STORE.
            return await do_work(lambda: find_workplace(data, store, collection), stage, rabbitmq, stop, readiness)

    done = uvloop.run(run())
    if json:
        print_json({"stage": stage, "messages": done})
