"""How does plain arithmetic of the parts run at the speed of the machine, without being written twice?

`compiled` takes a function as it stands, with the functions of Levada that it calls, and has numba compile them.
What was compiled is kept in the user's cache folder under a digest of Levada's own sources: numba itself would not
notice that a function called from elsewhere has changed.
"""

from __future__ import annotations

import gc
import os
import shutil
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from levada.errors import MissingExtra

__all__ = ["compiled", "kernel", "uncollected"]

Function = TypeVar("Function", bound=Callable[..., Any])

_KEPT_SECONDS = 14 * 86_400.0
_done: dict[tuple[object, ...], Any] = {}


def compiled(function: Function, *, allocates: bool = True, **given: Callable[..., Any]) -> Function:
    """The same function, compiled; once per process, and once per machine as far as its folders can be written.

    What it calls and never `allocates` arrays need not count who holds them, which is a third of the time.

    What is `given` stands for functions that it calls by those names: as arguments they would be compiled anew by
    every process.
    """
    return _compiled(function, given, inner=False, allocates=allocates)


def _compiled(
    function: Function, given: Mapping[str, Callable[..., Any]], *, inner: bool, allocates: bool
) -> Function:
    """Inner functions are called by compiled ones only: without a way in from Python they compile sooner."""
    key = (inner, allocates, function, *given.values())
    if key not in _done:
        names = function.__code__.co_names
        scope = {
            name: _compiled(value, {}, inner=True, allocates=allocates) if _is_ours(value) else value
            for name, value in {**function.__globals__, **given}.items()
            if name in names or name.startswith("__")
        }
        copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
        copy.__module__ = function.__module__
        kind = ("inner" if allocates else "lean",) if inner else ()
        copy.__qualname__ = ".".join((function.__qualname__, *(each.__module__ for each in given.values()), *kind))
        _done[key] = _njit()(copy, no_cpython_wrapper=inner, no_cfunc_wrapper=True, _nrt=allocates or not inner)
    kept: Function = _done[key]
    return kept


def kernel(function: Function) -> Function:
    """A decorator for functions that are only ever compiled; those of Levada that it calls are kernels too."""
    kept: Function = _njit()(function, no_cfunc_wrapper=True)
    return kept


@contextmanager
def uncollected() -> Iterator[None]:
    """Nobody looks for rings of garbage meanwhile: while a function is compiled, that is a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _is_ours(value: object) -> bool:
    return isinstance(value, types.FunctionType) and (value.__module__ or "").startswith("levada.")


@cache
def _njit() -> Any:
    try:
        import numba
    except ImportError:
        raise MissingExtra("numba", "lab") from None
    folder = _cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return partial(numba.njit, cache=folder is not None, error_model="numpy")


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
