"""How far is the index, and which number has each site? Two small files beside tantivy's own.

`position.json` says up to which step of the documents the index is durable; it is replaced after tantivy's commit,
so a crash in between repeats a batch and loses none. `sites.txt` has one site per line: a site's number is its
line, in the order of first appearance, and is durable before the first page that bears it. Numbers outlive a
rebuild.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from levada.adapters.durable_file import sync_folder, write_durably
from levada.errors import StoreDamaged, StoreTooNew

__all__ = ["IndexFolder", "damaged"]


class _Position(msgspec.Struct):
    format: int
    position: int


def damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(f"the index in {path} {what}; it can be rebuilt from the documents")


class IndexFolder:
    def __init__(self, path: Path, format: int) -> None:
        self.path = path
        self.segments = path / "segments"
        self._format = format
        self._position = path / "position.json"
        self._sites = path / "sites.txt"

    def make(self) -> None:
        """Ready the folder for its writer."""
        position = self.read_position()
        self.segments.mkdir(parents=True, exist_ok=True)
        if not (self.segments / "meta.json").exists():
            if position:
                raise damaged(self.path, "has lost its segments")
            self.write_position(0)
        self._drop_torn_line()

    def wipe(self) -> None:
        """Leave an empty index, whatever was there, unless a writer holds it."""
        import shutil  # here: most writers never wipe

        with self._lock():
            self.path.mkdir(parents=True, exist_ok=True)
            # In this order a crash at any point leaves an index that is behind, or empty: never one that is ahead.
            # On a full disk the first step fails, and what follows makes room.
            with suppress(OSError):
                self.write_position(0)
            (self.segments / "meta.json").unlink(missing_ok=True)
            shutil.rmtree(self.segments, ignore_errors=True)
            self.write_position(0)
            try:
                self._whole_lines()
            except StoreDamaged:
                self._sites.unlink()

    def read_position(self) -> int:
        """0 where nothing is; raises if the index is of another format, or the file of another program."""
        try:
            state = msgspec.json.decode(self._position.read_bytes(), type=_Position)
        except FileNotFoundError:
            return 0
        except msgspec.DecodeError as error:
            raise damaged(self.path, f"cannot be read ({error})") from error
        if state.format > self._format:
            raise StoreTooNew(
                f"the index in {self.path} was written by a newer Levada: update Levada, or delete that folder "
                "and the next crawl builds it anew from the documents"
            )
        if state.format < self._format or state.position < 0:
            raise damaged(self.path, "was written by an older Levada")
        return state.position

    def write_position(self, position: int) -> None:
        draft = self._position.with_suffix(".new")
        write_durably(draft, msgspec.json.encode(_Position(self._format, position)), os.O_TRUNC)
        draft.replace(self._position)
        sync_folder(self.path)

    def read_sites(self) -> dict[str, int]:
        """Number of each site, from 1."""
        return {site: number for number, site in enumerate(self._whole_lines(), 1)}

    def append_sites(self, sites: Iterable[str]) -> None:
        write_durably(self._sites, "".join(f"{site}\n" for site in sites).encode(), os.O_APPEND)

    def _drop_torn_line(self) -> None:
        """A crash may have cut the last line; nothing refers to it yet."""
        whole = sum(len(line.encode()) + 1 for line in self._whole_lines())
        if self._sites.exists() and self._sites.stat().st_size != whole:
            os.truncate(self._sites, whole)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """tantivy's own lock on writing, taken by hand: tantivy cannot open what is damaged."""
        try:
            descriptor = os.open(self.segments / ".tantivy-writer.lock", os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(descriptor)

    def _whole_lines(self) -> list[str]:
        try:
            return self._sites.read_bytes().decode().split("\n")[:-1]
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise damaged(self.path, f"has lost its site numbers ({error})") from error
