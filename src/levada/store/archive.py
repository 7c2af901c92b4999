"""The file of a backup: a tar archive, compressed with Zstandard, that says what is in it and whether it is whole.

The first member, `levada-backup.json`, says which version wrote it and what it holds. The last one, `manifest.json`,
has the size and the SHA-256 of each member between them; without it the file was cut. Everything is written and read
as a stream, so a backup can go through a pipe. `tar --zstd -xf FILE` unpacks it where Levada is not at hand.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

import msgspec
import zstandard

from levada.core.errors import StoreDamaged, StoreTooNew

BACKUP_VERSION = 1
_HEADER = "levada-backup.json"
_MANIFEST = "manifest.json"
_LEVEL = 3
_AT_ONCE = 1 << 20
_LONGEST_FACTS = 64 << 20  # bytes of the header or the manifest
_MOST_MEMBERS = 100_000
MEMBER_NAME = re.compile(r"(?:shard-[0-9]{1,4}/)?[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_DAMAGE = (zstandard.ZstdError, tarfile.TarError, EOFError, msgspec.MsgspecError, UnicodeError, ValueError)
T = TypeVar("T")


class ShardFacts(msgspec.Struct, frozen=True):
    """What a backup holds of one shard."""

    file: str  # the member
    place: str  # where it was
    format: int
    pages: int
    stored: int
    versions: int
    seq: int  # the newest change


class Header(msgspec.Struct, frozen=True):
    backup: int
    levada: str
    created: float
    format: int  # of the newest store in it
    bytes: int  # about as many when it is unpacked


class MemberFacts(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    members: tuple[MemberFacts, ...]
    shards: tuple[ShardFacts, ...]


class ArchiveWriter:
    """Writes a backup to a stream, member by member."""

    def __init__(self, out: BinaryIO, header: Header) -> None:
        self._packed = zstandard.ZstdCompressor(level=_LEVEL).stream_writer(out, closefd=False)
        self._tar = tarfile.open(fileobj=self._packed, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 -- `close`
        self._created = header.created
        self._members: list[MemberFacts] = []
        self._add_facts(_HEADER, msgspec.json.format(msgspec.json.encode(header)))

    def add(
        self, name: str, content: BinaryIO, size: int, mode: int, told: Callable[[int], None] = lambda read: None
    ) -> None:
        """Add a file of exactly so many bytes."""
        source = _Counting(content, told)
        self._tar.addfile(self._info(name, size, mode), source)
        self._members.append(MemberFacts(name, source.bytes, source.digest.hexdigest()))

    def finish(self, shards: tuple[ShardFacts, ...]) -> Manifest:
        """Write the manifest and the end of the stream."""
        manifest = Manifest(tuple(self._members), shards)
        self._add_facts(_MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        self._tar.close()
        self._packed.close()  # type: ignore[no-untyped-call]
        return manifest

    def _add_facts(self, name: str, content: bytes) -> None:
        self._tar.addfile(self._info(name, len(content), 0o600), io.BytesIO(content))

    def _info(self, name: str, size: int, mode: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, mode & 0o666, int(self._created)
        return info


class ArchiveReader:
    """Reads a backup as a stream. Nothing that it gives out is to be trusted before `members` has ended."""

    def __init__(self, source: BinaryIO, place: str, newest_format: int) -> None:
        self._place = place
        self._member = "its beginning"
        self.manifest: Manifest | None = None
        with self._noticing_damage():
            unpacked = zstandard.ZstdDecompressor().stream_reader(source, closefd=False)
            self._tar = tarfile.open(fileobj=unpacked, mode="r|")  # noqa: SIM115 -- reads only, in memory
            first = self._tar.next()
            if first is None or first.name != _HEADER:
                raise StoreDamaged(f"{place} is no backup that Levada wrote: name a file of 'levada backup'")
            self.header = _decoded(self._content(first), Header)
        if self.header.backup > BACKUP_VERSION or self.header.format > newest_format:
            raise StoreTooNew(
                f"{place} was written by a newer Levada ({self.header.levada}, store format {self.header.format}, "
                f"ours is {newest_format}): update Levada"
            )

    def members(self, take: Callable[[MemberFacts, Iterator[bytes], int], None]) -> Manifest:
        """Give each member to `take`, as its name and stated size, its bytes, and its mode; raise a `StoreDamaged`
        that names the member if one of them, or their number, is not as it was written."""
        seen: list[MemberFacts] = []
        names = set()
        with self._noticing_damage():
            while (info := self._tar.next()) is not None:
                self._member = info.name[:200]
                if info.name == _MANIFEST:
                    return self._compared(_decoded(self._content(info), Manifest), seen)
                if not info.isfile() or not MEMBER_NAME.fullmatch(info.name) or info.name in names:
                    raise StoreDamaged(f"{self._place} holds {info.name[:100]!r}, which no backup holds: use another")
                names.add(info.name)
                if len(names) > _MOST_MEMBERS:
                    raise StoreDamaged(f"{self._place} has too many members: use another backup")
                file = self._tar.extractfile(info)
                assert file is not None
                source = _Counting(file, lambda read: None)
                take(MemberFacts(info.name, info.size, ""), source.parts(), info.mode & 0o666)
                if source.bytes != info.size:
                    raise EOFError
                seen.append(MemberFacts(info.name, source.bytes, source.digest.hexdigest()))
        raise StoreDamaged(f"{self._place} is cut off after {self._member}: use another backup")

    def _compared(self, manifest: Manifest, seen: list[MemberFacts]) -> Manifest:
        for wanted, found in zip(manifest.members, seen, strict=False):
            if wanted != found:
                raise StoreDamaged(
                    f"{self._place} is damaged: {wanted.name} is not as it was written: use another backup"
                )
        if len(manifest.members) != len(seen):
            raise StoreDamaged(f"{self._place} is damaged: it holds {len(seen)} of {len(manifest.members)} members")
        return manifest

    def _content(self, info: tarfile.TarInfo) -> bytes:
        file = self._tar.extractfile(info)
        if file is None or info.size > _LONGEST_FACTS:
            raise EOFError
        return file.read()

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            if self._member == "its beginning":
                raise StoreDamaged(
                    f"{self._place} is no backup that Levada wrote, or is cut off at its beginning ({error}): name a "
                    "file of 'levada backup'"
                ) from None
            raise StoreDamaged(
                f"{self._place} is damaged or cut off in {self._member} ({error}): use another backup"
            ) from None


def _decoded(content: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(content, type=kind)


class _Counting:
    """Counts and digests what is read through it."""

    def __init__(self, source: IO[bytes], told: Callable[[int], None]) -> None:
        self._source = source
        self._told = told
        self.bytes = 0
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        part = self._source.read(size)
        self.digest.update(part)
        self.bytes += len(part)
        self._told(self.bytes)
        return part

    def parts(self) -> Iterator[bytes]:
        while part := self.read(_AT_ONCE):
            yield part


def write_parts(path: Path, parts: Iterator[bytes], mode: int) -> None:
    """Write a new file, synced."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(descriptor)
