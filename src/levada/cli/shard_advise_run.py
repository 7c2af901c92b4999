"""An advice from files: what is read, what is left out, and what that makes of the figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from levada.bulk.near import near_names
from levada.cli.printing import plural
from levada.cli.shard_advise_read import SampleReading, drawn, read_sample
from levada.cli.watching import watching
from levada.errors import LevadaError, NotFound, UsageError
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.asked import AskedQuery
from levada.sharding.asked_lines import LONGEST_LINE, LogReading, read_asked
from levada.sharding.log_statistics import ANY_FIELD, LogStatistics
from levada.sharding.sample import Sample, names_in

__all__ = ["Asked", "Result", "check_fields", "log_lines", "most_asked", "reading_notes", "run"]

_IDS = ("_id", "id")
_MOST_COMBINATIONS = 20


class Asked(NamedTuple):
    """What was asked for on the command line."""

    log: Path
    sample: Path
    shards: int
    collection: str | None
    id_field: str | None
    most_queries: int
    most_documents: int


class Result(NamedTuple):
    collection: str
    advice: Advice
    statistics: LogStatistics
    reading: LogReading
    sample_reading: SampleReading
    documents: int
    notes: tuple[str, ...]
    values: tuple[Any, ...]  # of the advised key's first field, for scripts

    @property
    def partial(self) -> bool:
        return any(note.startswith("Partial") for note in self.notes)

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


def run(asked: Asked, mutable: Collection[str], immutable: Collection[str], *, quiet: bool) -> Result:
    collection = asked.collection or most_asked(asked.log)
    reading = LogReading()
    statistics = LogStatistics()
    queries = drawn(_counted(asked.log, reading, collection, statistics), asked.most_queries)
    if not reading.taken:
        raise NotFound(_nothing(asked, reading))
    sample_reading = SampleReading()
    documents = drawn(read_sample(asked.sample, sample_reading), asked.most_documents)
    if not documents:
        raise NotFound(f"there is no document in {asked.sample}")
    check_fields(mutable, immutable, statistics, documents)
    sample = _sample(asked, statistics, documents, sample_reading)
    changes = partial(advise, mutable=mutable, immutable=immutable)
    with watching(quiet) as progress:
        advice = changes(queries, statistics, sample, asked.shards, progress=progress)
    if not advice.tried:
        raise NotFound("no key can be tried: the sample has neither an id nor a field that the queries name")
    notes = (*reading_notes(asked, reading, sample_reading), *advice.notes)
    first = advice.chosen.placement.key.fields[0]
    values = tuple(sample.columns[first].values)
    return Result(collection, advice, statistics, reading, sample_reading, sample.count, notes, values)


def log_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as log:
            while line := log.readline(LONGEST_LINE + 1):
                yield line
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None


def most_asked(log: Path) -> str:
    reading = LogReading()
    for _ in read_asked(log_lines(log), reading):
        pass
    if not reading.collections:
        raise NotFound(f"there is no query in {log}: {plural(reading.lines, 'line')}, none of which is one")
    return max(reading.collections, key=lambda name: (reading.collections[name], name))


def _counted(log: Path, reading: LogReading, collection: str, statistics: LogStatistics) -> Iterator[AskedQuery]:
    for query in read_asked(log_lines(log), reading, collection):
        statistics.add(query)
        yield query


def check_fields(
    mutable: Collection[str],
    immutable: Collection[str],
    statistics: LogStatistics,
    documents: Sequence[Mapping[str, Any]],
) -> None:
    """A name that nothing has would say nothing, and the field that was meant might lead a key."""
    asked = {*statistics.fields, *statistics.changed} - {ANY_FIELD}
    wrong = [
        (option, name)
        for option, names in (("--mutable", mutable), ("--immutable", immutable))
        for name in names
        if name not in asked
    ]
    known = asked.union(*map(names_in, documents)) if wrong else asked
    for option, name in wrong:
        if name not in known:
            raise UsageError(
                f"{option}: neither the log nor the sample has a field {name[:50]!r}; {near_names(name, known)}"
            )


def _sample(
    asked: Asked, statistics: LogStatistics, documents: Sequence[dict[str, Any]], reading: SampleReading
) -> Sample:
    for document in documents[:1000]:
        reading.names.update(dict.fromkeys(document))
    if asked.id_field is not None and asked.id_field not in reading.names:
        raise UsageError(f"--id: no document of {asked.sample} has a field {asked.id_field[:50]!r}")
    found = asked.id_field or next((name for name in _IDS if name in reading.names), "")
    return Sample(documents, fields_to_keep(statistics), found)


def reading_notes(asked: Asked, reading: LogReading, sample: SampleReading) -> Iterator[str]:
    if reading.damaged:
        yield f"Partial: {reading.damaged:,} of {reading.lines:,} lines of the log could not be read."
    if reading.elsewhere:
        others = len(reading.collections) - 1
        yield f"{reading.elsewhere:,} queries of {others:,} other collections were left out (--collection)."
    if reading.unknown:
        names = ", ".join(sorted(reading.unknown)[:5])
        yield f"Partial: operators that narrow nothing here: {names} ({sum(reading.unknown.values()):,} times)."
    if sample.damaged:
        yield f"Partial: {sample.damaged:,} of {sample.rows:,} lines of the sample hold no document."
    if sample.rows - sample.damaged > asked.most_documents:
        yield f"A draw of {asked.most_documents:,} of {sample.rows:,} documents (--documents)."
    if reading.taken > asked.most_queries:
        yield f"Keys were tried on a draw of {asked.most_queries:,} of {reading.taken:,} queries (--queries)."


def _nothing(asked: Asked, reading: LogReading) -> str:
    known = ", ".join(sorted(reading.collections)[:5]) or "none"
    return f"{asked.log} has no query of {asked.collection!r}; it has those of: {known}"
