"""A replay from files: what is read, advised, loaded and asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from levada.adapters.replay.rounds import Round
from levada.adapters.replay.schemes import Played
from levada.assemble.replaying import Replay, ReplayWish, replay, schemes_of
from levada.cli.shard_advise_read import SampleReading, drawn, read_sample
from levada.cli.shard_advise_run import Asked, check_fields, log_lines, most_asked, reading_notes
from levada.cli.watching import watching
from levada.errors import NotFound, UsageError
from levada.sharding.advice import advise
from levada.sharding.asked import AskedQuery
from levada.sharding.asked_lines import LogReading, read_asked
from levada.sharding.log_statistics import LogStatistics
from levada.sharding.sample import Sample

__all__ = ["Result", "run"]

_IDS = ("_id", "id")
_MOST_FIELDS = 64


class Result(NamedTuple):
    collection: str
    replay: Replay
    notes: tuple[str, ...]

    @property
    def partial(self) -> bool:
        return any(note.startswith(("Partial", "Wrong")) for note in self.notes)

    def facts(self) -> dict[str, Any]:
        return {
            "collection": self.collection,
            "partial": self.partial,
            "notes": self.notes,
            "queries": self.replay.queries,
            "documents": self.replay.documents,
            "clients": self.replay.clients,
            "schemes": [_facts(each) for each in self.replay.played],
            "ratios": self.replay.ratios,
        }


def run(
    asked: Asked,
    names: tuple[str, ...],
    wish: ReplayWish,
    mutable: Collection[str],
    immutable: Collection[str],
    *,
    quiet: bool,
) -> Result:
    collection = asked.collection or most_asked(asked.log)
    log_reading, sample_reading = LogReading(), SampleReading()
    queries = list(read_asked(log_lines(asked.log), log_reading, collection))
    statistics = LogStatistics.of(queries)
    if not statistics.queries:
        raise NotFound(f"{asked.log} has no query of {collection!r} that looks for documents")
    documents = drawn(read_sample(asked.sample, sample_reading), asked.most_documents)
    if not documents:
        raise NotFound(f"there is no document in {asked.sample}")
    check_fields(mutable, immutable, statistics, documents)
    sample = Sample(documents, statistics.by_share()[:_MOST_FIELDS], _id_of(asked, documents))
    with watching(quiet) as progress:
        trial = drawn(queries, asked.most_queries)
        advice = advise(
            trial, statistics, sample, max(asked.shards, 2), mutable=mutable, immutable=immutable, progress=progress
        )
        if not advice.tried:
            raise NotFound("no key can be tried: the sample has neither an id nor a field that the queries name")
        schemes, missing = schemes_of(advice, names, sample.id_field)
        done = replay(schemes, queries, documents, sample, wish, progress=progress)
    read = [note for note in reading_notes(asked, log_reading, sample_reading) if "--queries" not in note]
    return Result(collection, done, (*read, *missing, *_drawn_note(queries, done), *done.notes))


def _id_of(asked: Asked, documents: list[dict[str, Any]]) -> str:
    names = {name for document in documents[:1000] for name in document}
    if asked.id_field is not None and asked.id_field not in names:
        raise UsageError(f"--id: no document of {asked.sample} has a field {asked.id_field[:50]!r}")
    return asked.id_field or next((name for name in _IDS if name in names), "")


def _drawn_note(queries: list[AskedQuery], done: Replay) -> list[str]:
    total = sum(query.times for query in queries if query.op != "insert")
    return [f"{done.queries:,} of {total:,} queries were replayed (--queries)."] if done.queries < total else []


def _facts(played: Played) -> dict[str, Any]:
    predicted, load = played.predicted
    return {
        "scheme": played.scheme,
        "key": played.key,
        "shards": played.shards,
        "partial": played.partial,
        "predicted": {"shards_per_query": predicted, "load_max_mean": load},
        "documents": played.documents,
        "sizes": played.sizes,
        "rounds": [_round_facts(each) for each in played.rounds],
    }


def _round_facts(found: Round) -> dict[str, Any]:
    return {
        "name": found.name,
        "seconds": found.seconds,
        "queries": found.queries,
        "partial": found.partial,
        "shards_per_query": found.shards_per_query,
        "load_max_mean": found.load_max_mean,
        "touches": found.touches,
        "found": found.found,
        "lookups": found.lookups,
        "cpu": found.cpu,
        "shard_cpu": found.shard_cpu,
        "memory": found.memory,
        "busy": found.busy,
        "client_cpu": found.client_cpu,
    }
