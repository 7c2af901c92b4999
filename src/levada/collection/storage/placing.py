"""Where the stores of a collection lie: copying them to PostgreSQL servers, and back into files.

Every shard keeps its number, and every page, version, visit and change its own: the index, the feeds and the
notifications go on where they were. A schema that was filled is marked as not in use until the collection names it, so
that a later try may replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import count, cycle
from pathlib import Path
from secrets import token_bytes

from msgspec.structs import replace

from levada.core.errors import StoreLocked, UsageError
from levada.core.files import sync_folder
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.core.words import plural
from levada.sharding.page_keys import page_placement
from levada.store.migrations.upgrading import upgrade_stores
from levada.store.opening import collection_name, plan_of
from levada.store.sharded.plan import PlacementRecord, PlanFile, ShardPlace, ShardPlan, new_record
from levada.store.snapshot import store_of

OnProgress = Callable[[str, int, int], None]
_OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()
    AND application_name = %s"""
_SUFFIXES = ("", "-wal", "-shm")


def placement_of(folder: DataFolder) -> PlacementRecord:
    """The placement of a collection; one that is a single file is one shard."""
    file = plan_of(folder)
    if file is None:
        return new_record(ShardPlan(page_placement("site", 1, token_bytes(16))), (ShardPlace("."),))
    with closing(file):
        return file.read()


def fill_servers(
    draft: DataFolder,
    target: Path,
    created: float,
    servers: Sequence[str],
    on_progress: OnProgress,
    faults: Faults,
) -> None:
    """Bring the stores of a restored folder to servers, before the folder takes its place as `target`."""
    upgrade_stores(draft, backup=False, on_progress=on_progress)
    record = placement_of(draft)
    for number in count():
        name = sha256(f"{target.absolute()} {created} {number}".encode()).hexdigest()[:16]
        places = places_on(record, servers, name)
        if not any(_is_taken(place, target) for place in places):
            break
    _fill(draft, record, places, on_progress, faults)
    (draft.path / "collection").write_text(name, encoding="ascii")
    _keep(draft, replace(record, shards=places))
    for place in record.shards:
        for suffix in _SUFFIXES:
            (draft.path / f"{store_of(place)}{suffix}").unlink(missing_ok=True)


def schemas_in_use(folder: DataFolder) -> None:
    """Take the mark from the schemas that the collection uses."""
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.conversion import mark_schema

    for place in placement_of(folder).shards:
        if place.server:
            mark_schema(Address(place.server, place.schema), "")


def places_on(record: PlacementRecord, servers: Sequence[str], name: str) -> tuple[ShardPlace, ...]:
    """Every shard on these servers in turn; one that is there already stays."""
    return tuple(
        place if place.server == server else replace(place, server=server, schema=f"levada_{name[:8]}_{number}")
        for number, (place, server) in enumerate(zip(record.shards, cycle(servers), strict=False))
    )


def _is_taken(place: ShardPlace, target: Path) -> bool:
    """Whether another store has this schema: one that was filled by a restore that was cut short does not count."""
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.conversion import is_free

    if not is_free(Address(place.server, place.schema)):
        return True
    named = target.parent.glob(f"{target.name}*/placement.json")
    return any(place.schema in path.read_text(encoding="utf-8", errors="replace") for path in named)


def _fill(
    folder: DataFolder,
    record: PlacementRecord,
    places: Sequence[ShardPlace],
    on_progress: OnProgress,
    faults: Faults,
) -> None:
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.conversion import SchemaSnapshot, load_schema

    for number, (old, new) in enumerate(zip(record.shards, places, strict=True)):
        if old == new:
            continue
        source = folder.path / store_of(old)
        told = _told(on_progress, number)
        if old.server:
            source = source.with_name("moving.part")
            source.parent.mkdir(exist_ok=True)
            source.unlink(missing_ok=True)
            with closing(SchemaSnapshot(Address(old.server, old.schema))) as snapshot:
                snapshot.copy(source, on_progress=told)
        if source.exists():  # a shard that was never written is made when it is opened
            load_schema(source, Address(new.server, new.schema), number, on_progress=told, faults=faults)
        if old.server:
            source.unlink()


def _told(on_progress: OnProgress, number: int) -> Callable[[int, int], None]:
    return lambda done, total: on_progress(f"copying shard {number}", done, total)


