"""Shard key advice from files: captured queries and a sample of documents.

Files are read as far as possible: half lines and lines without a document are counted. Of too many documents an
even sample is kept, in their order. MongoDB's extended JSON (`$oid`, `$date`, `$numberLong`) is read as the values
it represents.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import msgspec

from levada.bulk.sources.csv import allow_long_fields
from levada.core.errors import LevadaError, MissingExtra, NotFound, UsageError
from levada.core.suggestions import near_names
from levada.core.words import plural
from levada.sharding.advice import Advice, Note, NoteKind, Progress, advise, fields_to_keep
from levada.sharding.queries import LONGEST_LINE, LogReading, QueryEntry, read_queries
from levada.sharding.sample import Sample, names_in
from levada.sharding.workload import ANY_FIELD, LogStatistics

_LONGEST_LINE = 16 << 20
_MOST_LEVELS = 50
_PARQUET = (".parquet", ".pq")
Drawn = TypeVar("Drawn")


@dataclass(slots=True)
class SampleReading:
    """What a sample holds: `rows`, of which `damaged` are no document, and the `names` of their fields."""

    rows: int = 0
    damaged: int = 0
    names: dict[str, None] = field(default_factory=dict)


def drawn(items: Iterable[Drawn], most: int) -> list[Drawn]:
    """All items, or an even sample of `most` of them, in their order (Vitter's reservoir)."""
    chance = Random(0)  # noqa: S311  the same draw every time
    iterator = iter(items)
    kept = list(enumerate(islice(iterator, most)))
    for number, item in enumerate(iterator, most):
        place = chance.randrange(number + 1)
        if place < most:
            kept[place] = (number, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]


def read_sample(path: Path, reading: SampleReading) -> Iterator[dict[str, Any]]:
    """The documents of a file, by its name's suffix."""
    if not path.is_file():
        raise LevadaError(f"there is no sample of documents {path}")
    suffix = path.suffix.lower()
    read = _rows_of_parquet if suffix in _PARQUET else _rows_of_csv if suffix == ".csv" else _rows_of_lines
    try:
        for row in read(path):
            reading.rows += 1
            if isinstance(row, dict):
                yield row
            else:
                reading.damaged += 1
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None


def _rows_of_lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as lines:
        while line := lines.readline(_LONGEST_LINE):
            if line.strip():
                yield _document(line)


def _document(line: bytes) -> Any:
    try:
        return plain(msgspec.json.decode(line))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def plain(value: Any, level: int = 0) -> Any:
    """Extended JSON as the values it represents."""
    if isinstance(value, dict):
        if len(value) == 1 and (name := next(iter(value)))[:1] == "$":
            return _extended(name, value[name])
        if level < _MOST_LEVELS:
            return {name: plain(each, level + 1) for name, each in value.items()}
    return value


def _extended(name: str, value: Any) -> Any:
    try:
        if name in ("$numberLong", "$numberInt"):
            return int(value)
        if name == "$numberDouble":
            return float(value)
        if name == "$date" and isinstance(value, dict):
            value = value.get("$numberLong")
            return datetime.fromtimestamp(int(value) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        pass
    return value


def _rows_of_csv(path: Path) -> Iterator[Any]:
    allow_long_fields()
    with path.open(encoding="utf-8", errors="replace", newline="") as text:
        try:
            for row in csv.DictReader(text):
                whole = None not in row and None not in row.values()  # a half line has fewer or more cells
                yield {name: _cell(cell) for name, cell in row.items() if cell != ""} if whole else None
        except csv.Error as error:
            raise UsageError(f"{path} is no CSV: {error}") from None


def _cell(text: str) -> Any:
    """A number if writing it again gives the same text; `007` is a text."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text and math.isfinite(value):
            return value
    return text


def _rows_of_parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=4096):
                yield from batch.to_pylist()
    except (ArrowException, ValueError) as error:
        raise UsageError(f"{path} is not a Parquet file: {str(error)[:100]}") from None


_IDS = ("_id", "id")
_MOST_COMBINATIONS = 20


class AdviceRequest(NamedTuple):
    """The options of the command line."""

    log: Path
    sample: Path
    shards: int
    collection: str | None
    id_field: str | None
    most_queries: int
    most_documents: int


class AdviceResult(NamedTuple):
    """Advice, and what was read for it."""

    collection: str
    advice: Advice
    statistics: LogStatistics
    reading: LogReading
    sample_reading: SampleReading
    documents: int
    notes: tuple[Note, ...]
    values: tuple[Any, ...]  # of the advised key's first field, for scripts

    @property
    def partial(self) -> bool:
        return any(note.kind is NoteKind.PARTIAL for note in self.notes)

    def facts(self) -> dict[str, Any]:
        common = self.statistics.combinations.most_common(_MOST_COMBINATIONS)
        total = max(self.statistics.queries, 1)
        return {
            "collection": self.collection,
            "partial": self.partial,
            "notes": self.notes,
            "queries": self.statistics.queries,
            "documents": self.documents,
            "log": self.reading,
            "operations": self.statistics.operations,
            "changed": self.statistics.changed,
            "combinations": [{"fields": fields, "share": times / total} for fields, times in common],
            "operators": {field: use.operators for field, use in self.statistics.fields.items()},
            "advice": self.advice,
        }


def run(
    request: AdviceRequest,
    mutable: Collection[str],
    immutable: Collection[str],
    *,
    progress: Progress | None = None,
) -> AdviceResult:
    collection = request.collection or most_queried(request.log)
    reading = LogReading()
    statistics = LogStatistics()
    queries = drawn(_counted(request.log, reading, collection, statistics), request.most_queries)
    if not reading.taken:
        known = ", ".join(sorted(reading.collections)[:5]) or "none"
        raise NotFound(f"{request.log} has no query of {request.collection!r}; it has queries of: {known}")
    advice, sample, _, sample_reading = advised(
        request, queries, statistics, fields_to_keep(statistics), mutable, immutable, progress
    )
    notes = (*reading_notes(request, reading, sample_reading), *advice.notes)
    first = advice.chosen.placement.key.fields[0]
    values = tuple(sample.columns[first].values)
    return AdviceResult(collection, advice, statistics, reading, sample_reading, sample.count, notes, values)


def advised(
    request: AdviceRequest,
    queries: Sequence[QueryEntry],
    statistics: LogStatistics,
    fields: Sequence[str],
    mutable: Collection[str],
    immutable: Collection[str],
    progress: Progress | None,
) -> tuple[Advice, Sample, list[dict[str, Any]], SampleReading]:
    """Advice for these queries on the sample of the request, of whose documents these `fields` are kept."""
    documents, reading = read_documents(request)
    check_fields(mutable, immutable, statistics, documents)
    sample = Sample(documents, fields, id_field(request, reading))
    advice = advise(
        queries, statistics, sample, request.shards, mutable=mutable, immutable=immutable, progress=progress
    )
    if not advice.tried:
        raise NotFound("no key can be tried: the sample has neither an id nor a field that the queries name")
    return advice, sample, documents, reading


def log_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as log:
            while line := log.readline(LONGEST_LINE + 1):
                yield line
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None


def most_queried(log: Path) -> str:
    reading = LogReading()
    for _ in read_queries(log_lines(log), reading):
        pass
    if not reading.collections:
        raise NotFound(f"there is no query in {log}: {plural(reading.lines, 'line')}, none of which is one")
    return max(reading.collections, key=lambda name: (reading.collections[name], name))


def _counted(log: Path, reading: LogReading, collection: str, statistics: LogStatistics) -> Iterator[QueryEntry]:
    for query in read_queries(log_lines(log), reading, collection):
        statistics.add(query)
        yield query


def check_fields(
    mutable: Collection[str],
    immutable: Collection[str],
    statistics: LogStatistics,
    documents: Sequence[Mapping[str, Any]],
) -> None:
    """Refuse field names that nothing has: they would have no effect, and the intended field might lead a key."""
    named = {*statistics.fields, *statistics.changed} - {ANY_FIELD}
    wrong = [
        (option, name)
        for option, names in (("--mutable", mutable), ("--immutable", immutable))
        for name in names
        if name not in named
    ]
    known = named.union(*map(names_in, documents)) if wrong else named
    for option, name in wrong:
        if name not in known:
            raise UsageError(
                f"{option}: neither the log nor the sample has a field {name[:50]!r}; {near_names(name, known)}"
            )


def read_documents(request: AdviceRequest) -> tuple[list[dict[str, Any]], SampleReading]:
    """An even sample of the documents, and the names of their fields."""
    reading = SampleReading()
    documents = drawn(read_sample(request.sample, reading), request.most_documents)
    if not documents:
        raise NotFound(f"there is no document in {request.sample}")
    for document in documents[:1000]:
        reading.names.update(dict.fromkeys(document))
    return documents, reading


def id_field(request: AdviceRequest, reading: SampleReading) -> str:
    """The field with the id of a document; "" if there is none."""
    if request.id_field is not None and request.id_field not in reading.names:
        raise UsageError(f"--id: no document of {request.sample} has a field {request.id_field[:50]!r}")
    return request.id_field or next((name for name in _IDS if name in reading.names), "")


def reading_notes(
    request: AdviceRequest, reading: LogReading, sample: SampleReading, *, with_queries: bool = True
) -> Iterator[Note]:
    """Notes on what was read; `with_queries` adds that keys were tried on a sample of the queries."""
    if reading.damaged:
        yield Note(f"{reading.damaged:,} of {reading.lines:,} lines of the log could not be read.", NoteKind.PARTIAL)
    if reading.elsewhere:
        others = len(reading.collections) - 1
        yield Note(f"{reading.elsewhere:,} queries of {others:,} other collections were left out (--collection).")
    if reading.unknown:
        names = ", ".join(sorted(reading.unknown)[:5])
        yield Note(
            f"operators that do not prune here: {names} ({sum(reading.unknown.values()):,} times).",
            NoteKind.PARTIAL,
        )
    if sample.damaged:
        yield Note(f"{sample.damaged:,} of {sample.rows:,} lines of the sample are not documents.", NoteKind.PARTIAL)
    if sample.rows - sample.damaged > request.most_documents:
        yield Note(f"A sample of {request.most_documents:,} of {sample.rows:,} documents (--documents).")
    if with_queries and reading.taken > request.most_queries:
        yield Note(f"Keys were tried on a sample of {request.most_queries:,} of {reading.taken:,} queries (--queries).")
