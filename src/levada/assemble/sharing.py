"""How do several processes work on one data folder?

    lock        held by `levada control`, which alone hands out pages; no crawl runs beside it
    collection  a random name, made once; queues and messages bear it, and the schemas on servers

Workers take no lock: whatever they commit is committed under a lease, or refused. But a lease of one collection
means nothing in another, so they read the name first, and look at no message that bears another.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from levada.assemble.folder import DataFolder
from levada.errors import NotFound, StoreError

__all__ = ["collection_name", "make_collection_name"]

_NAME = re.compile(r"[0-9a-f]{16}")


def make_collection_name(folder: DataFolder) -> str:
    """The one that is there, or a new one; of several who ask at the same time, all get the same."""
    with suppress(NotFound):
        return collection_name(folder)
    import secrets  # here: it is named once in its life

    path = folder.path / "collection"
    name = secrets.token_hex(8)
    fresh = path.with_suffix(f".{name}")
    try:
        fresh.write_text(name, encoding="ascii")
        with suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    except OSError as error:
        raise StoreError(f"cannot write in {folder.path}: {error.strerror}") from None
    return collection_name(folder)


def collection_name(folder: DataFolder) -> str:
    path = folder.path / "collection"
    try:
        name = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise NotFound(
            f"nobody hands out pages of {folder.path}: start 'levada control --data {folder.path}'"
        ) from None
    except (OSError, UnicodeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from None
    if not _NAME.fullmatch(name):
        raise StoreError(f"{path} does not hold a collection's name: delete it, and start 'levada control' again")
    return name
