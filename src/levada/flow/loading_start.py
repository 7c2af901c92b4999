"""Does this instance join a load that runs, or begin one?

The book lets only one begin each generation; whoever comes second joins. A load whose snapshot nobody keeps open
any more, whose columns are of another type now, or whose target lost what was written, begins again under a new
generation: half of one table and half of a later one is never published.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from levada.bulk.collecting import DuplicateKey
from levada.bulk.generations import MOST_LAYERS, LoadPlan, Manifest
from levada.bulk.ports import MapReader, MapTarget, TableSource, TaskBook
from levada.bulk.spans import KeyRange, Span
from levada.bulk.splitting import How, TableFacts, chosen_way, split
from levada.bulk.tasks import LoadRecord, LoadState, Standing
from levada.errors import LevadaError, Refused, UsageError

__all__ = ["Entered", "Splitting", "Starter"]

_SAMPLE = 20_000
_TRIES = 10


class Splitting(NamedTuple):
    how: How = How.AUTO
    task_rows: int = 50_000


class Entered(NamedTuple):
    record: LoadRecord
    offer: str
    began: bool


class Starter:
    def __init__(
        self,
        plan: LoadPlan,
        source: TableSource,
        book: TaskBook,
        target: MapTarget,
        reader: MapReader,
        *,
        splitting: Splitting,
        replace: bool = False,
    ) -> None:
        self._plan, self._source, self._book = plan, source, book
        self._target, self._reader = target, reader
        self._splitting, self._replace = splitting, replace

    def enter(self, lost: int = 0) -> Entered:
        """`lost`: a generation that cannot be gone on with."""
        for _ in range(_TRIES):
            standing = self._book.standing(self._plan.name)
            if standing is not None and self._joinable(standing) and standing.record.generation != lost:
                offer = self._adopted(standing)
                if offer is not None:
                    return Entered(standing.record, offer, began=False)
            began = self._begin(standing)
            if began is not None:
                return began
        raise LevadaError(f"load {self._plan.name} is begun again and again by others: try later")

    def _joinable(self, standing: Standing) -> bool:
        record = standing.record
        if record.state is LoadState.PUBLISHED:
            return False
        if record.plan != self._plan:
            if record.state is LoadState.RUNNING and not self._replace:
                raise Refused(_others(self._plan, record.plan, "is being loaded from"))
            return False
        if record.state is LoadState.RUNNING:
            return True
        # Where no snapshot is shared, what was done before a failure still counts.
        again = not record.snapshot and record.state is LoadState.FAILED
        return again and self._book.finish(self._plan.name, record.generation, LoadState.RUNNING, "")

    def _adopted(self, standing: Standing) -> str | None:
        """What we offer to others; None if the table that the load began with is gone."""
        record = standing.record
        if record.snapshot:
            return self._source.share([record.snapshot, *standing.offers], record.since)
        offer = self._source.share((), record.since)
        return offer if _same_kinds(record, self._source.facts()) else None

    def _begin(self, standing: Standing | None) -> Entered | None:
        published = self._published()
        layers = self._layers(published)
        since = published.newest if published is not None and layers else None
        offer, facts = self._looked_at(since)
        if published is not None and layers and not _same_kinds(published, facts):
            layers, since = (
                (),
                None,
            )  # the layers below would answer in the column's old type
            offer, facts = self._looked_at(None)
        spans = self._spans(facts)  # whatever cannot be is found before anything is written
        expected = standing.record.generation if standing is not None else 0
        generation = max(expected, published.generation if published is not None else 0) + 1
        record = LoadRecord(
            self._plan,
            generation,
            facts.key_kind,
            facts.value_kind,
            snapshot=offer,
            fingerprint=self._target.fingerprint(),
            layers=layers,
            since=since,
            newest=facts.newest,
            estimate=facts.rows,
        )
        self._target.gate(self._plan.name, generation, "open")
        if not self._book.begin(record, spans, expected):
            return None
        self._remove_leftovers(generation, published)
        return Entered(record, offer, began=True)

    def _spans(self, facts: TableFacts) -> list[Span]:
        how, task_rows = self._splitting
        way = chosen_way(facts, self._plan.collect) if how is How.AUTO else how
        if how is How.BLOCKS and self._plan.collect:
            raise UsageError("--split blocks cannot gather the rows of a key: leave it away, or --collect")
        if (how is How.MOD and facts.key_kind != "int") or (
            how is How.BLOCKS and (facts.blocks is None or not facts.unique)
        ):
            raise UsageError(f"this table cannot be split by {how}: leave --split away")
        ordered = self._source.sample(KeyRange(), _SAMPLE) if way is How.RANGES else []
        return split(facts, ordered, way, collect=self._plan.collect, task_rows=task_rows)

    def _looked_at(self, since: str | None) -> tuple[str, TableFacts]:
        offer = self._source.share((), since) or ""
        facts = self._source.facts()
        if not self._plan.collect and (key := self._source.duplicate()) is not None:
            raise DuplicateKey(key)
        return offer, facts

    def _published(self) -> Manifest | None:
        manifest = self._reader.manifest(self._plan.name)
        if manifest is not None and not self._replace and manifest.plan != self._plan:
            raise Refused(_others(self._plan, manifest.plan, "holds"))
        return manifest

    def _layers(self, published: Manifest | None) -> tuple[int, ...]:
        if self._plan.watermark is None or published is None or published.newest is None:
            return ()
        if published.plan != self._plan:  # put in its place: nothing of the other table may show through
            return ()
        return published.layers if len(published.layers) < MOST_LAYERS else ()

    def _remove_leftovers(self, generation: int, published: Manifest | None) -> None:
        """What earlier generations left that never were published, or no longer are."""
        keep = {generation, *(published.layers if published is not None else ())}
        for old in self._reader.generations(self._plan.name):
            if old < generation and old not in keep:
                self._target.remove(self._plan.name, old)


def _same_kinds(before: Manifest | LoadRecord, facts: TableFacts) -> bool:
    return (before.key_kind, before.value_kind) == (facts.key_kind, facts.value_kind)


def _others(asked: LoadPlan, plan: LoadPlan, does: str) -> str:
    """What there is instead of what is asked for."""
    gathered = " gathered" if plan.collect else ""
    other = f"another table: {plan.value}{gathered} by {plan.key} of {plan.table} in {plan.source}"
    if replace(plan, watermark=asked.watermark) == asked:
        other = f"this table {_by(plan)}, not {_by(asked)}"
    return f"{asked.name} {does} {other}. Choose another --name, or put this one in its place with --replace"


def _by(plan: LoadPlan) -> str:
    return "without --watermark" if plan.watermark is None else f"with --watermark {plan.watermark}"
