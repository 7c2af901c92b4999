"""Which lines of two texts are the same ones? Or which words of two lines.

Pages are picked by outsiders and difflib is quadratic, so it is given only as much as it can do in a moment. What
is more is cut at its anchors, lines that each text has once (patience diff), and the gaps between are looked at
again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

__all__ = ["Block", "Budget", "aligned"]

MOST_PAIRS = 4_000_000  # lines times lines, or words times words, that difflib is given at once
MOST_PAIRS_IN_ALL = 20_000_000
MOST_TWINS = 100_000  # pairs of equal ones among them: their number is what makes difflib slow
MOST_TWINS_IN_ALL = 1_000_000
ROUNDS = 6  # of cutting at anchors

Block = tuple[str, int, int, int, int]
Pair = tuple[int, int]
Match = tuple[int, int, int]  # where it begins in the one and in the other, and how long it is


class Budget:
    """How much work is left for difflib?"""

    def __init__(self) -> None:
        self._pairs = MOST_PAIRS_IN_ALL
        self._twins = MOST_TWINS_IN_ALL

    def allows(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """May these be compared? What that costs is taken off."""
        pairs = len(one) * len(other)
        if pairs > min(self._pairs, MOST_PAIRS):
            return False
        counts = Counter(one)
        twins = sum(counts[each] for each in other)
        if twins > min(self._twins, MOST_TWINS):
            return False
        self._pairs -= pairs
        self._twins -= twins
        return True


def aligned(before: Sequence[str], after: Sequence[str], budget: Budget) -> list[Block]:
    """What is equal and what replaces what, over the whole of both; tags and places as difflib's opcodes."""
    return list(_blocks(_stretches(_matches(before, after, budget)), len(before), len(after)))


def _matches(before: Sequence[str], after: Sequence[str], budget: Budget) -> Iterator[Match]:
    gaps = [(0, len(before), 0, len(after), ROUNDS)]
    while gaps:
        i, j, k, m, rounds = gaps.pop()
        old, new = before[i:j], after[k:m]
        head = _shared(old, new)
        tail = _shared(old[head:][::-1], new[head:][::-1])
        yield i, k, head
        yield j - tail, m - tail, tail
        i, j, k, m = i + head, j - tail, k + head, m - tail
        old, new = before[i:j], after[k:m]
        if set(old).isdisjoint(new):
            continue
        if budget.allows(old, new):
            middle = SequenceMatcher(None, old, new, autojunk=False)
            yield from ((i + a, k + b, size) for a, b, size in middle.get_matching_blocks())
            continue
        anchors = [(i + a, k + b) for a, b in (_anchors(old, new) if rounds else _in_place(old, new))]
        yield from ((a, b, 1) for a, b in anchors)
        if anchors and rounds:
            starts = [(i, k), *((a + 1, b + 1) for a, b in anchors)]
            between = zip(starts, [*anchors, (j, m)], strict=True)
            gaps += [(a, c, b, d, rounds - 1) for (a, b), (c, d) in between if a < c and b < d]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many are equal, from the first on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Places in both, rising in both, that hold the same line."""
    return _once(old, new) or max(_in_place(old, new), _by_turn(old, new), key=len)


def _once(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """By the lines that each has once."""
    counts, others = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if others[line] == 1 == counts[line]}
    return _rising([(place, places[line]) for place, line in enumerate(old) if line in places])


def _in_place(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """By what stands at the same place."""
    return [(place, place) for place, (a, b) in enumerate(zip(old, new, strict=False)) if a == b]


def _by_turn(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """The first of equal lines is the first of them in the other, the second the second."""
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    for place, line in enumerate(new):
        places[line].append(place)
    return _rising([(place, places[line].popleft()) for place, line in enumerate(old) if places.get(line)])


def _rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Of pairs whose first places rise, the most whose second ones rise, too (patience sorting)."""
    ends: list[int] = []  # by length: the lowest second place at which a row of so many ends
    last: list[int] = []  # which pair that is
    previous: list[int] = []  # by pair: the one before it in its row
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    row: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = previous[number]
    return row[::-1]


def _blocks(stretches: Iterable[Match], old: int, new: int) -> Iterator[Block]:
    """What is equal, and what lies between."""
    i = k = 0
    for a, b, size in stretches:
        if i < a or k < b:
            yield "replace", i, a, k, b
        i, k = a + size, b + size
        yield "equal", a, i, b, k
    if i < old or k < new:
        yield "replace", i, old, k, new


def _stretches(matches: Iterable[Match]) -> list[Match]:
    """Each as long as it is: matches that touch are one."""
    joined: list[Match] = []
    for a, b, size in sorted(matches):
        start, other, length = joined[-1] if joined else (0, 0, 0)
        if joined and (start + length, other + length) == (a, b):
            joined[-1] = (start, other, length + size)
        elif size:
            joined.append((a, b, size))
    return joined
