"""How is a load put together from addresses, and what can be asked of one?"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from importlib.util import find_spec
from typing import NamedTuple

import msgspec

from levada.assemble.loading_urls import open_book, open_reader, open_source, open_target, redacted
from levada.bulk.generations import LoadPlan, Manifest, checked_name
from levada.bulk.ports import Bell, MapReader, MapTarget, TaskBook
from levada.bulk.splitting import How
from levada.bulk.tasks import LoadState, Standing
from levada.clock import SystemClock
from levada.errors import NotFound, Refused
from levada.flow.loading import Instance, Pace
from levada.flow.loading_bell import NoBell
from levada.flow.loading_run import Loaded, Patience, run_load
from levada.flow.loading_start import Splitting, Starter
from levada.flow.loading_verify import Content, content_of_map, content_of_table

__all__ = ["LoadRequest", "Verdict", "cancel_load", "load", "load_standing", "verify_load"]

log = logging.getLogger(__name__)

_LOOK = 0.5
_ROW_BYTES = 512  # of memory, for a row while its task and the one before are in hand


class LoadRequest(msgspec.Struct, frozen=True):
    """A load as it was asked for; `levada-maps/loads.json` keeps it for `status`, `resume`, `verify` and `get`."""

    source: str
    table: str
    key: str
    value: str
    name: str
    target: str
    collect: bool = False
    book: str = ""  # "": beside the map
    watermark: str | None = None
    split: How = How.AUTO
    task_rows: int = 50_000
    memory: int = 64_000_000
    rows_per_second: float = 0.0
    lease: float = 30.0
    keep_old: float = 5.0
    connections: int = 0  # that read the source at once, at most; 0: any number
    fresh: float = 0.0  # what was published so few seconds ago is not loaded again
    replace: bool = False
    wake: str = ""  # a RabbitMQ that wakes waiting instances; "": they only look

    @property
    def plan(self) -> LoadPlan:
        name = checked_name(self.name)
        return LoadPlan(name, redacted(self.source), self.table, self.key, self.value, self.collect, self.watermark)

    @property
    def most_rows(self) -> int:
        return max(1_000, self.memory // _ROW_BYTES)


class Verdict(NamedTuple):
    loaded: Content  # as it was read
    newest: Content  # as the map holds what was read
    stored: Content  # as the map is, with all its layers
    source: Content | None  # as the table is now

    @property
    def whole(self) -> bool:
        return self.newest == self.loaded

    @property
    def current(self) -> bool:
        return self.source is None or self.source == self.stored


def load(
    request: LoadRequest,
    watch: Callable[[Standing], None],
    patience: Patience | None = None,
    *,
    say: Callable[[str], object] = log.warning,
) -> Loaded:
    """Take part in a load until it is published; `say` is told of what costs time and does not end it."""
    plan, owner, wait = request.plan, _owner(), _Waiter()
    recent = _recent(request) if request.fresh else None
    if recent is not None:
        return Loaded(recent, began=False, restarts=0)
    with closing(_bell(request, wait, say)) as bell, ExitStack() as newest:
        _wait_for_room(request, bell)
        instances: list[Instance] = []

        def opened() -> tuple[Starter, Instance, TaskBook]:
            newest.close()
            source = newest.enter_context(closing(open_source(request.source, plan)))
            target = newest.enter_context(closing(open_target(request.target)))
            book = newest.enter_context(closing(open_book(request.book or request.target)))
            reader = newest.enter_context(closing(_reader_beside(request.target, target)))
            splitting = Splitting(request.split, request.task_rows)
            starter = Starter(plan, source, book, target, reader, splitting=splitting, replace=request.replace)
            pace = Pace(lease=request.lease, most_rows=request.most_rows, rows_per_second=request.rows_per_second)
            instances.append(Instance(source, book, target, SystemClock(), owner, pace=pace, wait=wait, bell=bell))
            return starter, instances[-1], book

        loaded = run_load(opened, watch, wait, patience or Patience())
        if instances[-1].published:
            newest.close()
            with suppress(KeyboardInterrupt):  # the map is published: the next load removes what is old
                _remove_old(request, wait)
        return loaded


def load_standing(request: LoadRequest) -> tuple[Standing | None, Manifest | None]:
    """What the book says of the load, and what is published."""
    with closing(open_book(request.book or request.target)) as book, closing(open_reader(request.target)) as reader:
        name = checked_name(request.name)
        return book.standing(name), reader.manifest(name)


def cancel_load(request: LoadRequest) -> int:
    """The generation that was given up: its entries are removed, what is published stays."""
    name = checked_name(request.name)
    with closing(open_book(request.book or request.target)) as book:
        standing = book.standing(name)
        if standing is None or standing.record.state is LoadState.PUBLISHED:
            raise NotFound(f"no load of {name} is under way")
        generation = standing.record.generation
        if not book.finish(name, generation, LoadState.CANCELLED, "by levada load cancel"):
            raise Refused(f"load {name} has just gone on to another generation: look again with levada load status")
        with closing(open_target(request.target)) as target:
            target.remove(name, generation)
    return generation


def verify_load(request: LoadRequest) -> Verdict:
    """`source` is None if it was not asked for."""
    name = checked_name(request.name)
    with closing(open_reader(request.target)) as reader:
        manifest = reader.manifest(name)
        if manifest is None:
            raise NotFound(f"no map {name} is published in {redacted(request.target)}")
        add = _digest_of_integers if find_spec("numpy") else None
        newest = content_of_map(reader, msgspec.structs.replace(manifest, layers=manifest.layers[:1]), add)
        stored = content_of_map(reader, manifest, add) if len(manifest.layers) > 1 else newest
    source = None
    if request.source:
        with closing(open_source(request.source, manifest.plan)) as table:
            source = content_of_table(
                table, collect=manifest.plan.collect, task_rows=request.task_rows, most_rows=request.most_rows
            )
    return Verdict(Content(manifest.keys, manifest.rows, manifest.digest), newest, stored, source)


def _digest_of_integers(keys: Sequence[int], values: Sequence[int]) -> int:
    import numpy

    from levada.adapters.bulk.packed import PackedRows

    return PackedRows(numpy.array(keys, numpy.int64), numpy.array(values, numpy.int64)).digest()


def _recent(request: LoadRequest) -> Standing | None:
    """The same line came late on this machine: others have done it."""
    with closing(open_book(request.book or request.target)) as book:
        standing = book.standing(request.name)
    if standing is None or standing.record.plan != request.plan or standing.record.ended_at is None:
        return None
    age = standing.now - standing.record.ended_at
    return standing if standing.record.state is LoadState.PUBLISHED and age < request.fresh else None


def _bell(request: LoadRequest, wait: Callable[[float], object], say: Callable[[str], object]) -> Bell:
    if not request.wake:
        return NoBell(wait)
    from levada.adapters.bulk.rabbitmq_bell import RabbitmqBell

    return RabbitmqBell(request.wake, request.name, say)


def _wait_for_room(request: LoadRequest, bell: Bell) -> None:
    """Until fewer instances read the source than may; about so, for nobody counts those who just begin."""
    if not request.connections:
        return
    with closing(open_book(request.book or request.target)) as book:
        while (standing := book.standing(request.name)) is not None and standing.record.state is LoadState.RUNNING:
            readers = sum(held > 0 for held, _, _ in standing.owners.values())
            if standing.leased - standing.expired <= 0 or readers < request.connections:
                return
            bell.wait(_LOOK)


def _reader_beside(url: str, target: MapTarget) -> MapReader:
    """An LMDB file may be opened only once in a process: there the writer reads as well."""
    beside: object = target
    return beside if hasattr(beside, "manifest") else open_reader(url)  # type: ignore[return-value]


def _remove_old(request: LoadRequest, wait: Callable[[float], object]) -> None:
    """After a while, for readers may still be in what was published before."""
    with closing(open_reader(request.target)) as reader:
        if not _old_generations(reader, request.name):
            return
    wait(request.keep_old)
    with closing(open_target(request.target)) as target, closing(_reader_beside(request.target, target)) as reader:
        for generation in _old_generations(reader, request.name):
            target.remove(request.name, generation)


def _old_generations(reader: MapReader, name: str) -> list[int]:
    manifest = reader.manifest(name)
    if manifest is None:
        return []
    kept = manifest.layers
    return [each for each in reader.generations(name) if each < manifest.generation and each not in kept]


class _Waiter:
    def __call__(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
