"""`levada simulate cluster`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.table import Table

from levada.cli.options import JsonOption, check_range, print_result
from levada.cli.terminal import printer
from levada.core.errors import UsageError
from levada.core.words import plural
from levada.lab.cluster import Cluster, Machine, Part, Prices, Workload, plan_cluster, read_costs

_MOST = 10**12
T = TypeVar("T", Machine, Prices)


def cluster(
    pages: Annotated[float, typer.Option(metavar="N", help="Pages of the collection: 1e9, 20000.")],
    fetches: Annotated[float, typer.Option(metavar="R", help="Fetches per second, on average.")],
    changed: Annotated[float, typer.Option(metavar="SHARE", help="Of the visits, those that store a version.")] = 0.15,
    versions: Annotated[float, typer.Option(metavar="N", help="Versions kept per page, on average.")] = 3.0,
    page_kb: Annotated[float, typer.Option("--page-kb", metavar="KB", help="Of a page's HTML, on average.")] = 40.0,
    searches: Annotated[float, typer.Option(metavar="R", help="Searches per second, on average.")] = 10.0,
    peak: Annotated[float, typer.Option(metavar="X", help="The busiest hour over the mean.")] = 2.0,
    machine: Annotated[
        str, typer.Option(metavar="KEY=VALUE,...", help="cores, memory_gb, disk_gb, disk_mb_s, network_mbit, load.")
    ] = "cores=16,memory_gb=64",
    price: Annotated[
        str | None,
        typer.Option(metavar="KEY=VALUE,...", help="Per month: core; memory, disk, objects and traffic per GB."),
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Costs measured on your machines, in the form of ours.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """How many machines a collection needs on PostgreSQL, RabbitMQ, OpenSearch and object storage, and what
    outgrows one machine first. The costs behind it were measured; queues and bursts are not simulated.

    Examples:

    ```
    levada simulate cluster --pages 1e9 --fetches 5000
    levada simulate cluster --pages 2e7 --fetches 200 --price core=12,memory=2,disk=0.08,objects=0.02
    levada simulate cluster --pages 1e8 --fetches 1000 --machine cores=8,memory_gb=32,disk_gb=1000 --json
    ```
    """
    for option, value in (("--pages", pages), ("--fetches", fetches)):
        check_range(option, value, 1, _MOST)
    check_range("--changed", changed, 0, 1)
    check_range("--versions", versions, 1, 10_000)
    check_range("--page-kb", page_kb, 0.1, 100_000)
    check_range("--searches", searches, 0, 1e9)
    check_range("--peak", peak, 1, 1_000)
    work = Workload(
        pages=pages,
        fetches=fetches,
        changed=changed,
        versions=versions,
        page_kb=page_kb,
        searches=searches,
        peak=peak,
    )
    hardware = _named(Machine, machine, "--machine", least=1e-3)
    if hardware.load > 1:
        raise UsageError(f"--machine: load is a share of the machine, at most 1, not {hardware.load:g}")
    prices = None if price is None else _named(Prices, price, "--price", least=0.0)
    print_result(json, plan_cluster(work, hardware, read_costs(costs), prices), _show)


def _named(kind: type[T], text: str, option: str, least: float) -> T:
    """`cores=8,memory_gb=32` as a record."""
    known = kind.__struct_fields__
    found = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            raise UsageError(f"{option}: {key[:50]!r} is none of {', '.join(known)}: write key=value,key=value")
        try:
            found[key] = float(value)
        except ValueError:
            raise UsageError(f"{option}: {key} must be a number, not {value[:50]!r}") from None
        if not least <= found[key] <= _MOST:
            raise UsageError(f"{option}: {key} must be between {least:g} and {_MOST:g}, not {value[:50]}")
    return msgspec.convert(found, kind)


def _show(found: Cluster) -> None:
    out, work = printer(), found.workload
    out.print(
        f"{plural(found.machines, 'machine')} for {work.pages:,.0f} pages and {work.fetches:,.0f} fetches a second "
        f"({work.peak * work.fetches:,.0f} in the busiest hour)",
        style="bold",
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("part", no_wrap=True)
    for heading in ("cores", "GB memory", "GB disk", "Mbit/s", "machines"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    table.add_column("of one", justify="right", no_wrap=True)
    for part in found.parts:
        table.add_row(*_row(part))
    out.print(table)
    out.print("of one: fetches a second at which one machine (one process of control) is full", style="dim")
    out.print(f"object storage {found.objects_gb:,.0f} GB; from the web {found.traffic_gb:,.0f} GB a month")
    out.print(_limit(found))
    if found.money is not None:
        out.print(f"{found.money:,.0f} a month at these prices")


def _limit(found: Cluster) -> str:
    full = [part.name for part in found.parts if part.single_limit == 0]
    if full:
        return f"{' and '.join(full)} cannot hold this many pages on one machine: spread over several."
    what = "one process" if found.first_limit == "control" else "one machine"
    return f"{found.first_limit} is the first to outgrow {what}, at {found.first_limit_fetches:,.0f} fetches a second."


def _row(part: Part) -> tuple[str, ...]:
    figures = (part.cores, part.memory_gb, part.disk_gb, part.network_mbit, part.machines)
    one = "none" if part.single_limit == 0 else _figure(part.single_limit)
    return (part.name, *map(_figure, figures), part.bound, "" if math.isinf(part.single_limit) else one)


def _figure(value: float) -> str:
    return "" if value < 0.05 else f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
