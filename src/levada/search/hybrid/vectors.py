"""Vectors of the passages of pages: one SQLite file beside an index.

It follows the same changes as the index, with a position of its own. A page has one row with the vectors of all its
passages, one byte a number, so that a page and its vectors go together. Deleted rows are overwritten.

A search compares its vector with all of them: exact, and fast enough for some hundred thousand passages. docs/design.md
has the measurements, and what was considered in place of this file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from levada.core.errors import PluginError, StoreDamaged
from levada.core.protocols import Embedder
from levada.core.records import Change
from levada.search.hybrid.embedding import passages_of
from levada.search.hybrid.fusion import DEPTH, NearPage
from levada.search.sqlite_errors import sqlite_errors

FILE = "vectors.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (page INTEGER PRIMARY KEY, url TEXT NOT NULL, vectors BLOB NOT NULL);
"""
_TOGETHER = 32  # pages that are embedded at once
_COMPARED_TOGETHER = 8_192  # vectors
_LARGEST = 127  # of a byte
_WAIT_SECONDS = 5.0


class VectorWriter:
    """Keeps the vectors of pages up to date; followed like an index, see `levada.follow.index`."""

    def __init__(self, index: Path, embedder: Embedder) -> None:
        self._path = index / FILE
        self._embedder = embedder
        self._connection: sqlite3.Connection | None = None

    def apply(self, changes: Iterable[Change]) -> int:
        """Compute the vectors of changed pages, and delete those of pages that are gone: all, or none."""
        taken, position, stream = 0, self.position(), iter(changes)
        with sqlite_errors(self._path):
            database = self._database
            try:
                while portion := list(islice(stream, _TOGETHER)):
                    self._write(database, portion)
                    taken += len(portion)
                    position = max(position, portion[-1].seq)
                if taken:
                    self._say(database, position)
                database.commit()
            except BaseException:
                database.rollback()
                raise
        return taken

    def position(self) -> int:
        """The `seq` up to which vectors are there; `StoreDamaged` if another model made them."""
        with sqlite_errors(self._path):
            facts = dict(self._database.execute("SELECT name, value FROM facts"))
        if facts and facts.get("model") != self._embedder.model:
            raise StoreDamaged(f"{self._path} has the vectors of another model: they are computed anew")
        return int(facts.get("position", 0))

    def clear(self) -> None:
        self.close()
        delete_vectors(self._path.parent)

    @property
    def _database(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, check_same_thread=False)
            self._connection = connection
            connection.executescript(f"PRAGMA secure_delete = ON; PRAGMA synchronous = NORMAL; {_TABLES}")
        return self._connection

    def _say(self, database: sqlite3.Connection, position: int) -> None:
        facts = (("position", position), ("model", self._embedder.model), ("dimensions", self._embedder.dimensions))
        database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts)

    def _write(self, database: sqlite3.Connection, changes: Sequence[Change]) -> None:
        newest = {change.page_id: change for change in changes}
        database.executemany("DELETE FROM pages WHERE page = ?", [(page,) for page in newest])
        passages: list[tuple[int, str]] = []
        for page, change in newest.items():
            document = change.document
            if document is not None and document.searchable and not document.gone:
                passages += [(page, passage) for passage in passages_of(document)]
        vectors = self._embedder.embed([passage for _, passage in passages]) if passages else []
        if len(vectors) != len(passages):
            raise PluginError(f"the embedder gave {len(vectors)} vectors for {len(passages)} passages")
        packed: dict[int, list[bytes]] = {}
        for (page, _), vector in zip(passages, vectors, strict=True):
            packed.setdefault(page, []).append(packed_vector(vector, self._embedder.dimensions))
        rows = [(page, newest[page].url, b"".join(each)) for page, each in packed.items()]
        database.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def delete_vectors(index: Path) -> None:
    """Delete the vectors beside an index, if there are any."""
    for name in (FILE, f"{FILE}-journal"):
        (index / name).unlink(missing_ok=True)


def packed_vector(vector: Sequence[float], dimensions: int) -> bytes:
    """A vector with one byte a number: its direction is kept, its length is not."""
    numbers = np.asarray(vector, dtype=np.float64)
    if numbers.shape != (dimensions,) or not np.isfinite(numbers).all():
        raise PluginError(f"the embedder gave a vector that is not {dimensions} finite numbers")
    largest = float(np.abs(numbers).max(initial=0.0))
    return np.rint(numbers / (largest or 1.0) * _LARGEST).astype(np.int8).tobytes()


