"""Difference between two versions of a page, by lines and by words.

Pages are picked by outsiders and difflib is cubic, so its steps are counted and it is given only as much as it can
do in a moment. What is more is cut at its anchors, lines that each text has once (patience diff), and the gaps
between are looked at again.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any

import msgspec

from levada.core.durations import iso
from levada.core.errors import NotFound
from levada.core.records import DiffLine, PageRecord, VersionInfo
from levada.core.words import paragraphs
from levada.store.base import Store

MOST_STEPS = 4_000_000  # that difflib may take for what it is given at once
MOST_STEPS_IN_ALL = 10_000_000  # a second or so
STEPS_OF_A_LINE = 4  # besides one for each twin of it
ROUNDS = 6  # of cutting at anchors
Block = tuple[str, int, int, int, int]
Gap = tuple[int, int, int, int]  # from where to where in the one, and in the other
Pair = tuple[int, int]
Match = tuple[int, int, int]  # where it begins in the one and in the other, and how long it is


class Budget:
    """The steps that difflib may still take."""

    def __init__(self) -> None:
        self._in_all = MOST_STEPS_IN_ALL
        self._at_once = MOST_STEPS

    def begin(self) -> None:
        """Start on another text, or another part of it."""
        self._at_once = MOST_STEPS

    def allows(self, steps: int) -> bool:
        """Take this many steps if they are left; returns whether they were."""
        if steps > min(self._in_all, self._at_once):
            return False
        self._in_all -= steps
        self._at_once -= steps
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
        found, left = _longest(old, new, budget)
        pairing = _anchors if rounds else _in_place
        for gap in left:
            from_old, to_old, from_new, to_new = gap
            pairs = pairing(old[from_old:to_old], new[from_new:to_new])
            anchors = [(from_old + a, from_new + b) for a, b in pairs]
            found += [(a, b, 1) for a, b in anchors]
            if anchors and rounds:
                gaps += [(i + a, i + c, k + b, k + d, rounds - 1) for a, c, b, d in _between(anchors, gap)]
        yield from ((i + a, k + b, size) for a, b, size in found)


def _longest(old: Sequence[str], new: Sequence[str], budget: Budget) -> tuple[list[Match], list[Gap]]:
    """The longest match, then the longest on each side of it, and so on; and the gaps that would take too long."""
    found, left, gaps = list[Match](), list[Gap](), [(0, len(old), 0, len(new))]
    twins = Counter(new)
    # Of each line, difflib walks through all twins, whichever part of `new` it is given.
    steps = list(accumulate((STEPS_OF_A_LINE + twins[line] for line in old), initial=0))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    budget.begin()
    while gaps:
        i, j, k, m = gap = gaps.pop()
        if not budget.allows(steps[j] - steps[i]):
            left.append(gap)
            continue
        a, b, size = matcher.find_longest_match(i, j, k, m)
        if size:
            found.append((a, b, size))
            gaps += _open([(i, a, k, b), (a + size, j, b + size, m)])
    return found, left


def _between(anchors: Sequence[Pair], gap: Gap) -> list[Gap]:
    i, j, k, m = gap
    starts = [(i, k), *((a + 1, b + 1) for a, b in anchors)]
    return _open((a, c, b, d) for (a, b), (c, d) in zip(starts, [*anchors, (j, m)], strict=True))


def _open(gaps: Iterable[Gap]) -> list[Gap]:
    """Those with something on both sides."""
    return [(i, j, k, m) for i, j, k, m in gaps if i < j and k < m]


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


ALIKE = 0.3  # lines that share less are two lines, not one that was rewritten
Piece = tuple[str, bool]
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


class Hunk(msgspec.Struct, frozen=True):
    """Changed lines with their surroundings; line numbers count from 1."""

    before_line: int
    before_count: int
    after_line: int
    after_count: int
    lines: tuple[DiffLine, ...]

    def unified(self) -> Iterator[str]:
        yield f"@@ -{self.before_line},{self.before_count} +{self.after_line},{self.after_count} @@"
        for line in self.lines:
            yield line.sign + line.text


def changes_between(
    before: Sequence[str], after: Sequence[str], context: int = 3, budget: Budget | None = None
) -> list[Hunk]:
    """The differences from `before` to `after`, each with `context` unchanged lines around it.

    Several comparisons that share a `budget` take no longer together than one.
    """
    budget = budget or Budget()
    groups = _groups(aligned(before, after, budget), max(0, context))
    return [_hunk(group, before, after, budget) for group in groups]


def _groups(blocks: list[Block], context: int) -> Iterator[list[Block]]:
    """Blocks that belong on one piece of paper: unchanged stretches are cut to their `context`."""
    group: list[Block] = []
    last = len(blocks) - 1
    for number, (tag, i, j, k, m) in enumerate(blocks):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        lead, trail = (0 if number == last else context), (0 if number == 0 else context)
        if j - i <= lead + trail and number not in (0, last):
            group.append((tag, i, j, k, m))
            continue
        if group:
            group.append((tag, i, min(j, i + trail), k, min(m, k + trail)))
            yield group
        group = [(tag, max(i, j - lead), j, max(k, m - lead), m)]
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _hunk(group: list[Block], before: Sequence[str], after: Sequence[str], budget: Budget) -> Hunk:
    lines: list[DiffLine] = []
    for tag, i, j, k, m in group:
        if tag == "equal":
            lines += [DiffLine(" ", ((text, False),)) for text in before[i:j]]
        else:
            lines += _replaced(before[i:j], after[k:m], budget)
    start, end = group[0], group[-1]
    return Hunk(start[1] + 1, end[2] - start[1], start[3] + 1, end[4] - start[3], tuple(lines))


def _replaced(old: Sequence[str], new: Sequence[str], budget: Budget) -> list[DiffLine]:
    """All that went, then all that came; lines at the same place are compared word by word."""
    gone, come = [], []
    pairs = min(len(old), len(new))
    for a, b in zip(old, new, strict=False):
        before, after = _by_words(a, b, budget)
        gone.append(DiffLine("-", before))
        come.append(DiffLine("+", after))
    gone += [DiffLine("-", ((text, True),)) for text in old[pairs:]]
    come += [DiffLine("+", ((text, True),)) for text in new[pairs:]]
    return gone + come


def _by_words(old: str, new: str, budget: Budget) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    blocks = aligned(a, b, budget)
    shared = sum(j - i for tag, i, j, _, _ in blocks if tag == "equal")
    if 2 * shared < ALIKE * (len(a) + len(b)):
        return ((old, True),), ((new, True),)
    before = [("".join(a[i:j]), tag != "equal") for tag, i, j, _, _ in blocks if i < j]
    after = [("".join(b[k:m]), tag != "equal") for tag, _, _, k, m in blocks if k < m]
    return tuple(before), tuple(after)


class Diff(msgspec.Struct, frozen=True):
    """The differences between two stored versions of a page; `str` writes them as `diff -u` does.

    >>> diff = news.diff(start)
    >>> diff.new.version, diff.old, diff.hunks
    (1, None, ())
    """

    url: str
    old: VersionInfo | None  # None: nothing older is kept
    new: VersionInfo
    hunks: tuple[Hunk, ...]

    @property
    def removed(self) -> int:
        """How many lines went."""
        return self._lines("-")

    @property
    def added(self) -> int:
        """How many lines came."""
        return self._lines("+")

    def facts(self) -> dict[str, Any]:
        """The same for programs: the keys of `levada diff --json`."""
        before = version_facts(self.old) if self.old else None
        facts: dict[str, Any] = {
            "url": self.url,
            "title": self.new.title,
            "from": before,
            "to": version_facts(self.new),
        }
        if before:
            facts |= {"similarity": self.new.similarity, "removed": self.removed, "added": self.added}
        return facts | {"hunks": self.hunks if before else []}

    def __str__(self) -> str:
        return "\n".join(line for hunk in self.hunks for line in hunk.unified())

    def _lines(self, sign: str) -> int:
        return sum(each.sign == sign for hunk in self.hunks for each in hunk.lines)


def diff_of(store: Store, page: PageRecord, old: int | None = None, new: int | None = None, context: int = 3) -> Diff:
    """From one kept version to another, by default from the one before the newest to the newest."""
    kept = store.versions(page.url)
    if not kept:
        raise NotFound(nothing_stored(page))
    after = next((each for each in kept if new in (None, each.version)), None)
    older = [each for each in kept if after is not None and each.version < after.version]
    before = next((each for each in older if old in (None, each.version)), None)
    if after is None or (before is None and (old is not None or (new is not None and len(kept) > 1))):
        there = ", ".join(str(each.version) for each in kept)
        raise NotFound(f"{page.url} has no such two versions to compare; kept: {there}")
    if before is None:
        return Diff(page.url, None, after, ())
    old_lines, new_lines = (_lines(store, page.url, each.version) for each in (before, after))
    return Diff(page.url, before, after, tuple(changes_between(old_lines, new_lines, context)))


def nothing_stored(page: PageRecord) -> str:
    """Why there is no version of this page."""
    if page.leads_to:
        return f"nothing is stored of {page.url}: its content is that of {page.leads_to}; ask for that"
    because = f" ({page.reason})" if page.reason else ""
    return f"nothing is stored of {page.url}: it is {page.state}{because}"


def _lines(store: Store, url: str, version: int) -> list[str]:
    document = store.document(url, version)
    if document is None:  # a crawl beside us has just replaced the oldest
        raise NotFound(f"version {version} of {url} is no longer kept: try again")
    return paragraphs(document.text) if document.text else []


def version_facts(version: VersionInfo) -> dict[str, Any]:
    facts = {name: getattr(version, name) for name in ("version", "fetched_at", "title", "words", "similarity")}
    return facts | {"fetched_at": iso(version.fetched_at)}
