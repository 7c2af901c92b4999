"""A page as Markdown: its main content with headings, lists, tables, code, quotations, links and pictures.

What is main content is decided as for the main text (`levada.pages.text`). The Markdown is CommonMark with tables and
strikethrough as GitHub writes them. Signs that Markdown would take for its own are escaped, addresses are absolute
and canonical, so that they can be asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile, zip_longest

from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.errors import BadUrl
from levada.pages.html import read_head, too_deep, tree_of
from levada.pages.links import SILENT
from levada.pages.menus import is_menu
from levada.pages.text import content_element
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
_LAYOUT_CELL = "h1,h2,h3,h4,h5,h6,table,blockquote"  # no table of values has these
_ROUGH_CELL = "ul,ol,pre,p+p"  # one with headings may
_NO_CONTENT_TAGS = "head script style template title svg iframe object select textarea -comment"
_NOT_SHOWN = frozenset(_NO_CONTENT_TAGS.split())
_AROUND = {"em": "*", "i": "*", "cite": "*", "strong": "**", "b": "**", "del": "~~", "s": "~~", "strike": "~~"}
_ALONE = frozenset(("br", "img", "math", "input", "code", "kbd", "samp", "tt"))
_SPACES = re.compile(r"[ \t\n\r\f\v\xa0\u2000-\u200a\u202f\u3000]+")
_INVISIBLE = dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff\x1e\x1f"), "")
_SIGNS = re.compile(r"[\\`*\[\]<]|(?<![^\W_])_|_(?![^\W_])|~~|&(?=#?\w+;)")
_AT_START = re.compile(
    r"^(?:(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|=+\s*$|-+\s*$|~{3,})|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE
)
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight)-|(?:brush:|hljs|sourceCode)\s+)([A-Za-z0-9+#._-]{1,30})"
)
_LANGUAGE_AROUND = re.compile(r"(?:^|\s)(?:language|highlight-source|highlight)-([A-Za-z0-9+#._-]{1,30})")
_LOOK_AROUND = 3  # elements around a listing that may name its language
_NO_LANGUAGE_NAMES = "none default text txt plain plaintext nohighlight notranslate source unknown"
_NO_LANGUAGE = frozenset(_NO_LANGUAGE_NAMES.split())
_LANGUAGE_NAMES = {"python3": "python", "ipython3": "python", "ipython": "python", "pycon3": "pycon"}
# Marks and frames that the makers of documentation set around content: links to a heading from itself, line numbers,
# the second form of a formula, "previous" and "next".
_LEFT_OUT_CLASSES = """
    headerlink header-anchor heading-anchor anchor-link anchorjs-link hash-link linenos lineno linenumber blob-num
    hljs-ln-numbers katex-html mwe-math-fallback-image-inline mwe-math-fallback-image-display navheader navfooter
    mw-editsection
