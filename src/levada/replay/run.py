"""A whole replay: reading, advice, loading, queries and comparison."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from levada.capture.advice import AdviceRequest, advised, drawn, log_lines, most_queried, reading_notes
from levada.core.clock import SystemClock
from levada.core.errors import NotFound
from levada.replay.questions import QuestionWriter, ValueFiller, evenly_drawn
from levada.replay.schemes import Played, Ratios, Rounds, Scheme, compared, differences, play
from levada.replay.servers import Servers, TableLayout
from levada.sharding.advice import Advice, Note, NoteKind, Progress
from levada.sharding.placement import KeyPart, Placement, Ranges, ShardKey
from levada.sharding.queries import LogReading, QueryEntry, read_queries
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics

SCHEMES = ("none", "id", "paper", "ours")
_MOST_FIELDS = 64
_KINDS = {"id": "hashed-id", "paper": "paper"}
_NO_KEY = {
    "id": "The documents have no id that could be hashed: scheme id is left out.",
    "paper": "The paper's method finds no key here: scheme paper is left out.",
}


class ReplayOptions(msgspec.Struct, frozen=True):
    """`limit`: the number of documents that a query returns if the log does not say."""

    targets: tuple[str, ...]
    queries: int = 80_000
    clients: int = 4
    rounds: tuple[str, ...] = ("cold", "warm")
    limit: int = 20
    keep: bool = False
    force: bool = False


class Replay(msgspec.Struct, frozen=True):
    queries: int
    documents: int
    clients: int
    played: tuple[Played, ...]
    ratios: tuple[Ratios, ...]
    notes: tuple[Note, ...]

    @property
    def partial(self) -> bool:
        return any(note.is_serious for note in self.notes)


def schemes_of(advice: Advice, names: Sequence[str], id_field: str) -> tuple[list[Scheme], list[Note]]:
    """The schemes of these names with what the evaluator predicts, and a sentence for each that is impossible."""
    found: list[Scheme] = []
    missing: list[Note] = []
    for name in names:
        if name == "none":
            key = ShardKey((KeyPart(id_field or advice.chosen.placement.key.fields[0]),))
            found.append(Scheme(name, "one server", Placement(key, Ranges((), (0,)), 1), (1.0, 1.0)))
            continue
        tried = advice.chosen if name == "ours" else advice.of_kind(_KINDS[name])
        if tried is None:
            missing.append(Note(_NO_KEY[name]))
        else:
            predicted = (tried.figures.shards_per_query, tried.figures.load_max_mean)
            found.append(Scheme(name, tried.name, tried.placement, predicted))
    return found, missing


def replay(
    schemes: Sequence[Scheme],
    queries: Sequence[QueryEntry],
    documents: Sequence[dict[str, Any]],
    sample: Sample,
    replay_options: ReplayOptions,
    *,
    restart: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Replay queries on each scheme. `sample` holds the queried fields of `documents`; `restart` is for one's own
    servers."""
    drawn = evenly_drawn(queries, replay_options.queries)
    filler = ValueFiller(sample)
    filled = [filler.fill(query) for query in drawn]
    arrays = [name for name, column in sample.columns.items() if "array" in column.kinds()]
    fields = [name for name in sample.columns if name not in arrays][:_MOST_FIELDS]
    layout = TableLayout.of(fields, filled, sample.id_field)
    writer = QuestionWriter(layout.columns, replay_options.limit)
    questions = [writer.write(query) for query in filled]
    work = Rounds(documents, layout, questions, replay_options.rounds, replay_options.clients)
    servers = Servers(replay_options.targets)
    servers.prepare(force=replay_options.force)
    clock, played = SystemClock(), []
    try:
        for scheme in schemes:
            played.append(play(scheme, work, servers, clock, restart=restart, progress=progress))
            if not replay_options.keep:
                servers.forget(scheme.name)
    finally:
        if not replay_options.keep:
            servers.drop()
    notes = [*_log_notes(len(drawn), filler, writer.loosened, arrays), *_notes(played, servers, replay_options)]
    ratios = compared(played, "warm" if "warm" in replay_options.rounds else "cold")
    return Replay(len(drawn), len(documents), replay_options.clients, tuple(played), tuple(ratios), tuple(notes))


