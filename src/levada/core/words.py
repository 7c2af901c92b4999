"""Text for a person: phrases with numbers, and foreign text made safe to print.

Titles, texts and URLs come from outside. What controls a terminal (escape sequences, control characters) or
reverses the reading direction is removed before they are shown.
"""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote

from levada.core.durations import UNITS

# Whole sequences first, so that no "[31m" is left over; then single controls, C1, bidi overrides and lone
# surrogates. Zero-width joiners stay: Persian and Hindi need them.
_SEQUENCE = re.compile(
    # CSI; OSC, DCS and the like, up to their end or the end of the line; the short ones
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c|(?=\n)|$)"
    "|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("\r\n|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPACES = re.compile(r"\s+")


def command_for(name: str, url: str, folder: Path) -> str:
    """A command about a page, as it can be typed."""
    return f"levada {name} {quote(url)} --data {quote(str(folder))}"


def harmless(text: str) -> str:
    """`text` on one line with its spaces kept: for a part of a sentence."""
    return " ".join(paragraphs(text))


def line(text: str) -> str:
    """`text` on one line, with single spaces."""
    return _SPACES.sub(" ", harmless(text)).strip()


def paragraphs(text: str) -> list[str]:
    """The lines of `text`, each safe to print."""
    return [_CONTROL.sub("", part.replace("\t", "    ")) for part in _BREAKS.split(_SEQUENCE.sub("", text))]


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def size(count: float) -> str:
    """Bytes for a person: `1.4 MB`."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        units.pop(0)
    unit = units[0]
    return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:,.1f} {unit}"


def plural(n: int, word: str) -> str:
    """`1 query`, `2,000 queries`, `0 pages`, `3 days`."""
    if n == 1:
        return f"{n:,} {word}"
    consonant_y = word.endswith("y") and word[-2:-1] not in "aeiou"
    return f"{n:,} {word[:-1]}ies" if consonant_y else f"{n:,} {word}s"


def rough(seconds: float) -> str:
    """An estimated duration: `1.5 h`, `40 min`, `12 d`."""
    unit, size = _unit(seconds)
    return f"{_number(seconds / size)} {unit}"


def rough_span(low: float, high: float) -> str:
    """`between 1.5 and 7 h`."""
    (unit, size), (other, _) = _unit(low), _unit(high)
    start = _number(low / size) if unit == other else rough(low)
    return f"between {start} and {rough(high)}"


def _unit(seconds: float) -> tuple[str, float]:
    return next(((unit, size) for unit, size in UNITS if seconds >= 0.95 * size), UNITS[-1])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.5 else f"{value:.1f}".removesuffix(".0")