"""
_LEFT_OUT = frozenset(_LEFT_OUT_CLASSES.split())
_TO_ITSELF = frozenset("¶§#🔗∞")
_POWER = re.compile(r"[-−+]?(?:\d{1,4}|[nk])")
_NO_PROSE = re.compile(r"```|>|\||#{1,6} |- |\d+\. |---$")
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
            if tag in _NOT_SHOWN or _is_left_out(child):
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
        if tag in _NOT_SHOWN or _is_left_out(node):
            return ""
        if tag in _ALONE:
            return self._alone(node, tag)
        if depth > _DEEPEST:
            return escaped(_one_space(node.text()))
        inner = "".join(self._inline(child, depth + 1) for child in node.iter(include_text=True))
        if tag == "a":
            return self._link(node, inner)
        if tag == "q":
            return f'"{inner}"'
        if tag == "sup" and _POWER.fullmatch(inner):
            return f"^{inner}"
        return _around(inner, _AROUND[tag]) if tag in _AROUND else inner

    def _alone(self, node: LexborNode, tag: str) -> str:
        """An element whose inside is not read as text within a line."""
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self._picture(node)
        if tag == "math":
            return _formula(node)
        if tag == "input":
            return _box(node)
        return _code(_text_in(node))

    def _link(self, node: LexborNode, inner: str) -> str:
        url = self._url(node, "href")
        text = inner.replace(_BREAK, " ").strip() or escaped(_one_space(_attribute(node, "aria-label")).strip())
        if not url or not text:
            return inner
        before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        return f"{before}[{text}]({url}){after}"

    def _picture(self, node: LexborNode) -> str:
        said = escaped(_one_space(_attribute(node, "alt")).strip())
        url = (self._url(node, "src") or self._url(node, "data-src")) if said else ""
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
        items = [child for child in node.iter() if child.tag not in _NOT_SHOWN and not _is_left_out(child)]
        if not items or (self._without_menus and is_menu([_with_links_marked([item]) for item in items])):
            return []
        number = _number(_attribute(node, "start"), 1) if node.tag == "ol" else 0
        written, is_tight, inside = list[str](), True, ""
        for item in items:
            blocks = self.blocks(item, depth) if item.tag == "li" else self._block(item, item.tag or "", depth)
            if not blocks:
                continue
            if item.tag in ("ul", "ol") and written:  # it stands beside the item that it belongs into
                written[-1] += "\n" + _indented("\n".join(blocks), inside, inside)
                continue
            marker = f"{number + len(written)}. " if node.tag == "ol" else "- "
            tight = all(_is_list(block) for block in blocks[1:])
            is_tight = is_tight and tight
            inside = " " * len(marker)
            written.append(_indented(("\n" if tight else "\n\n").join(blocks), marker, inside))
        return [("\n" if is_tight else "\n\n").join(written)] if written else []

    def _definitions(self, node: LexborNode, depth: int) -> list[str]:
        """An item per term: what is said of it in its line, or below, if that is more than a paragraph."""
        items, is_tight = list[list[str]](), True
        for child in _terms_of(node):
            if child.tag == "dt":
                if term := self._term(child, depth):
                    items.append([term])
                continue
            blocks = self.blocks(child, depth)
            if not blocks:
                continue
            if not items:
                items.append([])
            item = items[-1]
            if not _NO_PROSE.match(blocks[0]) and len(item) < 2:
                first = " ".join(blocks[0].split())
                begun = item[0] if item else ""
                between = "" if not begun else ": " if begun.endswith(("**", "`")) else "; "
                item[:1], blocks = [f"{begun}{between}{first}"], blocks[1:]
            item += blocks
            is_tight = is_tight and all(_is_list(block) for block in item[1:])
        between = "\n" if is_tight else "\n\n"
        return [between.join(_indented(between.join(item), "- ", "  ") for item in items)] if items else []

    def _term(self, node: LexborNode, depth: int) -> str:
        if "sig" in _attribute(node, "class").split():
            return _code(_text_in(node))
        return _around(" ".join(" ".join(self.blocks(node, depth)).split()), "**")

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
        rows = [_cells_of(row) for row in islice(_rows_of(node), _MOST_ROWS)]
        rows = [row for row in rows if row]
        if _is_layout(node, rows):
            return [block for row in rows for cell in row for block in self.blocks(cell, depth)]
        caption = next((child for child in node.iter() if child.tag == "caption"), None)
        before = self.blocks(caption, depth) if caption is not None else []
        in_head = list(takewhile(_is_in_head, rows)) or ([rows[0]] if all(each.tag == "th" for each in rows[0]) else [])
        head = _joined(self._grid(in_head, depth, repeat=len(in_head) > 1))
        body = self._grid(rows[len(in_head) :], depth, repeat=False)
        lines = [head, *body]
        if not any(cell for line in lines for cell in line):
            return before
        width = min(_MOST_COLUMNS, max(map(len, lines)))
        table = [_table_line(head, width), _table_line(["---"] * width, width)]
        return [*before, "\n".join(table + [_table_line(line, width) for line in body])]

    def _grid(self, rows: Sequence[Sequence[LexborNode]], depth: int, *, repeat: bool) -> list[list[str]]:
        """The texts of the cells in their columns. A cell over several rows is in each; over several columns, in the
        first, or with `repeat` in each."""
        grid: list[list[str]] = []
        below: dict[int, tuple[int, str]] = {}  # by column: in how many more rows, and what
        for row in rows:
            line: list[str] = []
            for cell in row:
                _continue_cells(line, below)
                if len(line) >= _MOST_COLUMNS:
                    break
                text = self._cell(cell, depth)
                wide = min(_number(_attribute(cell, "colspan"), 1), _MOST_COLUMNS - len(line))
                high = _number(_attribute(cell, "rowspan"), 1)
                shown = [text] * wide if repeat else [text, *[""] * (wide - 1)]
                if high > 1:
                    below |= {len(line) + at: (high - 1, each) for at, each in enumerate(shown)}
                line += shown
            _continue_cells(line, below)
            grid.append(line)
        return grid

    def _cell(self, cell: LexborNode, depth: int) -> str:
        blocks: list[str] = []
        for block in self.blocks(cell, depth):
            if block.startswith("```"):
                blocks += [_code(each) for each in block.split("\n")[1:-1] if each.strip()]
            else:
                blocks += [" ".join(each.split()) for each in block.replace("  \n", " ").split("\n")]
        return "<br>".join(filter(None, blocks)).replace("|", "\\|")


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
    return _text_in(node).translate(_INVISIBLE).replace("\r\n", "\n")


def _text_in(node: LexborNode) -> str:
    """The text in an element, without what is not shown or left out."""
    parts: list[str] = []
    waiting = list(node.iter(include_text=True))[::-1]
    while waiting:
        each = waiting.pop()
        if each.tag == "-text":
            parts.append(each.text(deep=False))
        elif each.tag == "br":
            parts.append("\n")
        elif each.tag not in _NOT_SHOWN and not _is_left_out(each):
            waiting += list(each.iter(include_text=True))[::-1]
    return "".join(parts)


def _is_left_out(node: LexborNode) -> bool:
    """Whether it is a mark or a frame around content."""
    written = node.attributes.get("class")
    if written and not _LEFT_OUT.isdisjoint(written.split()):
        return True
    return node.tag == "a" and _attribute(node, "href").startswith("#") and node.text().strip() in _TO_ITSELF


def _language_of(node: LexborNode) -> str:
    for each in (node.css_first("code"), node):
        if each is not None:
            named = _attribute(each, "data-lang") or _attribute(each, "data-language")
            if name := _language(named) or _language_in(_LANGUAGE, each):
                return name
    around = node.parent
    for _ in range(_LOOK_AROUND):
        if around is None or around.tag == "body":
            break
        if name := _language_in(_LANGUAGE_AROUND, around):
            return name
        around = around.parent
    return ""


def _language_in(pattern: re.Pattern[str], node: LexborNode) -> str:
    found = pattern.search(_attribute(node, "class"))
    return _language(found[1]) if found else ""


def _language(name: str) -> str:
    name = name.strip().lower()
    if name in _NO_LANGUAGE or not re.fullmatch(r"[a-z0-9+#._-]{1,30}", name):
        return ""
    return _LANGUAGE_NAMES.get(name, name)


def _formula(node: LexborNode) -> str:
    """A formula as TeX, if the page has that beside its form for the eye."""
    noted = node.css_first('annotation[encoding="application/x-tex"]')
    tex = " ".join((_attribute(node, "alttext") if noted is None else noted.text()).split())
    if not tex or "$" in tex:
        return ""
    sign = "$$" if _attribute(node, "display") == "block" else "$"
    return f"{sign}{tex}{sign}"


def _box(node: LexborNode) -> str:
    """The box of an item of a list of tasks."""
    if _attribute(node, "type").lower() != "checkbox" or not _is_in_item(node):
        return ""
    return "[x] " if "checked" in node.attributes else "[ ] "


def _is_in_item(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and (parent.tag == "li" or (parent.parent is not None and parent.parent.tag == "li"))


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


def _cells_of(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter() if cell.tag in ("td", "th") and not _is_left_out(cell)][:_MOST_COLUMNS]


def _is_layout(table: LexborNode, rows: Sequence[Sequence[LexborNode]]) -> bool:
    """Whether the table only puts things beside each other."""
    if max(map(len, rows), default=0) < 2 or _attribute(table, "role") == "presentation":
        return True
    if any(cell.css_first(_LAYOUT_CELL) is not None for row in rows for cell in row):
        return True
    has_heads = any(cell.tag == "th" for row in rows for cell in row)
    return not has_heads and any(cell.css_first(_ROUGH_CELL) is not None for row in rows for cell in row)


def _is_in_head(row: Sequence[LexborNode]) -> bool:
    of_cell = row[0].parent
    return of_cell is not None and of_cell.parent is not None and of_cell.parent.tag == "thead"


def _continue_cells(line: list[str], below: dict[int, tuple[int, str]]) -> None:
    """Add the cells of rows above that reach into this row here."""
    while len(line) in below:
        left, text = below.pop(len(line))
        if left > 1:
            below[len(line)] = (left - 1, text)
        line.append(text)


def _joined(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of headings as one: each column's texts, one below the other."""
    columns = zip_longest(*rows, fillvalue="")
    return [" ".join(filter(None, dict.fromkeys(column))) for column in columns]


def _terms_of(node: LexborNode) -> Iterator[LexborNode]:
    """The terms of this list and what is said of them, also where they are grouped."""
    for child in node.iter():
        if child.tag in ("dt", "dd"):
            yield child
        elif child.tag == "div":
            yield from (each for each in child.iter() if each.tag in ("dt", "dd"))


def _table_line(cells: Sequence[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"


def _with_links_marked(nodes: Sequence[LexborNode]) -> str:
    """The text of these elements as `levada.pages.menus.is_menu` reads it."""
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
