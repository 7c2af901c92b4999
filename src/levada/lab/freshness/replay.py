"""How does a real history become a world? All of it, or the days of it that hold most documents."""

from __future__ import annotations

import math
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from levada.errors import UsageError
from levada.lab.freshness.history import BadHistory, History, read_history
from levada.lab.freshness.world import Floats, Integers, World, build_world

__all__ = ["history_world", "ota_world", "replay"]

_MINUTE = 60.0
_DAY_MINUTES = 1440.0


def ota_world(days: float = 365.0) -> World:
    """The histories of the Open Terms Archive (data/SOURCE.md): the days that hold most documents."""
    with as_file(files("levada.lab").joinpath("data", "change_history_ota.tsv.gz")) as path:
        return replay(read_history(path), "ota-1y" if days == 365.0 else f"ota-{days:g}d", days)


def history_world(path: Path, days: float | None = None) -> tuple[World, tuple[str, ...]]:
    """The world of a file, and what was set right in it; all of it, or the days that hold most documents."""
    history = read_history(path)
    return replay(history, path.name.removesuffix(".gz").removesuffix(".tsv") or path.name, days), history.repairs


def replay(history: History, name: str, days: float | None) -> World:
    start, length = _window(history, days)
    documents = [each for each in history.documents if each.first < start + length and _until(each.deleted) > start]
    begins = np.array([max(0.0, each.first - start) for each in documents])
    ends = np.array([min(length, _until(each.deleted) - start) for each in documents])
    page = np.repeat(np.arange(len(documents)), [len(each.changes) for each in documents])
    at = np.array([time - start for each in documents for time in each.changes])
    return build_world(
        name,
        length * _MINUTE,
        (page, at * _MINUTE),
        _site_numbers([each.name for each in documents]),
        begins=begins * _MINUTE,
        ends=ends * _MINUTE,
    )


def _until(deleted: float | None) -> float:
    return math.inf if deleted is None else deleted


def _window(history: History, days: float | None) -> tuple[float, float]:
    """Its start and length in minutes."""
    if days is not None and not days > 0:
        raise UsageError(f"a window needs more than 0 days, not {days:g}")
    firsts = np.sort([each.first for each in history.documents])
    deleted = np.sort([_until(each.deleted) for each in history.documents])
    changes = np.sort([time for each in history.documents for time in each.changes])
    ends = deleted[np.isfinite(deleted)]
    last = max([firsts[-1], *changes[-1:], *ends[-1:]])
    whole = float(last - firsts[0])
    if whole <= 0:
        raise BadHistory("every document was seen at one and the same moment: there is nothing to replay")
    if days is None or days * _DAY_MINUTES >= whole:
        return float(firsts[0]), whole
    length = days * _DAY_MINUTES
    return _fullest(firsts, deleted, changes, float(last), length), length


def _fullest(firsts: Floats, deleted: Floats, changes: Floats, last: float, length: float) -> float:
    """The window with most documents in it; if several have as many, the one with most changes."""
    starts = np.append(np.arange(firsts[0], last - length, _DAY_MINUTES), last - length)
    held = np.searchsorted(firsts, starts + length, "left") - np.searchsorted(deleted, starts, "right")
    changed = np.searchsorted(changes, starts + length, "right") - np.searchsorted(changes, starts, "right")
    return float(starts[np.lexsort((changed, held))[-1]])


def _site_numbers(names: list[str]) -> Integers:
    """Documents of one site share what stands before the first slash (after the scheme, if there is one)."""
    numbers: dict[str, int] = {}
    sites = (name.partition("://")[2] or name for name in names)
    return np.array([numbers.setdefault(site.partition("/")[0], len(numbers)) for site in sites], np.int64)
