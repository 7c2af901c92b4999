"""Which shard key suits what is really asked, and why?

Every candidate is tried on the user's own queries and documents (`levada.sharding.evaluation`), and the best by its
score is advised (`levada.sharding.scoring`). The paper's key and the hashed id are always in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from levada.sharding.asked import AskedQuery
from levada.sharding.candidates import WAYS, Candidate, Fields, hashed_id, ours, papers, with_directory
from levada.sharding.evaluation import Evaluator
from levada.sharding.log_statistics import ANY_FIELD, LogStatistics
from levada.sharding.paper import Dropped
from levada.sharding.sample import Sample
from levada.sharding.sample_statistics import FieldFacts, Told, decided, facts_of
from levada.sharding.scoring import Tried, ranked, try_out
from levada.sharding.telling import notes_on, reasons_for
from levada.sharding.workload import Workload

__all__ = ["Advice", "advise", "fields_to_keep"]

_LEAST_ASKED = 0.01
_BEST = 2
_MOST_PAIRED = 8  # fields that are compared with each other
_FIRST_LOOK = 5_000  # queries, and four times as many documents: enough to see which fields may lead


Progress = Callable[[int, int, str], None]


class Advice(msgspec.Struct, frozen=True):
    """`tried` are ranked, the advised one first; `notes` say what makes the figures partial."""

    shards: int
    tried: tuple[Tried, ...]
    fields: tuple[FieldFacts, ...]
    shares: dict[str, float]
    mutable: tuple[str, ...]
    told: tuple[Told, ...]  # by one field of another
    dropped: tuple[Dropped, ...]  # by the paper's method
    why: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def chosen(self) -> Tried:
        return self.tried[0]

    def of_kind(self, kind: str) -> Tried | None:
        return next((each for each in self.tried if each.kind == kind), None)


def fields_to_keep(log: LogStatistics) -> list[str]:
    """The fields of which a sample must tell: those that are asked for often enough to be in a key."""
    return [field for field in log.by_share() if log.share(field) >= _LEAST_ASKED]


def advise(
    asked: Sequence[AskedQuery],
    log: LogStatistics,
    sample: Sample,
    shards: int,
    *,
    mutable: Collection[str] = (),
    immutable: Collection[str] = (),
    secret: bytes = b"",
    progress: Progress | None = None,
) -> Advice:
    """`log` counts the whole log, of which `asked` may be a part; `progress` is told of each key that was tried.

    `secret` keys the hashes, where outsiders pick the values.
    """
    changed = ({field for field in log.changed if field != ANY_FIELD} - set(immutable)) | set(mutable)
    facts = {field: facts_of(sample, field) for field in sample.columns}
    told = decided(sample, [field for field in log.by_share() if field in facts][:_MOST_PAIRED])
    fields = Fields(log, facts, sample.id_field, changed, told, secret)
    evaluator = Evaluator(Workload(asked, sample), sample)
    by_paper, found = papers(fields, evaluator, shards)
    given = [each for each in (hashed_id(fields, shards), by_paper) if each is not None]
    first_fields = _promising(asked, sample, fields, shards)
    own = ours(fields, first_fields, evaluator, shards)
    total = len(given) + WAYS * len(first_fields)
    tried = list(_watched((try_out(each, evaluator, fields) for each in chain(given, own)), total, progress))
    best_first = ranked([*tried, *_in_directories(tried, evaluator, fields)])
    return Advice(
        shards=shards,
        tried=tuple(best_first),
        fields=tuple(facts.values()),
        shares={field: log.share(field) for field in log.by_share()},
        mutable=tuple(sorted(changed)),
        told=tuple(told),
        dropped=found.dropped,
        why=tuple(reasons_for(best_first, fields, shards)),
        notes=tuple(notes_on(fields, evaluator.workload, sample)),
    )


def _watched(tried: Iterable[Tried], total: int, progress: Progress | None) -> Iterator[Tried]:
    for number, each in enumerate(tried, 1):
        if progress:
            progress(number, total, each.key)
        yield each


def _promising(asked: Sequence[AskedQuery], sample: Sample, fields: Fields, shards: int) -> list[str]:
    """The fields that lead best on a part of the log and of the sample; the whole then decides."""
    first_fields = fields.leading()
    if len(first_fields) <= _BEST:
        return first_fields
    fewer = sample.thinned(4 * _FIRST_LOOK)
    evaluator = Evaluator(Workload(asked[:: -(-len(asked) // _FIRST_LOOK) or 1], fewer), fewer)
    tried = [try_out(each, evaluator, fields) for each in ours(fields, first_fields, evaluator, shards)]
    best = dict.fromkeys(each.placement.key.fields[0] for each in ranked(tried))
    return list(best)[:_BEST]


def _in_directories(tried: Sequence[Tried], evaluator: Evaluator, fields: Fields) -> list[Tried]:
    """The best of ours once more, with a directory of ids, if ids are asked for by value."""
    use = fields.log.fields.get(fields.id_field)
    if use is None or not use.by_value:
        return []
    own = [each for each in tried if each.kind in ("hashed", "compound", "zones") and not each.refused]
    best = sorted(own, key=lambda each: -each.score)[:_BEST]
    wider = (with_directory(Candidate(each.kind, each.placement), fields.id_field) for each in best)
    return [try_out(candidate, evaluator, fields) for candidate in wider]
