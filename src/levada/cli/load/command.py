"""`levada load`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from levada.cli.app import make_family
from levada.cli.load.output import MAPS
from levada.cli.load.queries import BookOption, MapsOption, ProcessesOption, cancel, get, resume, status, verify
from levada.cli.options import JsonOption
from levada.core.errors import UsageError

_MOST = 1e9  # what is not finite cannot be noted
_SPLITS = ("auto", "ranges", "blocks", "mod", "hash")


def load(
    context: typer.Context,
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="postgresql://, mariadb://, sqlite://F, F.parquet, F.csv.")
    ] = "",
    table: Annotated[str, typer.Option(metavar="T", help="The table or view.")] = "",
    key: Annotated[str, typer.Option(metavar="COLUMN", help="What the map is asked by.")] = "",
    value: Annotated[str, typer.Option(metavar="COLUMN", help="One value per key.")] = "",
    collect: Annotated[str, typer.Option(metavar="COLUMN", help="Gather the values of all rows of a key.")] = "",
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="redis://, redis+sentinel://, or a folder for files.")
    ] = "levada-maps",
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the map; default: the table's.")] = "",
    book: BookOption = "",
    watermark: Annotated[str, typer.Option(metavar="COLUMN", help="Load only what is newer than the last time.")] = "",
    processes: ProcessesOption = 1,
    split: Annotated[str, typer.Option(metavar="HOW", help=f"{', '.join(_SPLITS)}.")] = "auto",
    task_rows: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000_000, help="About the rows of a task.")
    ] = 50_000,
    memory_mb: Annotated[
        int, typer.Option(metavar="MB", min=1, max=100_000, help="For the rows of a task, at most.")
    ] = 64,
    rows_per_second: Annotated[
        float, typer.Option(metavar="R", min=0.0, max=_MOST, help="Of each instance; 0: no limit.")
    ] = 0.0,
    connections: Annotated[
        int, typer.Option(metavar="N", min=0, help="That read the source at once; 0: any number.")
    ] = 0,
    lease: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, max=86_400.0, help="Until a silent task is free.")
    ] = 30.0,
    keep_old: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, max=_MOST, help="Before the old map is removed.")
    ] = 5.0,
    fresh: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, max=_MOST, help="Do nothing if loaded so lately.")
    ] = 0.0,
    replace: Annotated[bool, typer.Option("--replace", help="Even if the map holds another table.")] = False,
    wake: Annotated[str, typer.Option(metavar="URL", help="amqp://: RabbitMQ wakes instances that wait.")] = "",
    metrics_port: Annotated[
        int, typer.Option(metavar="P", min=0, max=65_535, help="Prometheus, on the loopback; 0: off.")
    ] = 0,
    maps: MapsOption = MAPS,
    json: JsonOption = False,
) -> None:
    """Reads a whole table with as many instances as there are, into a map that everyone reads.

    The same line on any number of machines: the first begins the load, the others join. Readers see the old map
    until the new one is whole. A load that was broken off goes on with `levada load resume`.

    Examples:

    ```
    levada load --from postgresql://me@db/shop --table prices --key sku --value price
    levada load --from postgresql://me@db/crm --table view_msisdn_categories --key msisdn --collect category_id \\
        --to redis://cache:6379/0 --name categories --processes 2
    levada load get categories 905321234567
    levada load status categories
    ```
    """
    if context.invoked_subcommand is not None:
        return
    if bool(value) == bool(collect):
        raise UsageError("name one column with --value (one row per key) or --collect (any number)")
    table = table or _file_name(source)
    missing = [option for option, word in {"--from": source, "--key": key, "--table": table}.items() if not word]
    if missing:
        raise UsageError(f"{' and '.join(missing)} must be named: see levada load --help")
    if split not in _SPLITS:
        raise UsageError(f"--split {split[:30]!r} is not one of {', '.join(_SPLITS)}")
    from levada.bulk.loads import LoadRequest, note_load
    from levada.bulk.splitting import SplitMethod
    from levada.cli.load.run import run

    request = LoadRequest(
        source,
        table,
        key,
        value or collect,
        name or table.rpartition(".")[2],
        target,
        collect=bool(collect),
        book=book,
        watermark=watermark or None,
        split=SplitMethod(split),
        task_rows=task_rows,
        memory=memory_mb * 1_000_000,
        rows_per_second=rows_per_second,
        lease=lease,
        connections=connections,
        keep_old=keep_old,
        fresh=fresh,
        replace=replace,
        wake=wake,
    )
    _ = request.plan  # a name that cannot be is found here, before anything is written
    run(request, maps, processes, metrics_port, json, noted=lambda: note_load(maps, request))


def _file_name(source: str) -> str:
    """The table name of a file: its own name."""
    path = Path(source)
    return path.stem.replace(".", "-") if path.suffix.lower() in (".csv", ".parquet") else ""


family = make_family(load, status, resume, cancel, verify, get, cls=TyperGroup, invoke_without_command=True)
