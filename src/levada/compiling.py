"""How does plain arithmetic of the parts run at the speed of the machine, without being written twice?

`compiled` takes a function as it stands, with the functions of Levada that it calls, and has numba compile them.
What was compiled is kept in the user's cache folder under a digest of Levada's own sources: numba itself would not
notice that a function called from elsewhere has changed.
"""

from __future__ import annotations

import os
import shutil
import types
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from levada.errors import MissingExtra

__all__ = ["compiled", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

_KEPT_SECONDS = 14 * 86_400.0
_done: dict[tuple[object, ...], Any] = {}


def compiled(function: Function, **given: Callable[..., Any]) -> Function:
    """The same function, compiled; once per process, and once per machine as far as its folders can be written.

    What is `given` stands for functions that it calls by those names: as arguments they would be compiled anew by
    every process.
    """
    key = (function, *given.values())
    if key not in _done:
        njit = _njit()
        names = function.__code__.co_names
        scope = {
            name: compiled(value) if isinstance(value, types.FunctionType) and _is_ours(value) else value
            for name, value in {**function.__globals__, **given}.items()
            if name in names or name.startswith("__")
        }
        copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
        copy.__module__ = function.__module__
        copy.__qualname__ = ".".join((function.__qualname__, *(each.__module__ for each in given.values())))
        _done[key] = njit(copy)
    kept: Function = _done[key]
    return kept


def kernel(function: Function) -> Function:
    """A decorator for functions that are only ever compiled; those of Levada that it calls are kernels too."""
    kept: Function = _njit()(function)
    return kept


def _is_ours(function: types.FunctionType) -> bool:
    return (function.__module__ or "").startswith("levada.")


@cache
def _njit() -> Any:
    try:
        import numba
    except ImportError:
        raise MissingExtra("numba", "lab") from None
    folder = _cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return numba.njit(cache=folder is not None, error_model="numpy")


def _cache_folder() -> Path | None:
    """The user's own, for what lies there is run: never one that others can write."""
    for base in (os.environ.get("XDG_CACHE_HOME"), "~/.cache"):
        if base:
            folder = Path(base).expanduser() / "levada" / "compiled" / _digest()
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if os.access(folder, os.W_OK):
                _remove_old(folder)
                return folder
    return None


def _remove_old(folder: Path) -> None:
    """What was compiled from sources that are long gone."""
    for other in folder.parent.iterdir():
        if other != folder and folder.stat().st_mtime - other.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


def _digest() -> str:
    digest = blake2b(digest_size=8)
    root = Path(__file__).parent
    for path in sorted(path for part in _COMPILED for path in (root / part).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_COMPILED = ("freshness", "grouping", "stages", "lab")
