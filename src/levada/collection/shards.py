"""Shards of a collection: statistics, advice, and moving to other shards."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import cycle, islice
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from levada.core.clock import make_clock
from levada.core.errors import Refused, StoreAway, StoreLocked, UsageError
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.core.records import CollectionStats
from levada.core.search_records import Query
from levada.sharding.advice import advise
from levada.sharding.candidates import Tried
from levada.sharding.evaluation import Evaluator, PlacementFigures
from levada.sharding.page_keys import KEYS, page_placement, page_values
from levada.sharding.placement import Placement, Ranges, resized_ranges
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, read_queries
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics, Workload
from levada.store.base import Shard, Store, StoreLimits
from levada.store.moving_lock import only_mover_anywhere
from levada.store.opening import make_collection_name, open_shard, places_for, plan_of, writing_plan
from levada.store.reading import OpenedCollection, open_collection
from levada.store.sharded.absent import EmptyShard
from levada.store.sharded.forgetting import share_tombstones
from levada.store.sharded.plan import PlacementRecord, PlanFile, ShardPlace, ShardPlan, new_record
from levada.store.sharded.remote import answers
from levada.store.sharded.resharding import Moved, begin_move, finish_move, move_pages, turn_back

if TYPE_CHECKING:
    from levada.store.postgresql.citus import CitusShards as CitusShards

LEAST_ASKED = 20  # questions: fewer say nothing
_MOST_QUERIES = 20_000
_MOST_PAGES = 3_000
_FIELDS = ("site", "section", "url")
_AT_LEAST = 4  # shards that a key is advised for, where there is only one so far


class OwnShard(msgspec.Struct, frozen=True):
    number: int
    where: str  # its folder, or its server without user and password
    pages: int
    bytes: int
    trouble: str = ""  # why it cannot be reached, and since when


class OwnShards(msgspec.Struct, frozen=True):
    key: str
    moving: bool
    shards: tuple[OwnShard, ...]
    ranges: tuple[tuple[float, int], ...]  # share of the hashed keys, and their shard, in order


class OwnAdvice(msgspec.Struct, frozen=True):
    questions: int
    shards: int
    present: PlacementFigures
    present_key: str
    advised: PlacementFigures
    advised_key: str
    why: tuple[str, ...]


def own_shards(collection: OpenedCollection) -> OwnShards:
    file = plan_of(collection.folder)
    now = collection.clock.now()
    if file is None:
        stats = collection.store.stats(now)
        only = OwnShard(0, "one file", stats.stored, stats.bytes)
        return OwnShards("none: one shard", False, (only,), ((1.0, 0),))
    with closing(file):
        record = file.read()
    known = _stats_of(collection.store.shards, now)
    away = collection.store.away
    shards = []
    for number, (place, _) in enumerate(zip(record.shards, collection.store.shards, strict=False)):
        where = _shown(place)
        stats = known.get(number, CollectionStats())
        shards.append(OwnShard(number, where, stats.stored, stats.bytes, str(away.get(number, ""))))
    placement = record.plan.following or record.plan.current
    # By the first eight bytes of the hash; a bound within one hash is a range of no width.
    cuts = [int.from_bytes(bound[1:9].ljust(8, b"\0"), "big") / 2**64 for bound in placement.ranges.bounds]
    ends = zip([0.0, *cuts], [*cuts, 1.0], placement.ranges.owners, strict=True)
    ranges = tuple((high - low, owner) for low, high, owner in ends)
    return OwnShards(str(placement.key), record.plan.following is not None, tuple(shards), ranges)


def _stats_of(shards: Sequence[Store], now: float) -> dict[int, CollectionStats]:
    with suppress(StoreAway):
        return answers(dict(enumerate(cast("Sequence[Shard]", shards))), lambda _, shard: shard.stats(now))
    return {}


def own_advice(collection: OpenedCollection, log: Path) -> OwnAdvice | None:
    """None where too little was asked, or nothing is stored."""
    present = _present(collection)
    shards = max(present.shards, 2)
    looked = _look(collection, log)
    if looked is None:
        return None
    asked, sample = looked
    chosen, why = _advised(asked, sample, shards, present.key.secret)
    figures = Evaluator(Workload(asked, sample), sample).figures(present)
    return OwnAdvice(len(asked), shards, figures, str(present.key), chosen.figures, str(chosen.placement.key), why)


def own_placement(collection: OpenedCollection, log: Path, shards: int | None) -> Placement:
    """Where the pages would lie best, by what was asked; `Refused` where too little was."""
    looked = _look(collection, log)
    if looked is None:
        raise Refused(
            f"too little was asked to advise a key: at least {LEAST_ASKED} questions are needed, and {_AT_LEAST} "
            "pages. 'levada serve --capture' and 'levada search --capture' write down what is asked"
        )
    asked, sample = looked
    present = _present(collection)
    count = shards or max(len(set(present.ranges.owners)), 2)
    secret = present.key.secret or token_bytes(16)
    return _advised(asked, sample, count, secret)[0].placement


def _present(collection: OpenedCollection) -> Placement:
    file = plan_of(collection.folder)
    if file is None:
        return page_placement("url", _AT_LEAST)
    with closing(file):
        return file.read().plan.current


def _look(collection: OpenedCollection, log: Path) -> tuple[list[QueryEntry], Sample] | None:
    """What was asked, and some of the pages, those first that were found first; None if that is too little."""
    asked = list(islice(_queries(log), _MOST_QUERIES))
    one_in = 1 << max(0, (collection.store.live_pages() // _MOST_PAGES).bit_length())
    drawn = sorted(collection.store.sample(one_in), key=lambda page: page.found_at)[:_MOST_PAGES]
    if len(asked) < LEAST_ASKED or len(drawn) < _AT_LEAST:
        return None
    return asked, Sample([page_values(page.url) for page in drawn], _FIELDS, "url")


def _advised(asked: list[QueryEntry], sample: Sample, shards: int, secret: bytes) -> tuple[Tried, tuple[str, ...]]:
    """The best that the store can use, and why: outsiders pick the addresses, so what leads is hashed; no directory."""
    advice = advise(asked, LogStatistics.of(asked), sample, shards, immutable=_FIELDS, secret=secret)
    usable = (
        each
        for each in advice.tried
        if not each.refused and each.placement.key.parts[0].hashed and not each.placement.directory
    )
    return next(usable), advice.why  # the hashed address is always among them


def _queries(log: Path) -> Iterator[QueryEntry]:
    try:
        with log.open("rb") as lines:
            for query in read_queries(lines, collection="levada.pages"):
                yield replace(query, filter=_placed(query.filter) if query.filter else None)
    except OSError:
        return


def _placed(asked: Filter) -> Filter:
    """Whoever names an address names its site and section too."""
    if isinstance(asked, AllOf | AnyOf):
        return type(asked)(tuple(_placed(each) for each in asked.of))
    if isinstance(asked, NoneOf) or asked.field != "url" or asked.operator != "eq" or len(asked.values) != 1:
        return asked
    values = page_values(str(asked.values[0]))
    return AllOf(tuple(Condition(field, "eq", (values[field],)) for field in _FIELDS))


_PAUSE = 0.2  # before pages that somebody visits are asked for again


class ReshardOptions(msgspec.Struct, frozen=True):
    """What is to be; None: as it is, or comes to be by the move under way."""

    shards: int | None = None
    key: str | None = None
    servers: tuple[str, ...] = ()
    placement: Placement | None = None  # instead of a key by name and a number, its shards numbered from 0
    advised: bool = False  # the placement comes from the captured queries
    back: bool = False  # nothing else: the move under way is taken back


class Resharded(msgspec.Struct, frozen=True):
    key: str
    shards: int
    pages: tuple[int, ...]  # on each shard
    looked_at: int
    moved: int
    seconds: float


def apply_shards(
    folder: DataFolder,
    reshard_options: ReshardOptions,
    *,
    on_progress: Callable[[Moved, int], None] = lambda moved, known: None,
    faults: Faults | None = None,
) -> Resharded:
    """`on_progress` is told how far it is, and of how many pages; without a wish, what was begun is finished."""
    folder.must_exist()
    began = time.monotonic()
    if reshard_options.advised:
        wanted_shards = reshard_options.shards or len(reshard_options.servers) or None
        with open_collection(folder) as collection:
            advised = own_placement(collection, folder.queries, wanted_shards)
        reshard_options = replace(reshard_options, placement=advised, advised=False)
    now = make_clock(folder.settings().clock).now
    with only_mover_anywhere(folder) as check, ExitStack() as opened:
        _place_first(folder)
        file = writing_plan(folder) or PlanFile(folder.placement)
        opened.callback(file.close)
        record = file.read()
        wanted, places = _wanted(record, reshard_options, lambda: make_collection_name(folder))
        named = places if record.plan.following is None else record.shards  # no more than a move under way needs
        # Before the plan names them: a shard that cannot be opened would keep everybody from the collection.
        shards = _opened(folder, named, record.plan.holders | set(wanted.ranges.owners), opened, faults)
        share_tombstones(shards)  # also before: from then on a crawl that runs adds pages to the new ones
        check()
        record = turn_back(file) if reshard_options.back else begin_move(file, wanted, places)
        known = sum(shard.stats(0.0).known for shard in shards)
        last = [Moved(0, 0)]

        def told(moved: Moved) -> None:
            check()
            last[0] = moved
            on_progress(moved, known)

        def wait() -> None:
            time.sleep(_PAUSE)
            check()
            _forget_dead_leases(folder, record, shards)

        _forget_dead_leases(folder, record, shards)
        move_pages(file, shards, wait=wait, faults=faults, on_progress=told, now=now)
        done = finish_move(file)
        pages = tuple(shard.stats(0.0).known for shard in shards[: done.plan.shards])
    seconds = time.monotonic() - began
    used = len(set(done.plan.current.ranges.owners))
    return Resharded(key_name(done.plan.current), used, pages, last[0].looked_at, last[0].moved, seconds)


def _opened(
    folder: DataFolder, places: Sequence[ShardPlace], needed: Container[int], opened: ExitStack, faults: Faults | None
) -> list[Shard]:
    """The shards; those that neither hold pages nor will are not opened: their server may be gone."""
    shards: list[Shard] = []
    for number, place in enumerate(places):
        if number in needed:
            limits = StoreLimits(shard=number)
            shards.append(opened.enter_context(closing(open_shard(folder, place, limits, faults=faults))))
        else:
            shards.append(cast("Shard", EmptyShard(number)))
    return shards


class PlannedMove(msgspec.Struct, frozen=True):
    """What a move would do."""

    key: str
    shards: tuple[str, ...]  # where the pages would lie: folders, or servers without user and password
    pages: int
    moves: int  # pages that change their shard


def planned_move(folder: DataFolder, reshard_options: ReshardOptions) -> PlannedMove:
    """What `apply_shards` would do with these options. Reads every URL, and changes nothing."""
    folder.must_exist()
    with open_collection(folder) as collection:
        if reshard_options.advised:
            count = reshard_options.shards or len(reshard_options.servers) or None
            advised = own_placement(collection, folder.queries, count)
            reshard_options = replace(reshard_options, placement=advised, advised=False)
        record = _record_of(folder)
        wanted, places = _wanted(record, reshard_options, lambda: _UNNAMED)
        if reshard_options.back:
            if record.plan.following is None:
                raise UsageError("no pages are moving: there is nothing to take back")
            wanted = record.plan.current
        pages = moves = 0
        for number, shard in enumerate(cast("Sequence[Shard]", collection.store.shards)):
            last = 0
            while number in record.plan.holders and (walked := shard.urls_after(last, _WALKED_AT_ONCE)):
                last = walked[-1][0]
                pages += len(walked)
                moves += sum(wanted.place(page_values(url)) != number for _, url in walked)
    where = (places[number] for number in sorted(set(wanted.ranges.owners)))
    return PlannedMove(key_name(wanted), tuple(_shown(place) for place in where), pages, moves)


_UNNAMED = "collection"  # its name is made by the move itself
_WALKED_AT_ONCE = 2_000


def _record_of(folder: DataFolder) -> PlacementRecord:
    """The placement; that of one shard if the collection is one file."""
    file = plan_of(folder)
    if file is None:
        return new_record(ShardPlan(page_placement("site", 1, token_bytes(16))), (ShardPlace("."),))
    with closing(file):
        return file.read()


def _shown(place: ShardPlace) -> str:
    return place.server.rpartition("@")[2] or place.folder


def spread_by_citus(folder: DataFolder, *, dry_run: bool) -> list[CitusShards]:
    """Let Citus spread the shards over its nodes, server by server; with `dry_run` only say how."""
    from levada.store.postgresql.citus import spread_schemas

    folder.must_exist()
    with only_mover_anywhere(folder):
        record = _record_of(folder)
        places = [record.shards[number] for number in sorted(record.plan.holders)]
        servers = list(dict.fromkeys(place.server for place in places))
        return [
            spread_schemas(
                server, [each.schema for each in places if server and each.server == server], dry_run=dry_run
            )
            for server in servers
        ]


def shards_queried(folder: DataFolder, questions: Sequence[Query | str]) -> list[int]:
    """The number of shards that each question is put to: a search, or the page at an address."""
    from levada.collection.search import open_search
    from levada.search.sharded import ShardedIndex

    asked = []
    plan = plan_of(folder)
    with open_search(folder) as (collection, index):
        if plan is None or not isinstance(index, ShardedIndex):
            return [1] * len(questions)
        for each in questions:
            if isinstance(each, Query):
                index.search(each)
                asked.append(len(index.touched(each)))
            else:
                collection.store.document(each)
                asked.append(len(plan.read().plan.places(each)))
        plan.close()
    return asked


def key_name(placement: Placement) -> str:
    """What the key is called on the command line."""
    fields = placement.key.fields
    return next((name for name, (first, _) in KEYS.items() if first == fields[0]), ", ".join(fields))


def _place_first(folder: DataFolder) -> None:
    """A collection in one file becomes one shard; a crawl that runs knows nothing of that, so it must end first."""
    if folder.placement.exists():
        return
    try:
        with folder.locked():
            file = PlanFile(folder.placement)
            file.replace(new_record(ShardPlan(page_placement("site", 1, token_bytes(16))), (ShardPlace("."),)))
            file.close()
    except StoreLocked:
        raise StoreLocked(
            f"a crawl is running in {folder.path}, and its collection is one file: stop it, run this command, and "
            "start it again; it may run while the pages move"
        ) from None


def _wanted(
    record: PlacementRecord, reshard_options: ReshardOptions, name: Callable[[], str]
) -> tuple[Placement, Sequence[ShardPlace]]:
    """The placement that was asked for, and where all its shards lie.

    Each shard stays where it is as far as that is asked for, and keeps its keys up to its new share.
    """
    base = record.plan.following or record.plan.current
    if reshard_options in (ReshardOptions(), ReshardOptions(back=True)):
        return base, record.shards
    used = sorted(set(base.ranges.owners))
    servers = list(dict.fromkeys(record.shards[number].server for number in used if record.shards[number].server))
    named = name() if servers or reshard_options.servers else ""
    count = (
        reshard_options.placement.shards
        if reshard_options.placement
        else reshard_options.shards or max(len(reshard_options.servers), len(used))
    )
    owners, places = _owners(record, used, _servers_of(record, used, reshard_options.servers, count), named)
    if reshard_options.placement:
        return _owned(reshard_options.placement, owners), places
    key = reshard_options.key or key_name(base)
    fresh = page_placement(key, count, base.key.secret)
    if fresh.key != base.key:
        return _owned(fresh, owners), places
    if owners == used:
        return base, places
    ranges = resized_ranges(base.ranges, owners)
    return replace(base, ranges=ranges, shards=max(owners) + 1, zones=()), places


def _servers_of(record: PlacementRecord, used: Sequence[int], servers: Sequence[str], count: int) -> list[str]:
    """The server of each shard that is to be; "" for a folder. More shards lie where those that are there do."""
    if servers:
        return list(islice(cycle(servers), count))
    here = [record.shards[number].server for number in used]
    return [*here[:count], *islice(cycle(dict.fromkeys(here)), max(0, count - len(here)))]


def _owners(
    record: PlacementRecord, used: Sequence[int], servers: Sequence[str], name: str
) -> tuple[list[int], Sequence[ShardPlace]]:
    """The numbers of the shards that are to be on these servers, and where all shards lie: those that hold pages
    there, then empty ones that were left there earlier, then new ones. A number never means another place."""
    places = list(record.shards)
    left = [number for number in range(len(places)) if number not in record.plan.holders]
    there = {server: [n for n in (*used, *left) if places[n].server == server] for server in dict.fromkeys(servers)}
    owners = []
    for server in servers:
        if there[server]:
            owners.append(there[server].pop(0))
        else:
            owners.append(len(places))
            places += places_for(len(places) + 1, [server] if server else (), len(places), name=name)
    return sorted(owners), places


def _owned(placement: Placement, owners: Sequence[int]) -> Placement:
    """The same placement on the shards of these numbers."""
    ranges = Ranges(placement.ranges.bounds, tuple(owners[owner] for owner in placement.ranges.owners))
    zones = tuple(replace(zone, shards=tuple(owners[shard] for shard in zone.shards)) for zone in placement.zones)
    return replace(placement, ranges=ranges, shards=max(owners) + 1, zones=zones)


def _forget_dead_leases(folder: DataFolder, record: PlacementRecord, shards: Sequence[Shard]) -> None:
    """Where no crawl runs, nobody visits the pages that a killed one had leased. Other machines may, if they can
    find the collection: their leases end by themselves."""
    if record.home:
        return
    with suppress(StoreLocked), folder.locked():
        for shard in shards:
            shard.forget_leases()
