"""How many pages link to a page, and what they call it: one SQLite file beside an index.

It follows the same changes as the index. What a page says about others is replaced when the page has a new version, so
a batch that is repeated after a crash counts once. Nothing in the index itself changes: a page that is linked to more
often ranks higher with the next search, without being indexed again.

For each page that links, eight bytes a link are kept (the number of the address, shortened, and of the text), to take
back what it said before. For each address, the number of pages, and the `KEPT` most frequent texts of their links,
counted as in Metwally et al. 2005 (Space-Saving): a new text replaces the rarest one and inherits its count, so the
frequent ones are never lost and no address needs more room.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from levada.core.hashing import term_number
from levada.core.records import Change
from levada.pages.folding import fold
from levada.pages.links import anchors_in
from levada.search.ranking import LinkFacts
from levada.search.sqlite_errors import sqlite_errors

KEPT = 8  # texts of an address
_TABLES = """
CREATE TABLE IF NOT EXISTS said (page INTEGER PRIMARY KEY, links BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS linked (address INTEGER PRIMARY KEY, pages INTEGER NOT NULL, texts BLOB NOT NULL);
"""
_TEXT_BITS = 16
_ADDRESS_MASK = (1 << 47) - 1
_TEXT_MASK = (1 << _TEXT_BITS) - 1
_MAPPED = 1 << 30  # bytes of the file that are read without a call of the system for each page
_WAIT_SECONDS = 1.0  # for a commit of the writer
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[tuple[str, int], ...]).decode


class LinkWriter:
    """Counts the links of pages as they change. Every failure is a `StoreError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def count(self, changes: Iterable[Change]) -> None:
        """Count what the changed pages say now, instead of what they said before. Durable after `commit`."""
        with sqlite_errors(self._path):
            self._count(changes)

    def _count(self, changes: Iterable[Change]) -> None:
        newest = {change.page_id: change for change in changes}
        pages: Counter[int] = Counter()
        texts: defaultdict[int, Counter[str]] = defaultdict(Counter)
        lost: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for change in newest.values():
            before = self._said(change.page_id)
            now = _links_of(change)
            if now.keys() == before:
                continue
            for link in now.keys() - before:
                texts[_address(link)][now[link]] += 1
            for link in before - now.keys():
                lost[_address(link)][link & _TEXT_MASK] += 1
            pages.update(_addresses(now) - _addresses(before))
            pages.subtract(_addresses(before) - _addresses(now))
            self._say(change.page_id, now.keys())
        for address in {*pages, *texts, *lost}:
            self._change(address, pages[address], texts[address], lost[address])

    def commit(self) -> None:
        with sqlite_errors(self._path):
            if self._connection is not None:
                self._connection.commit()

    def drop(self) -> None:
        """Forget what was counted since the last commit, and close."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _database(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, check_same_thread=False)
            self._connection.executescript(f"PRAGMA synchronous = NORMAL; {_TABLES}")
        return self._connection

    def _said(self, page: int) -> set[int]:
        row = self._database.execute("SELECT links FROM said WHERE page = ?", (page,)).fetchone()
        return set(array("Q", row[0])) if row else set()

    def _say(self, page: int, links: Iterable[int]) -> None:
        packed = array("Q", sorted(links)).tobytes()
        if packed:
            self._database.execute("INSERT OR REPLACE INTO said VALUES (?, ?)", (page, packed))
        else:
            self._database.execute("DELETE FROM said WHERE page = ?", (page,))

    def _change(self, address: int, pages: int, texts: Counter[str], lost: Counter[int]) -> None:
        known = self._database.execute("SELECT pages, texts FROM linked WHERE address = ?", (address,)).fetchone()
        before, packed = known or (0, b"")
        kept = dict(_decode(packed)) if packed else {}
        kept = {text: left for text, n in kept.items() if (left := n - lost[_text_number(text)]) > 0}
        for text, more in texts.items():
            if text not in kept and len(kept) >= KEPT:
                rarest = min(kept, key=kept.__getitem__)
                more += kept.pop(rarest)
            kept[text] = kept.get(text, 0) + more
        if before + pages > 0:
            row = (address, before + pages, _encode(sorted(kept.items(), key=lambda each: -each[1])))
            self._database.execute("INSERT OR REPLACE INTO linked VALUES (?, ?, ?)", row)
        else:
            self._database.execute("DELETE FROM linked WHERE address = ?", (address,))


class LinkReader:
    """What the files beside one or several indexes say of addresses; nothing where a file is missing or damaged: links
    only help to rank."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._connections: dict[Path, tuple[tuple[int, int], sqlite3.Connection]] = {}

    def facts(self, urls: Sequence[str]) -> Mapping[str, LinkFacts]:
        numbers = {term_number(url) & _ADDRESS_MASK: url for url in urls}
        asked = _question(len(numbers))
        found: dict[str, LinkFacts] = {}
        for path in self._paths:
            with suppress(sqlite3.Error, OSError, msgspec.MsgspecError):
                for number, pages, packed in self._opened(path).execute(asked, tuple(numbers)).fetchall():
                    url, anchors = numbers[number], _decode(packed)
                    if (known := found.get(url)) is not None:
                        pages, anchors = known.pages + pages, (*known.anchors, *anchors)
                    found[url] = LinkFacts(pages, anchors)
        return found

    def close(self) -> None:
        for _, connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _opened(self, path: Path) -> sqlite3.Connection:
        """A connection to the file that is there now: an index that is built anew has another one."""
        there = path.stat()
        seen = there.st_ino, there.st_dev
        known = self._connections.get(path)
        if known is not None and known[0] == seen:
            return known[1]
        if known is not None:
            known[1].close()
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS, check_same_thread=False
        )
        connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
        self._connections[path] = seen, connection
        return connection


@cache
def _question(addresses: int) -> str:
    places = ", ".join("?" * addresses)
    return f"SELECT address, pages, texts FROM linked WHERE address IN ({places})"  # noqa: S608  question marks


def _links_of(change: Change) -> dict[int, str]:
    """The links of a page to others, each with its text."""
    document = change.document
    if document is None or document.gone:
        return {}
    own = term_number(document.url) & _ADDRESS_MASK
    links: dict[int, str] = {}
    for number, text in anchors_in(document.packed_anchors):
        address, folded = number & _ADDRESS_MASK, _folded(text)
        if address != own and folded:
            links[address << _TEXT_BITS | _text_number(folded)] = folded
    return links


def _address(link: int) -> int:
    return link >> _TEXT_BITS


def _addresses(links: Iterable[int]) -> set[int]:
    return {_address(link) for link in links}


@lru_cache(maxsize=1 << 14)
def _text_number(text: str) -> int:
    return term_number(text) & _TEXT_MASK


@lru_cache(maxsize=1 << 14)
def _folded(text: str) -> str:
    return " ".join(fold(text).split())
