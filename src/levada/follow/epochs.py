"""What a follower does when the store has lost its newest changes.

A server that fails over to a standby that was behind has lost what was committed last. Its changes are numbered on
from far above all numbers that were ever given, so no follower misses a new one, whatever its position. What a
follower took in of the lost changes is still in it: `AppliedChanges` remembers which pages they concern, and these
are taken in again as the store has them now. Where it does not reach back so far, everything is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Protocol

from levada.core.errors import StoreDamaged
from levada.core.files import write_durably
from levada.core.records import Change
from levada.store.base import Capability, Epoch, Store, WithEpochs

KEPT = 200_000  # changes that are remembered; a standby that is further behind than that is followed from the beginning
_TOGETHER = 32
_RECORD = Struct("<QQ")  # number of the change, number of the page


class _Taker(Protocol):
    def apply(self, changes: Iterable[Change]) -> int: ...
    def position(self) -> int: ...


def epochs_of(store: Store) -> Sequence[Epoch]:
    """The epochs of a store, the oldest first; none where changes are never lost."""
    if Capability.EPOCHS not in store.capabilities:
        return ()
    assert isinstance(store, WithEpochs)
    return store.epochs()


def common_step(known: str, epochs: Sequence[Epoch]) -> int | None:
    """The last change that the epoch `known` has in common with the newest one; None if it is not known at all."""
    names = [each.name for each in epochs]
    if known not in names:
        return None
    later = epochs[names.index(known) + 1 :]
    return min((each.after for each in later), default=None) if later else None


def steps_between(position: int, newest: int, epochs: Sequence[Epoch]) -> int:
    """How many changes a follower at this position is behind; numbers that were never given do not count."""
    skipped = sum(
        each.begins - max(position, each.after)
        for each in epochs
        if each.after < each.begins <= newest and position < each.begins
    )
    return max(0, newest - position - skipped)


class AppliedChanges:
    """A file with the epoch of a follower, and which pages its latest changes concerned."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def reconcile(self, store: Store, follower: _Taker) -> None:
        """Bring a follower of another epoch to this one; `StoreDamaged` if it must begin anew."""
        epochs = epochs_of(store)
        if not epochs:
            return
        newest, position = epochs[-1].name, follower.position()
        epoch, complete, records = self._read()
        if epoch is None:  # it never followed this store, or only while it was a file
            self._write(newest, position, [])
        elif epoch != newest:
            common = common_step(epoch, epochs)
            if common is None:
                raise StoreDamaged(f"{self._path.parent} followed another store")
            if position > common:
                if complete > common:
                    raise StoreDamaged(f"{self._path.parent} followed changes that were lost long ago")
                lost = dict.fromkeys(page for seq, page in records if seq > common)
                _take_again(store, follower, lost, position)
            self._write(newest, complete, [each for each in records if each[0] <= common])

    def noting(self, changes: Iterable[Change]) -> Iterator[Change]:
        """The same changes, noted before they are taken in."""
        noted: list[bytes] = []
        for change in changes:
            noted.append(_RECORD.pack(change.seq, change.page_id))
            yield change
        if noted and self._path.exists():
            with self._path.open("ab") as file:
                file.write(b"".join(noted))
                file.flush()
                os.fsync(file.fileno())
            if self._path.stat().st_size > 2 * KEPT * _RECORD.size:
                epoch, _, records = self._read()
                assert epoch is not None
                self._write(epoch, records[-KEPT][0], records[-KEPT:])

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[str | None, int, list[tuple[int, int]]]:
        """The epoch, the change after which all are there, and these."""
        try:
            head, _, body = self._path.read_bytes().partition(b"\n")
            epoch, complete = head.decode("ascii").split()
            whole = len(body) - len(body) % _RECORD.size  # the last record may be torn
            return epoch, int(complete), list(_RECORD.iter_unpack(body[:whole]))
        except FileNotFoundError:
            return None, 0, []
        except ValueError:
            raise StoreDamaged(f"{self._path} cannot be read") from None

    def _write(self, epoch: str, complete: int, records: Sequence[tuple[int, int]]) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            draft.unlink()
        content = f"{epoch} {complete}\n".encode() + b"".join(_RECORD.pack(*each) for each in records)
        write_durably(draft, content, os.O_TRUNC)
        draft.replace(self._path)


def _take_again(store: Store, follower: _Taker, pages: Iterable[int], position: int) -> None:
    """Let the follower have these pages as they are now."""

    def current() -> Iterator[Change]:
        for page in pages:
            url = store.url_of(page)
            document = store.document(url) if url else None
            yield Change(position, page, url or "", document.site if document else "", document)

    changes = current()
    while portion := list(islice(changes, _TOGETHER)):
        follower.apply(portion)
