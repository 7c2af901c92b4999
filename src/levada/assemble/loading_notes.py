"""Which loads were asked for from here? So that `levada load get categories 1` need not name a server.

Addresses may hold passwords: the file is its owner's alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from levada.assemble.loading import LoadRequest
from levada.errors import StoreDamaged, StoreError

__all__ = ["note_load", "noted_load", "noted_loads"]

_FILE = "loads.json"


def noted_load(folder: Path, name: str) -> LoadRequest | None:
    return noted_loads(folder).get(name)


def note_load(folder: Path, request: LoadRequest) -> None:
    """Whole or not at all, whoever else writes."""
    notes = noted_loads(folder) | {request.name: request}
    draft = folder / f".{_FILE}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(notes))
        draft.replace(folder / _FILE)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error


def noted_loads(folder: Path) -> dict[str, LoadRequest]:
    try:
        data = (folder / _FILE).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{folder / _FILE} cannot be read: {error.strerror or error}") from error
    try:
        return msgspec.json.decode(data, type=dict[str, LoadRequest])
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"{folder / _FILE} is damaged: remove it, and name --to and --from again") from error
