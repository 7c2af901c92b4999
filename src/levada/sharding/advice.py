"""Advice on a shard key: every candidate tried out, the best one, and why.

Every candidate is tried on the user's own queries and documents (`levada.sharding.evaluation`), and the one with
the best score is advised (`levada.sharding.candidates`). The paper's key and the hashed id are always in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from itertools import chain
from typing import Self

import msgspec

from levada.sharding.candidates import WAYS, Candidate, Fields, Tried, ours, papers, ranked, try_out
from levada.sharding.evaluation import Evaluator
from levada.sharding.paper import Dropped
from levada.sharding.placement import hashed_placement
from levada.sharding.queries import QueryEntry
from levada.sharding.sample import FieldDependence, FieldFacts, Sample, dependent_fields, facts_of
from levada.sharding.workload import ANY_FIELD, LogStatistics, Workload

_FEW_DOCUMENTS = 1_000
_GROWING = 0.9  # rank correlation with the order of inserts from which a field counts as growing


class NoteKind(Enum):
    """How serious a note is; the value starts its sentence."""

    REMARK = ""
    PARTIAL = "Partial: "  # the figures lack something
    WRONG = "Wrong: "  # something that must not happen


class Note(str):
    """A sentence beside the figures; it starts with the word for its kind."""

    kind: NoteKind

    def __new__(cls, words: str, kind: NoteKind = NoteKind.REMARK) -> Self:
        note = super().__new__(cls, kind.value + words)
        note.kind = kind
        return note

    @property
    def is_serious(self) -> bool:
        return self.kind is not NoteKind.REMARK


def reasons_for(ranked: Sequence[Tried], fields: Fields, shards: int) -> Iterator[str]:
    """Sentences for the first of the ranked keys, and against fields that are not in it."""
    if not ranked:
        return
    best = ranked[0]
    yield from _for_key(best, fields, shards)
    figures = best.figures
    stronger = max(ranked[1:], key=lambda each: each.figures.capacity, default=best)
    if stronger.figures.capacity > figures.capacity and not stronger.refused:
        yield _too_dear(best, stronger)
    yield (
        f"A query touches {figures.shards_per_query:.2f} of {shards} shards on average, and "
        f"{figures.single_shard:.0%} of them touch one; the busiest shard does {figures.load_max_mean:.2f} times "
        f"the mean: together they do what {figures.capacity:.1f} single nodes would."
    )
    yield from (_against_paper(best, each) for each in ranked[1:] if each.kind == "paper")
    yield from _against_fields(best, fields)


def _for_key(best: Tried, fields: Fields, shards: int) -> Iterator[str]:
    placement = best.placement
    if best.kind == "hashed-id":
        yield f"{best.key}: no key by another field that never changes does better overall."
        return
    yield _leading(best, fields)
    if len(placement.key.parts) > 1:
        after = ", ".join(each.field for each in placement.key.parts[1:])
        yield f"{after} after it: what is too much for one shard can be split by these fields."
    if placement.zones:
        one = len(placement.zones) == 1
        hot = "1 value is" if one else f"{len(placement.zones)} values are"
        yield f"{hot} too hot for one of {shards} shards, and shared by several."
    if placement.directory:
        yield f"A directory maps {placement.directory} to its shard: a query by it alone does not touch all."


def _leading(best: Tried, fields: Fields) -> str:
    part = best.placement.key.parts[0]
    facts = fields.facts[part.field]
    spread = "plain, so that ranges of it stay together"
    if part.hashed:
        spread = "hashed, so that neither frequent neighbours nor growth pile up"
    return (
        f"{part.field} leads: {fields.log.share(part.field):.0%} of the queries filter by it, it has "
        f"{facts.distinct:,} values, the most frequent in {facts.top_share:.1%} of the documents, and nothing "
        f"changes it. It is {spread}."
    )


def _too_dear(best: Tried, other: Tried) -> str:
    """The price of a key that answers more queries."""
    mine, theirs = best.figures, other.figures
    costs = [
        f"{what} pile up there ({more:.1f} times the mean on one shard, here {less:.1f})"
        for what, more, less in (
            ("inserts", theirs.insert_max_mean, mine.insert_max_mean),
            ("documents", theirs.storage_max_mean, mine.storage_max_mean),
        )
        if more > less + 0.05
    ]
    if theirs.moved > mine.moved:
        costs.append("updates move documents")
    if theirs.unsplittable > mine.unsplittable:
        costs.append("more chunks cannot be split")
    return (
        f"{other.name} would answer {theirs.capacity / mine.capacity:.2f} times as many queries, but "
        f"{', and '.join(costs) or 'is harder to run'}."
    )


def _against_paper(best: Tried, paper: Tried) -> str:
    figures = paper.figures
    return (
        f"The paper's key ({paper.key}) touches {figures.shards_per_query:.2f} shards per query, and its busiest "
        f"shard does {figures.load_max_mean:.2f} times the mean: the advised key does "
        f"{best.figures.capacity / figures.capacity:.2f} times as much."
    )


def _against_fields(best: Tried, fields: Fields) -> Iterator[str]:
    for field in sorted(fields.mutable & fields.log.fields.keys()):
        changed = fields.log.changed[field]
        by = f"{changed:,} writes change it" if changed else "it is declared mutable"
        yield f"{field} is in none of Levada's keys: {by}, and its documents would move."
    for each in fields.dependences:
        yield f"{each.known} determines {each.share:.0%} of {each.asked}: together they split little more."
    for field, facts in fields.facts.items():
        if abs(facts.monotonicity) >= _GROWING and field != best.placement.key.fields[0]:
            yield f"{field} grows with every insert: as a plain first field it would send new ones to one shard."


def notes_on(fields: Fields, workload: Workload, sample: Sample) -> Iterator[Note]:
    """What makes the figures partial."""
    if not sample.id_field:
        yield Note(
            "the sample has no id: no key is unique, and neither a hashed id nor a directory was tried.",
            NoteKind.PARTIAL,
        )
    if sample.count < _FEW_DOCUMENTS:
        yield Note(f"{sample.count:,} documents are too few to show how evenly they spread.", NoteKind.PARTIAL)
    if not workload.queries:
        yield Note("the query log has no query that looks for documents.", NoteKind.PARTIAL)
    if workload.guessed:
        share = workload.guessed / workload.queries
        yield Note(
            f"{share:.0%} of the queries lack their values; values of the sample stand for them.",
            NoteKind.PARTIAL,
        )
    for field, facts in fields.facts.items():
        if facts.mixed:
            kinds = ", ".join(f"{kind} in {count / sample.count:.1%}" for kind, count in facts.kinds.items())
            yield Note(f'{field} is of several kinds ({kinds}): 5 and "5" are different values, and live apart.')
        if facts.array:
            yield Note(f"{field} is an array in some documents: it cannot be in a key.")


_LEAST_SHARE = 0.01  # of the queries, for a field that may be in a key
_BEST = 2
_MOST_PAIRED = 8  # fields that are compared with each other
_FIRST_LOOK = 5_000  # queries, and four times as many documents: enough to see which fields can lead
Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and what is being done."""


