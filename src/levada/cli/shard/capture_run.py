"""Running a capture from files, statistics or a proxy, and reporting on it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import typer

from levada.capture.mongodb.channel import CaptureOptions, CaptureReport
from levada.capture.mongodb.proxy import Proxy, TrafficCapture
from levada.capture.query_log import QueryLogWriter
from levada.cli.options import print_json, print_result
from levada.cli.shard.options import check_sample, counted, value_rule
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError, NotFound, UsageError
from levada.core.words import size
from levada.sharding.queries import QueryEntry

_STDOUT = "-"


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
    rule = value_rule(values, hash_key)
    if json and out == _STDOUT:
        raise UsageError("--json reports on a file: name one with --out FILE")
    with standard_output(sys.stdout.buffer) if out == _STDOUT else whole_file(Path(out), force=force) as target:
        writer = QueryLogWriter(target, rule, sample)
        capture = Capture(writer)
        yield capture
        if not writer.written.queries and out != _STDOUT:
            raise NotFound(_nothing(capture))  # and no file appears
    _say(capture, writer, out, json)


def _nothing(capture: Capture) -> str:
    return "; ".join(["no query was found", *capture.losses])


def _say(capture: Capture, writer: QueryLogWriter, out: str, json: bool) -> None:
    written = writer.written
    if json:
        partial = bool(capture.losses)
        print_json({"out": out, "written": written, "partial": partial, "losses": capture.losses, **capture.facts})
    else:
        where = "" if out == _STDOUT else f" in {out}"
        print(f"{counted(written.queries)}{where}", file=sys.stderr)
        for words in capture.losses:
            print(f"partial: {words}", file=sys.stderr)
    if not written.queries:
        raise typer.Exit(NotFound.exit_code)


def capture_pcap(file: BinaryIO, port: int, capture: Capture) -> None:
    from levada.capture.mongodb.conversation import CaptureCounts, CaptureReading, queries_in_pcap

    reading = CaptureReading(CaptureCounts())
    capture.write(queries_in_pcap(file, port, reading))
    unreadable = sum(reading.heard.unreadable.values())
    capture.tell(
        reading,
        missing=reading.missing,
        cut=reading.damaged,
        unreadable=unreadable,
        encrypted=reading.heard.encrypted,
    )


def capture_log(file: BinaryIO, capture: Capture) -> None:
    from levada.capture.json_documents import JsonReading
    from levada.capture.mongodb.log import MongoLogReading, queries_in_log

    reading = MongoLogReading(JsonReading())
    capture.write(queries_in_log(file, reading))
    capture.tell(reading, damaged=reading.json.damaged, truncated=reading.truncated)


def capture_postgres(dsn: str, capture: Capture) -> None:
    from levada.capture.postgresql.log import queries_in_statistics
    from levada.capture.postgresql.statements import StatementReading

    reading = StatementReading()
    capture.write(queries_in_statistics(dsn, reading))
    capture.tell(reading, unparsed=reading.unparsed)


def capture_postgres_log(file: BinaryIO, capture: Capture) -> None:
    from levada.capture.postgresql.log import PostgresLogReading, queries_in_postgres_log

    reading = PostgresLogReading()
    capture.write(queries_in_postgres_log(file, reading))
    capture.tell(reading, damaged=reading.lines.damaged, unparsed=reading.unparsed)


_LOOK_SECONDS = 1.0
_LINE_SECONDS = 60.0


def run_proxy(listen: tuple[str, int], to: tuple[str, int], options: dict[str, Any], json: bool) -> None:
    import uvloop

    with _checked(Path(options["out"])):
        report = uvloop.run(_run(listen, to, CaptureOptions(**options)))
    print_result(json, report, _summary)
    if not _found(report):
        raise typer.Exit(NotFound.exit_code)


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
    return _facts(report, capture, proxy, options.out)


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
                print(f"levada: {words}", file=sys.stderr, flush=True)
                said.add(words)
        looks += 1
        if looks % round(_LINE_SECONDS / _LOOK_SECONDS) == 0:
            print(_line(capture.report()), file=sys.stderr, flush=True)
        try:
            await asyncio.wait_for(ended.wait(), _LOOK_SECONDS)
        except TimeoutError:
            continue


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


def _line(report: CaptureReport) -> str:
    return f"{counted(report.written.queries)} written, {size(report.written.bytes)}"


def _facts(report: CaptureReport, capture: TrafficCapture, proxy: Proxy, out: str) -> dict[str, Any]:
    losses = _troubles(report, capture, proxy)
    return {
        "out": out,
        **msgspec.to_builtins(report),
        "connections": proxy.connections,
        "unreachable": proxy.unreachable,
        "lost_bytes": capture.lost_bytes,
        "starts": capture.starts,
        "partial": bool(losses),
        "losses": losses,
    }


def _found(facts: dict[str, Any]) -> bool:
    return bool(facts["written"]["queries"] or facts["unwritten"])


def _summary(facts: dict[str, Any]) -> None:
    words = f"{counted(facts['written']['queries'])} in {facts['out']}" if _found(facts) else "no query was found"
    print(words, file=sys.stderr)
    for words in facts["losses"]:
        print(f"partial: {words}", file=sys.stderr)
