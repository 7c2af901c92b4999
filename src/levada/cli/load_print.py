"""How does a load look, on a screen and as JSON?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from levada.cli.printing import harmless, plural, printer

if TYPE_CHECKING:
    from levada.assemble.known_loads import KnownLoad
    from levada.assemble.loading import LoadRequest, Verdict
    from levada.bulk.generations import Manifest
    from levada.bulk.tasks import Standing

__all__ = [
    "print_known",
    "print_loaded",
    "print_status",
    "print_verdict",
    "progress_line",
    "short_line",
    "status_facts",
    "verdict_facts",
]


def progress_line(standing: Standing) -> tuple[float, str]:
    """The share that is done, and the rest in words."""
    from levada.bulk.progress import progress_of

    share, rate, left = progress_of(standing)
    done, open_tasks = standing.done.tasks, standing.leased - standing.expired
    ends = "" if left is None else f", {left:,.0f} s left"
    tasks = f"tasks {done} done {open_tasks} leased {standing.waiting} waiting"
    return (
        share,
        f"{standing.done.rows:,} rows, {rate:,.0f}/s, {tasks}, {plural(len(standing.owners), 'instance')}{ends}",
    )


def short_line(standing: Standing) -> tuple[float, str]:
    """The same beside a bar."""
    from levada.bulk.progress import progress_of

    share, rate, left = progress_of(standing)
    known = standing.done.tasks + standing.waiting + standing.leased
    ends = "" if left is None else f", {left:,.0f} s left"
    return share, f"{standing.done.tasks}/{known} tasks, {standing.leased} leased, {rate:,.0f} rows/s{ends}"


def status_facts(standing: Standing | None, manifest: Manifest | None) -> dict[str, Any]:
    facts: dict[str, Any] = {} if standing is None else _standing_facts(standing)
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


def _standing_facts(standing: Standing) -> dict[str, Any]:
    from levada.bulk.progress import progress_of

    record, done = standing.record, standing.done
    share, rate, left = progress_of(standing)
    return {
        "name": record.plan.name,
        "generation": record.generation,
        "state": record.state,
        "reason": record.reason,
        "table": record.plan.table,
        "source": record.plan.source,
        "snapshot_shared": bool(record.snapshot),
        "started_at": _moment(record.started_at),
        "seconds": (record.ended_at or standing.now) - record.started_at,
        "rows": done.rows,
        "keys": done.keys,
        "null_keys": done.null_keys,
        "null_values": done.null_values,
        "digest": f"{done.digest:016x}",
        "rows_per_second": rate,
        "seconds_left": left,
        "share": share,
        "tasks": {
            "done": done.tasks,
            "leased": standing.leased - standing.expired,
            "expired": standing.expired,
            "waiting": standing.waiting,
        },
        "instances": {
            owner: {"leased": held, "done": tasks, "rows": rows}
            for owner, (held, tasks, rows) in standing.owners.items()
        },
    }


def print_loaded(standing: Standing, request: LoadRequest) -> None:
    from levada.assemble.loading_urls import redacted
    from levada.bulk.progress import progress_of

    done = standing.done
    left_out = done.null_keys + done.null_values
    print(
        f"{request.name}: {plural(done.rows, 'row')} of {plural(done.keys, 'key')} in {redacted(request.target)}, "
        f"generation {standing.record.generation}, {progress_of(standing).rows_per_second:,.0f} rows/s"
        + (f"; {plural(left_out, 'row')} with NULL left out" if left_out else "")
    )


def print_status(standing: Standing | None, manifest: Manifest | None) -> None:
    out = printer()
    if standing is not None:
        record = standing.record
        said = f" ({harmless(record.reason)})" if record.reason else ""
        out.print(f"{record.plan.name}: generation {record.generation} is {record.state}{said}")
        share, words = progress_line(standing)
        out.print(f"  {100 * share:.0f}%: {words}")
        for owner, (held, tasks, rows) in standing.owners.items():
            out.print(f"  {harmless(owner)}: {held} leased, {tasks} done, {plural(rows, 'row')}")
    if manifest is not None:
        out.print(
            f"published: generation {manifest.generation}, {plural(manifest.keys, 'key')}, "
            f"{plural(manifest.rows, 'row')}{_of_layers(len(manifest.layers))}, {_moment(manifest.published_at)}"
        )


def print_known(loads: list[KnownLoad]) -> None:
    """One line each."""
    out = printer()
    for each in loads:
        said = f" ({harmless(each.trouble)})" if each.trouble else ""
        share = f", {100 * each.share:.0f}%" if each.state == "running" and each.share is not None else ""
        there = each.published
        begins = "," if each.state == "published" else "; published:"
        keys = ""
        if there:
            size = f"{plural(there.keys, 'key')}{_of_layers(there.layers)}"
            keys = f"{begins} generation {there.generation}, {size}"
        of = f" of {harmless(each.table)} in {harmless(each.target)}" if each.table else ""
        out.print(f"{harmless(each.name)}{of}: {each.state}{share}{said}{keys}")


def _of_layers(layers: int) -> str:
    """How many keys all layers have together nobody knows who has not read them."""
    return f" in the newest of {layers} layers" if layers > 1 else ""


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    named = {"loaded": verdict.loaded, "stored": verdict.stored, "source": verdict.source}
    contents = {
        name: None if each is None else {"keys": each.keys, "rows": each.rows, "digest": f"{each.digest:016x}"}
        for name, each in named.items()
    }
    return contents | {"whole": verdict.whole, "current": verdict.current}


def print_verdict(verdict: Verdict) -> None:
    for name, each in (("source", verdict.source), ("loaded", verdict.loaded), ("stored", verdict.stored)):
        if each is not None:
            print(f"{name}: {plural(each.keys, 'key')}, {plural(each.rows, 'row')}, digest {each.digest:016x}")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
