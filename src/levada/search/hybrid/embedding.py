"""The embedder that the settings name, and the passages of a page that it gets."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from levada.core.errors import MissingExtra, SettingsError
from levada.core.plugins import is_builtin, load, translating
from levada.core.protocols import Embedder

if TYPE_CHECKING:
    from levada.core.records import Document
    from levada.core.settings import Settings

MOST_PASSAGES = 8  # of a page
_PASSAGE = 150  # words
_LONGEST_PASSAGE = 600
_LONGEST_WORD = 100  # letters: what is longer says nothing


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder of the settings; None if hybrid search is off. An error says what is missing."""
    if not settings.search.hybrid:
        return None
    if settings.index.engine != "tantivy":
        raise SettingsError(
            "search.hybrid needs the index on this machine: "
            f'index.engine must be "tantivy", not "{settings.index.engine}"'
        )
    name = settings.search.embedder
    try:
        if find_spec("numpy") is None:
            raise MissingExtra("numpy", "hybrid")
        made: Embedder = load("levada.embedders", name, settings.plugins.get(name))
    except MissingExtra as error:
        raise SettingsError(f"search.hybrid: {error}") from None
    return made if is_builtin("levada.embedders", name) else translating("levada.embedders", name, made)


def passages_of(document: Document) -> list[str]:
    """The text of a page in at most `MOST_PASSAGES` parts, each after the title. A longer page has longer parts, and
    what is beyond the longest is left out."""
    words = [word[:_LONGEST_WORD] for word in document.text.split()]
    size = min(max(_PASSAGE, -(-len(words) // MOST_PASSAGES)), _LONGEST_PASSAGE)
    starts = range(0, max(len(words), 1), size)[:MOST_PASSAGES]
    passages = (f"{document.title[:1_000]}\n{' '.join(words[start : start + size])}".strip() for start in starts)
    return [passage for passage in passages if passage]
