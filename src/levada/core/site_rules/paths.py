"""Patterns of paths: globs, and regular expressions after `re:`.

Both look at the path and the query as they stand in the address. A glob that begins with a slash is for that place,
any other for every folder; what it matches takes along what is below, so that `/docs/*` is the whole folder. A regular
expression matches anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, unquote

from levada.core.patterns import check_pattern, compiled, glob_pattern

Fits = Callable[[str], bool]
"""Whether a pattern matches a path with its query."""

_KEPT = "/*?%&=+,;:@!$'()~#[]{}|^<>\"\\`"  # of a glob: all of ASCII but spaces
_LONGEST = 500  # characters of a glob


def fits(pattern: str) -> Fits:
    """A compiled pattern; ValueError says what is wrong with it."""
    kind, separator, expression = pattern.partition(":")
    if separator and kind == "re":
        check_pattern(expression)
        found: Any = compiled(expression).search
        if expression.isascii():
            return lambda path: found(path.encode("utf-8", "replace")) is not None
        return lambda path: (
            found(unquote(path).encode("utf-8", "replace")) is not None
        )  # as a browser shows the address
    if "://" in pattern:
        raise ValueError(f'{pattern[:100]!r}: write the path alone, such as "/docs/*": match has the host')
    if len(pattern) > _LONGEST:
        raise ValueError(f"a glob has at most {_LONGEST} characters, not {len(pattern)}")
    anywhere = "" if pattern.startswith("/") else "/(?:.*/)?"
    below = ".*" if pattern.endswith("/") else "(?:[/?].*)?"
    expression = f"(?s:{anywhere}{glob_pattern(encoded_path(pattern))}{below})"
    check_pattern(expression)
    matches: Any = compiled(expression).fullmatch
    return lambda path: matches(path.encode("utf-8", "replace")) is not None


def check_patterns(key: str, patterns: Sequence[str] | None) -> None:
    """ValueError names the key and says what is wrong with one of its patterns."""
    for pattern in patterns or ():
        try:
            fits(pattern)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None


def encoded_path(text: str) -> str:
    """The path with spaces and letters beyond ASCII as they stand in an address."""
    return text if text.isascii() and " " not in text else quote(text, safe=_KEPT)
