"""What is different between two texts? By lines, and by words within a line that was rewritten.

Pages are picked by outsiders and difflib is quadratic, so it is given only as much as it can do in a moment: what
the texts share at both ends is set aside first, and what is still too large counts as replaced as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

__all__ = ["DiffLine", "Hunk", "changes_between"]

MOST_PAIRS = 4_000_000  # lines times lines, or words times words, that are compared
MOST_TWINS = 100_000  # pairs of equal ones among them: their number is what makes difflib slow
MOST_TWINS_IN_ALL = 1_000_000
ALIKE = 0.3  # lines that share less are two lines, not one that was rewritten

Piece = tuple[str, bool]
Block = tuple[str, int, int, int, int]

_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


class DiffLine(msgspec.Struct, frozen=True):
    """`sign` is " " (in both), "-" (only before) or "+" (only after); True marks the pieces that differ."""

    sign: str
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


class Hunk(msgspec.Struct, frozen=True):
    """Changed lines with their surroundings; line numbers count from 1."""

    before_line: int
    before_count: int
    after_line: int
    after_count: int
    lines: tuple[DiffLine, ...]


def changes_between(before: Sequence[str], after: Sequence[str], context: int = 3) -> list[Hunk]:
    """The differences from `before` to `after`, each with `context` unchanged lines around it."""
    budget = _Budget(MOST_TWINS_IN_ALL)
    groups = _groups(_blocks(before, after, budget), max(0, context))
    return [_hunk(group, before, after, budget) for group in groups]


class _Budget:
    def __init__(self, left: int) -> None:
        self._left = left

    def allows(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """May these be compared? What that costs is taken off."""
        if len(one) * len(other) > MOST_PAIRS:
            return False
        counts = Counter(one)
        twins = sum(counts[each] for each in other)
        if twins > min(self._left, MOST_TWINS):
            return False
        self._left -= twins
        return True


def _blocks(before: Sequence[str], after: Sequence[str], budget: _Budget) -> list[Block]:
    """As difflib's opcodes, over the whole of both."""
    head = _shared(before, after, min(len(before), len(after)))
    tail = _shared(before[::-1], after[::-1], min(len(before), len(after)) - head)
    a, b = len(before) - tail, len(after) - tail
    blocks: list[Block] = [("equal", 0, head, 0, head)] if head else []
    old, new = before[head:a], after[head:b]
    if budget.allows(old, new):
        middle = SequenceMatcher(None, old, new, autojunk=False)
        blocks += [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in middle.get_opcodes()]
    else:
        blocks.append(("replace", head, a, head, b))
    if tail:
        blocks.append(("equal", a, len(before), b, len(after)))
    return blocks


def _shared(one: Sequence[str], other: Sequence[str], most: int) -> int:
    return next((n for n in range(most) if one[n] != other[n]), most)


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


def _hunk(group: list[Block], before: Sequence[str], after: Sequence[str], budget: _Budget) -> Hunk:
    lines: list[DiffLine] = []
    for tag, i, j, k, m in group:
        if tag == "equal":
            lines += [DiffLine(" ", ((text, False),)) for text in before[i:j]]
        else:
            lines += _replaced(before[i:j], after[k:m], budget)
    start, end = group[0], group[-1]
    return Hunk(start[1] + 1, end[2] - start[1], start[3] + 1, end[4] - start[3], tuple(lines))


def _replaced(old: Sequence[str], new: Sequence[str], budget: _Budget) -> list[DiffLine]:
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


def _by_words(old: str, new: str, budget: _Budget) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    if not budget.allows(a, b):
        return ((old, True),), ((new, True),)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < ALIKE:
        return ((old, True),), ((new, True),)
    before: list[Piece] = []
    after: list[Piece] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        before.append(("".join(a[i:j]), tag != "equal"))
        after.append(("".join(b[k:m]), tag != "equal"))
    return tuple(piece for piece in before if piece[0]), tuple(piece for piece in after if piece[0])
