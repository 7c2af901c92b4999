"""Starting a load: joining the running one, or beginning a new generation.

The task store lets only one instance begin each generation; the others join. A load begins again under a new
generation if nobody keeps its snapshot open any more, if its columns have another type now, or if its target lost
what was written: half of one table and half of a later one is never published.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from levada.bulk.entries import DuplicateKey
from levada.bulk.protocols import MapReader, MapTarget, TableSource, TaskStore
from levada.bulk.splitting import KeyRange, Span, SplitMethod, TableFacts, chosen_way, split
from levada.bulk.tasks import MOST_LAYERS, LoadPlan, LoadRecord, LoadState, LoadStatus, Manifest
from levada.core.errors import LevadaError, Refused, UsageError

_SAMPLE = 20_000
_TRIES = 10


class Splitting(NamedTuple):
    how: SplitMethod = SplitMethod.AUTO
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
        task_store: TaskStore,
        target: MapTarget,
        reader: MapReader,
        *,
        splitting: Splitting,
        replace: bool = False,
    ) -> None:
        self._plan, self._source, self._task_store = plan, source, task_store
        self._target, self._reader = target, reader
        self._splitting, self._replace = splitting, replace

    def enter(self, lost: int = 0) -> Entered:
        """Join or begin. `lost` is a generation that cannot be continued."""
        for _ in range(_TRIES):
            status = self._task_store.status(self._plan.name)
            if status is not None and self._joinable(status) and status.record.generation != lost:
                offer = self._adopted(status)
                if offer is not None:
                    return Entered(status.record, offer, began=False)
            began = self._begin(status)
            if began is not None:
                return began
        raise LevadaError(f"load {self._plan.name} is restarted again and again by other instances: try later")

    def _joinable(self, status: LoadStatus) -> bool:
        record = status.record
        if record.state is LoadState.PUBLISHED:
            return False
        if record.plan != self._plan:
            if record.state is LoadState.RUNNING and not self._replace:
                raise Refused(_others(self._plan, record.plan, "is being loaded from"))
            return False
        if record.state is LoadState.RUNNING:
            return True
        # Without a shared snapshot, what was done before a failure still counts.
        again = not record.snapshot and record.state is LoadState.FAILED
        return again and self._task_store.finish(self._plan.name, record.generation, LoadState.RUNNING, "")

    def _adopted(self, status: LoadStatus) -> str | None:
        """The snapshot that we offer to others; None if the one that the load began with is gone."""
        record = status.record
        if record.snapshot:
            return self._source.share([record.snapshot, *status.offers], record.since)
        offer = self._source.share((), record.since)
        return offer if _same_kinds(record, self._source.facts()) else None

    def _begin(self, status: LoadStatus | None) -> Entered | None:
        published = self._published()
        layers = self._layers(published)
        since = published.newest if published is not None and layers else None
        offer, facts = self._inspect(since)
        if published is not None and layers and not _same_kinds(published, facts):
            layers, since = (), None  # the layers below would answer in the column's old type
            offer, facts = self._inspect(None)
        spans = self._spans(facts)  # impossible combinations are found before anything is written
        expected = status.record.generation if status is not None else 0
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
        self._target.fence(self._plan.name, generation, "open")
        if not self._task_store.begin(record, spans, expected):
            return None
        self._remove_leftovers(generation, published)
        return Entered(record, offer, began=True)

    def _spans(self, facts: TableFacts) -> list[Span]:
        how, task_rows = self._splitting
        if how is SplitMethod.BLOCKS and self._plan.collect:
            raise UsageError("--split blocks cannot collect the rows of a key: omit one of --split and --collect")
        if (how is SplitMethod.MOD and facts.key_kind != "int") or (
            how is SplitMethod.BLOCKS and (facts.blocks is None or not facts.unique)
        ):
            raise UsageError(f"this table cannot be split by {how}: omit --split")
        return spans_of(self._source, facts, how, collect=self._plan.collect, task_rows=task_rows)

    def _inspect(self, since: str | None) -> tuple[str, TableFacts]:
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
        if published.plan != self._plan:  # a replacement: nothing of the other table may show through
            return ()
        return published.layers if len(published.layers) < MOST_LAYERS else ()

    def _remove_leftovers(self, generation: int, published: Manifest | None) -> None:
        """Remove earlier generations that were never published, or no longer are."""
        keep = {generation, *(published.layers if published is not None else ())}
        for old in self._reader.generations(self._plan.name):
            if old < generation and old not in keep:
                self._target.remove(self._plan.name, old)


def spans_of(source: TableSource, facts: TableFacts, how: SplitMethod, *, collect: bool, task_rows: int) -> list[Span]:
    """The tasks of a table. Ranges are cut at the quantiles of a sample."""
    way = chosen_way(facts, collect) if how is SplitMethod.AUTO else how
    ordered = source.sample(KeyRange(), _SAMPLE) if way is SplitMethod.RANGES else []
    return split(facts, ordered, way, collect=collect, task_rows=task_rows)


def _same_kinds(before: Manifest | LoadRecord, facts: TableFacts) -> bool:
    return (before.key_kind, before.value_kind) == (facts.key_kind, facts.value_kind)


def _others(wanted: LoadPlan, plan: LoadPlan, does: str) -> str:
    """Explain which table or columns are there instead."""
    collected = " collected" if plan.collect else ""
    other = f"another table: {plan.value}{collected} by {plan.key} of {plan.table} in {plan.source}"
    if replace(plan, watermark=wanted.watermark) == wanted:
        other = f"this table {_by(plan)}, not {_by(wanted)}"
    return f"{wanted.name} {does} {other}. Choose another --name, or replace it with --replace"


def _by(plan: LoadPlan) -> str:
    return "without --watermark" if plan.watermark is None else f"with --watermark {plan.watermark}"
