"""Worlds from recorded change histories, and one fitted to the paper's tables.

Format of a history: `#` lines are comments; then one line per document, tab-separated: name, first seen, deleted
(or empty), change times joined by commas; times in minutes from any zero; gzip or plain. A line that cannot be
understood is an error that names it; what can be repaired is repaired and reported.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from levada.core.errors import NotFound, UsageError
from levada.lab.freshness.worlds import (
    CLASSES,
    HOUR,
    Bands,
    Booleans,
    Floats,
    Integers,
    LabWorld,
    Visits,
    build_world,
    poisson,
    populate,
)

_MOST_BYTES = 1 << 30  # unpacked
_MOST_MINUTES = 1e9  # nineteen centuries either way of the zero
_GZIP = b"\x1f\x8b"


class BadHistory(UsageError):
    """A history cannot be read; the message names the line."""


class DocumentHistory(NamedTuple):
    """When one document was there, and when it changed."""

    name: str
    first: float  # minutes
    deleted: float | None
    changes: tuple[float, ...]  # strictly rising, after `first`, not after `deleted`


@dataclass(frozen=True, slots=True)
class History:
    """The documents of a file, and what was repaired in it."""

    documents: tuple[DocumentHistory, ...]
    repairs: tuple[str, ...]


_Repairs = dict[str, list[int]]  # what was repaired, in which lines


def read_history(path: Path) -> History:
    """Read and repair a file of change histories."""
    repairs: _Repairs = defaultdict(list)
    documents: dict[str, DocumentHistory] = {}
    for number, line in _lines(path):
        document = _document(line, f"{path.name}, line {number}", number, repairs)
        if document is None:
            continue
        if document.name in documents:
            repairs["a document was named again: its histories were joined"].append(number)
            document = _joined(documents[document.name], document)
        documents[document.name] = document
    if not documents:
        raise BadHistory(f"{path.name} holds no document: each is a line of name, first seen, deleted, change times")
    return History(tuple(documents.values()), tuple(_sentence(*repair) for repair in repairs.items()))


def _sentence(what: str, lines: Sequence[int]) -> str:
    many = f"{len(lines)} documents, the first in " if len(lines) > 1 else ""
    return f"{what} ({many}line {lines[0]})"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = _unpacked(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path.name} is not text in UTF-8, from byte {error.start} on") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadHistory(f"{path.name} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip("\r")


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else raw as file:
            data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadHistory(f"{path.name} unpacks to more than {_MOST_BYTES:,} bytes")
    return data


def _document(line: str, where: str, number: int, repairs: _Repairs) -> DocumentHistory | None:
    fields = line.split("\t")
    if not 2 <= len(fields) <= 4 or not fields[0].strip():
        raise BadHistory(
            f"{where}: expected name, first seen, deleted and change times between tabs, not {len(fields)} fields"
        )
    name, first_text, deleted_text, times_text = (*fields, "", "")[:4]
    first = _minutes(first_text, "first seen", where)
    deleted = _minutes(deleted_text, "deleted", where) if deleted_text.strip() else None
    if deleted is not None and deleted <= first:
        repairs["a document was deleted before it was first seen: left out"].append(number)
        return None
    parts = times_text.split(",") if times_text.strip() else []
    if any(not part.strip() for part in parts):
        repairs["a change time was left empty: passed over"].append(number)
    given = [_minutes(part, "change time", where) for part in parts if part.strip()]
    return DocumentHistory(name, first, deleted, _repaired(given, first, deleted, number, repairs))


def _minutes(text: str, what: str, where: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        raise BadHistory(f"{where}: {what} is no number: {text.strip()[:40]!r}") from None
    if not math.isfinite(minutes) or abs(minutes) > _MOST_MINUTES:
        raise BadHistory(f"{where}: {what} must be between -1e9 and 1e9 minutes, not {text.strip()[:40]}")
    return minutes


def _repaired(
    given: list[float], first: float, deleted: float | None, line: int, repairs: _Repairs
) -> tuple[float, ...]:
    times = sorted(given)
    if times != given:
        repairs["change times were out of order: sorted"].append(line)
    if len(set(times)) < len(times):
        repairs["a change time was given twice: counted once"].append(line)
    if times and times[0] < first:
        repairs["a change came before the document was first seen: dropped"].append(line)
    if deleted is not None and times and times[-1] > deleted:
        repairs["a change came after the document was deleted: dropped"].append(line)
    last = math.inf if deleted is None else deleted
    # A change at the moment when the document was first seen is not a later one.
    return tuple(sorted({at for at in times if first < at <= last}))


def _joined(one: DocumentHistory, other: DocumentHistory) -> DocumentHistory:
    first = min(one.first, other.first)
    ends = (one.deleted, other.deleted)
    deleted = None if None in ends else max(end for end in ends if end is not None)
    return DocumentHistory(one.name, first, deleted, tuple(sorted({*one.changes, *other.changes})))


_MINUTE = 60.0
_DAY_MINUTES = 1440.0


def ota_world(days: float = 365.0) -> LabWorld:
    """Histories of the Open Terms Archive (data/SOURCE.md): the window of days with the most documents."""
    with as_file(files("levada.lab").joinpath("data", "change_history_ota.tsv.gz")) as path:
        return replay(read_history(path), "ota-1y" if days == 365.0 else f"ota-{days:g}d", days)


def history_world(path: Path, days: float | None = None) -> tuple[LabWorld, tuple[str, ...]]:
    """The world of a file, and its repairs: all of it, or the window of days with the most documents."""
    history = read_history(path)
    return replay(history, path.name.removesuffix(".gz").removesuffix(".tsv") or path.name, days), history.repairs


def replay(history: History, name: str, days: float | None) -> LabWorld:
    """The world in which these documents change as they did."""
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
    """Start and length of the window in minutes."""
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
    """The window with the most documents; among equals the one with the most changes."""
    starts = np.append(np.arange(firsts[0], last - length, _DAY_MINUTES), last - length)
    held = np.searchsorted(firsts, starts + length, "left") - np.searchsorted(deleted, starts, "right")
    changed = np.searchsorted(changes, starts + length, "right") - np.searchsorted(changes, starts, "right")
    return float(starts[np.lexsort((changed, held))[-1]])


def _site_numbers(names: list[str]) -> Integers:
    """Documents of one site have the same name before the first slash (after the scheme, if there is one)."""
    numbers: dict[str, int] = {}
    sites = (name.partition("://")[2] or name for name in names)
    return np.array([numbers.setdefault(site.partition("/")[0], len(numbers)) for site in sites], np.int64)


HOURS = 12
FIRST_HOUR = HOUR  # start of the first of them
_PAGES = 1046
_SPREAD = 3000.0  # seconds over which first visits are spread
_BANDS = Bands(quarter=0.22 / HOUR, half=0.4 / HOUR, most=6 / HOUR, least=1 / 12 / HOUR)
_RISE = 0.55  # activity grows from 1 minus this to 1 plus this


def fitted_world(seed: int) -> LabWorld:
    """A world in which the paper's rule meets about the pages of each class and the changes per hour of the paper.

    The paper's pages were stored before its first hour, over most of an hour, and its trace starts at one in the
    morning: so first visits are spread alike, the hours are counted from one hour on, and changes become more
    frequent towards noon. The bands were fitted to its tables.
    """
    random = np.random.default_rng([crc32(b"fitted"), seed])
    horizon = FIRST_HOUR + HOURS * HOUR
    population = populate(random, _BANDS, _PAGES)
    rates = np.where(population.classes == CLASSES.index("static"), 0.0, population.rates)
    page, at = poisson(random, rates * (1 + _RISE), horizon)
    kept = random.random(len(at)) * (1 + _RISE) < 1 - _RISE + 2 * _RISE * at / horizon
    return build_world(
        "fitted-12h",
        horizon,
        (page[kept], at[kept]),
        population.sites,
        begins=random.random(_PAGES) * _SPREAD,
        rates=rates.reshape(-1, 1),
    )


def classes_met(world: LabWorld, visits: Visits, met: Booleans) -> Integers:
    """The class of each page by its dynamics: visits that found a change over visits, without the first visit."""
    counted = visits.at >= FIRST_HOUR
    visited = np.bincount(visits.page[counted], minlength=world.pages)
    changed = np.bincount(visits.page[counted & met], minlength=world.pages)
    dynamics = changed / np.maximum(visited, 1)
    return np.where(changed == 0, 0, np.where(dynamics < 0.25, 1, np.where(dynamics <= 0.5, 2, 3)))
