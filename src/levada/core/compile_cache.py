"""Compile cache: plain Python arithmetic, compiled with numba and kept on disk.

`compiled` compiles a function together with the Levada functions that it calls. The result is kept in the user's
cache folder under a digest of Levada's sources, because numba does not notice a change in a called function.
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

from levada.core.errors import MissingExtra

Function = TypeVar("Function", bound=Callable[..., Any])

_COMPILED = ("freshness", "grouping", "stages", "lab")  # the packages whose sources are in the digest
_KEPT_SECONDS = 14 * 86_400.0
_done: dict[tuple[object, ...], Any] = {}


def compiled(function: Function, *, allocates: bool = True, **given: Callable[..., Any]) -> Function:
    """The same function, compiled once per process, and once per machine if the cache folder can be written.

    `allocates=False` promises that the called functions create no arrays. They then need no reference counts,
    which saves a third of the time. `given` replaces functions that it calls by those names: passed as arguments,
    they would be compiled again by every process.
    """
    return _compiled(function, given, inner=False, allocates=allocates)


def _compiled(function: Function, given: Mapping[str, Callable[..., Any]], *, inner: bool, allocates: bool) -> Function:
    """Compile one function. Only compiled code calls `inner` ones: without a Python wrapper they compile faster."""
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
        steps = (f"{each.__module__}.{each.__qualname__}" for each in given.values())
        copy.__qualname__ = ".".join((function.__qualname__, *steps, *kind))
        _done[key] = _njit()(copy, no_cpython_wrapper=inner, no_cfunc_wrapper=True, _nrt=allocates or not inner)
    kept: Function = _done[key]
    return kept


def kernel(function: Function) -> Function:
    """A decorator for functions that run only compiled; the Levada functions that they call are kernels too."""
    kept: Function = _njit()(function, no_cfunc_wrapper=True)
    return kept


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the garbage collector off for a while: it takes a tenth of the time of a compilation."""
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
    """The user's own cache folder: its content is executed, so nobody else may write there."""
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
    """Remove what was compiled from other sources two weeks ago or earlier."""
    for other in folder.parent.iterdir():
        if other != folder and folder.stat().st_mtime - other.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


def _digest() -> str:
    digest = blake2b(digest_size=8)
    root = Path(__file__).parents[1]
    for path in sorted(path for part in _COMPILED for path in (root / part).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
