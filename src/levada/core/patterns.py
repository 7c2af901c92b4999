"""Regular expressions and globs that users and keys of rules bring along.

They run on whatever a page or a link contains, so matching must be linear in the text: RE2 guarantees it, at the cost
of look-around and back references. Its memory is bounded too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

_MOST_MEMORY = 1 << 20  # of one compiled pattern
_LONGEST = 1_000
_WHY = {
    "invalid perl operator": "look-around and named groups of Perl are not possible",
    "invalid escape sequence": "this escape is not possible; back references are not either",
    "pattern too large": "it is too large",
}


def check_pattern(pattern: str) -> None:
    """ValueError says why this is no regular expression that can be used."""
    if len(pattern) > _LONGEST:
        raise ValueError(f"a regular expression has at most {_LONGEST} characters, not {len(pattern)}")
    compiled(pattern)


@lru_cache(maxsize=1_000)
def compiled(pattern: str, *, ignore_case: bool = False) -> Any:
    """A pattern for UTF-8 in bytes, with `search`, `fullmatch` and `sub`; `^` and `$` stand for each line."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(f"(?m:{pattern})".encode(), options)
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        said = said.replace(f"(?m:{pattern})", pattern)
        why = next((ours for theirs, ours in _WHY.items() if said.startswith(theirs)), said)
        raise ValueError(f"{msgspec.json.encode(pattern[:200]).decode()} is no regular expression: {why}") from None


def glob_pattern(glob: str) -> str:
    """The regular expression of a glob: `*` is anything but a slash, `**` anything, `?` one character."""
    out, at = [], 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            is_deep = glob[at : at + 2] == "**"
            out.append(".*" if is_deep else "[^/]*")
            at += is_deep
        else:
            out.append("[^/]" if char == "?" else _quoted(char))
        at += 1
    return "".join(out)


def _quoted(char: str) -> str:
    return f"\\{char}" if char.isascii() and not char.isalnum() and char != "_" else char