def _log_notes(drawn: int, filler: ValueFiller, loosened: int, arrays: Sequence[str]) -> Iterator[Note]:
    if filler.guessed:
        yield Note(
            f"{filler.guessed:,} of {drawn:,} queries name values that the log does not hold (dropped or "
            "hashed); those of documents of the sample stood for them, and for a range nothing did.",
            NoteKind.PARTIAL,
        )
    if filler.renamed:
        yield Note(f"{filler.renamed:,} queries name an id that the sample does not hold; the next one stood for it.")
    if loosened:
        yield Note(f"{loosened:,} queries have a condition that SQL cannot express: they found more.", NoteKind.PARTIAL)
    if arrays:
        yield Note(f"{', '.join(arrays[:5])}: arrays, of which the replay does not ask.", NoteKind.PARTIAL)


def _notes(played: Sequence[Played], servers: Servers, replay_options: ReplayOptions) -> Iterator[Note]:
    for words in dict.fromkeys([*servers.away.values(), *(words for each in played for words in each.away)]):
        yield Note(f"{words}.", NoteKind.PARTIAL)
    for each in played:
        for found in each.rounds:
            if found.partial:
                yield Note(
                    f"{each.scheme} ({found.name}): {found.partial:,} of {found.queries:,} queries were "
                    "not answered by every shard that they need.",
                    NoteKind.PARTIAL,
                )
            for words, times in islice(found.troubles.items(), 3):
                yield Note(f"{each.scheme} ({found.name}): {words} ({times:,} times).", NoteKind.PARTIAL)
    yield from differences(played)
    if replay_options.keep:
        yield Note("The tables are kept (--keep): drop the schema levada_replay when you have done with it.")


class ReplayResult(NamedTuple):
    collection: str
    replay: Replay
    notes: tuple[Note, ...]

    @property
    def partial(self) -> bool:
        return any(note.is_serious for note in self.notes)

    def facts(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("collection", "partial", "notes")},
            **{name: getattr(self.replay, name) for name in ("queries", "documents", "clients")},
            "schemes": [_facts(each) for each in self.replay.played],
            "ratios": self.replay.ratios,
        }


def run(
    request: AdviceRequest,
    names: tuple[str, ...],
    replay_options: ReplayOptions,
    mutable: Collection[str],
    immutable: Collection[str],
    *,
    progress: Progress | None = None,
) -> ReplayResult:
    collection = request.collection or most_queried(request.log)
    log_reading = LogReading()
    queries = list(read_queries(log_lines(request.log), log_reading, collection))
    statistics = LogStatistics.of(queries)
    if not statistics.queries:
        raise NotFound(f"{request.log} has no query of {collection!r} that looks for documents")
    fields, trial = statistics.by_share()[:_MOST_FIELDS], drawn(queries, request.most_queries)
    request = request._replace(shards=max(request.shards, 2))
    advice, sample, documents, sample_reading = advised(
        request, trial, statistics, fields, mutable, immutable, progress
    )
    schemes, missing = schemes_of(advice, names, sample.id_field)
    done = replay(schemes, queries, documents, sample, replay_options, progress=progress)
    notes = [*reading_notes(request, log_reading, sample_reading, with_queries=False), *missing]
    total = sum(query.times for query in queries if query.op != "insert")
    if done.queries < total:
        notes.append(Note(f"{done.queries:,} of {total:,} queries were replayed (--queries)."))
    return ReplayResult(collection, done, (*notes, *done.notes))


_SCHEME_FACTS = ("scheme", "key", "shards", "partial", "predicted", "documents", "sizes", "rounds")
_ROUND_FACTS = (
    "name", "seconds", "queries", "partial", "shards_per_query", "load_max_mean", "touches", "found", "lookups", "cpu",
    "shard_cpu", "memory", "busy", "client_cpu",
)  # fmt: skip


def _facts(played: Played) -> dict[str, Any]:
    facts = {name: getattr(played, name) for name in _SCHEME_FACTS}
    facts["predicted"] = dict(zip(("shards_per_query", "load_max_mean"), played.predicted, strict=True))
    facts["rounds"] = [{name: getattr(each, name) for name in _ROUND_FACTS} for each in played.rounds]
    return facts
