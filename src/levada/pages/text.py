"""Main text of a page, without navigation, banners and menus.

A heuristic. The page's `main` or only `article`, or else the body, is read without its frame (navigation, footer and
the like). If that is little text, what else is boilerplate is dropped (`levada.pages.boilerplate`). If nothing is left
but headings, or what may wait for a script, the body is read, each time from a fresh tree: without its frame, and then
with asides, forms and hidden elements. Menus and footers are never taken for the text, except where a list of links is
all that a page has under its title.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence, Set
from functools import cache
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.errors import MissingExtra
from levada.core.processes import give_back_freed_memory
from levada.pages.blocks import BlockModel, Container, Line, Page, block_model
from levada.pages.boilerplate import SHORT, begins_title, drop_boilerplate, has_own_text, is_index, plain_size
from levada.pages.folding import WideReplacement
from levada.pages.html import tree_of
from levada.pages.menus import without_menus
from levada.pages.noise import LONGEST_LABEL, compared_lines, has_price, is_advert_label, is_related_label, is_slogan


class BuiltinExtractor:
    """The main text as `main_text` finds it, for those who have a page as text."""

    def extract(self, html: str, url: str) -> str:
        page = html.encode("utf-8", "replace")
        return main_text(tree_of(page), page).decode()


class TrafilaturaExtractor:
    """The main text by trafilatura; `MissingExtra` if that is not installed."""

    def __init__(self) -> None:
        try:
            from trafilatura import extract
        except ImportError as error:
            raise MissingExtra("trafilatura", "text") from error
        self._extract = extract

    def extract(self, html: str, url: str) -> str:
        return self._extract(html, include_comments=False) or ""


READER = 2  # version: a page that is read differently by another one has not changed
ENOUGH = 200  # characters: as much must stand elsewhere to be preferred to a short text
_BYTES = 4  # per character at most
_SMALL = 30_000  # bytes: a larger page has hardly ever so little to read that it is worth to look
MAX_SUSPECTS = 200  # elements whose size is measured
LARGE = 0.4  # share of the text: an element with more is no frame, whatever its class says
_NEAR, _NEAR_LETTERS = 4, 5000  # elements around a form, and the text of them
_HEADED = 0.5  # share of the text around a form that makes the form the content
_BREAK, _LINK, _GAP = b"\x1e", b"\x1f", b" "
_WRITTEN_BREAK = b"\x1d"  # a mark of its own: a list of files in a `pre` is judged as a whole, and is no menu
_ENDS = _BREAK + _WRITTEN_BREAK
_NO_TEXT_TAGS = """
    script style noscript template iframe object embed svg math canvas audio video select textarea button datalist
    dialog