class _Loaded(msgspec.Struct, frozen=True):
    seen: tuple[int, int]  # the file, and its state
    pages: list[tuple[int, str]]
    starts: NDArray[np.int64]  # the first vector of each page
    vectors: NDArray[np.int8]
    lengths: NDArray[np.float32]


class VectorReader:
    """Pages near a text in meaning, in the files beside one or several indexes. A missing file has none."""

    def __init__(self, indexes: Sequence[Path], embedder: Embedder) -> None:
        self._paths = [index / FILE for index in indexes]
        self._embedder = embedder
        self._loaded: dict[Path, _Loaded] = {}

    def near(self, text: str) -> list[NearPage]:
        """The pages nearest to a text, at most `DEPTH`; of the passages of a page the nearest counts."""
        asked = np.asarray(self._embedder.embed_query(text), dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if asked.shape != (self._embedder.dimensions,) or not np.isfinite(length):
            raise PluginError(f"the embedder gave a vector that is not {self._embedder.dimensions} finite numbers")
        if not length:
            return []
        found: list[NearPage] = []
        for path in self._paths:
            if (loaded := self._newest(path)) is not None:
                found += _nearest(loaded, asked / length, self._embedder.least_similarity)
        # A page that moves between shards is in two files for a moment.
        best = {page.page_id: page for page in sorted(found, key=lambda page: page.similarity)}
        return sorted(best.values(), key=lambda page: (-page.similarity, page.url))[:DEPTH]

    def close(self) -> None:
        self._loaded.clear()

    def _newest(self, path: Path) -> _Loaded | None:
        """The vectors in a file, read again when it has changed."""
        try:
            state = path.stat()
        except FileNotFoundError:
            self._loaded.pop(path, None)
            return None
        known, seen = self._loaded.get(path), (state.st_ino, state.st_mtime_ns)
        if known is None or known.seen != seen:
            with sqlite_errors(path):
                known = self._loaded[path] = self._read(path, seen)
        return known

    def _read(self, path: Path, seen: tuple[int, int]) -> _Loaded:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        rows: list[tuple[int, str, bytes]] = []
        with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS)) as database, suppress(_NoTables):
            facts = _facts_in(database)
            if facts.get("model") == self._embedder.model:  # else the writer has yet to compute them anew
                rows = database.execute("SELECT page, url, vectors FROM pages ORDER BY page").fetchall()
        size = self._embedder.dimensions
        if any(not vectors or len(vectors) % size for _, _, vectors in rows):
            raise StoreDamaged(f"{path} has vectors of another size; it can be rebuilt from the documents")
        vectors = np.frombuffer(b"".join(each for _, _, each in rows), dtype=np.int8).reshape(-1, size)
        counts = np.array([len(each) // size for _, _, each in rows], dtype=np.int64)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32))
        pages = [(page, url) for page, url, _ in rows]
        return _Loaded(seen, pages, np.cumsum(counts) - counts, vectors, np.maximum(lengths, 1.0))


class _NoTables(Exception):
    pass


def _facts_in(database: sqlite3.Connection) -> dict[str, object]:
    try:
        return dict(database.execute("SELECT name, value FROM facts"))
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):  # the writer has only just made the file
            raise _NoTables from error
        raise


def _nearest(loaded: _Loaded, asked: NDArray[np.float32], least: float) -> Iterator[NearPage]:
    if not loaded.pages:
        return
    blocks = range(0, len(loaded.vectors), _COMPARED_TOGETHER)
    # einsum, for a matrix product would wake a thread on each core, which costs more than the product.
    products = [
        np.einsum("ij,j->i", loaded.vectors[start : start + _COMPARED_TOGETHER].astype(np.float32), asked)
        for start in blocks
    ]
    similar = np.maximum.reduceat(np.concatenate(products) / loaded.lengths, loaded.starts)
    most = min(DEPTH, len(similar))
    for place in np.argpartition(-similar, most - 1)[:most]:
        if similar[place] >= least:
            page, url = loaded.pages[place]
            yield NearPage(page, url, float(similar[place]))
