"""Plug-ins of page reading: readers by content type, a main-text extractor, change filters.

They run where pages are parsed, in the parser's child. One that raises or returns nonsense is noted with the page,
and the built-in result takes the place of its own; one that hangs or eats memory ends the child, as such a page
would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from levada.core.plugins import GROUPS, load
from levada.core.records import PageKind, PluginFailure, RawPage, ReadPage
from levada.pages.text import tidy_lines

if TYPE_CHECKING:
    from levada.core.protocols import ChangeFilter, Extractor, PageReader

READERS, EXTRACTORS, CHANGE_FILTERS = "levada.readers", "levada.extractors", "levada.change_filters"
BUILTIN = "builtin"
MAX_CHARACTERS = 10_000_000  # of a text that is accepted
MAX_LINKS = 1_000_000
MAX_DATE = 1e11  # epoch seconds
_SAID = 200  # characters kept of an error

T = TypeVar("T")


class ReadingChoice(msgspec.Struct, frozen=True):
    """The names of the chosen plug-ins, and the options of all plug-ins by name."""

    main_text: str = BUILTIN
    readers: tuple[str, ...] = ()
    change_filters: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}

    def load(self) -> ReadingPlugins | None:
        """The chosen plug-ins; None, and nothing is imported, if only built-ins are chosen."""
        if self.main_text == BUILTIN and not self.readers and not self.change_filters:
            return None
        return ReadingPlugins(self)


class ReadingPlugins:
    """The plug-ins in use. Every method answers None, or what it was given, where a plug-in fails."""

    def __init__(self, choice: ReadingChoice) -> None:
        def made(group: str, name: str) -> Any:
            return load(group, name, choice.options.get(name))

        self._failed: list[PluginFailure] = []
        self._extractor: tuple[str, Extractor] | None = None
        if choice.main_text != BUILTIN:
            self._extractor = choice.main_text, made(EXTRACTORS, choice.main_text)
        self._filters: list[tuple[str, ChangeFilter]] = [
            (name, made(CHANGE_FILTERS, name)) for name in choice.change_filters
        ]
        self._readers: dict[str, tuple[str, PageReader]] = {}
        for name in choice.readers:
            if name in GROUPS[READERS].builtins:
                continue  # those read their content types whether they are named or not
            reader: PageReader = made(READERS, name)
            for content_type in reader.content_types:
                self._readers.setdefault(content_type, (name, reader))  # the first that is named wins

    def reads(self, page: RawPage) -> bool:
        """Whether a chosen reader is for this content type."""
        return bool(self._readers) and page.kind is PageKind.PAGE and _media(page) in self._readers

    def read(self, page: RawPage) -> ReadPage | None:
        name, reader = self._readers[_media(page)]
        return self._try(READERS, name, lambda: _checked_page(reader.read(page.body, page.content_type, page.url)))

    def main_text(self, html: bytes, url: str) -> bytes:
        """Empty where the built-in text is to be taken."""
        if self._extractor is None:
            return b""
        name, extractor = self._extractor
        text = self._try(
            EXTRACTORS, name, lambda: _checked_text(extractor.extract(html.decode("utf-8", "replace"), url))
        )
        return tidy_lines(text.encode("utf-8", "replace")) if text else b""

    def compared_text(self, text: bytes, url: str) -> bytes:
        """What of a text counts when it is compared with the version before."""
        for name, change_filter in self._filters:
            shown = text.decode("utf-8", "replace")
            filtered = self._try(CHANGE_FILTERS, name, lambda: _checked_text(change_filter.filter(shown, url)))  # noqa: B023
            if filtered and not filtered.isspace():  # pages of which nothing is left would all be alike
                text = filtered.encode("utf-8", "replace")
        return text

    def take_failures(self) -> tuple[PluginFailure, ...]:
        """Those since the last page."""
        failed, self._failed = self._failed, []
        return tuple(failed)

    def _try(self, group: str, name: str, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except MemoryError:
            raise  # the page's own limit
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self._failed.append(PluginFailure(group, name, said[:_SAID].encode("utf-8", "replace").decode()))
            return None


def _media(page: RawPage) -> str:
    return page.content_type.partition(";")[0].strip().lower()


def _checked_text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is expected, not {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a text of {len(text):,} characters is too long")
    return text


def _checked_page(read: object) -> ReadPage:
    if not isinstance(read, ReadPage):
        raise TypeError(f"a ReadPage is expected, not {type(read).__name__}")
    page = msgspec.convert(msgspec.structs.asdict(read), ReadPage)  # a struct does not check what it is made of
    _checked_text(page.title)
    _checked_text(page.text)
    if len(page.links) > MAX_LINKS:
        raise ValueError(f"{len(page.links):,} links are too many")
    for date in (page.published, page.modified):
        if date is not None and not 0 <= date <= MAX_DATE:
            raise ValueError(f"{date} is no date")
    if page.pages < 0:
        raise ValueError(f"{page.pages} is no number of pages")
    return page