"""
_NO_TEXT = frozenset(_NO_TEXT_TAGS.split())
# In front of the model of lines. Buttons and dialogs stay: a question may open its answer.
_SILENT_TAGS = "img input link meta noembed noframes plaintext source xmp"
_SILENT = sorted((_NO_TEXT - {"button", "dialog"}).union(_SILENT_TAGS.split()))
_MENUS, _MENU_ROLES = "nav,footer,[role]", frozenset(("navigation", "contentinfo", "complementary"))
_UNWRITTEN = sorted({*_SILENT} - {"img", "input", "math"})  # the same for Markdown, which writes these
LEAST_SCORE = 0.4  # log-odds: a line with more belongs to the main text
_LEAST_COMPARED = 0.0  # log-odds of a line without links
_LEAST_LEAD, _LEAD_LETTERS = -1.0, 60  # the same of a sentence between the title and the text
_MOST_PRICES, _PRICE_LETTERS = 3, 120  # of lines with prices beside the text: more are a list of products
_RELATED_LINKED = 0.5  # share of a line that leads to another page
_NOISE_SHARE = 0.2  # of the text: an element with more is no noise, whatever its name
_BOX_LINES, _BOX_SIZE = 4, 300  # of an element with a label that says that it is an advertisement
_FORMULAS = frozenset(("math",))  # which Markdown can write
_NEVER_READ = frozenset(("script", "style", "noscript", "template"))
_FRAME = _NO_TEXT | frozenset(("nav", "aside", "menu", "footer"))
_SCREEN = _NO_TEXT | frozenset(("nav", "menu", "footer"))  # if nothing is left without the frame
_PLACEHOLDER = 25  # bytes: an element with less and no heading may wait for a script
_UNSEEN = '[hidden],[aria-hidden="true"],[role]'
_FRAME_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))  # their ids come from their words
_CALLED = '[class*="{0}"],[id*="{0}"]:not(section)'  # a section has its id from its heading
_SUSPECTS = ",".join(("form", "header", *map(_CALLED.format, ("breadcrumb", "sidebar"))))
# Only in the body: a `main` may be about cookies.
_BODY_SUSPECTS = ",".join((_SUSPECTS, *map(_CALLED.format, ("cookie", "consent"))))
_SPACES = [char for char in map(chr, range(1, 0x3001)) if char.isspace() and char != " "]
_NARROW_SPACES = "".join(char for char in _SPACES if char.isascii()).encode()
_plain_spaces = WideReplacement(
    dict.fromkeys((char for char in _SPACES if not char.isascii()), b" ") | dict.fromkeys("\xad\u200b\ufeff", b"")
)
_HEART = "h1,main,article"
_TITLES = "h1,h2,h3"
_BLOCKS = """
    p h1 h2 h3 h4 h5 h6 div ul ol dl table blockquote section article figure figcaption address header main footer
    nav aside form fieldset legend details summary center pre
