"""Places of bodies: a folder, or a bucket of a server that speaks the protocol of S3."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from levada.core.errors import BodiesAway, StoreError, StoreFull
from levada.core.files import sync_folder

_FULL = {28, 122, 27}  # ENOSPC, EDQUOT, EFBIG
_AWAY = {5, 19, 107, 110, 112, 113, 116}  # EIO, ENODEV, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, ESTALE
DRAFT = ".part"
"""The end of the name of a file that is being written."""
MARKER = "levada-bodies.json"
"""The object that says which collection the others belong to."""


class Listed(NamedTuple):
    """An object of a listing."""

    key: str
    size: int
    modified: float


class Place(Protocol):
    """Objects by key. A `put` that returned is durable, and replaces what was there in one step.

    `BodiesAway`: the place cannot be reached now, and trying again may help. Another `StoreError`: it refuses.
    Threads may share a place.
    """

    @property
    def name(self) -> str:
        """How messages call it, without secrets."""

    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes | None:
        """The object; None if there is none."""

    def size(self, key: str) -> int | None:
        """Of the object; None if there is none."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these objects; those that are not there are no mistake."""

    def list(self) -> Iterator[list[Listed]]:
        """All objects, some at a time."""


class FolderPlace:
    """A folder, on a disk of its own or one that several machines share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path)

    def put(self, key: str, content: bytes) -> None:
        path = self.path / key
        draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{DRAFT}")
        try:
            self._make(path.parent, key)
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise self._translated(error, "written") from error

    def get(self, key: str) -> bytes | None:
        try:
            return (self.path / key).read_bytes()
        except FileNotFoundError:
            if key != MARKER:  # which tells a new place from one that is not there
                self._must_be_there()
            return None
        except OSError as error:
            raise self._translated(error, "read") from error

    def size(self, key: str) -> int | None:
        try:
            return (self.path / key).stat().st_size
        except FileNotFoundError:
            self._must_be_there()
            return None
        except OSError as error:
            raise self._translated(error, "read") from error

    def delete(self, keys: Sequence[str]) -> None:
        self._must_be_there()
        try:
            for key in keys:
                (self.path / key).unlink(missing_ok=True)
        except OSError as error:
            raise self._translated(error, "written") from error

    def list(self) -> Iterator[list[Listed]]:
        self._must_be_there()
        try:
            for folder, _, names in os.walk(self.path, onerror=_raise):
                found = []
                for name in names:
                    with suppress(FileNotFoundError):
                        path = Path(folder, name)
                        facts = path.stat()
                        found.append(Listed(str(path.relative_to(self.path)), facts.st_size, facts.st_mtime))
                if found:
                    yield found
        except OSError as error:
            raise self._translated(error, "read") from error

    def _make(self, folder: Path, key: str) -> None:
        """Make the folders of an object. Only the marker, the first object of all, makes the folder of the place."""
        if folder.is_dir():
            return
        if key != MARKER:
            self._must_be_there()
        missing = [folder, *(each for each in folder.parents if not each.is_dir())]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            sync_folder(each.parent)

    def _must_be_there(self) -> None:
        """A folder that is not mounted has no objects, and is not empty."""
        if not self.path.is_dir():
            raise BodiesAway(f"the bodies in {self.path} cannot be reached: the folder is not there (not mounted?)")

    def _translated(self, error: OSError, done: str) -> StoreError:
        if error.errno in _FULL:
            return StoreFull(f"no space left for bodies in {self.path}: free some space, then start again")
        said = error.strerror or error
        if error.errno in _AWAY:
            return BodiesAway(f"the bodies in {self.path} cannot be reached ({said}): is it mounted?")
        return StoreError(f"the bodies in {self.path} cannot be {done} ({said}): check the folder and who may use it")


def _raise(error: OSError) -> None:
    raise error
