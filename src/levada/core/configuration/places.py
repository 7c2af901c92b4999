"""Collections by name: folders below $XDG_DATA_HOME/levada, and folders elsewhere that were given a name."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from levada.core.configuration.layers import configuration_folder, data_folder
from levada.core.errors import NotFound, StoreError, UsageError
from levada.core.suggestions import near_names

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def named_folders() -> dict[str, Path]:
    """The folder of every collection that has a name, by name."""
    usual, there = data_folder(), []
    try:
        there = [path for path in usual.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise StoreError(f"cannot read {usual} ({error.strerror}): check who may read it") from None
    found = {path.name: path for path in there} | given_names()
    return dict(sorted(found.items()))


def folder_named(name: str, *, create: bool = False) -> Path:
    """The folder of the collection of this name; `NotFound` names the nearest unless it may be a new one."""
    check_collection_name(name)
    folders = named_folders()
    if name not in folders and not create:
        near = near_names(name, folders) if folders else f"'levada crawl --in {name} URL' starts it"
        raise NotFound(f"there is no collection named {name!r}: {near}")
    return folders.get(name, data_folder() / name)


def check_collection_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:100]!r} is no name of a collection: it takes letters, digits, '.', '-' and '_', and begins with "
            "a letter or a digit; a folder is named with --data"
        )


def name_of(folder: Path) -> str:
    """The name by which this folder can be opened; "" if it has none."""
    return next((name for name, path in named_folders().items() if path == folder.absolute()), "")


def give_name(name: str, folder: Path) -> None:
    """Give a folder a name; `UsageError` if it names another one already."""
    check_collection_name(name)
    folder, there = folder.absolute(), named_folders().get(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the one that holds the collection, or a new one")
    if there == folder:
        return
    if there is not None:
        raise UsageError(f"{name} is the name of {there} already: choose another, or remove that name first")
    _write({**given_names(), name: folder})


def take_name(name: str) -> Path:
    """Forget the name of a folder, and nothing else; returns the folder."""
    given, folders = given_names(), named_folders()
    if name in given:
        folder = given.pop(name)
        _write(given)
        return folder
    if name in folders:
        raise UsageError(f"{name} has its name from its folder {folders[name]}: rename or delete that folder")
    raise NotFound(f"there is no collection named {name[:100]!r}: {near_names(name, folders)}")


def given_names() -> dict[str, Path]:
    """The names that were given to folders."""
    file = _file()
    try:
        return {name: Path(path) for name, path in msgspec.json.decode(file.read_bytes(), type=dict[str, str]).items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"{file} cannot be read ({error}): correct it, or delete it and add the names again") from None


def _write(names: dict[str, Path]) -> None:
    file = _file()
    fresh = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode({name: str(path) for name, path in names.items()})))
        fresh.replace(file)
    except OSError as error:
        raise StoreError(f"cannot write {file}: {error.strerror}") from None


def _file() -> Path:
    return configuration_folder() / "collections.json"
