"""Gathering the text of a document: lines, rows of tables and pages, up to a limit; and why there is none.

A form feed separates two pages, as a printer and `pdftotext` understand it. So a place in the text tells its page,
in every store and index, without a second list.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from levada.core.reasons import Reason

MAX_TEXT = 5_000_000  # characters: a book of 2,500 pages
MAX_LINKS = 5_000
PAGE_BREAK = "\f"
CELLS = " | "  # between two cells of a row
_HARD_BREAKS = re.compile("[\f\x1c-\x1e\x85\u2028\u2029]")  # would read as ends of pages or lines
_ADDRESS = re.compile(r"https?://[^\s<>\"'\\^`{|}\x00-\x1f\x7f]{3,2000}", re.IGNORECASE)
_AFTER_ADDRESS = ".,;:!?*_~’”»"  # belongs to the sentence
_UNNAMED = re.compile(r"untitled|unbenannt|sans titre|document\d*|presentation\d*|slide 1|title|\W*", re.IGNORECASE)
_MADE_WITH = re.compile(r"\AMicrosoft (?:Word|PowerPoint|Excel) - ")
_FILE_ENDING = re.compile(r"\.(?:docx?|pptx?|xlsx?|od[tsp]|pdf|indd|qxd|tex|dvi|ps|rtf|pages)\Z", re.IGNORECASE)


class Unreadable(ValueError):
    """Why a document has no text that could be stored."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason


class TextFull(Exception):
    """Raised where the text has reached its limit: what follows is left out."""


class DocumentText:
    """The text of a document as it is read; `TextFull` at its limit."""

    def __init__(self, most: int = MAX_TEXT) -> None:
        self._room = most
        self._pages: list[list[str]] = [[]]
        self._line: list[str] = []
        self._rows: list[list[str]] = []  # of the tables that are open, the inner one last
        self._links: dict[str, None] = {}

    def add(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            self._line.append(text[: self._room])
            raise TextFull
        self._line.append(text)

    def end_line(self) -> None:
        """In a cell, a line ends with a space: a row of a table is one line."""
        if self._rows:
            self._line.append(" ")
            return
        if line := _one_line(self._line):
            self._pages[-1].append(line)
        self._line.clear()

    def add_line(self, text: str) -> None:
        self.add(text)
        self.end_line()

    def begin_row(self) -> None:
        self._keep_cell() if self._rows else self.end_line()
        self._rows.append([])

    def end_cell(self) -> None:
        if self._rows:
            self._keep_cell()

    def end_row(self) -> None:
        if not self._rows:
            return
        self._keep_cell()
        row = CELLS.join(self._rows.pop())
        if self._rows:  # the row of a table within a cell
            self._line.append(row)
        elif row:
            self._pages[-1].append(row)

    def end_page(self) -> None:
        self._finish()
        self._pages.append([])

    def link(self, address: str) -> None:
        if address and len(self._links) < MAX_LINKS:
            self._links.setdefault(address)

    def links_in(self, text: str) -> None:
        """Take the addresses that stand in a text."""
        for found in _ADDRESS.finditer(text):
            address = found[0].rstrip(_AFTER_ADDRESS)
            while address.endswith(")") and address.count("(") < address.count(")"):
                address = address[:-1].rstrip(_AFTER_ADDRESS)
            self.link(address)

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(self._links)

    def text(self) -> str:
        self._finish()
        return PAGE_BREAK.join("\n".join(lines) for lines in self._pages).rstrip(PAGE_BREAK)

    def _finish(self) -> None:
        while self._rows:
            self.end_row()
        self.end_line()

    def _keep_cell(self) -> None:
        if cell := _one_line(self._line):
            self._rows[-1].append(cell)
        self._line.clear()


def _one_line(parts: list[str]) -> str:
    return " ".join(_HARD_BREAKS.sub(" ", "".join(parts)).split())


def title_or_name(title: str, url: str) -> str:
    """The title that a document gives itself, if it is one, or the name of its file."""
    title = " ".join(_MADE_WITH.sub("", title.replace("\0", "")).split())
    if title and not _UNNAMED.fullmatch(title) and not _FILE_ENDING.search(title):
        return title
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2], errors="replace") or title
