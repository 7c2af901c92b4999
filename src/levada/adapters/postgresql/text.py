"""How is text written that PostgreSQL refuses? A NUL is the one character that it does not take."""

from __future__ import annotations

from levada.adapters.keeping import plain_text

__all__ = ["restored", "storable"]

# A code point that Unicode keeps free for ever: in text it is as good as never met, and then it is escaped itself.
_ESCAPE = "\ufdd0"


def storable(text: str) -> str:
    """The text with every NUL escaped, and readable as it is where there is none, which is nearly always."""
    text = plain_text(text)
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")


def restored(text: str) -> str:
    if _ESCAPE not in text:
        return text
    return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
