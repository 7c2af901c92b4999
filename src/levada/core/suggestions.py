"""Suggestions for a mistyped name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near_names(asked: str, known: Iterable[str], most: int = 3) -> str:
    """A clause for an error message: the similar names, or else the known ones."""
    names = sorted(set(known))
    lower = {name.lower(): name for name in names}
    near = [lower[each] for each in get_close_matches(asked.lower(), lower, most, 0.5)]
    near += [name for name in names if asked.lower() in name.lower() and name not in near]
    shown = near[:most] or names[: 2 * most]
    if not shown:
        return "there is none"
    return f"{'did you mean' if near else 'there is'} {', '.join(shown)}{'?' if near else ''}"
