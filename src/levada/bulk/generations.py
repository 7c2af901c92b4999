"""Which copy of the table do readers see?

A load writes under a new generation that nobody reads; when all its tasks are done, one pointer is swapped. The
pointer is a `Manifest`: which generations make up the map, the newest first. A whole load is one generation; an
incremental one lies over those before it.
"""

from __future__ import annotations

import re

import msgspec

from levada.errors import StoreDamaged, UsageError

__all__ = ["MOST_LAYERS", "LoadPlan", "Manifest", "checked_name", "decoded_manifest", "encoded_manifest"]

MOST_LAYERS = 8  # then an incremental load is refused: each layer is one more place to look
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?")


class LoadPlan(msgspec.Struct, frozen=True):
    """What is loaded; two loads with the same plan fill the same map."""

    name: str
    source: str  # without its password
    table: str
    key: str
    value: str
    collect: bool = False
    watermark: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    """A published map: everything that a reader needs to know."""

    plan: LoadPlan
    generation: int
    layers: tuple[int, ...]  # generations, the newest first
    key_kind: str
    value_kind: str
    keys: int  # of the newest layer
    rows: int
    digest: int
    buckets: int = 1
    newest: str | None = None  # of the watermark's column: where the next incremental load begins
    published_at: float = 0.0


def checked_name(name: str) -> str:
    """A name that stays inside its prefix: of keys, files and tables alike."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(
            f"{name[:80]!r} is no name for a map: letters, digits and . _ - inside, such as categories"
        )
    return name


def encoded_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest)


def decoded_manifest(data: bytes) -> Manifest:
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise StoreDamaged("what stands under the map's name was not written by levada load") from error
