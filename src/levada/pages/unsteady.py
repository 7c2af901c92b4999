"""Lines that are another at each visit while the rest of the page is not, learnt from the visits of one page.

A page that changed at each of its last visits, which followed each other closely, keeps hashes of its lines beside its
digest. A place is what stands after a certain line that stays. Where the same few lines were replaced by others at
`LEARNT` such visits in a row, and nothing but such places changed, they do not count from then on. They count again
once the same text is met there twice, or when the line before them goes. A line with a
price, a score, a share, a date or another figure in parts is never left out, and what changes with more than `CLOSE`
between two visits may be news of the day: it is content.

What is kept is bounded, and the work is linear in the lines. No version is made because of what was learnt: a text is
compared with the stored one by what was known then (`compare`), and stored with the digest of what is known now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from levada.core.records import Outcome, Visit
from levada.pages.change import watch_in
from levada.pages.noise import compared_lines

LEARNT = 3  # visits at which a place was another, after the one that began to watch
CLOSE = 20 * 3_600.0  # seconds between two visits
MOST_LINES = 300  # of a page: one with more is not watched
_MOST_PLACES = 8
_MOST_IN_PLACE = 3  # lines
_MOST_SHARE = 0.2  # of the lines of a page, in all places
_CALM = 2  # visits with the same text, after which it counts again
_HASH = 3  # bytes
_PLACE = Struct(">3s3sBBB")
_IN_PARTS = rb"\d\s?(?:[.,:-]|\xe2\x80[\x90-\x95])\s?\d"
_OF_MONEY = rb"[%$\xa3\xa5]|\xe2\x82[\xa0-\xbf]|\b[A-Z]{2,3} ?\d|\d ?(?:[A-Z]{2,3}|kr)\b"
_VALUE = re.compile(_IN_PARTS + b"|" + _OF_MONEY)


class Place(NamedTuple):
    after: bytes  # hash of the line before it, which stays
    text: bytes  # hash of what stood there last
    most: int  # lines in it
    times: int  # it was another, up to LEARNT
    calm: int  # visits in a row at which it was the same

    @property
    def is_learnt(self) -> bool:
        return self.times >= LEARNT


class Watch(NamedTuple):
    """What is known of a page: the lines of the last visit without those of learnt places, and its places."""

    lines: tuple[bytes, ...] = ()  # hashes
    places: tuple[Place, ...] = ()

    @classmethod
    def unpacked(cls, packed: bytes) -> Watch:
        if not packed:
            return _NOTHING
        count = packed[0]
        end = 1 + count * _PLACE.size
        places = tuple(Place(*found) for found in _PLACE.iter_unpack(packed[1:end]))
        return cls(tuple(packed[at : at + _HASH] for at in range(end, len(packed), _HASH)), places)

    def packed(self) -> bytes:
        if not self.lines:
            return b""
        return (
            bytes((len(self.places),)) + b"".join(_PLACE.pack(*place) for place in self.places) + b"".join(self.lines)
        )

    def left_out(self, lines: Sequence[bytes]) -> list[int]:
        """Which lines stand in places that do not count."""
        learnt = {place.after: place for place in self.places if place.is_learnt}
        return [at for found in _met(learnt.values(), self.lines, lines).values() for at in found] if learnt else []

    def compared(self, text: bytes) -> bytes:
        """The text without what does not count."""
        if not any(place.is_learnt for place in self.places):
            return text
        lines = text.split(b"\n")
        without = set(self.left_out(lines))
        return b"\n".join([line for at, line in enumerate(lines) if at not in without])

    def after(self, text: bytes, changes: int) -> Watch:
        """What is known after a visit that met this text, before which so many changes followed each other closely."""
        lines = text.split(b"\n")
        is_restless = changes > 0
        if len(lines) > MOST_LINES or not (is_restless or any(place.is_learnt for place in self.places)):
            return _NOTHING
        if not self.lines:
            return Watch(tuple(map(_hash, lines)))
        places = self._places_after(lines, is_restless)
        learnt = Watch(self.lines, places)
        without = set(learnt.left_out(lines))
        return Watch(tuple(_hash(line) for at, line in enumerate(lines) if at not in without), places)

    def _places_after(self, lines: Sequence[bytes], is_restless: bool) -> tuple[Place, ...]:
        hashes = list(map(_hash, lines))
        stay = set(self.lines) & set(hashes)
        new, old = _between(hashes, stay), _between(self.lines, stay)
        known = {place.after: place for place in self.places if place.after in stay}
        learnt = {after for after, place in known.items() if place.is_learnt}
        replaced = {after for after in new if after not in learnt and len(new[after]) == len(old.get(after, ()))}
        changed = sum(len(each) for after, each in new.items() if after not in learnt)
        others = (new.keys() ^ old.keys()) - learnt | ((new.keys() & old.keys()) - learnt - replaced)
        is_apart = not others and changed <= max(1.0, _MOST_SHARE * len(lines))
        places: list[Place] = []
        for after, place in known.items():
            found = [lines[at] for at in new.get(after, ())][: place.most]
            met = _hash(b"\n".join(found)) if found else place.text
            if place.is_learnt:
                calm = place.calm + 1 if found and met == place.text else 0 if found else place.calm
                if calm < _CALM and not _has_value(found):
                    places.append(place._replace(text=met, calm=calm))
            elif not is_restless or after not in replaced:
                continue  # it was the same, or too long ago
            elif not is_apart:
                places.append(place._replace(text=met))
            elif not _has_value(found):
                places.append(place._replace(text=met, times=place.times + 1))
        if is_apart and is_restless:
            for after in replaced - known.keys():
                found = [lines[at] for at in new[after]]
                if after and len(found) <= _MOST_IN_PLACE and not _has_value(found):
                    places.append(Place(after, _hash(b"\n".join(found)), len(found), 1, 0))
        return tuple(islice(places, _MOST_PLACES))


_NOTHING = Watch()


def changes_in_a_row(history: Sequence[Visit], at: float) -> int:
    """How many visits before the one at this time met a change, each soon after the one before."""
    count = 0
    for visit in reversed(history):
        if visit.outcome is not Outcome.CHANGED or at - visit.at > CLOSE:
            break
        count, at = count + 1, visit.at
    return count


def uncounted_lines(text: str, title: str, digest: bytes | None) -> list[str]:
    """The lines of a stored text that do not count: noise by its form, and learnt lines."""
    lines = text.split("\n")
    counted = compared_lines(lines, title)
    learnt = {counted[at] for at in Watch.unpacked(watch_in(digest)).left_out([line.encode() for line in counted])}
    kept = set(counted) - learnt
    return [line for line in lines if line not in kept]


def _hash(line: bytes) -> bytes:
    return crc32(line).to_bytes(4, "big")[1:]


def _has_value(lines: Iterable[bytes]) -> bool:
    return any(_VALUE.search(line) for line in lines)


def _between(hashes: Sequence[bytes], stay: set[bytes]) -> dict[bytes, list[int]]:
    """By the last line before them that stays, the lines that do not; b"" at the start."""
    found: dict[bytes, list[int]] = {}
    after = b""
    for at, each in enumerate(hashes):
        if each in stay:
            after = each
        else:
            found.setdefault(after, []).append(at)
    return found


def _met(places: Iterable[Place], known: Sequence[bytes], lines: Sequence[bytes]) -> dict[bytes, list[int]]:
    """By place the lines in it: those after its line that were not on the page before, up to as many as it has."""
    stay = set(known)
    wanted = {place.after: place.most for place in places}
    found: dict[bytes, list[int]] = {}
    after = b""
    for at, line in enumerate(lines):
        each = _hash(line)
        if each in stay:
            after = each
        elif after in wanted and len(found.get(after, ())) < wanted[after]:
            found.setdefault(after, []).append(at)
        else:
            after = b""
    return found
