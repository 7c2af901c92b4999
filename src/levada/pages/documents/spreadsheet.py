"""Spreadsheets (XLSX): each sheet by its name, each row a line, with numbers and dates as they are shown.

Of a formula the value that was last computed is read. Numbers are shown by their format: dates, percentages,
decimals and thousands; other formats show the number as it is stored.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from levada.core.records import ReadPage
from levada.pages.documents.gathering import DocumentText
from levada.pages.documents.package import Attributes, Package, XmlReader, filled
from levada.pages.documents.word import office_page

_MAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_FORMATS = {  # the numbers of formats that every program knows
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
}
_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]hms]*\]|AM/PM|A/P')
_IS_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_DECIMALS = re.compile(r"\.([0#?]+)")
_EPOCH, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
_LATEST_DAY = 2_958_466  # the year 9999


class SpreadsheetReader:
    content_types = (
        f"{_MAIN}.sheet",
        f"{_MAIN}.template",
        "application/vnd.ms-excel.sheet.macroenabled.12",
    )

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        package = Package(body)
        main = next(
            (each.target for each in package.relations("").values() if each.kind == "officeDocument"),
            "xl/workbook.xml",
        )
        book, relations, text = _Workbook(), package.relations(main), DocumentText()
        book.read(package.pieces(main))
        parts = {each.kind: each.target for each in relations.values() if each.target in package}
        strings, styles = _SharedStrings(), _Styles()

        def read_all() -> None:
            if "sharedStrings" in parts:
                strings.read(package.pieces(parts["sharedStrings"]))
            if "styles" in parts:
                styles.read(package.pieces(parts["styles"]))
            for name, id in book.sheets:
                if id not in relations or relations[id].kind != "worksheet":
                    continue  # a sheet that is a chart
                place = relations[id].target
                text.add_line(name)
                _Sheet(text, strings.found, styles.formats, _EPOCH_1904 if book.is_1904 else _EPOCH).read(
                    package.pieces(place)
                )
                for each in package.relations(place).values():
                    if each.kind == "hyperlink" and each.is_outside:
                        text.link(each.target)

        left_out = filled(text, read_all)
        return office_page(package, text, left_out)


class _Workbook(XmlReader):
    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str]] = []  # name, and id of the relation
        self.is_1904 = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sheet":
            id = next((value for key, value in attributes.items() if key.endswith(" id")), "")
            self.sheets.append((attributes.get("name", ""), id))
        elif name == "workbookPr":
            self.is_1904 = attributes.get("date1904", "0") in ("1", "true")


class _SharedStrings(XmlReader):
    """The texts that cells refer to by number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._parts: list[str] = []
        self._in_text = False
        self._skipping = 0

    def start(self, name: str, attributes: Attributes) -> None:
        if self._skipping or name == "rPh":  # how a word is pronounced
            self._skipping += 1
        elif name == "t":
            self._in_text = True

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif name == "t":
            self._in_text = False
        elif name == "si":
            self.found.append("".join(self._parts))
            self._parts.clear()

    def characters(self, text: str) -> None:
        if self._in_text and not self._skipping:
            self._parts.append(text)


class _Styles(XmlReader):
    """The format of each style of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: list[str] = []
        self._own: dict[int, str] = {}
        self._in_cells = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "numFmt":
            self._own[_number(attributes.get("numFmtId"))] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            number = _number(attributes.get("numFmtId"))
            self.formats.append(self._own.get(number) or _FORMATS.get(number, ""))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False


class _Sheet(XmlReader):
    def __init__(self, text: DocumentText, strings: list[str], formats: list[str], epoch: datetime) -> None:
        super().__init__()
        self._out = text
        self._strings = strings
        self._formats = formats
        self._epoch = epoch
        self._kind = ""
        self._format = ""
        self._value: list[str] = []
        self._wanted = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            self._kind = attributes.get("t", "n")
            style = _number(attributes.get("s"))
            self._format = self._formats[style] if 0 <= style < len(self._formats) else ""
            self._value.clear()
        elif name == "v" or name == "t":
            self._wanted = True
        elif name == "row":
            self._out.begin_row()

    def end(self, name: str) -> None:
        if name == "v" or name == "t":
            self._wanted = False
        elif name == "c":
            if self._value:
                self._out.add(self._shown("".join(self._value)))
            self._out.end_cell()
        elif name == "row":
            self._out.end_row()

    def characters(self, text: str) -> None:
        if self._wanted:
            self._value.append(text)

    def _shown(self, value: str) -> str:
        if self._kind == "s":
            number = _number(value)
            return self._strings[number] if 0 <= number < len(self._strings) else ""
        if self._kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        return shown_number(value, self._format, self._epoch) if self._kind == "n" else value


@lru_cache(maxsize=1_000)
def _pattern_of(code: str) -> tuple[bool, int, bool, bool]:
    """Of a format: whether it is a date, its decimals (-1: as they are), thousands and percent."""
    first = _QUOTED.sub("", code.partition(";")[0])
    if first.lower() in ("", "general", "@"):
        return False, -1, False, False
    if _IS_DATE.search(first.replace("General", "")):
        return True, 0, False, False
    if ("0" not in first and "#" not in first) or "/" in first or "E" in first:
        return False, -1, False, False
    found = _DECIMALS.search(first)
    return False, len(found[1]) if found else 0, "#,#" in first or "0,0" in first, "%" in first


def shown_number(value: str, code: str, epoch: datetime = _EPOCH) -> str:
    """A number of a cell as its format shows it; dates are written as ISO 8601 does."""
    try:
        number = float(value)
    except ValueError:
        return value
    is_date, decimals, thousands, percent = _pattern_of(code)
    if is_date:
        return _date(number, epoch, code)
    if decimals < 0:
        return f"{number:.10g}" if abs(number) < 1e15 else value
    number = 100 * number if percent else number
    return f"{number:{',' if thousands else ''}.{min(decimals, 10)}f}{'%' if percent else ''}"


def _date(number: float, epoch: datetime, code: str) -> str:
    if not 0 <= number < _LATEST_DAY:
        return f"{number:g}"
    pattern = _QUOTED.sub("", code).lower()
    if "[h" in code.lower():
        minutes, seconds = divmod(round(number * 86_400), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    moment = epoch + timedelta(seconds=round(number * 86_400))
    has_day, has_time = "y" in pattern or "d" in pattern, "h" in pattern or "s" in pattern
    if not has_day and not has_time:
        has_day = True  # a month alone
    clock = moment.strftime("%H:%M:%S" if "s" in pattern else "%H:%M") if has_time else ""
    return " ".join(filter(None, (moment.date().isoformat() if has_day else "", clock)))


def _number(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return -1
