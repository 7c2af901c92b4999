"""Output of a load, for people and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.cli.terminal import printer
from levada.core.words import harmless, plural

if TYPE_CHECKING:
    from levada.bulk.loads import KnownLoad, LoadRequest, LoadVerdict
    from levada.bulk.tasks import LoadStatus, Manifest


MAPS = Path("levada-maps")
"""Where loads keep maps and notes unless told otherwise."""


def progress_line(status: LoadStatus) -> tuple[float, str]:
    """The share that is done, and a line about the rest."""
    from levada.bulk.tasks import progress_of

    share, rate, left = progress_of(status)
    ends = "" if left is None else f", {left:,.0f} s left"
    tasks = f"tasks {status.done.tasks} done {status.leased - status.expired} leased {status.waiting} waiting"
    instances = plural(len(status.owners), "instance")
    return share, f"{status.done.rows:,} rows, {rate:,.0f}/s, {tasks}, {instances}{ends}"


def short_line(status: LoadStatus) -> tuple[float, str]:
    """The share that is done, and a short line to stand beside a bar."""
    from levada.bulk.tasks import progress_of

    share, rate, left = progress_of(status)
    known = status.done.tasks + status.waiting + status.leased
    ends = "" if left is None else f", {left:,.0f} s left"
    return share, f"{status.done.tasks}/{known} tasks, {status.leased} leased, {rate:,.0f} rows/s{ends}"


def status_facts(status: LoadStatus | None, manifest: Manifest | None) -> dict[str, Any]:
    facts: dict[str, Any] = {} if status is None else _status_facts(status)
    if manifest is not None:
        facts["published"] = {
            "generation": manifest.generation,
            "layers": list(manifest.layers),
            "keys": manifest.keys,
            "rows": manifest.rows,
            "digest": f"{manifest.digest:016x}",
            "at": _moment(manifest.published_at),
        }
    return facts


def _status_facts(status: LoadStatus) -> dict[str, Any]:
    from levada.bulk.loads import LoadTasks
    from levada.bulk.tasks import progress_of

    record, done = status.record, status.done
    share, rate, left = progress_of(status)
    return {
        "name": record.plan.name,
        "generation": record.generation,
        "state": record.state,
        "reason": record.reason,
        "table": record.plan.table,
        "source": record.plan.source,
        "snapshot_shared": bool(record.snapshot),
        "started_at": _moment(record.started_at),
        "seconds": (record.ended_at or status.now) - record.started_at,
        "rows": done.rows,
        "keys": done.keys,
        "null_keys": done.null_keys,
        "null_values": done.null_values,
        "digest": f"{done.digest:016x}",
        "rows_per_second": rate,
        "seconds_left": left,
        "share": share,
        "tasks": LoadTasks(done.tasks, status.leased - status.expired, status.expired, status.waiting),
        "instances": {
            owner: {"leased": held, "done": tasks, "rows": rows} for owner, (held, tasks, rows) in status.owners.items()
        },
    }


def print_loaded(status: LoadStatus, request: LoadRequest) -> None:
    from levada.bulk.engines import redacted
    from levada.bulk.tasks import progress_of

    done = status.done
    left_out = done.null_keys + done.null_values
    print(
        f"{request.name}: {plural(done.rows, 'row')} of {plural(done.keys, 'key')} in {redacted(request.target)}, "
        f"generation {status.record.generation}, {progress_of(status).rows_per_second:,.0f} rows/s"
        + (f"; {plural(left_out, 'row')} with NULL left out" if left_out else "")
    )


def print_status(status: LoadStatus | None, manifest: Manifest | None) -> None:
    out = printer()
    if status is not None:
        record = status.record
        said = f" ({harmless(record.reason)})" if record.reason else ""
        out.print(f"{record.plan.name}: generation {record.generation} is {record.state}{said}")
        share, words = progress_line(status)
        out.print(f"  {100 * share:.0f}%: {words}")
        for owner, (held, tasks, rows) in status.owners.items():
            out.print(f"  {harmless(owner)}: {held} leased, {tasks} done, {plural(rows, 'row')}")
    if manifest is not None:
        out.print(
            f"published: generation {manifest.generation}, {plural(manifest.keys, 'key')}, "
            f"{plural(manifest.rows, 'row')}{_of_layers(len(manifest.layers))}, {_moment(manifest.published_at)}"
        )


def print_known(loads: list[KnownLoad]) -> None:
    """Print one line for each load."""
    out = printer()
    for each in loads:
        said = f" ({harmless(each.trouble)})" if each.trouble else ""
        share = f", {100 * each.share:.0f}%" if each.state == "running" and each.share is not None else ""
        there = each.published
        begins = "," if each.state == "published" else "; published:"
        size = f"{plural(there.keys, 'key')}{_of_layers(there.layers)}" if there else ""
        keys = f"{begins} generation {there.generation}, {size}" if there else ""
        of = f" of {harmless(each.table)} in {harmless(each.target)}" if each.table else ""
        out.print(f"{harmless(each.name)}{of}: {each.state}{share}{said}{keys}")


def _of_layers(layers: int) -> str:
    """A note that the keys are those of the newest layer: the number over all layers is not known."""
    return f" in the newest of {layers} layers" if layers > 1 else ""


def verdict_facts(verdict: LoadVerdict) -> dict[str, Any]:
    named = {"loaded": verdict.loaded, "stored": verdict.stored, "source": verdict.source}
    contents = {
        name: None if each is None else {"keys": each.keys, "rows": each.rows, "digest": f"{each.digest:016x}"}
        for name, each in named.items()
    }
    return contents | {"whole": verdict.whole, "current": verdict.current}


def print_verdict(verdict: LoadVerdict) -> None:
    for name, each in (("source", verdict.source), ("loaded", verdict.loaded), ("stored", verdict.stored)):
        if each is not None:
            print(f"{name}: {plural(each.keys, 'key')}, {plural(each.rows, 'row')}, digest {each.digest:016x}")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
