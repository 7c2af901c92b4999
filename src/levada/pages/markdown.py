"""A page as Markdown: its main content with headings, lists, tables, code, quotations, links and pictures.

What is main content is decided as for the main text (`levada.pages.text`). The Markdown is CommonMark with tables and
strikethrough as GitHub writes them. Signs that Markdown would take for its own are escaped, addresses are absolute
and canonical, so that they can be asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.errors import BadUrl
from levada.pages.html import read_head, too_deep, tree_of
from levada.pages.links import SILENT
from levada.pages.text import content_element, is_menu
from levada.pages.urls import Resolver, canonical, scheme_of

MAX_NESTING = 5_000  # of elements, as in a crawl
_DEEPEST = 60  # elements in each other that are told apart; what is deeper is plain text
_MOST_ROWS = 2_000
_MOST_COLUMNS = 50
_MOST_URL_SIGNS = 4_000_000  # of all links together; the others are text
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINER_TAGS = """
    address article aside body center details dialog div fieldset figure footer form header hgroup legend main menu nav
    noscript section tbody td tfoot th thead tr
"""
_CONTAINERS = frozenset(_CONTAINER_TAGS.split())
_OTHER_BLOCK_TAGS = "blockquote dl dt dd figcaption hr li ol p pre summary table ul"
_BLOCKS = _CONTAINERS | _HEADINGS.keys() | frozenset(_OTHER_BLOCK_TAGS.split())
_BLOCKS_IN = ",".join(sorted(_HEADINGS)) + ",p,div,ul,ol,table,pre,blockquote,section,article,figure"
_ROUGH_CELL = "h1,h2,h3,h4,h5,h6,ul,ol,pre,table,blockquote,p+p"
_NO_CONTENT_TAGS = "head script style template title svg math iframe object select textarea -comment"
_NOT_SHOWN = frozenset(_NO_CONTENT_TAGS.split())
_AROUND = {"em": "*", "i": "*", "cite": "*", "strong": "**", "b": "**", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_SPACES = re.compile(r"[ \t\n\r\f\v\xa0\u2000-\u200a\u202f\u3000]+")
_INVISIBLE = dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff\x1e\x1f"), "")
_SIGNS = re.compile(r"[\\`*\[\]<]|(?<![^\W_])_|_(?![^\W_])|~~|&(?=#?\w+;)")
_AT_START = re.compile(
    r"^(?:(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|=+\s*$|-+\s*$|~{3,})|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE
)
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)[-\s]?([A-Za-z0-9+#._-]{1,30})")
_IN_URL = {ord(sign): f"%{ord(sign):02X}" for sign in "()<> \\"}
_BREAK = "\x1e"


def markdown_of(html: bytes, url: str, title: str = "") -> str:
    """The main content of a page in UTF-8; "" if there is none.

    `title` becomes the first heading, unless the content begins with one of its level.
    """
    if too_deep(html, MAX_NESTING):
        return ""
    base = _base_of(tree_of(html), url)
    found = content_element(html)
    if found is None:
        return _titled([], title)
    root, reading = found
    return _titled(_Writer(base, not reading.with_menus).blocks(root, 0), title)


def text_as_markdown(text: str, title: str = "") -> str:
    """Plain text, a paragraph per line, as Markdown."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return _titled([_paragraph(escaped(line)) for line in lines if line], title)


def escaped(text: str) -> str:
    """Text in which Markdown finds no sign of its own within a line."""
    return _SIGNS.sub(lambda found: "\\" + found[0] if found[0] != "~~" else "\\~\\~", text)


def _titled(blocks: Sequence[str], title: str) -> str:
    title = escaped(" ".join(title.split()))
    if title and not any(block.startswith("# ") for block in blocks):
        blocks = [f"# {title}", *blocks]
    return "\n\n".join(blocks)