"""
_AROUND = frozenset(_BLOCKS.split())
_BEFORE = frozenset(("li", "dt", "dd", "tr", "br", "hr", "caption", "option"))
_CELLS = frozenset(("td", "th"))


class Reading(NamedTuple):
    """What of a page is read as its content."""

    in_own_root: bool = False  # only what the page marks as its main content
    unwanted: frozenset[str] = _FRAME
    is_trimmed: bool = False  # searched for the boilerplate of short pages
    with_menus: bool = False


class MainText(NamedTuple):
    """The main text in UTF-8, one paragraph per line."""

    text: bytes
    compared: bytes  # without the noise in it


def main_text(tree: LexborHTMLParser | None, html: bytes) -> bytes:
    """The main text in UTF-8, one paragraph per line. `tree`, of `html`, is modified.

    None in its place: it is made again where it is needed, and not kept. That takes less memory, for a large page.
    """
    return _text_and_lines(tree, html)[0]


def read_main_text(
    tree: LexborHTMLParser | None, html: bytes, title: str = "", *, is_stripped: bool = False
) -> MainText:
    """The main text of a page with this title, and what of it counts when versions are compared.

    `is_stripped`: what is never read has been dropped from the tree.
    """
    text, likely = _text_and_lines(tree, html, is_stripped)
    lines = text.decode().split("\n") if likely is None else _steady_lines(likely)
    return MainText(text, _joined(compared_lines(lines, title)))


def _text_and_lines(
    tree: LexborHTMLParser | None, html: bytes, is_stripped: bool = False
) -> tuple[bytes, _Likely | None]:
    """The main text, and the lines that it was chosen from; None if rules found it."""
    if tree is None:
        read = _body_and_title(_without_silent(html))
        give_back_freed_memory()
    else:
        if not is_stripped:
            drop_silent(tree)
        if len(html) < _SMALL and _is_short_as_a_whole(tree):
            ruled = ruled_text(tree, html)  # the model could find nothing longer
            if not _is_long(ruled):
                return ruled, None
            tree = _without_silent(html)
        read = _body_and_title(tree)
    likely = _likely_lines_of(*read)
    text = tidy_lines("\n".join(line.text for line in likely.kept).encode("utf-8", "replace"))
    if not _is_long(text):
        ruled = ruled_text(tree or _without_silent(html), html)
        if not _is_preferred(text, ruled):
            return ruled, None
    return text, likely


def _is_short_as_a_whole(tree: LexborHTMLParser) -> bool:
    """Whether even all that is to be read in the body is a short text."""
    body = tree.body
    return body is None or len(" ".join(body.text(separator=" ").split())) < SHORT


def _joined(lines: Sequence[str]) -> bytes:
    return tidy_lines("\n".join(lines).encode("utf-8", "replace"))


def _steady_lines(likely: _Likely) -> list[str]:
    """The lines outside of advertisements and of links to other pages, told by the names of elements or by a label.

    Some lines beside the main text are among them: those that nearly belong to it, sentences between the title and it,
    and a few prices, unless there are as many as in a list of products. Of a list of links either all are or none is.
    """
    lines, scores = likely
    boxes: set[Container] = set()
    torn: set[Container] = set()
    steady: list[Line] = []
    prices: list[Line] = []
    size = 0
    before = -1  # the last line that is no link
    is_lead = False
    for at, (line, score) in enumerate(zip(lines, scores, strict=True)):
        text = line.text
        if score > LEAST_SCORE:
            is_lead = False
            if line.linked > _RELATED_LINKED * len(text) and (
                is_related_label(text) or is_slogan(text) or (before >= 0 and is_related_label(lines[before].text))
            ):
                continue
            size += len(text)
            steady.append(line)
        elif line.linked:
            if line.linked > _RELATED_LINKED * len(text):
                torn.add(_list_of(line))
                continue
        elif score > _LEAST_COMPARED or (is_lead and score > _LEAST_LEAD and len(text) >= _LEAD_LETTERS):
            steady.append(line)
        elif len(text) < _PRICE_LETTERS and has_price(text):
            prices.append(line)
        if line.linked <= _RELATED_LINKED * len(text):
            before = at
            is_lead = is_lead or line.under_title
            if len(text) < LONGEST_LABEL and is_advert_label(text):
                boxes |= _boxes_around(line)
    if prices and len(prices) <= _MOST_PRICES:
        of_price = set(map(id, prices))
        chosen = {id(line) for line in steady} | of_price
        steady = [line for line in lines if id(line) in chosen]
    most = _NOISE_SHARE * size
    return [
        line.text
        for line in steady
        if not _is_in_noise(line.container, most, boxes)
        and not (torn and line.linked > _RELATED_LINKED * len(line.text) and _list_of(line) in torn)
    ]


def _list_of(line: Line) -> Container:
    """The element whose lines are the neighbours of this one."""
    container = line.container
    return container.around if container.lines == 1 and container.around is not None else container


def _boxes_around(label: Line) -> set[Container]:
    """The small element with this label, if there is one."""
    box = _list_of(label)
    return {box} if box.lines <= _BOX_LINES and box.size <= _BOX_SIZE else set()


def _is_in_noise(container: Container, most: float, boxes: Set[Container]) -> bool:
    if boxes and (container in boxes or container.around in boxes):
        return True
    outermost: Container | None = None
    each: Container | None = container
    while each is not None:
        if each.is_noise:
            outermost = each
        each = each.around
    return outermost is not None and outermost.size <= most


def _is_preferred(text: bytes, ruled: bytes) -> bool:
    """Whether a short text that the model found is better than that by rules, which are made for short pages."""
    return _is_long(ruled) and len(text) >= ENOUGH


def ruled_text(tree: LexborHTMLParser, html: bytes) -> bytes:
    """The main text by rules alone, which read a short page well; on a long one much of its frame is left."""
    return _best_reading(tree, html)[1]


class _Likely(NamedTuple):
    lines: list[Line]
    scores: list[float]

    @property
    def kept(self) -> list[Line]:
        return [line for line, score in zip(*self, strict=True) if score > LEAST_SCORE]

    @property
    def others(self) -> list[Line]:
        return [line for line, score in zip(*self, strict=True) if score <= LEAST_SCORE]


def page_lines(
    tree: LexborHTMLParser, model: BlockModel, *, keeps_paths: bool = False, unread: Sequence[str] = ()
) -> tuple[Page, str] | None:
    """The lines of the body and the title of the page. What is not asked about is dropped from the tree."""
    drop_silent(tree, unread or _SILENT)
    body, title = _body_and_title(tree)
    return None if body is None else (model.page(body, keeps_paths=keeps_paths), title)


def _body_and_title(tree: LexborHTMLParser) -> tuple[str | None, str]:
    """What the model is asked about, and the title. Menus are dropped from the tree."""
    body = tree.body
    if body is None:
        return None, ""
    _drop_menus(body)
    title = tree.css_first("title")
    return body.html or "", "" if title is None else " ".join(title.text().split())


def _without_silent(html: bytes) -> LexborHTMLParser:
    tree = tree_of(html)
    drop_silent(tree)
    return tree


def drop_silent(tree: LexborHTMLParser, unread: Sequence[str] = _SILENT) -> None:
    """Drop what is never read."""
    body = tree.body
    if body is None:
        return
    met = {node.tag for node in body.css(",".join(unread))}  # to strip each takes a walk through the tree
    body.strip_tags([tag for tag in unread if tag in met])


def _drop_menus(body: LexborNode) -> None:
    """Drop navigation and footers, a third of the lines of news pages: of 200 lines in them hardly one is text."""
    suspects = [
        node for node in body.css(_MENUS) if node.tag in ("nav", "footer") or node.attributes.get("role") in _MENU_ROLES
    ][:MAX_SUSPECTS]
    large = LARGE * len(body.text()) if suspects else 0
    for node in suspects:
        if node.mem_id != body.mem_id and len(node.text()) <= large and node.css_first(_HEART) is None:
            node.decompose(False)


def _likely_lines(tree: LexborHTMLParser, unread: Sequence[str]) -> _Likely:
    """The lines that the model takes for the main text, and the others."""
    drop_silent(tree, unread)
    return _likely_lines_of(*_body_and_title(tree))


def _likely_lines_of(body: str | None, title: str) -> _Likely:
    if body is None:
        return _Likely([], [])
    model = block_model()
    page = model.page(body)
    return _Likely(page.lines, model.scores(page, title))


def content_element(html: bytes) -> tuple[LexborNode, Reading] | None:
    """The element with the content that `main_text` reads, on a fresh tree, and how it is read."""
    tree = tree_of(html)
    likely = _likely_lines(tree, _UNWRITTEN)
    text = "\n".join(line.text for line in likely.kept).encode("utf-8", "replace")
    if tree.body is not None and (_is_long(text) or _is_preferred(text, ruled_text(tree_of(html), html))):
        _drop_other_lines(tree.body, likely)
        return tree.body, Reading(with_menus=True)
    reading, _ = _best_reading(tree_of(html), html)
    tree = tree_of(html)
    root = _own_root(tree) if reading.in_own_root else tree.body
    if root is None:
        return None
    _drop_unwanted(root, reading.unwanted, kept=_FORMULAS)
    if reading.is_trimmed:
        drop_boilerplate(root)
    return root, reading


def _drop_other_lines(body: LexborNode, likely: _Likely) -> None:
    """Drop the elements of which no line is kept; those without a line stay between the kept ones."""
    kept = sorted(line.element for line in likely.kept)
    others = sorted(line.element for line in likely.others)
    nodes = [node for node in body.traverse() if node.is_element_node]
    sizes = _sizes(nodes)
    at, first, last = 1, kept[0], kept[-1]
    while at < len(nodes):
        end = at + sizes[at]
        if bisect_left(kept, at) < bisect_left(kept, end):
            at += 1
            continue
        if not first < at < last or bisect_left(others, at) < bisect_left(others, end):
            nodes[at].decompose(False)
        at = end


def _sizes(nodes: Sequence[LexborNode]) -> list[int]:
    """How many elements each of these has in it, with itself; they are in document order, the outermost first."""
    sizes = [1] * len(nodes)
    places = {node.mem_id: place for place, node in enumerate(nodes)}
    for place in range(len(nodes) - 1, 0, -1):
        around = nodes[place].parent
        if around is not None:
            sizes[places.get(around.mem_id, 0)] += sizes[place]
    return sizes


def whole_text(tree: LexborHTMLParser) -> bytes:
    """All that is to be read in the body, one paragraph per line: for HTML in which nothing surrounds the content."""
    body = tree.body
    if body is None:
        return b""
    _drop_unwanted(body, _NO_TEXT)
    _mark(body)
    return _text_of(body, with_menus=True)


def text_of_element(element: LexborNode) -> bytes:
    """All that is to be read in one element, one paragraph per line. The element is modified."""
    for node in list(element.traverse())[1:]:
        if node.tag in _NEVER_READ:
            node.decompose(False)
    _mark(element)
    return _text_of(element, with_menus=True)


def _best_reading(tree: LexborHTMLParser, html: bytes) -> tuple[Reading, bytes]:
    body = tree.body
    if body is None:
        return Reading(), b""
    own = _own_root(tree)
    root = body if own is None else own
    _drop_unwanted(root, _FRAME)
    _mark(root)
    text = _text_of(root)
    if _is_long(text):
        return Reading(own is not None), text
    drop_boilerplate(root)
    text = _text_of(root)
    has_own = has_own_text(root, text)
    if has_own and (own is None or len(text) >= _PLACEHOLDER or root.css_first(_TITLES) is not None):
        return Reading(own is not None, is_trimmed=True), text
    linked = Reading(own is not None, is_trimmed=True, with_menus=True), _text_of(root, with_menus=True)
    lists = not has_own and has_own_text(root, linked[1])
    if lists and own is not None:
        return linked
    found = _reading_of_rest(text, html, in_own_root=own is not None, has_own=has_own)
    return linked if lists and found[1] == text and is_index(root) else found


def _reading_of_rest(text: bytes, html: bytes, *, in_own_root: bool, has_own: bool) -> tuple[Reading, bytes]:
    """The reading of a page whose first reading gives `text`, which is hardly its content."""
    best = Reading(in_own_root, is_trimmed=True), text
    least = max(2 * len(text), ENOUGH) if has_own else len(text) + 1
    for unwanted in (_FRAME, _SCREEN) if in_own_root else (_SCREEN,):
        body = tree_of(html).body  # with the elements that were dropped before
        if body is None:
            break
        _drop_unwanted(body, unwanted)
        _mark(body)
        other = _text_of(body)
        is_trimmed = not _is_long(other)
        if is_trimmed:
            drop_boilerplate(body)
            other = _text_of(body)
        if has_own_text(body, other) and len(other) >= least:
            return Reading(False, unwanted, is_trimmed), other
    return best


def _is_long(text: bytes) -> bool:
    return len(text) >= _BYTES * SHORT or (len(text) >= SHORT and len(text.decode()) >= SHORT)


def tidy_lines(text: bytes, ends: bytes = b"\n") -> bytes:
    """One line per part between `ends`, single spaces, no empty lines; the same for all kinds of white space."""
    text = text.translate(_spaces_and_ends(ends))
    if not text.isascii():
        text = _plain_spaces(text)
    lines = [line for line in map(bytes.strip, text.split(b"\n")) if line]
    tidy = b"\n".join(lines)
    if tidy.rfind(b"  ") < 0:  # from the end: that is two thirds of the time of `in`
        return tidy
    return b"\n".join([b" ".join(line.split()) if b"  " in line else line for line in lines])


@cache
def _spaces_and_ends(ends: bytes) -> bytes:
    return bytes.maketrans(_NARROW_SPACES + ends, b" " * len(_NARROW_SPACES) + b"\n" * len(ends))


def _own_root(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that the page marks as its main content, if there is only one."""
    if mains := tree.tags("main") or tree.css('[role="main"]'):
        return mains[0]
    articles = tree.tags("article")
    if len(articles) != 1:
        return None
    # Without the page's title in it, it is a teaser or a review.
    return articles[0] if articles[0].css_first("h1") is not None or not tree.tags("h1") else None


