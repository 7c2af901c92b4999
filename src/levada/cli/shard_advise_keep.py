"""How is an advised placement kept in a file, for scripts and for the store?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from levada.errors import LevadaError, UsageError
from levada.sharding.placement import Placement

__all__ = ["PlacementFile", "read_placement", "write_placement"]


class PlacementFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`values`: what the first field of the key was seen to hold."""

    collection: str
    placement: Placement
    values: tuple[str | int | float | bool | None, ...] = ()


def write_placement(path: Path, collection: str, placement: Placement, values: tuple[Any, ...]) -> None:
    scalars = tuple(value for value in values if isinstance(value, str | int | float | bool | None))
    kept = PlacementFile(collection, placement, scalars)
    from levada.adapters.exports.whole_file import whole_file

    with whole_file(path, force=True) as out:
        out.write(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")


def read_placement(path: Path) -> PlacementFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PlacementFile)
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} holds no placement (levada shard advise --keep): {error}") from None
