"""A capture from a file or a server's statistics: read to its end, written, and told about."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import typer

from levada.adapters.asked_file import AskedWriter
from levada.cli.options import print_json
from levada.cli.shard_capture_options import check_sample, counted, value_rule
from levada.errors import LevadaError, NotFound, UsageError
from levada.sharding.asked import AskedQuery

__all__ = [
    "Capture",
    "capture_log",
    "capture_pcap",
    "capture_postgres",
    "capture_postgres_log",
    "capturing",
    "writing",
]

_STDOUT = "-"


class Capture:
    """Where queries go, and what is to be said of them at the end."""

    def __init__(self, writer: AskedWriter) -> None:
        self._writer = writer
        self.facts: dict[str, Any] = {}
        self.losses: list[str] = []  # sentences; any of them makes the result a partial one

    def write(self, queries: Iterable[AskedQuery]) -> None:
        for query in queries:
            self._writer.write(query)

    def tell(self, reading: msgspec.Struct, **losses: int | str) -> None:
        """What the reader counted; `losses` are those of its figures that mean something is missing, by words."""
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
    """The file to read and where its queries go; says at the end what came of it."""
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
def writing(
    out: str, values: str, hash_key: Path | None, sample: float, force: bool, json: bool
) -> Iterator[Capture]:
    from levada.adapters.exports.whole_file import standard_output, whole_file

    check_sample(sample)
    rule = value_rule(values, hash_key)
    if json and out == _STDOUT:
        raise UsageError("--json reports on a file: name one with --out FILE")
    with standard_output(sys.stdout.buffer) if out == _STDOUT else whole_file(Path(out), force=force) as target:
        writer = AskedWriter(target, rule, sample)
        capture = Capture(writer)
        yield capture
        if not writer.written.queries and out != _STDOUT:
            raise NotFound(_nothing(capture))  # and no file appears
    _say(capture, writer, out, json)


def _nothing(capture: Capture) -> str:
    return "; ".join(["no query was found", *capture.losses])


def _say(capture: Capture, writer: AskedWriter, out: str, json: bool) -> None:
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
    from levada.adapters.mongodb.conversation import Heard
    from levada.adapters.mongodb.from_pcap import CaptureReading, asked_in_pcap

    reading = CaptureReading(Heard())
    capture.write(asked_in_pcap(file, port, reading))
    unreadable = sum(reading.heard.unreadable.values())
    capture.tell(
        reading,
        missing=reading.missing,
        cut=reading.damaged,
        unreadable=unreadable,
        encrypted=reading.heard.encrypted,
    )


def capture_log(file: BinaryIO, capture: Capture) -> None:
    from levada.adapters.json_documents import JsonReading
    from levada.adapters.mongodb.from_log import MongoLogReading, asked_in_log

    reading = MongoLogReading(JsonReading())
    capture.write(asked_in_log(file, reading))
    capture.tell(reading, damaged=reading.json.damaged, truncated=reading.truncated)


def capture_postgres(dsn: str, capture: Capture) -> None:
    from levada.adapters.postgres_queries.from_statistics import StatisticsReading, asked_in_statistics

    reading = StatisticsReading()
    capture.write(asked_in_statistics(dsn, reading))
    capture.tell(reading, unparsed=reading.unparsed)


def capture_postgres_log(file: BinaryIO, capture: Capture) -> None:
    from levada.adapters.json_documents import JsonReading
    from levada.adapters.postgres_queries.from_log import PostgresLogReading, asked_in_postgres_log

    reading = PostgresLogReading(JsonReading())
    capture.write(asked_in_postgres_log(file, reading))
    capture.tell(reading, damaged=reading.lines.damaged, unparsed=reading.unparsed)
