"""What is different between two texts? By lines, and by words within a line that was rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from levada.telling.alignment import Block, Budget, aligned

__all__ = ["DiffLine", "Hunk", "changes_between"]

ALIKE = 0.3  # lines that share less are two lines, not one that was rewritten

Piece = tuple[str, bool]

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
    budget = Budget()
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
