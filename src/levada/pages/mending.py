"""What is put right in an XML list before a strict parser reads it?

Two slips are common: something before the declaration, such as the blank line of a PHP file, and ampersands of
addresses that nobody has escaped.
"""

from __future__ import annotations

import re

__all__ = ["Ampersands", "without_preamble"]

# No group is entered again once it is left: else an outsider could make this slow.
_PREAMBLE = re.compile(rb"(?:[^<]++|(?><!--.*?-->))*+(?=<\?xml\s)|(?:\s|\xef\xbb\xbf)++(?=<)", re.DOTALL)
_MARK = re.compile(r"<!\[CDATA\[|\]\]>|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_TORN_MARK = re.compile(r"(?:&[#A-Za-z0-9]{0,8}|<[!\[A-Z]{0,8}|\]{1,2})\Z")
_TORN_LENGTH = 9


def without_preamble(start: bytes) -> bytes:
    """The beginning of a list, without what stands before its declaration or, where it has none, white space."""
    found = _PREAMBLE.match(start)
    return start[found.end() :] if found else start


class Ampersands:
    """Escapes, piece by piece, those that begin no reference; in CDATA they stand for themselves."""

    def __init__(self) -> None:
        self._held = ""  # the start of something that the next piece ends
        self._in_cdata = False

    def __call__(self, text: str, final: bool) -> str:
        text = self._held + text
        torn = None if final else _TORN_MARK.search(text, max(0, len(text) - _TORN_LENGTH))
        end = torn.start() if torn else len(text)
        self._held = text[end:]
        return _MARK.sub(self._mended, text[:end])

    def _mended(self, found: re.Match[str]) -> str:
        mark = found[0]
        if mark == "&":
            return "&" if self._in_cdata else "&amp;"
        self._in_cdata = mark != "]]>"
        return mark
