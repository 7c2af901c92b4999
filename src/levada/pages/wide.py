"""How are many characters outside ASCII replaced in UTF-8 text, of which most texts have none?"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["WideReplacement"]

_ASCII = bytes(range(128))


class WideReplacement:
    """Replaces characters, each by some bytes of its own."""

    def __init__(self, replacements: Mapping[str, bytes]) -> None:
        pairs = [(char.encode(), new) for char, new in replacements.items()]
        starts = {char[:-1] for char, _ in pairs}
        self._by_start = {start: [pair for pair in pairs if pair[0].startswith(start)] for start in starts}
        self._first_bytes = sorted({char[:1] for char, _ in pairs})

    def __call__(self, text: bytes) -> bytes:
        if not any(map(text.__contains__, self._first_bytes)):
            return text
        # Most of a text is ASCII: what is left without it is soon searched, and has the same other characters.
        rest = text.translate(None, _ASCII)
        for start, pairs in self._by_start.items():
            if start in rest:
                for char, new in pairs:
                    if char in rest:
                        text = text.replace(char, new)
        return text