def _drop_unwanted(root: LexborNode, unwanted: frozenset[str], kept: frozenset[str] = frozenset()) -> None:
    tags = unwanted - kept
    for node in list(root.traverse()):
        if node.tag in tags and not (node.tag == "button" and _is_heading(node)):
            node.decompose(False)
    if unwanted is _FRAME:
        _drop_frame(root)


def _text_of(root: LexborNode, *, with_menus: bool = False) -> bytes:
    """The text of a marked element."""
    text = root.text()
    text = text.replace(_LINK.decode(), "") if with_menus else without_menus(text)
    return tidy_lines(text.encode("utf-8", "replace"), _ENDS)


def _is_heading(button: LexborNode) -> bool:
    """Whether the button is all that a heading contains, in a span or not: it opens the section below."""
    heading = _only_parent(button)
    if heading is not None and heading.tag == "span":
        heading = _only_parent(heading)
    if heading is None or heading.tag not in _HEADINGS:
        return False
    return heading.text().strip() == button.text().strip()


def _only_parent(node: LexborNode) -> LexborNode | None:
    """The parent, if this is its only child."""
    parent = node.parent
    return None if parent is None or len(list(islice(parent.iter(), 2))) > 1 else parent


def _drop_frame(root: LexborNode) -> None:
    own = root.mem_id
    for node in root.css(_UNSEEN):
        attributes = node.attributes
        unseen = attributes.get("hidden") != "until-found"
        if unseen and attributes.get("role", "navigation") in _FRAME_ROLES and node.mem_id != own:
            node.decompose(False)
    suspects = root.css(_BODY_SUSPECTS if root.tag == "body" else _SUSPECTS)[:MAX_SUSPECTS]
    large = LARGE * len(root.text()) if suspects else 0
    for node in suspects:
        if node.tag in _HEADINGS:
            continue
        heart = _TITLES if node.tag == "header" else _HEART
        if node.mem_id != own and len(node.text()) <= large and node.css_first(heart) is None:
            if node.tag == "form" and _is_headed(node):
                continue
            node.decompose(False)


