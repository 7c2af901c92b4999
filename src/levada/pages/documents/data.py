"""Data as a person would read it: rows of CSV, keys and values of JSON, texts of XML.

Their addresses are links. A number stays as it is written, because 1.50 is not 1.5 to a reader.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

from levada.core.reasons import Reason
from levada.core.records import ReadPage
from levada.pages.charset import decode
from levada.pages.documents.gathering import CELLS, DocumentText, Unreadable
from levada.pages.documents.package import Attributes, XmlReader, filled

_DELIMITERS = ",;\t|"
_LOOK = 64 * 1024  # characters in which the delimiter is looked for
_MAX_FIELD = 1_000_000
_MAX_DEPTH = 200
_TITLES = ("title", "name", "headline")
_MOST_TITLE = 200  # characters: a longer value is no title


class CsvReader:
    """Rows of CSV or TSV: cells are separated by a bar, whatever separates them in the file."""

    content_types = ("text/csv", "application/csv", "text/tab-separated-values", "text/comma-separated-values")

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        source = decode(body, content_type).utf8.decode("utf-8", "replace")
        text = DocumentText()

        def read_all() -> None:
            csv.field_size_limit(_MAX_FIELD)
            try:
                for row in csv.reader(_lines(source), delimiter=_delimiter(source[:_LOOK])):
                    text.add_line(CELLS.join(cell for cell in map(str.strip, row) if cell))
            except csv.Error as error:
                raise Unreadable(Reason.DAMAGED, str(error)) from None

        left_out = filled(text, read_all)
        whole = text.text()
        text.links_in(whole)
        return ReadPage(text=whole, links=text.links, left_out=left_out)


def _lines(source: str) -> Iterator[str]:
    start = 0
    while start < len(source):
        end = source.find("\n", start)
        end = len(source) if end < 0 else end + 1
        yield source[start:end].replace("\r", "\n" if end == len(source) else "").replace("\0", "")
        start = end


def _delimiter(start: str) -> str:
    """The one that parts the first lines most evenly."""
    lines = [line for line in start.splitlines()[:50] if line.strip()]

    def weight(delimiter: str) -> tuple[int, int]:
        counts = sorted(line.count(delimiter) for line in lines)
        return (counts[len(counts) // 4], sum(counts)) if counts else (0, 0)

    return max(_DELIMITERS, key=weight)


class JsonReader:
    """A line for each value of JSON, or of JSON Lines, with the keys that lead to it."""

    content_types = ("application/json", "text/json", "application/x-ndjson", "application/jsonl")

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        return read_json(body, content_type)


def read_json(
    body: bytes,
    content_type: str,
    remove: Callable[[list[Any]], object] | None = None,
    select: Callable[[list[Any]], list[Any]] | None = None,
) -> ReadPage:
    """The values of JSON as lines; only those that `select` returns, after `remove` has taken some out."""
    source = decode(body, content_type).utf8.decode("utf-8", "replace")
    text, values = DocumentText(), _values(source, str if remove is None and select is None else WrittenNumber)
    first = values[0] if values and isinstance(values[0], dict) else {}
    title = _title(first)
    if remove is not None:
        remove(values)
    shown = values if select is None else select(values)

    def read_all() -> None:
        for value in shown:
            _flatten(value, "", text, 0)

    left_out = filled(text, read_all)
    return ReadPage(title=title, text=text.text(), links=text.links, left_out=left_out)


def _values(source: str, number: Callable[[str], Any]) -> list[Any]:
    """The value of a JSON text, or those of its lines."""
    try:
        return [_loaded(source, number)]
    except json.JSONDecodeError as error:
        lines = [line for line in source.split("\n") if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith(("{", "[")):
            raise Unreadable(Reason.DAMAGED, str(error)) from None
    try:
        return [_loaded(line, number) for line in lines]
    except json.JSONDecodeError as error:
        raise Unreadable(Reason.DAMAGED, str(error)) from None


def _loaded(source: str, number: Callable[[str], Any]) -> Any:
    try:
        return json.loads(source.lstrip("\ufeff"), parse_int=number, parse_float=number)
    except RecursionError:
        raise Unreadable(Reason.NESTING) from None


class WrittenNumber(float):
    """A number that a selector compares as one, shown as it is written."""

    def __init__(self, written: str) -> None:
        self.written = written


def _flatten(value: Any, path: str, text: DocumentText, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise Unreadable(Reason.NESTING)
    if isinstance(value, dict):
        for key, each in value.items():
            _flatten(each, f"{path}.{key}" if path else key, text, depth + 1)
    elif isinstance(value, list):
        if value and not any(isinstance(each, dict | list) for each in value):
            _write(", ".join(map(_scalar, value)), path, text)
        else:
            for each in value:
                _flatten(each, path, text, depth + 1)
    elif value is not None:
        _write(_scalar(value), path, text)


def _write(shown: str, path: str, text: DocumentText) -> None:
    text.links_in(shown)
    if path:
        text.add(f"{path}: ")
    for line in shown.split("\n"):
        text.add_line(line)


def _scalar(value: Any) -> str:
    if isinstance(value, WrittenNumber):
        return value.written
    return value if isinstance(value, str) else json.dumps(value)


def _title(first: dict[str, Any]) -> str:
    found = (first.get(key) for key in _TITLES)
    named = (each.written if isinstance(each, WrittenNumber) else each for each in found)
    return next((each for each in named if isinstance(each, str) and 0 < len(each) <= _MOST_TITLE), "")


class XmlTextReader:
    """The texts of any XML: each element's on a line of its own, unless it stands within a text.

    Of an element that has nothing in it the attributes are read: that is where tables of rates and prices have them.
    """

    content_types = ("application/xml", "text/xml")

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        text = DocumentText()
        reader = _Texts(text)
        source = decode(body, content_type).utf8.lstrip()
        left_out = filled(text, lambda: reader.read((source,)))
        whole = text.text()
        text.links_in(whole)
        return ReadPage(title=reader.title, text=whole, links=text.links, left_out=left_out)


class _Open:
    """An element that is open."""

    def __init__(self, attributes: Attributes, is_inline: bool) -> None:
        self.attributes = attributes
        self.is_inline = is_inline
        self.has_text = self.has_elements = False


class _Texts(XmlReader):
    refuses_types = False

    def __init__(self, text: DocumentText) -> None:
        super().__init__("utf-8")  # it is decoded, whatever it declares
        self.title = ""
        self._out = text
        self._open: list[_Open] = []
        self._titled = ""  # the text so far of what may be the title

    def start(self, name: str, attributes: Attributes) -> None:
        around = self._open[-1] if self._open else None
        is_inline = around is not None and around.has_text
        if around is not None:
            around.has_elements = True
        if not is_inline:
            self._out.end_line()
        self._titled = ""
        self._open.append(_Open(dict(attributes), is_inline))

    def end(self, name: str) -> None:
        element = self._open.pop()
        if not element.has_text and not element.has_elements:
            shown = (f"{key}: {value}" for key, value in element.attributes.items() if " " not in key and value)
            self._out.add(", ".join(shown))
        if not element.is_inline:
            self._out.end_line()
        if not self.title and name == "title" and len(self._open) <= 2 and len(self._titled) <= _MOST_TITLE:
            self.title = " ".join(self._titled.split())

    def characters(self, text: str) -> None:
        if self._open and not text.isspace():
            self._open[-1].has_text = True
        self._titled += text[:_MOST_TITLE] if len(self._titled) <= _MOST_TITLE else ""
        self._out.add(text)
