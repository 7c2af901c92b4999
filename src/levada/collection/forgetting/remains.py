"""What a data folder still holds of a text, a URL or a site: `levada doctor --forgotten`.

Every file is searched as it is, byte by byte. What bytes alone do not show is unpacked: the contents of stored pages,
the entries of the index, also deleted ones, and its words. A page that is stored may name a forgotten one, in a link
for example: that is its own content, and is told apart.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from levada.collection.addresses import spellings
from levada.core.errors import BadQuery, BadUrl, LevadaError, StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.structured import unpacked_bytes
from levada.core.words import plural, size
from levada.follow.index import spans_shards
from levada.pages.folding import words
from levada.search.query import host_named
from levada.store.base import Shard
from levada.store.bodies import unpacked_reference
from levada.store.bodies.opening import reading_bodies
from levada.store.opening import (
    collection_folder,
    open_reading_store,
    open_shard_reader,
    shard_folders,
    shard_places,
)
from levada.store.rules import unpacked

_CHUNK = 8 << 20
_OVERLAP = 1 << 14
_LEAST = 3  # characters
_HOST = re.compile(r"[^\s/@]+\.[^\s/@]+|[^\s/@]+:\d+")
_BEFORE_HOST = rb"(?<![A-Za-z0-9.\-])"
_AFTER_HOST = rb"(?![A-Za-z0-9\-]|:\d|\.[A-Za-z0-9])"
_AFTER_URL = rb"(?![A-Za-z0-9\-_~/?#%=&+]|[.,:;!*'()@$\[\]][A-Za-z0-9])"
_SETTINGS = ("settings.json", "planned.json")
_FREE_TOLD = 1 << 16  # bytes: less is hardly a page


class Remains(msgspec.Struct, frozen=True):
    """What was found, and where."""

    looked_for: str
    found: tuple[str, ...] = ()  # places that hold it
    mentioned: tuple[str, ...] = ()  # stored pages that name it in their own content
    notes: tuple[str, ...] = ()  # what could not be searched
    files: int = 0
    bytes: int = 0


def find_remains(path: Path, typed: str) -> Remains:
    """Search the folder for a URL, a host or any other text."""
    folder = DataFolder(path)
    folder.must_exist()
    if len(typed.strip()) < _LEAST:
        raise UsageError(f"--forgotten looks for a URL, a host or a text of at least {_LEAST} characters")
    return _Search(folder, typed.strip()).run()


class _Search:
    """One search."""

    def __init__(self, folder: DataFolder, typed: str) -> None:
        self._folder = folder
        self._typed = typed
        self._pattern, self._is_name = _pattern_of(typed)
        self._found: dict[str, None] = {}
        self._mentioned: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._bodies = reading_bodies(folder)
        self._explained: dict[Path, int] = {}  # how often it stands in the content of pages that are there

    def run(self) -> Remains:
        if self._folder.unfinished.exists():
            self._found["a forget is not finished: run 'levada forget'"] = None
        files = [path for path in sorted(self._folder.path.rglob("*")) if path.is_file()]
        total = 0
        for path in files:
            try:
                if _is_sqlite(path):
                    self._search_database(path)
                self._search_bytes(path)
                total += path.stat().st_size
            except FileNotFoundError:
                continue  # a running crawl replaces files
            except OSError as error:
                raise StoreError(f"cannot read {path} ({error.strerror}): search as its owner") from None
        for shard in shard_folders(self._folder):
            self._search_index(shard)
        self._search_servers()
        self._search_objects()
        return Remains(self._typed, tuple(self._found), tuple(self._mentioned), tuple(self._notes), len(files), total)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._folder.path))

    # Files as they are

    def _search_bytes(self, path: Path) -> None:
        hits = sum(1 for _ in self._raw_hits(path))
        database = path.with_name(path.name.removesuffix("-wal").removesuffix("-shm"))
        explained = self._explained.get(database, 0)
        if hits and self._is_name and path.name in _SETTINGS:
            self._notes[f"{self._name(path)} names it: that is a setting of yours"] = None
        elif hits and not (database != path and explained) and hits > explained:
            self._found[f"{self._name(path)}: its bytes"] = None

    def _raw_hits(self, path: Path) -> Iterator[int]:
        with path.open("rb") as file:
            start, before = 0, b""
            while chunk := file.read(_CHUNK):
                data = before + chunk
                is_last = len(chunk) < _CHUNK
                end = len(data) if is_last else len(data) - _OVERLAP // 2
                for match in self._pattern.finditer(data):
                    if match.start() < end and (not before or match.start() >= _OVERLAP // 2):
                        yield start + match.start()
                before = data[-_OVERLAP:]
                start += len(data) - len(before)

    # What is in rows

    def _search_database(self, path: Path) -> None:
        """Every value of every row of a SQLite file. A backup is searched like the store that it is one of."""
        uri = f"{path.absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=20)) as connection:
                connection.text_factory = bytes
                self._search_tables(path, connection)
        except sqlite3.Error as error:
            self._notes[f"{self._name(path)} cannot be read ({error}): only its bytes were searched"] = None

    def _search_tables(self, path: Path, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        tables = [name.decode() for (name,) in names]
        pages: dict[int, bytes] = {}
        if "pages" in tables and "versions" in tables:
            self._told_free_space(path, connection)
            pages = dict(connection.execute("SELECT id, url FROM pages"))
        for table in tables:
            rows = connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608  a name from the schema
            columns = [column[0] for column in rows.description]
            for row in rows:
                self._search_row(path, table, dict(zip(columns, row, strict=True)), pages)

    def _search_row(self, path: Path, table: str, row: dict[str, object], pages: dict[int, bytes]) -> None:
        raw = sum(len(self._pattern.findall(value)) for value in row.values() if isinstance(value, bytes))
        hits = raw
        if isinstance(content := row.get("content_zstd"), bytes):
            hits += self._hits_in(self._frame(path, content))
        if table == "versions" and isinstance(data := row.get("data"), bytes):
            with suppress(zlib.error):
                hits += len(self._pattern.findall(unpacked_bytes(data)))
        if not hits:
            return
        page_id = row.get("page_id")
        url = pages.get(page_id, b"") if table == "versions" and isinstance(page_id, int) else b""
        if url and self._is_name and path.suffix != ".backup" and not self._pattern.search(url):
            self._mentioned[url.decode("utf-8", "replace")] = None
            self._explained[path] = self._explained.get(path, 0) + raw
        elif table == "hooks" and self._is_name:
            self._notes["a notification selects it: that is a choice of yours, see 'levada notify list'"] = None
            self._explained[path] = self._explained.get(path, 0) + raw
        elif table == "keys" and self._is_name:
            self._notes["a key names it: that is a choice of yours, see 'levada keys list'"] = None
            self._explained[path] = self._explained.get(path, 0) + raw
        elif url:
            self._found[f"{self._name(path)}: the stored page {url.decode('utf-8', 'replace')}"] = None
        else:
            self._found[f"{self._name(path)}: table {table}"] = None

    def _told_free_space(self, path: Path, connection: sqlite3.Connection) -> None:
        ((pages,),) = connection.execute("PRAGMA freelist_count").fetchall()
        ((page_bytes,),) = connection.execute("PRAGMA page_size").fetchall()
        if pages * page_bytes >= _FREE_TOLD:
            free = size(pages * page_bytes)
            self._notes[f"{self._name(path)} has {free} of deleted rows, whose packed contents cannot be read"] = None

    # The index

    def _search_index(self, shard: DataFolder) -> None:
        """Its entries, also those that are deleted and not yet cleaned up, and its words."""
        settings = collection_folder(shard).settings()
        if spans_shards(settings.index.engine):
            self._notes["the index in OpenSearch is built anew when something is forgotten, and was not searched"] = (
                None
            )
            return
        if settings.index.engine != "tantivy":
            self._notes[f"the index {settings.index.engine!r} of a plug-in was searched by its bytes alone"] = None
            return
        if not shard.index.is_dir():
            return
        from levada.search.tantivy.reader import held_in_index

        try:
            entries, terms = held_in_index(shard.index, self._pattern, words(self._typed))
        except LevadaError as error:
            self._notes[f"{self._name(shard.index)} cannot be read: {error}"] = None
            return
        if entries:
            self._found[f"{self._name(shard.index)}: {plural(entries, 'entry')}"] = None
        if terms and not self._is_name:
            self._found[f"{self._name(shard.index)}: its words"] = None

    # Bodies elsewhere

    def _frame(self, path: Path, content: bytes) -> bytes:
        """The content of a row, wherever it lies."""
        reference = unpacked_reference(content)
        if reference is None:
            return content
        frame = self._bodies.frames([reference])[reference] if self._bodies is not None else "is elsewhere"
        if isinstance(frame, bytes):
            return frame
        if path.suffix != ".backup":  # what the store has dropped since need not be there any more
            self._notes[f"a body of {self._name(path)} {frame}: it was not searched"] = None
        return b""

    def _hits_in(self, frame: bytes) -> int:
        with suppress(StoreError):
            text, body = unpacked(frame)
            return len(self._pattern.findall(text.encode())) + len(self._pattern.findall(body))
        return 0

    def _search_objects(self) -> None:
        """The objects that no version names; those of versions were read with their rows."""
        if self._bodies is None:
            return
        from levada.collection.storage.bodies import unnamed_frames

        with closing(self._bodies), closing(open_reading_store(self._folder)) as store:
            if store.away:
                self._notes[f"{next(iter(store.away.values()))}: {self._bodies.name} was not searched"] = None
                return
            left = sum(1 for _, frame in unnamed_frames(store, self._bodies) if self._hits_in(frame))
        if left:
            where = f"{self._bodies.name}: {plural(left, 'object')} that no version names"
            self._found[f"{where} ('levada doctor --sweep' deletes those older than a day)"] = None

    # Servers

    def _search_servers(self) -> None:
        """Pages on servers are asked for by their store: the files of a server are out of reach."""
        places = [place for place in shard_places(self._folder) if place.server]
        for place in places:
            shard = DataFolder(self._folder.path / place.folder)
            with closing(open_shard_reader(shard)) as store:
                after = 0
                while walked := store.urls_after(after, 1_000):
                    after = walked[-1][0]
                    for _, url in walked:
                        self._search_page(place.folder, url, store)
                for site in store.sites():
                    if self._pattern.search(msgspec.json.encode(site)):
                        self._found[f"{place.folder} on its server: the site {site.site}"] = None
                seq = 0
                while changes := store.change_log(seq, 500):
                    seq = changes[-1].seq
                    if any(self._pattern.search(change.url.encode()) for change in changes):
                        self._found[f"{place.folder} on its server: the change log"] = None
        if places:
            self._notes["the files, logs and backups of PostgreSQL servers are theirs: only rows were searched"] = None

    def _search_page(self, where: str, url: str, shard: Shard) -> None:
        page = shard.page(url)
        if page is not None and (self._hit(url) or self._hit(page.leads_to or "")):
            self._found[f"{where} on its server: the page {url}"] = None
        for version in shard.versions(url):
            document = shard.document(url, version.version)
            if document is None:
                continue
            body, data = document.body.decode("utf-8", "replace"), msgspec.json.encode(document.data).decode()
            held = (document.title, document.text, body, str(document.headers), data)
            if any(map(self._hit, held)):
                (self._mentioned if self._is_name and not self._hit(url) else self._found)[url] = None

    def _hit(self, text: str) -> bool:
        return self._pattern.search(text.encode("utf-8", "replace")) is not None


def _pattern_of(typed: str) -> tuple[re.Pattern[bytes], bool]:
    """What to look for, and whether it is the name of a page or a site, which the content of others may hold."""
    if "://" in typed:
        with suppress(BadUrl):
            either = b"|".join(re.escape(each.encode()) for each in dict.fromkeys((typed, *spellings(typed))))
            return re.compile(b"(?:" + either + b")" + _AFTER_URL, re.IGNORECASE), True
    if _HOST.fullmatch(typed):
        with suppress(BadQuery):
            host = re.escape(host_named(typed).encode())
            return re.compile(_BEFORE_HOST + host + _AFTER_HOST, re.IGNORECASE), True
    return re.compile(re.escape(typed.encode("utf-8", "replace")), re.IGNORECASE), False


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
