"""Running a capture from files, statistics or a proxy, and reporting on it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import typer

from levada.capture.mongodb.capture_child import CaptureOptions, CaptureReport
from levada.capture.mongodb.proxy import Proxy, TrafficCapture
from levada.capture.query_log import QueryLogWriter
from levada.cli.logs import tell
from levada.cli.options import STDOUT, print_json
from levada.cli.shard.options import check_sample, read_key
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError, NotFound, UsageError
from levada.core.words import plural, size
from levada.sharding.queries import QueryEntry, ValueRule, Values


class Capture:
    """The output of a capture, and what is reported at its end."""

    def __init__(self, writer: QueryLogWriter) -> None:
        self._writer = writer
        self.facts: dict[str, Any] = {}
        self.losses: list[str] = []  # sentences; any of them makes the result a partial one

    def write(self, queries: Iterable[QueryEntry]) -> None:
        for query in queries:
            self._writer.write(query)

    def tell(self, reading: msgspec.Struct, **losses: int | str) -> None:
        """Report the reader's counts; `losses` describes those that mean that queries are missing."""
        self.facts = msgspec.to_builtins(reading)
        self.losses = [_WORDS[name].format(count) for name, count in losses.items() if count]


_WORDS = {
    "damaged": "{:,} lines or documents could not be read",
    "truncated": "{:,} queries were cut short when they were logged",
    "unparsed": "{:,} statements are no SQL that could be parsed",
    "missing": "segments are missing in {:,} places",
    "cut": "the file could not be read to its end: {}",
    "unreadable": "{:,} messages could not be read",
    "encrypted": "{:,} connections are under TLS and were not read",
}


@contextmanager
def capturing(
    file: Path, out: str, values: str, hash_key: Path | None, sample: float, force: bool, json: bool
) -> Iterator[tuple[BinaryIO, Capture]]:
    """Open the file to read and the output; report the result at the end."""
    try:
        opened = file.open("rb")
        if not opened.seekable():
            opened.close()
            raise UsageError(f"{file} cannot be read twice: save it to a file first")
    except OSError as error:
        raise LevadaError(f"cannot read {file}: {error.strerror}") from None
    with opened, writing(out, values, hash_key, sample, force, json) as capture:
        yield opened, capture


@contextmanager
def writing(out: str, values: str, hash_key: Path | None, sample: float, force: bool, json: bool) -> Iterator[Capture]:
    from levada.core.files import standard_output, whole_file

    check_sample(sample)
    key = read_key(values, hash_key)
    if json and out == STDOUT:
        raise UsageError("--json reports on a file: name one with --out FILE")
    with standard_output(sys.stdout.buffer) if out == STDOUT else whole_file(Path(out), force=force) as target:
        writer = QueryLogWriter(target, ValueRule(Values(values), key), sample)
        capture = Capture(writer)
        yield capture
        written, losses = writer.written, capture.losses
        if not written.queries and out != STDOUT:
            raise NotFound("; ".join(["no query was found", *losses]))  # and no file appears
    words = plural(written.queries, "query") + ("" if out == STDOUT else f" in {out}")
    facts = {"out": out, "written": written, "partial": bool(losses), "losses": losses, **capture.facts}
    _report(json, facts, words, bool(written.queries))


def _report(json: bool, facts: dict[str, Any], words: str, found: bool) -> None:
    if json:
        print_json(facts)
    else:
        for line in (words, *(f"partial: {loss}" for loss in facts["losses"])):
            print(line, file=sys.stderr)
    if not found:
        raise typer.Exit(NotFound.exit_code)


_LOOK_SECONDS = 1.0
_LINE_SECONDS = 60.0


def run_proxy(listen: tuple[str, int], to: tuple[str, int], options: dict[str, Any], json: bool) -> None:
    import uvloop

    with _checked(Path(options["out"])):
        facts = uvloop.run(_run(listen, to, CaptureOptions(**options)))
    found = bool(facts["written"]["queries"] or facts["unwritten"])
    words = f"{plural(facts['written']['queries'], 'query')} in {facts['out']}"
    _report(json, facts, words if found else "no query was found", found)


@contextmanager
def _checked(out: Path) -> Iterator[None]:
    """Open the output before the capture starts, to find a wrong name; an empty file is removed at the end."""
    new = not out.exists()
    try:
        os.close(os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    except OSError as error:
        raise LevadaError(f"cannot write {out}: {error.strerror}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            if new and not out.stat().st_size:
                out.unlink()


async def _run(listen: tuple[str, int], to: tuple[str, int], options: CaptureOptions) -> dict[str, Any]:
    capture = TrafficCapture(options, SystemClock(), backlog=options.memory)
    await capture.start()
    proxy = Proxy(*to, capture)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        port = await _listen(proxy, listen)
        words = f"{listen[0]}:{port} passes on to {to[0]}:{to[1]}; queries go to {options.out}; Ctrl-C ends it"
        print(words, file=sys.stderr, flush=True)
        await _watch(proxy, capture, ended)
    finally:
        await proxy.stop()
        report = await capture.stop()
    losses = _troubles(report, capture, proxy)
    return {
        "out": options.out,
        **msgspec.to_builtins(report),
        "connections": proxy.connections,
        "unreachable": proxy.unreachable,
        "lost_bytes": capture.lost_bytes,
        "starts": capture.starts,
        "partial": bool(losses),
        "losses": losses,
    }


async def _listen(proxy: Proxy, listen: tuple[str, int]) -> int:
    try:
        return await proxy.start(*listen)
    except OSError as error:
        raise LevadaError(f"cannot listen on {listen[0]}:{listen[1]}: {error.strerror or error}") from None


async def _watch(proxy: Proxy, capture: TrafficCapture, ended: asyncio.Event) -> None:
    """Report each problem when it is first met, and the progress once a minute."""
    said: set[str] = set()
    looks = 0
    while not ended.is_set():
        for words in _troubles(capture.report(), capture, proxy):
            if words not in said:
                tell(words, logging.WARNING)
                said.add(words)
        looks += 1
        if looks % round(_LINE_SECONDS / _LOOK_SECONDS) == 0:
            written = capture.report().written
            print(f"{plural(written.queries, 'query')} written, {size(written.bytes)}", file=sys.stderr, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_SECONDS)


def _troubles(report: CaptureReport, capture: TrafficCapture, proxy: Proxy) -> list[str]:
    troubles = {
        "some traffic is under TLS: it is passed on, and not read": report.heard.encrypted,
        "some connections are refused: the MongoDB behind cannot be reached": proxy.unreachable,
        "some traffic is passed on without being read: reading lags behind, or has died": capture.lost_bytes,
        "the process that reads has died and was started again": capture.starts > 1,
        "some messages could not be read": len(report.heard.unreadable),
        f"some queries could not be written: {report.trouble}": report.unwritten,
    }
    return [words for words, met in troubles.items() if met]