def _is_headed(form: LexborNode) -> bool:
    """Whether the form is what the title before it is about: a page to sign in."""
    around: LexborNode | None = form
    size = len(form.text())
    for _ in range(_NEAR):
        if around is None or len(around.text()) > _NEAR_LETTERS or _HEADED * plain_size(around) > size:
            return False
        before = around.prev
        while before is not None and not before.text().strip():
            before = before.prev
        if before is not None:
            title = before if before.tag == "h1" else before.css_first("h1")
            if title is not None:
                return len(before.text()) <= 2 * len(title.text())
            return begins_title(around, (before,)) is not None
        around = around.parent
    return False


def _mark(root: LexborNode) -> None:
    """Mark line ends and links: `text` alone cannot tell a paragraph from a bold word."""
    listings: list[LexborNode] = []
    for node in list(root.traverse())[1:]:
        tag = node.tag
        if tag in _AROUND:
            node.insert_before(_BREAK)
            node.insert_after(_BREAK)
            if tag == "pre":
                listings.append(node)
        elif tag == "a":
            node.insert_before(_LINK)
            node.insert_after(_LINK)
        elif tag in _BEFORE:
            node.insert_before(_BREAK)
        elif tag in _CELLS or (tag == "sup" and node.css_first("a") is not None):  # the number of a note
            node.insert_before(_GAP)
    if listings:
        _mark_written_breaks(listings)


def _mark_written_breaks(listings: Sequence[LexborNode]) -> None:
    inner: set[int] = set()  # nested ones, done with the outer one
    for listing in listings:
        if listing.mem_id in inner:
            continue
        for node in list(listing.traverse(include_text=True)):
            if node.tag == "pre":
                inner.add(node.mem_id)
            elif node.tag == "-text" and "\n" in (text := node.text(deep=False)):
                node.replace_with(text.encode("utf-8", "replace").replace(b"\n", _WRITTEN_BREAK))