def _base_of(tree: LexborHTMLParser, url: str) -> str:
    try:
        base = canonical(url)
    except BadUrl:
        base = "http://invalid/"
    written = read_head(tree, "").base
    if written:
        try:
            other = canonical(written, base)
        except BadUrl:
            return base
        return other if other.startswith(("http://", "https://")) else base
    return base


def _paragraph(text: str) -> str:
    """Lines that Markdown does not take for a heading, a list or a rule."""
    return _AT_START.sub(_escaped_start, text)


def _escaped_start(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"


class _Writer:
    """Writes the elements of one page."""

    def __init__(self, base: str, without_menus: bool) -> None:
        self._resolve = Resolver(base)
        self._without_menus = without_menus
        self._url_signs = 0
        self._written_as: dict[str, Callable[[LexborNode, int], list[str]]] = {
            "ul": self._list,
            "ol": self._list,
            "dl": self._definitions,
            "table": self._table,
            "pre": self._listing,
            "blockquote": self._quotation,
            "hr": lambda node, depth: ["---"],
        } | dict.fromkeys(_HEADINGS, self._heading)

    def blocks(self, node: LexborNode, depth: int) -> list[str]:
        """The blocks of what is in this element."""
        if depth > _DEEPEST:
            text = _paragraph(escaped(_one_space(node.text()).strip()))
            return [text] if text else []
        found: list[str] = []
        run: list[LexborNode] = []  # of elements within a line
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag in _NOT_SHOWN:
                continue
            if tag in _BLOCKS or (tag not in ("-text", "img", "br") and _holds_blocks(child)):
                found += self._lines(run, depth)
                run = []
                found += self._block(child, tag, depth + 1)
            else:
                run.append(child)
        return found + self._lines(run, depth)

    def _block(self, node: LexborNode, tag: str, depth: int) -> list[str]:
        if write := self._written_as.get(tag):
            return write(node, depth)
        blocks = self.blocks(node, depth)
        if tag == "a" and blocks and (url := self._url(node, "href")):
            blocks[0] = _linked_block(blocks[0], url)
        elif tag == "figcaption" and len(blocks) == 1:
            blocks = [_around(blocks[0], "*")]
        elif tag == "summary" and len(blocks) == 1:
            blocks = [_around(blocks[0], "**")]
        return blocks

    def _lines(self, run: Sequence[LexborNode], depth: int) -> list[str]:
        """A paragraph of what stands within a line."""
        if not run or (self._without_menus and is_menu([_with_links_marked(run)])):
            return []
        text = _tidy("".join(self._inline(node, depth) for node in run))
        return [_paragraph(text)] if text else []

    # Within a line

    def _inline(self, node: LexborNode, depth: int) -> str:
        tag = node.tag or ""
        if tag == "-text":
            return escaped(_one_space(node.text(deep=False)))
        if tag in _NOT_SHOWN:
            return ""
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self._picture(node)
        if tag in _CODE:
            return _code(node.text())
        if depth > _DEEPEST:
            return escaped(_one_space(node.text()))
        inner = "".join(self._inline(child, depth + 1) for child in node.iter(include_text=True))
        if tag == "a":
            return self._link(node, inner)
        if tag == "q":
            return f'"{inner}"'
        return _around(inner, _AROUND[tag]) if tag in _AROUND else inner

    def _link(self, node: LexborNode, inner: str) -> str:
        url = self._url(node, "href")
        text = inner.replace(_BREAK, " ").strip() or escaped(_one_space(_attribute(node, "aria-label")).strip())
        if not url or not text:
            return inner
        before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        return f"{before}[{text}]({url}){after}"

    def _picture(self, node: LexborNode) -> str:
        said = escaped(_one_space(_attribute(node, "alt")).strip())
        url = self._url(node, "src") if said else ""
        return f"![{said}]({url})" if url else said

    def _url(self, node: LexborNode, name: str) -> str:
        """The absolute address; "" for one that leads to no page."""
        href = _attribute(node, name).strip()
        if not href or href.startswith("#") or scheme_of(href) in SILENT or self._url_signs > _MOST_URL_SIGNS:
            return ""
        try:
            url = self._resolve(href)
        except BadUrl:
            return ""
        if not url.startswith(("http://", "https://")):
            return ""
        self._url_signs += len(url)
        return url.translate(_IN_URL)

    # Blocks

    def _heading(self, node: LexborNode, depth: int) -> list[str]:
        text = " ".join(_tidy("".join(self._inline(child, depth) for child in node.iter(include_text=True))).split())
        return [f"{'#' * _HEADINGS[node.tag or 'h1']} {text}"] if text else []

    def _list(self, node: LexborNode, depth: int) -> list[str]:
        items = [child for child in node.iter() if child.tag not in _NOT_SHOWN]
        if not items or (self._without_menus and is_menu([_with_links_marked([item]) for item in items])):
            return []
        number = _number(_attribute(node, "start"), 1) if node.tag == "ol" else 0
        written, is_tight = list[str](), True
        for item in items:
            blocks = self.blocks(item, depth) if item.tag == "li" else self._block(item, item.tag or "", depth)
            if not blocks:
                continue
            marker = f"{number + len(written)}. " if node.tag == "ol" else "- "
            tight = all(_is_list(block) for block in blocks[1:])
            is_tight = is_tight and tight
            written.append(_indented(("\n" if tight else "\n\n").join(blocks), marker, " " * len(marker)))
        return [("\n" if is_tight else "\n\n").join(written)] if written else []

    def _definitions(self, node: LexborNode, depth: int) -> list[str]:
        written: list[str] = []
        for child in node.css("dt,dd"):
            text = " ".join(self.blocks(child, depth)).replace("\n", " ")
            if not text:
                continue
            if child.tag == "dt":
                written.append(f"- {_around(text, '**')}")
            elif written:
                written[-1] += f"{':' if written[-1].endswith('**') else ';'} {text}"
            else:
                written.append(f"- {text}")
        return ["\n".join(written)] if written else []

    def _quotation(self, node: LexborNode, depth: int) -> list[str]:
        text = "\n\n".join(self.blocks(node, depth))
        return ["\n".join(f"> {line}".rstrip() for line in text.split("\n"))] if text else []

    def _listing(self, node: LexborNode, depth: int) -> list[str]:
        text = _written(node).strip("\n")
        if not text.strip():
            return []
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=0))
        return [f"{fence}{_language_of(node)}\n{text.rstrip()}\n{fence}"]

    def _table(self, node: LexborNode, depth: int) -> list[str]:
        rows = list(_rows_of(node))
        cells = [[cell for cell in row.iter() if cell.tag in ("td", "th")][:_MOST_COLUMNS] for row in rows[:_MOST_ROWS]]
        cells = [row for row in cells if row]
        if max(map(len, cells), default=0) < 2 or any(cell.css_first(_ROUGH_CELL) for row in cells for cell in row):
            return [block for row in cells for cell in row for block in self.blocks(cell, depth)]  # it is a layout
        caption = next((child for child in node.iter() if child.tag == "caption"), None)
        before = self.blocks(caption, depth) if caption is not None else []
        lines = [self._row(row, depth) for row in cells]
        if not any(cell for line in lines for cell in line):
            return before
        width = min(_MOST_COLUMNS, max(map(len, lines)))
        has_head = all(cell.tag == "th" for cell in cells[0]) or _is_in_head(cells[0][0])
        head, *body = lines if has_head else [[], *lines]
        table = [_table_line(head, width), _table_line(["---"] * width, width)]
        return [*before, "\n".join(table + [_table_line(line, width) for line in body])]

    def _row(self, cells: Sequence[LexborNode], depth: int) -> list[str]:
        line: list[str] = []
        for cell in cells:
            text = " ".join(self.blocks(cell, depth)).replace("  \n", " ").replace("\n", " ")
            line += [text.replace("|", "\\|"), *[""] * (_number(_attribute(cell, "colspan"), 1) - 1)]
        return line[:_MOST_COLUMNS]


