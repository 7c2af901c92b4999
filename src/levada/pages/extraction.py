"""What does trafilatura take for the main text? An option: more careful than ours, and many times as slow."""

from __future__ import annotations

from levada.errors import MissingExtra
from levada.pages.text import tidy_lines

__all__ = ["extracted_text"]


def extracted_text(html: bytes) -> bytes:
    """The main text by trafilatura in UTF-8, empty if it finds none; `MissingExtra` if not installed."""
    try:
        from trafilatura import extract
    except ImportError as error:
        raise MissingExtra("trafilatura", "text") from error
    text = extract(html.decode("utf-8", "replace"), include_comments=False) or ""
    return tidy_lines(text.encode("utf-8", "replace"))