class Advice(msgspec.Struct, frozen=True):
    """The tried keys, ranked, the advised one first. `notes` say what makes the figures partial."""

    shards: int
    tried: tuple[Tried, ...]
    fields: tuple[FieldFacts, ...]
    shares: dict[str, float]
    mutable: tuple[str, ...]
    told: tuple[FieldDependence, ...]
    dropped: tuple[Dropped, ...]  # by the paper's method
    why: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def chosen(self) -> Tried:
        return self.tried[0]

    def of_kind(self, kind: str) -> Tried | None:
        return next((each for each in self.tried if each.kind == kind), None)


def fields_to_keep(log: LogStatistics) -> list[str]:
    """The fields that a sample must hold: those that enough queries filter by."""
    return [field for field in log.by_share() if log.share(field) >= _LEAST_SHARE]


def advise(
    queries: Sequence[QueryEntry],
    log: LogStatistics,
    sample: Sample,
    shards: int,
    *,
    mutable: Collection[str] = (),
    immutable: Collection[str] = (),
    secret: bytes = b"",
    progress: Progress | None = None,
) -> Advice:
    """`log` counts the whole query log, of which `queries` may be a part. `progress` is called after each key.

    `secret` keys the hashes, where outsiders choose the values.
    """
    changed = ({field for field in log.changed if field != ANY_FIELD} - set(immutable)) | set(mutable)
    facts = {field: facts_of(sample, field) for field in sample.columns}
    dependences = dependent_fields(sample, [field for field in log.by_share() if field in facts][:_MOST_PAIRED])
    fields = Fields(log, facts, sample.id_field, frozenset(changed), tuple(dependences), secret)
    evaluator = Evaluator(Workload(queries, sample), sample)
    by_paper, found = papers(fields, evaluator, shards)
    given: list[Candidate] = []
    if fields.id_field:
        given.append(("hashed-id", hashed_placement(fields.id_field, shards, secret=secret)))
    if by_paper is not None:
        given.append(("paper", by_paper))
    first_fields = _promising(queries, sample, fields, shards)
    own = ours(fields, first_fields, evaluator, shards)
    total = len(given) + WAYS * len(first_fields)
    tried = []
    for number, candidate in enumerate(chain(given, own), 1):
        tried.append(try_out(candidate, evaluator, fields))
        if progress:
            progress(number, total, tried[-1].key)
    best_first = ranked([*tried, *_in_directories(tried, evaluator, fields)])
    return Advice(
        shards=shards,
        tried=tuple(best_first),
        fields=tuple(facts.values()),
        shares={field: log.share(field) for field in log.by_share()},
        mutable=tuple(sorted(changed)),
        told=fields.dependences,
        dropped=found.dropped,
        why=tuple(reasons_for(best_first, fields, shards)),
        notes=tuple(notes_on(fields, evaluator.workload, sample)),
    )


def _promising(queries: Sequence[QueryEntry], sample: Sample, fields: Fields, shards: int) -> list[str]:
    """The fields that lead best on a part of the log and of the sample; the whole decides between them."""
    first_fields = fields.leading()
    if len(first_fields) <= _BEST:
        return first_fields
    fewer = sample.thinned(4 * _FIRST_LOOK)
    evaluator = Evaluator(Workload(queries[:: -(-len(queries) // _FIRST_LOOK) or 1], fewer), fewer)
    tried = [try_out(each, evaluator, fields) for each in ours(fields, first_fields, evaluator, shards)]
    best = dict.fromkeys(each.placement.key.fields[0] for each in ranked(tried))
    return list(best)[:_BEST]


def _in_directories(tried: Sequence[Tried], evaluator: Evaluator, fields: Fields) -> list[Tried]:
    """The best of Levada's keys again with a directory of ids, if queries name ids."""
    use = fields.log.fields.get(fields.id_field)
    if use is None or not use.by_value:
        return []
    own = [each for each in tried if each.kind in ("hashed", "compound", "zones") and not each.refused]
    best = sorted(own, key=lambda each: -each.score)[:_BEST]
    wider = ((each.kind, msgspec.structs.replace(each.placement, directory=fields.id_field)) for each in best)
    return [try_out(candidate, evaluator, fields) for candidate in wider]