def move_to_servers(
    folder: DataFolder, servers: Sequence[str], *, remove: bool, on_progress: OnProgress, faults: Faults
) -> int:
    """Bring every shard to these servers; returns how many moved. The caller holds the folder's locks."""
    from levada.store.opening import make_collection_name
    from levada.store.postgresql.connection import Address

    for server in dict.fromkeys(servers):  # before anything is changed
        Address(server, "levada").connect().close()
    record = _at_rest(folder)
    places = places_on(record, servers, make_collection_name(folder))
    _nobody_else(record, places)
    _fill(folder, record, places, on_progress, faults)
    return _moved(folder, record, places, remove=remove, faults=faults)


def move_to_files(folder: DataFolder, *, remove: bool, on_progress: OnProgress, faults: Faults) -> int:
    """Bring every shard on a server into a file of the folder; returns how many moved."""
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.conversion import SchemaSnapshot

    record = _at_rest(folder)
    places = tuple(replace(place, server="", schema="") for place in record.shards)
    _nobody_else(record, places)
    for number, (old, new) in enumerate(zip(record.shards, places, strict=True)):
        if old == new:
            continue
        target = folder.path / store_of(new)
        draft = target.with_name("moving.part")
        target.parent.mkdir(exist_ok=True)
        for suffix in _SUFFIXES:
            draft.with_name(f"{draft.name}{suffix}").unlink(missing_ok=True)
        with closing(SchemaSnapshot(Address(old.server, old.schema))) as snapshot:
            snapshot.copy(draft, on_progress=_told(on_progress, number))
        faults.reach("move.copied")
        _put_aside(target, remove=remove)  # what an earlier move to servers has left
        draft.replace(target)
        sync_folder(target.parent)
    return _moved(folder, record, places, remove=remove, faults=faults)


def _at_rest(folder: DataFolder) -> PlacementRecord:
    upgrade_stores(folder)
    record = placement_of(folder)
    if record.plan.following is not None:
        raise UsageError(
            "pages are moving between shards: finish that with 'levada shard apply', or take it back with "
            "'levada shard apply --back'"
        )
    return record


def nobody_has_open(folder: DataFolder) -> None:
    """Raise if a process, on whatever machine, has a shard on a server open."""
    if folder.placement.exists():
        record = placement_of(folder)
        _nobody_else(record, tuple(replace(place, server="") for place in record.shards))


def _nobody_else(record: PlacementRecord, places: Sequence[ShardPlace]) -> None:
    """Raise if a crawl, a worker or a dashboard, on whatever machine, has a schema open that moves."""
    from levada.store.postgresql.connection import Address

    for old, new in zip(record.shards, places, strict=True):
        if not old.server or old == new:
            continue
        address = Address(old.server, old.schema)
        with closing(address.connect()) as session:
            (others,) = session.execute(_OTHERS, (address.session_name,)).fetchone() or (0,)
        if others:
            raise StoreLocked(
                f"{address.place} is used by {plural(others, 'other session')} of Levada: stop crawls, workers and "
                "servers that use it, then run the same command again"
            )


def _moved(
    folder: DataFolder, record: PlacementRecord, places: tuple[ShardPlace, ...], *, remove: bool, faults: Faults
) -> int:
    """The step that decides: from here on the collection lies in its new places."""
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.conversion import RETIRED, drop_schema, mark_schema

    moved = [(old, new) for old, new in zip(record.shards, places, strict=True) if old != new]
    if moved:
        _nobody_else(record, places)
        faults.reach("move.before-placement")
        _keep(folder, replace(record, shards=places, home=""))
        faults.reach("move.placed")
    if record.home:
        from levada.store.postgresql.shared_plan import SharedPlan

        with closing(SharedPlan(record.home, collection_name(folder))) as shared:
            shared.remove()
    schemas_in_use(folder)
    for old, _ in moved:
        if not old.server:
            _put_aside(folder.path / store_of(old), remove=remove)
        elif remove:
            drop_schema(Address(old.server, old.schema))
        else:
            mark_schema(Address(old.server, old.schema), RETIRED)
        faults.reach("move.put-aside")
    return len(moved)


def _keep(folder: DataFolder, record: PlacementRecord) -> None:
    with closing(PlanFile(folder.placement)) as file:
        file.replace(record)


def _put_aside(database: Path, *, remove: bool) -> None:
    """Keep a store that is no longer used as a backup, with its log; or delete it."""
    for suffix in _SUFFIXES:
        path = database.with_name(f"{database.name}{suffix}")
        if path.exists():
            if remove:
                path.unlink()
            else:
                path.replace(database.with_name(f"{database.name}.moved.backup{suffix}"))
