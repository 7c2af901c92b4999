"""`levada work`: one worker of a stage, as many as you like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import UsageError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("work")(work)


def work(
    stage: Annotated[str, typer.Option("--stage", metavar="fetch|catalog", help="Which work to do.")],
    rabbitmq: Annotated[
        str, typer.Option("--rabbitmq", envvar="LEVADA_RABBITMQ", metavar="URL", help="amqp://user:password@host/")
    ] = "amqp://localhost/",
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Fetches pages that `levada control --data` hands out, or stores what was fetched; any number of times.

    Runs until Ctrl-C or SIGTERM: then it finishes the message that it has, and ends. However it ends, nothing is
    lost and nothing stored twice. `levada control --data` starts and stops workers by itself; start some by hand
    where it is not to.

    Examples:

        levada work --stage fetch --data news --rabbitmq amqp://guest:guest@localhost/

        levada work --stage catalog --data news
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.working import STAGES
    from levada.cli.work_run import run_worker

    if stage not in STAGES:
        raise UsageError(f"--stage is one of {', '.join(STAGES)}, not {stage[:50]!r}")
    done = run_worker(DataFolder(data), stage, rabbitmq)
    if json:
        print_json(done)
