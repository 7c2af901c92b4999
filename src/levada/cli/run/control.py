"""`levada control`."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from levada.cli.logs import LogKind, for_machines, set_up_logs, tell
from levada.cli.options import (
    CollectionOption,
    ControllerOption,
    JsonOption,
    OptionalDataOption,
    RabbitOption,
    ServerOption,
    environment_folder,
    print_json,
)
from levada.core.errors import UsageError
from levada.core.reports import Round
from levada.core.words import plural

HealthOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Answer /ready and /live here, for probes of Kubernetes.")
]


def run_until_signal(work: Callable[[asyncio.Event], Coroutine[None, None, None]]) -> None:
    """Run an asynchronous function until it ends; Ctrl-C and SIGTERM set the event that it is given."""
    import uvloop

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await work(stop)

    uvloop.run(run())


class ChangedLines:
    """Prints a line on standard error when the size of a stage changes, or when the source must wait."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._held = False

    def __call__(self, done: Round) -> None:
        for stage in done.stages:
            if self._wanted.get(stage.stage) != stage.wanted:
                self._wanted[stage.stage] = stage.wanted
                words = f"{stage.stage}: {plural(stage.wanted, 'worker')} wanted, {stage.on} on ({stage.why})"
                tell(words, logging.INFO)
        if done.hold_source is not self._held:
            self._held = done.hold_source
            tell("the source should wait" if self._held else "the source may go on", logging.INFO)


def listen_to_logs() -> None:
    """Log to standard error; the broker's client is silenced, since our own messages say the same more clearly."""
    if not for_machines():
        set_up_logs(LogKind.TEXT)
        logging.getLogger("levada").setLevel(logging.INFO)
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def control(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What the controller is told; per stage a/b.")
    ] = None,
    rabbitmq: RabbitOption = "amqp://localhost/",
    stage: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=QUEUE,LEAST,MOST,COMMAND", help="In order; more than one may be named."),
    ] = None,
    store: ServerOption = None,
    collection: CollectionOption = None,
    data: OptionalDataOption = None,
    start: Annotated[list[str] | None, typer.Option(metavar="URL", help="With --data: where to start.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="With --data: settings of the crawl.")] = None,
    fetch: Annotated[
        str,
        typer.Option(
            metavar="LEAST,MOST", help="With --data: workers that fetch; 0,0: none; or LEAST,MOST,DEPLOYMENT."
        ),
    ] = "1,8",
    catalog: Annotated[
        str, typer.Option(metavar="LEAST,MOST", help="With --data: workers that store; likewise.")
    ] = "1,2",
    controller: ControllerOption = "feed-forward",
    budget: Annotated[int | None, typer.Option(metavar="N", help="Workers of all stages together, at most.")] = None,
    period: Annotated[float, typer.Option(metavar="S", help="Seconds between two looks.")] = 1.0,
    grace: Annotated[float, typer.Option(metavar="S", help="Seconds that a worker has to finish its job.")] = 30.0,
    assume: Annotated[float, typer.Option(metavar="S", help="Seconds per job of workers that report nothing.")] = 1.0,
    keda: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Run nothing; tell KEDA when it asks here.")
    ] = None,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Run nothing; scale Deployments, named in place of commands.")
    ] = False,
    health: HealthOption = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="End after so long; else at Ctrl-C.")] = None,
    json: JsonOption = False,
) -> None:
    """Reads the lengths of RabbitMQ queues, decides how many workers each stage should have, and starts and stops
    them as processes of this machine; or tells Kubernetes.

    A worker is stopped by SIGTERM: it finishes its job and ends. While the broker is away or a queue is missing,
    the number of workers stays. With `--data` it also hands out the pages of a crawl, which any number of
    `levada work` fetch and store.

    Examples:

    ```
    levada control --stage resize=images,1,20,"python resize.py" --rabbitmq amqp://guest:guest@localhost/
    levada control --stage a=in,1,8,./prepare --stage b=out,1,60,./finish --budget 50 --period 0.5
    levada control --stage resize=images,0,50 --keda 0.0.0.0:9090
    levada control --data news --start https://example.org --fetch 1,16 --json
    levada control --store postgresql://levada@db.example/levada --collection 4f1c09a2b7d83e56 --config levada.toml
    ```
    """
    from levada.cli.given import given_settings, tell_kept
    from levada.cli.simulate.options import parse_options
    from levada.collection.control import ControlPlan, autoscale, parse_stage
    from levada.collection.scheduling import crawl_by_workers
    from levada.collection.starts import seeds
    from levada.core.folder import DataFolder

    if stage is None and data is None and collection is None:
        data = environment_folder()
    held = ExitStack()
    if collection is not None and data is None and stage is None:
        if store is None:
            raise UsageError("--collection names a collection on a server: name that with --store")
        from levada.collection.machines.joining import joined

        data = held.enter_context(joined(store, collection, given_settings(config)))
    if (stage is None) == (data is None):
        raise UsageError("name either --stage name=queue,least,most,command, or --data DIR for a crawl")
    if keda is not None and kubernetes:
        raise UsageError("either --keda or --kubernetes: two would pull at the same pods")
    if data is None and health is not None:
        raise UsageError("--health belongs to a crawl: name its folder with --data")
    if data is None and (start or config):
        raise UsageError("--start and --config belong to a crawl: name its folder with --data")
    plan = ControlPlan(
        url=rabbitmq,
        stages=tuple(map(parse_stage, stage or ())),
        controller=controller,
        options=parse_options(settings),
        budget=budget,
        period=_above_zero(period, "--period"),
        grace=_above_zero(grace, "--grace"),
        assumed=_above_zero(assume, "--assume"),
        keda=None if keda is None else address(keda, "--keda"),
        kubernetes=kubernetes,
    )
    limit = None if seconds is None else _above_zero(seconds, "--seconds")
    show = print_json if json else ChangedLines()
    if data is None:
        for each in plan.stages:
            if keda is None and not each.command:
                raise UsageError(f"--stage {each.name}: a command is missing: name=queue,least,most,command")
        listen_to_logs()
        run_until_signal(partial(autoscale, plan, seconds=limit, on_round=show))
        return
    limits = tuple(
        parse_stage(f"{name}=-,{text}", may_be_remote=True) for name, text in (("fetch", fetch), ("catalog", catalog))
    )
    if kubernetes and not all(each.command or not each.most for each in limits):
        raise UsageError("--kubernetes: which Deployments? --fetch LEAST,MOST,DEPLOYMENT and --catalog likewise")
    if not kubernetes and any(each.command for each in limits):
        raise UsageError("--fetch and --catalog are LEAST,MOST; a Deployment is named with --kubernetes only")
    begin, given = seeds(start or []), given_settings(config)
    folder = DataFolder(data, given)
    crawl_settings = folder.settings()
    if not begin and not folder.exists():
        raise UsageError("no start: name one, as in: levada control --data DIR --start https://example.org")
    listen_to_logs()
    with held:
        run_until_signal(
            lambda stop: crawl_by_workers(
                data,
                crawl_settings,
                begin,
                plan,
                limits,
                stop,
                seconds=limit,
                on_round=show,
                given=given,
                on_kept=tell_kept,
                health=None if health is None else address(health, "--health"),
            )
        )


def _above_zero(value: float, option: str) -> float:
    if not 0.0 < value <= 1e9:
        raise UsageError(f"{option} must be above 0, not {value:g}")
    return value


def address(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65536):
        raise UsageError(f"{option} {text[:100]!r} is not of the form HOST:PORT, such as 0.0.0.0:9090")
    return host, int(port)
