"""Forgetting pages, sites and versions of a collection: `levada forget`.

The order makes it safe to die at any instant. First a file says that something is under way. Then the store gets a
tombstone of each name: from then on nothing comes back. Then pages go, some at a time, and what other rows hold of
them. Then whatever follows the store: notifications, recorded queries, term counts, maps, the index. At the end the
files are written anew without the bytes. A repetition does again what may be missing: it recognises what is forgotten
by the tombstones, so no name needs to be kept.

A running crawl goes on. It makes its own store small when it is asked to, because it is the one that writes there.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from levada.collection.addresses import spellings
from levada.collection.commands import open_commands
from levada.collection.forgetting.unfinished import Unfinished, compact_store, note_unfinished, unfinished
from levada.collection.storage.bodies import delete_bodies_of_gone_pages
from levada.core.clock import make_clock
from levada.core.commands import Compact
from levada.core.errors import BadQuery, BadUrl, NotFound, StoreError, StoreLocked, UsageError
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.core.settings import Settings
from levada.follow.index import open_writer, spans_shards
from levada.search.query import host_named, length_of_time
from levada.store.access_file import AccessFile
from levada.store.base import Capability, Deleted, Forgetting, Retention
from levada.store.faults import NoFaults
from levada.store.moving_lock import nobody_moves_anywhere
from levada.store.opening import open_shard_reader, open_store, shard_folders, store_limits

if TYPE_CHECKING:
    from levada.search.opensearch.index import OpenSearchIndex

Progress = Callable[[int, int, str], None]
"""Told how much is done, of how much (0: not known), and what is being done."""

FORGOTTEN = "(forgotten)"  # in the place of a name in the audit log
_NAME = re.compile(r"[^\s,]+")  # a word of what the audit log names, which may be an address
_AT_ONCE = 200  # pages in one transaction
_TRACES_AT_ONCE = 2_000
_WALKED_AT_ONCE = 2_000
_MOST = 1 << 40
_WAIT = 0.2  # seconds between two looks at what a running crawl has done
_PATIENCE = 600.0  # seconds that a running crawl may take for it


class ForgetReport(msgspec.Struct, frozen=True):
    """What was forgotten, or would be.

    >>> news.forget(start, dry_run=True).pages
    1
    """

    dry_run: bool
    pages: int = 0
    versions: int = 0
    messages: int = 0  # changes and messages that waited to be sent
    queries: int = 0  # recorded queries that named it
    maps: tuple[str, ...] = ()  # warm maps that were deleted: `levada warm` fills them again
    finished: bool = True  # False: a running crawl has the rest to do, and `waiting` says what
    waiting: str = ""
    still_in: tuple[str, ...] = ()  # files that hold copies and were left alone: backups


class Wanted(msgspec.Struct, frozen=True):
    """What to forget: pages, or a site, or old versions (of a site or of all)."""

    urls: tuple[str, ...] = ()
    site: str = ""
    older_than: float | None = None  # seconds
    versions_beyond: int | None = None
    retention: bool = False  # the rules of the settings

    @property
    def is_of_versions(self) -> bool:
        return self.older_than is not None or self.versions_beyond is not None or self.retention

    def rules(self, settings: Settings) -> Retention:
        if self.retention:
            return store_limits(settings).retention
        return Retention(self.versions_beyond or 0, self.older_than or 0.0)


def wanted(
    urls: Sequence[str],
    site: str = "",
    older_than: str | float | None = None,
    versions_beyond: int | None = None,
    *,
    retention: bool = False,
) -> Wanted:
    """Check what is asked; `UsageError` says what does not fit together."""
    seconds = length_of_time(older_than, "older_than") if isinstance(older_than, str) else older_than
    found = Wanted(tuple(urls), host_named(site) if site else "", seconds, versions_beyond, retention)
    if urls and (site or found.is_of_versions):
        raise UsageError("name pages, or a site, or an age or a number of versions; an age and a site go together")
    if retention and (older_than is not None or versions_beyond is not None):
        raise UsageError("--retention applies the rules of the settings: leave --older-than and --versions-beyond away")
    if seconds is not None and seconds <= 0:
        raise UsageError("--older-than takes a length of time such as 90d")
    if versions_beyond is not None and versions_beyond < 1:
        raise UsageError(f"--versions-beyond must be at least 1, not {versions_beyond}: the newest version stays")
    for url in urls:
        spellings(url)
    return found


def forget(
    path: Path,
    what: Wanted,
    *,
    dry_run: bool = False,
    access: Path | None = None,
    on_progress: Progress = lambda done, total, doing: None,
    faults: Faults | None = None,
) -> ForgetReport:
    """Forget, and finish what an earlier run left. Without anything named, only the latter.

    `access` is where a server keeps its audit log, if that is not in the folder.
    """
    folder = DataFolder(path)
    folder.must_exist()
    folder.must_be_home("pages are forgotten")
    with ExitStack() as opened:
        opened.enter_context(nobody_moves_anywhere(folder))
        alone = True
        try:
            opened.enter_context(folder.locked())
        except StoreLocked:
            alone = False  # a crawl runs here
        settings = folder.settings()
        options = settings.plugins.get(folder.engine())
        store = open_store(folder, settings.store, store_limits(settings), faults, options)
        opened.callback(store.close)
        if Capability.FORGET not in store.capabilities:
            raise UsageError(f"the store {folder.engine()!r} cannot forget: its plug-in does not offer it")
        logs = [each for each in dict.fromkeys((folder.access, access)) if each is not None]
        run = _Forget(folder, settings, cast("Forgetting", store), what, logs, on_progress, faults or NoFaults())
        return run.preview() if dry_run else run.run(alone=alone)


class _Forget:
    """One run."""

    def __init__(
        self,
        folder: DataFolder,
        settings: Settings,
        store: Forgetting,
        what: Wanted,
        logs: Sequence[Path],
        on_progress: Progress,
        faults: Faults,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._store = store
        self._what = what
        self._logs = logs
        self._show = on_progress
        self._faults = faults
        self._now = make_clock(settings.clock).now()

    def preview(self) -> ForgetReport:
        """What would go."""
        if self._what.is_of_versions:
            deleted, expired = self._thinned(dry_run=True)
            kept = sum(len(self._store.versions(url)) for url in expired)
            deleted = Deleted(deleted.pages + len(expired), deleted.versions + kept)
        else:
            urls = self._named()[0] or self._urls_of(self._what.site)
            deleted = Deleted(len(urls), sum(len(self._store.versions(url)) for url in urls))
        return ForgetReport(True, deleted.pages, deleted.versions, still_in=_copies(self._folder))

    def run(self, *, alone: bool) -> ForgetReport:
        before = unfinished(self._folder)
        deleted = self._delete(before)
        self._reach("deleted")
        if unfinished(self._folder) is None:
            self._forget_in_audit_log()  # what was asked since may be named there
            return ForgetReport(False, still_in=_copies(self._folder))  # there was nothing to do
        if self._store.tombstones()[0]:
            self._erase_traces()
        # Once more, for the near-duplicate runs: a commit that was under way may have stored them as they were.
        self._store.erase([url for typed in self._what.urls for url in spellings(typed)])
        note_unfinished(self._folder, Unfinished(pages=False))
        self._reach("traces")
        if self._what.urls or self._what.site or before is not None:
            delete_bodies_of_gone_pages(self._folder, self._store)
        self._reach("bodies")
        report = ForgetReport(False, deleted.pages, deleted.versions, still_in=_copies(self._folder))
        report = msgspec.structs.replace(
            report, messages=self._forget_messages(), queries=self._forget_queries(), maps=self._forget_maps()
        )
        self._forget_sessions()
        self._reach("sessions")
        self._forget_in_audit_log()
        self._folder.rendering.unlink(missing_ok=True)
        self._reach("files")
        self._forget_counts()
        self._reach("counts")
        indexes = self._ask_for_rebuild()
        self._reach("index")
        waiting = self._finish_alone(indexes) if alone else self._finish_beside(indexes)
        self._reach("compacted")
        if not waiting:
            note_unfinished(self._folder, None)
        return msgspec.structs.replace(report, finished=not waiting, waiting=waiting)

    def _reach(self, step: str) -> None:
        self._faults.reach(f"forgetting.{step}")

    # Pages and versions

    def _delete(self, before: Unfinished | None) -> Deleted:
        deleted = Deleted()
        urls, sites = self._named()
        if self._what.is_of_versions:
            self._begin(pages=before is not None and before.pages)
            deleted, expired = self._thinned()
            for start in range(0, len(expired), _AT_ONCE):
                deleted += self._store.erase(expired[start : start + _AT_ONCE], only_gone=True)
        elif urls or sites:
            self._begin(pages=True)
            self._reach("begun")
            self._store.bury(urls, sites, self._now)
            self._reach("buried")
            deleted += self._erase(urls or self._urls_of(self._what.site))
        elif before is None and not (self._what.urls or self._what.site):
            raise UsageError("name what to forget: pages, --site, --older-than or --versions-beyond")
        if before is not None and before.pages:
            deleted += self._erase_walking()
        return deleted

    def _begin(self, *, pages: bool) -> None:
        note_unfinished(self._folder, Unfinished(pages=pages))

    def _named(self) -> tuple[list[str], list[str]]:
        """The known pages and sites that are named. What is forgotten already is neither, nor unknown."""
        urls = []
        for typed in self._what.urls:
            addresses = spellings(typed)
            known = next((url for url in addresses if self._store.page(url)), None)
            if known is None and not self._store.forgotten(addresses):
                raise NotFound(f"no page {addresses[0]} is known in {self._folder.path}: nothing was forgotten")
            urls += [known] if known else []
        site = self._what.site
        if not site:
            return urls, []
        if self._store.site(site) is None:
            if self._store.forgotten_sites([site]):
                return urls, []
            raise NotFound(f"no site {site} is known in {self._folder.path}: nothing was forgotten")
        return urls, [] if self._what.is_of_versions else [site]

    def _urls_of(self, site: str) -> list[str]:
        if not site:
            return []
        return [url for scheme in ("http", "https") for url in self._store.urls_like(f"{scheme}://{site}/", _MOST)]

    def _erase(self, urls: Sequence[str]) -> Deleted:
        deleted = Deleted()
        for start in range(0, len(urls), _AT_ONCE):
            deleted += self._store.erase(urls[start : start + _AT_ONCE])
            self._reach("erased")
            self._show(min(start + _AT_ONCE, len(urls)), len(urls), "forgetting pages")
        return deleted

    def _erase_walking(self) -> Deleted:
        """Erase the pages that have a tombstone, which a killed run did not come to."""
        deleted = Deleted()
        for shard in self._store.shards:
            after = 0
            while walked := shard.urls_after(after, _WALKED_AT_ONCE):  # type: ignore[attr-defined]  # see `Shard`
                after = walked[-1][0]
                if going := self._store.forgotten([url for _, url in walked]):
                    deleted += self._erase(sorted(going))
        return deleted

    def _erase_traces(self) -> None:
        after: int | None = 0
        while after is not None:
            after = self._store.erase_traces(after, _TRACES_AT_ONCE)
            self._reach("traced")

    def _thinned(self, *, dry_run: bool = False) -> tuple[Deleted, list[str]]:
        rules, site = self._what.rules(self._settings), self._what.site
        deleted = Deleted()
        expired: list[str] = []
        after: int | None = 0
        while after is not None:
            after, some, urls = self._store.thin_out(after, _AT_ONCE, self._now, rules, site=site, dry_run=dry_run)
            deleted, expired = deleted + some, expired + urls
            self._show(deleted.versions, 0, "forgetting versions")
        return deleted, expired

    # What follows the store

    def _is_forgotten(self, url: str) -> bool:
        return bool(self._store.forgotten([url]))

    def _forget_messages(self) -> int:
        if not self._folder.hooks.exists():
            return 0
        from levada.store.subscriptions import SqliteSubscriptions

        with closing(SqliteSubscriptions(self._folder.hooks)) as subscriptions:
            gone = subscriptions.forget(self._is_forgotten)
            subscriptions.compact()
        return gone

    def _forget_queries(self) -> int:
        """Blank the recorded queries that name something forgotten. They are overwritten where they stand: a server
        may be appending to the file."""
        gone = 0
        for path in sorted(self._folder.path.glob(f"{self._folder.queries.name}*")):
            with path.open("rb+") as file:
                place = 0
                for line in file.readlines():
                    if self._names_forgotten(line):
                        file.seek(place)
                        file.write(b"\n" * len(line))
                        gone += 1
                    place += len(line)
                file.flush()
                os.fsync(file.fileno())
        return gone

    def _names_forgotten(self, line: bytes) -> bool:
        """Whether a value of this query is a URL or a site that is forgotten."""
        with suppress(msgspec.MsgspecError):
            values = list(_texts(msgspec.json.decode(line)))
            urls = [value for value in values if value.startswith(("http://", "https://"))]
            return bool(self._store.forgotten(urls) or self._store.forgotten_sites(values))
        return False

    def _forget_maps(self) -> tuple[str, ...]:
        """Delete the warm maps of this collection in its folder, with the notes of their tasks, which hold URLs."""
        maps = self._folder.maps
        if not maps.is_dir():
            return ()
        from levada.bulk.loads import noted_loads
        from levada.bulk.sources.collection import SCHEME

        own = [each for each in noted_loads(maps).values() if each.source.startswith(SCHEME)]
        local = [each.name for each in own if (maps / each.name).is_dir()]  # the folder may have moved since
        for name in local:
            shutil.rmtree(maps / name, ignore_errors=True)
        for tasks in maps.glob("book.sqlite*"):
            tasks.unlink()
        return tuple(local)

    def _forget_sessions(self) -> None:
        """Delete the cookies of sites that are forgotten."""
        if not (self._folder.path / "cookies").is_dir():
            return
        from levada.fetch.cookies import session_files

        for site, path in session_files(self._folder.path):
            if self._store.forgotten_sites([site]):
                path.unlink(missing_ok=True)

    def _forget_in_audit_log(self) -> None:
        """Let the audit log say who did what, and no longer to what."""
        for path in self._logs:
            if path.exists():
                with closing(AccessFile(path)) as access:
                    access.reword_log(self._unnamed)
                    access.compact()

    def _unnamed(self, told: str) -> str:
        return _NAME.sub(lambda name: FORGOTTEN if self._is_forgotten_name(name[0]) else name[0], told)

    def _is_forgotten_name(self, typed: str) -> bool:
        """Whether this is an address or a site that is forgotten, as somebody typed it."""
        with suppress(BadUrl, BadQuery):
            return bool(self._store.forgotten(spellings(typed)) or self._store.forgotten_sites([host_named(typed)]))
        return False

    def _forget_counts(self) -> None:
        from levada.follow.counter import count_up

        with closing(open_commands(self._folder)) as commands:
            commands.forget(self._is_forgotten_name)
            commands.compact()
        for shard in shard_folders(self._folder):
            if shard.trends.exists():
                with closing(open_shard_reader(shard)) as reader:
                    trends, _ = count_up(shard.trends, reader, self._settings.trends)
                with closing(trends):
                    trends.forget(self._store.forgotten_sites)
                    trends.compact()

    def _ask_for_rebuild(self) -> list[DataFolder]:
        """Mark the indexes that are to be built anew: the words of a deleted page stay in their files."""
        engine = self._settings.index.engine
        if spans_shards(engine):
            shards = shard_folders(self._folder)
            with closing(self._spanning_index(shards[0])) as index:
                index.ask_for_rebuild()
            return shards
        if engine != "tantivy":
            return []
        from levada.search.tantivy.index import index_folder

        folders = [shard for shard in shard_folders(self._folder) if shard.index.is_dir()]
        for shard in folders:
            index_folder(shard.index).ask_for_rebuild()
        return folders

    # The end

    def _finish_alone(self, indexes: Sequence[DataFolder]) -> str:
        from levada.follow.index import catch_up_store

        self._show(0, 0, "compacting the store")
        compact_store(self._folder, self._store)
        how = self._settings.index
        for place, shard in enumerate(indexes):
            self._show(place, len(indexes), "building the index anew")
            with (
                closing(open_shard_reader(shard)) as reader,
                closing(open_writer(shard, how.heap, how.engine, lambda: self._settings)) as index,
            ):
                catch_up_store(reader, index, how.batch, shard.index / "applied")
        return ""

    def _finish_beside(self, indexes: Sequence[DataFolder]) -> str:
        """Wait until the running crawl has made its store and its index small; or say what is left."""
        with closing(open_commands(self._folder)) as commands:
            commands.submit(Compact())
        until = time.monotonic() + _PATIENCE
        self._show(0, 0, "waiting for the crawl that runs to compact its files")
        while time.monotonic() < until:
            left = unfinished(self._folder)
            if left is not None and left.trouble:
                raise StoreError(left.trouble)
            to_rebuild = self._is_to_be_rebuilt(indexes)
            if (left is None or not left.compact) and not to_rebuild:
                return ""
            with suppress(StoreLocked), self._folder.locked():  # it has ended
                return self._finish_alone(indexes)
            time.sleep(_WAIT)
        return "the crawl that runs has yet to compact its files: run 'levada forget' again later"

    def _spanning_index(self, shard: DataFolder) -> OpenSearchIndex:
        opened = open_writer(shard, 0, self._settings.index.engine, lambda: self._settings)
        return cast("OpenSearchIndex", opened)

    def _is_to_be_rebuilt(self, indexes: Sequence[DataFolder]) -> bool:
        engine = self._settings.index.engine
        if indexes and spans_shards(engine):
            with closing(self._spanning_index(indexes[0])) as index:
                return index.is_to_be_rebuilt()
        from levada.search.tantivy.index import index_folder

        return any(index_folder(shard.index).is_to_be_rebuilt for shard in indexes)


def _texts(value: object) -> list[str]:
    """All texts in a decoded JSON value."""
    if isinstance(value, str):
        return [value]
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in within for text in _texts(each)]


def _copies(folder: DataFolder) -> tuple[str, ...]:
    """The backups in the folder, which are left alone."""
    return tuple(str(path) for path in sorted(folder.path.rglob("*.backup")))
