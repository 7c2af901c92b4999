"""Which place a collection has for its bodies: the file `bodies.json` of its folder, and a marker in the place.

The file decides, so that a later command without the setting, or with another one, does not look in the wrong place.
The marker says to which collection the objects belong: two collections in one place would delete each other's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from levada.core.errors import SettingsError, StoreError
from levada.core.files import sync_folder, write_durably
from levada.core.folder import DataFolder
from levada.store.bodies.bodies import Bodies
from levada.store.bodies.places import MARKER, FolderPlace, Place

if TYPE_CHECKING:
    from levada.core.settings import BodiesSettings

FILE = "bodies.json"


class HeldPlace(msgspec.Struct, frozen=True):
    """What the file says."""

    place: str
    owner: str  # a random name, which the marker carries
    made: bool = False  # the marker was written


class _Marker(msgspec.Struct, frozen=True):
    levada_bodies: str


def same_place(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def open_place(address: str, settings: BodiesSettings) -> Place:
    """The place of this address. Nothing is read or written yet."""
    from urllib.parse import unquote, urlsplit  # here: most collections have no such place

    parts = urlsplit(address)
    if parts.scheme == "file":
        return FolderPlace(Path(unquote(parts.path)))
    from levada.store.bodies.s3 import S3Place

    return S3Place(parts.netloc, parts.path.strip("/"), settings)


def held_place(folder: DataFolder) -> HeldPlace | None:
    """Where the bodies of this collection lie; None where they are with the rows."""
    path = folder.path / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=HeldPlace)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"{path} cannot be read ({error}): restore it from a backup of the collection") from None


def keep_place(folder: DataFolder, held: HeldPlace | None) -> None:
    """Write the file, or delete it."""
    path = folder.path / FILE
    if held is None:
        path.unlink(missing_ok=True)
    else:
        draft = path.with_suffix(".new")
        write_durably(draft, msgspec.json.encode(held), os.O_TRUNC)
        draft.replace(path)
    sync_folder(folder.path)


def make_bodies(place: Place, settings: BodiesSettings) -> Bodies:
    return Bodies(place, least=settings.least, parallel=settings.parallel, cache_bytes=settings.cache)


def reading_bodies(folder: DataFolder) -> Bodies | None:
    """The bodies of a collection that is read."""
    held = held_place(folder)
    if held is None:
        return None
    settings = folder.settings().bodies
    return make_bodies(open_place(held.place, settings), settings)


def writing_bodies(folder: DataFolder, asked: str) -> Bodies | None:
    """The bodies of a collection that is written, in the place that it has, or in the one that is asked for."""
    held = held_place(folder)
    if held is not None and held.made and asked and not same_place(held.place, asked):
        raise SettingsError(
            f"the bodies of the collection in {folder.path} lie in {held.place}, and store.bodies is {asked}: bring "
            f"them there with 'levada move --bodies {asked}', or leave store.bodies out"
        )
    if held is None or not (held.made or same_place(held.place, asked or held.place)):
        if not asked:
            return None
        from secrets import token_hex  # here: a place is taken once

        held = HeldPlace(asked, token_hex(8))
    settings = folder.settings().bodies
    bodies = make_bodies(open_place(held.place, settings), settings)
    take_place(folder, held, bodies.place)
    return bodies


def take_place(folder: DataFolder, held: HeldPlace, place: Place, *, keep: bool = True) -> None:
    """Make sure that the place is this collection's; the first time, make it so.

    The file is written before the marker: a crash in between leaves nothing that belongs to nobody. Without `keep`,
    it is left to the caller.
    """
    there = _marker(place)
    if held.made:
        if there is None:
            raise StoreError(
                f"{place.name} holds no bodies of the collection in {folder.path}: it is empty, not mounted or "
                f"another one. Nothing was written; see {folder.path / FILE}"
            )
    elif there is None:
        if keep:
            keep_place(folder, held)
        place.put(MARKER, msgspec.json.encode(_Marker(held.owner)))
    if there is not None and there != held.owner:
        raise StoreError(
            f"{place.name} holds the bodies of another collection: name another place or prefix. If that collection is "
            f"gone, delete the object {MARKER} there"
        )
    if keep and not held.made:
        keep_place(folder, msgspec.structs.replace(held, made=True))


def join_place(folder: DataFolder, address: str, settings: BodiesSettings) -> None:
    """Note where the bodies of a collection lie that another folder has made, if any lie there yet."""
    if address and (owner := _marker(open_place(address, settings))) is not None:
        keep_place(folder, HeldPlace(address, owner, made=True))


def shared_bodies(address: str, settings: BodiesSettings) -> Bodies | None:
    """The bodies of a collection whose folder is on another machine."""
    if not address:
        return None
    place = open_place(address, settings)
    if _marker(place) is None:
        raise StoreError(f"{place.name} holds no bodies of a collection: check store.bodies where levada control runs")
    return make_bodies(place, settings)


def _marker(place: Place) -> str | None:
    content = place.get(MARKER)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=_Marker).levada_bodies
    except msgspec.MsgspecError:
        raise StoreError(f"{place.name} has an object {MARKER} that is not Levada's: name another prefix") from None
