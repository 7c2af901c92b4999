"""`levada control`: as many workers at each queue as it needs, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import JsonOption
from levada.errors import UsageError

if TYPE_CHECKING:
    from levada.assemble.controlling import StagePlan

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("control")(control)


def control(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What the controller is told; per stage a/b.")
    ] = None,
    rabbitmq: Annotated[
        str, typer.Option("--rabbitmq", envvar="LEVADA_RABBITMQ", metavar="URL", help="amqp://user:password@host/")
    ] = "amqp://localhost/",
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage", metavar="NAME=QUEUE,LEAST,MOST,COMMAND", help="In order; more than one may be named."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Crawl into this folder, with `levada work`.")
    ] = None,
    start: Annotated[
        list[str] | None, typer.Option("--start", metavar="URL", help="With --data: where to start.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="With --data: settings of the crawl.")
    ] = None,
    fetch: Annotated[
        str,
        typer.Option(
            "--fetch", metavar="LEAST,MOST", help="With --data: workers that fetch; or LEAST,MOST,DEPLOYMENT."
        ),
    ] = "1,8",
    catalog: Annotated[
        str, typer.Option("--catalog", metavar="LEAST,MOST", help="With --data: workers that store; likewise.")
    ] = "1,2",
    controller: Annotated[
        str, typer.Option("--controller", metavar="NAME", help="Who says how many; a wrong name lists all.")
    ] = "feed-forward",
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", help="Workers of all stages together, at most.")
    ] = None,
    period: Annotated[float, typer.Option("--period", metavar="S", help="Seconds between two looks.")] = 1.0,
    grace: Annotated[
        float, typer.Option("--grace", metavar="S", help="Seconds that a worker has to finish its job.")
    ] = 30.0,
    assume: Annotated[
        float, typer.Option("--assume", metavar="S", help="Seconds per job of workers that report nothing.")
    ] = 1.0,
    keda: Annotated[
        str | None, typer.Option("--keda", metavar="HOST:PORT", help="Run nothing; tell KEDA when it asks here.")
    ] = None,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Run nothing; scale Deployments, named in place of commands.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="End after so long; else at Ctrl-C.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Looks at queues of RabbitMQ, decides how many workers each stage should have, and starts and stops them as
    processes of this machine; or tells Kubernetes.

    A command is told to stop by SIGTERM: it finishes its job and ends. While the broker is away or a queue is
    missing, the last size is held. With `--data` it also hands out the pages of a crawl, which any number of
    `levada work` fetch and store.

    Examples:

    ```
    levada control --stage resize=images,1,20,"python resize.py" --rabbitmq amqp://guest:guest@localhost/
    levada control --stage a=in,1,8,./prepare --stage b=out,1,60,./finish --budget 50 --period 0.5
    levada control --stage resize=images,0,50 --keda 0.0.0.0:9090
    levada control --data news --start https://example.org --fetch 1,16 --json
    ```
    """
    from levada.assemble.controlling import ControlPlan, parse_stage
    from levada.cli.control_run import run_control
    from levada.cli.simulate_options import parse_options

    if (stage is None) == (data is None):
        raise UsageError("control what? either --stage name=queue,least,most,command, or --data DIR for a crawl")
    if keda is not None and kubernetes:
        raise UsageError("either --keda or --kubernetes: two would pull at the same pods")
    if data is None and (start or config):
        raise UsageError("--start and --config are of a crawl: name its folder with --data")
    plan = ControlPlan(
        url=rabbitmq,
        stages=tuple(map(parse_stage, stage or ())),
        controller=controller,
        options=parse_options(settings),
        budget=budget,
        period=_above_zero(period, "--period"),
        grace=_above_zero(grace, "--grace"),
        assumed=_above_zero(assume, "--assume"),
        keda=None if keda is None else _address(keda),
        kubernetes=kubernetes,
    )
    limit = None if seconds is None else _above_zero(seconds, "--seconds")
    if data is None:
        _need_commands(plan.stages, keda is not None)
        run_control(plan, seconds=limit, json=json)
        return
    from levada.cli.control_crawl import run_crawl_control

    limits = tuple(parse_stage(f"{name}=-,{text}") for name, text in (("fetch", fetch), ("catalog", catalog)))
    if kubernetes and not all(each.command for each in limits):
        raise UsageError("--kubernetes: which Deployments? --fetch LEAST,MOST,DEPLOYMENT and --catalog likewise")
    if not kubernetes and any(each.command for each in limits):
        raise UsageError("--fetch and --catalog are LEAST,MOST; a Deployment is named with --kubernetes only")
    run_crawl_control(plan, data, start or [], config, limits, seconds=limit, json=json)


def _above_zero(value: float, option: str) -> float:
    if not 0.0 < value <= 1e9:
        raise UsageError(f"{option} must be above 0, not {value:g}")
    return value


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65536):
        raise UsageError(f"--keda {text[:100]!r} is not of the form HOST:PORT, such as 0.0.0.0:9090")
    return host, int(port)


def _need_commands(stages: tuple[StagePlan, ...], by_keda: bool) -> None:
    for each in stages:
        if not by_keda and not each.command:
            raise UsageError(f"--stage {each.name}: a command is missing: name=queue,least,most,command")