def _holds_blocks(node: LexborNode) -> bool:
    return node.css_first(_BLOCKS_IN) is not None


def _attribute(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _number(text: str, otherwise: int) -> int:
    return min(int(text), 10**8) if text.isascii() and text.isdigit() and len(text) < 9 and int(text) else otherwise


def _one_space(text: str) -> str:
    return _SPACES.sub(" ", text.translate(_INVISIBLE))


def _tidy(text: str) -> str:
    """Single spaces, and breaks as Markdown writes them."""
    lines = [_SPACES.sub(" ", line).strip() for line in text.split(_BREAK)]
    return "  \n".join(line for line in lines if line)


def _around(text: str, sign: str) -> str:
    """The text between two signs, which must touch it."""
    inner = text.replace(_BREAK, " ").strip()
    if not inner or inner.startswith(sign) or "\n\n" in inner:
        return text
    at = text.find(inner) if inner in text else 0
    end = text[at + len(inner) :] if inner in text else ""
    return f"{text[:at]}{sign}{inner}{sign}{end}"


def _code(text: str) -> str:
    inner = _one_space(text).strip()
    if not inner:
        return " "
    longest = max((len(ticks) for ticks in _TICKS.findall(inner)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{ticks}{space}{inner}{space}{ticks}"


def _written(node: LexborNode) -> str:
    """The text as it is written, with the breaks of `br`."""
    if node.css_first("br") is None:
        return node.text().translate(_INVISIBLE).replace("\r\n", "\n")
    parts = [
        "\n" if each.tag == "br" else each.text(deep=False)
        for each in node.traverse(include_text=True)
        if each.tag in ("br", "-text")
    ]
    return "".join(parts).translate(_INVISIBLE).replace("\r\n", "\n")


def _language_of(node: LexborNode) -> str:
    parent = node.parent
    for each in (node.css_first("code"), node, parent):
        if each is not None and (found := _LANGUAGE.search(_attribute(each, "class"))):
            return found[1].lower()
    return ""


def _linked_block(block: str, url: str) -> str:
    """A block whose first line leads somewhere; a block that has links itself stays."""
    if "](" in block or block.startswith(("|", "`", ">", "- ")):
        return block
    signs = re.match(r"#{1,6} ", block)
    start = signs[0] if signs else ""
    return f"{start}[{block[len(start) :]}]({url})"


def _is_list(block: str) -> bool:
    return re.match(r"- |\d+\. ", block) is not None


def _indented(text: str, first: str, others: str) -> str:
    head, *rest = text.split("\n")
    return "\n".join([first + head, *(others + line if line else "" for line in rest)])


def _rows_of(table: LexborNode) -> Iterator[LexborNode]:
    for child in table.iter():
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child.iter() if row.tag == "tr")


def _is_in_head(cell: LexborNode) -> bool:
    row = cell.parent
    return row is not None and row.parent is not None and row.parent.tag == "thead"


def _table_line(cells: Sequence[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"


def _with_links_marked(nodes: Sequence[LexborNode]) -> str:
    """The text of these elements as `levada.pages.text.is_menu` reads it."""
    parts: list[str] = []
    for node in nodes:
        if node.tag == "a":
            parts.append(f"\x1f{node.text()}\x1f")
        elif node.tag == "-text":
            parts.append(node.text(deep=False))
        elif node.css_first("a") is None:
            parts.append(node.text())
        else:
            last = 0
            whole = node.text()
            for link in node.css("a"):
                text = link.text()
                at = whole.find(text, last)
                if at >= 0:
                    parts.append(f"{whole[last:at]}\x1f{text}\x1f")
                    last = at + len(text)
            parts.append(whole[last:])
    return _SPACES.sub(" ", "".join(parts)).strip(" ")  # not `split`: it would take the marks for spaces
