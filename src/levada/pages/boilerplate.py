"""The frame of a short page: menus, banners, teasers and footers that no tag gives away.

On a long page a line or two of them do no harm. On a page with a sentence of its own they would be most of its text.
So the page is narrowed down from its body to its title, or without one to its largest block, and at each step
the blocks beside it are judged by their names, their share of links, and their position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from operator import itemgetter

from selectolax.lexbor import LexborNode

SHORT = 1000  # characters: a page with more is not searched for boilerplate
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_HEADINGS = ",".join(HEADINGS)
_LINKED = 0.35  # share of linked characters that makes a block beside the content boilerplate
_LEAD = 100  # characters of plain text: a block before the title with more belongs to it
_LEAD_LINKED = 0.2
_MAIN_BLOCK = 0.5  # share of a block's plain text that makes a block in it the content
_MENU = 3  # links
_LINE_OF_LINKS = 2  # links in the last block
_LINE_LINKED = 0.8
_LINK_LETTERS = 18  # per link: longer ones are headlines
_LEAST_TITLE = 3  # characters
_MOST = 200  # elements of a kind that are looked at: a hostile page nests them
_DEEPEST = 60  # blocks in each other
_RIGHTS_LETTERS = 300  # a block with more is no copyright notice
_TITLE_LIKE = "h2,h3,h4,b,strong,font,big,caption"
_TITLE = "h1,main,article"
_CONTAINERS = frozenset(("div", "section", "center", "table", "tbody", "tr", "td", "form", "article", "main"))
# Words of class and id, alone or in a name: `site-footer`, `cookieNotice`.
_FRAME_WORDS = "footer breadcrumb breadcrumbs crumbs sidebar copyright newsletter subscribe share sharing social skip"
_FRAME_NAMES = frozenset(_FRAME_WORDS.split())
_LINK_WORDS = "nav navbar navigation menu topbar toolbar logo brand branding teaser teasers related tags lang"
_LINK_NAMES = frozenset(_LINK_WORDS.split())  # only if there are links in it
_NOTICE_NAMES = frozenset(("cookie", "cookies", "consent", "gdpr", "cc", "cmp", "onetrust"))
_AROUND_NAMES = frozenset(("with", "has", "no", "without", "layout", "content", "main"))  # around the content
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_RIGHTS = re.compile(r"©|\(c\) *\d{4}|copyright|all rights reserved", re.IGNORECASE)
_COOKIES = re.compile(r"cookie|çerez|クッキー|куки|تعريف الارتباط|饼干", re.IGNORECASE)


def drop_boilerplate(root: LexborNode) -> None:
    """Drop from a short page, of which the obvious frame is gone, what is not its content."""
    _drop_named(root)
    if root.tag == "body":
        _narrow(root, _title_of(root))


def has_own_text(root: LexborNode, text: bytes) -> bool:
    """Whether `text`, which was read from the element, has more than the headings in it."""
    lines = text.decode().split("\n") if text else ()
    headings = {" ".join(heading.text().split()) for heading in root.css(_HEADINGS)[:_MOST]} if lines else ()
    return any(line not in headings for line in lines)


def is_index(body: LexborNode) -> bool:
    """Whether all the page has is its title and then one list: its links are its content."""
    lists = [node for node in body.css("h1,ul,ol,dl,table,pre")[:_MOST] if _size(node)]
    if any(node.tag == "h1" for node in lists):
        lists = lists[1:] if lists[0].tag == "h1" else []
    if not lists or any(link.attributes.get("href") == "/" for link in lists[0].css("a")):
        return False
    return _size(body) == _size(lists[0]) + sum(map(_size, body.css(_HEADINGS)[:_MOST]))


def begins_title(root: LexborNode, blocks: Iterable[LexborNode]) -> LexborNode | None:
    """The first of the blocks that the title of the page begins with."""
    top: LexborNode | None = root
    while top is not None and top.tag != "html":
        top = top.parent
    title = None if top is None else top.css_first("title")
    if title is None:
        return None
    said = " ".join(title.text().split())
    for node in blocks:
        text = " ".join(node.text().split())
        if len(text) >= _LEAST_TITLE and said.startswith(text) and not _linked(node):
            return node
    return None


def plain_size(node: LexborNode) -> int:
    """The number of characters outside of links."""
    return _size(node) - _linked(node)


def _size(node: LexborNode) -> int:
    return sum(map(len, node.text().split()))  # the marks of lines and links do not count either


def _linked(node: LexborNode) -> int:
    return sum(map(_size, node.css("a")))


def _drop_named(root: LexborNode) -> None:
    notices = _NOTICE_NAMES if root.tag == "body" else frozenset[str]()  # a `main` may be about cookies
    called = (node for node in root.css("[class],[id]") if node.mem_id != root.mem_id and _names(node, notices))
    named = [node for node in islice(called, _MOST) if _is_frame(node, notices)]
    left = _size(root)
    dropped = set[int]()
    outermost = list[LexborNode]()
    for node in named:  # in document order, so outer ones come first
        if node.mem_id in dropped:
            continue
        outermost.append(node)
        dropped.update(inner.mem_id for inner in node.traverse())
        left -= _size(node)
    if left > 0:
        for node in outermost:
            node.decompose(False)


def _names(node: LexborNode, notices: frozenset[str]) -> frozenset[str]:
    """The words of its class and id that may make an element a part of the frame."""
    attributes = node.attributes
    name = "" if node.tag == "section" else attributes.get("id") or ""  # a section has its id from its heading
    words = _words_of(f"{attributes.get('class') or ''} {name}")
    return words & (_FRAME_NAMES | notices) or words & _LINK_NAMES


def _is_frame(node: LexborNode, notices: frozenset[str]) -> bool:
    if node.tag in HEADINGS or node.tag == "body" or node.css_first(_TITLE) is not None:
        return False
    needs_links = _names(node, notices) <= _LINK_NAMES
    return not needs_links or _linked(node) >= _LINKED * max(_size(node), 1)


@lru_cache(maxsize=4096)
def _words_of(names: str) -> frozenset[str]:
    """The words of these classes, without those that say what the element is around."""
    words = set[str]()
    for name in names.split():
        parts = {word.lower() for word in _WORDS.findall(name)}
        words |= parts if parts.isdisjoint(_AROUND_NAMES) else set()
    return frozenset(words)


def _narrow(root: LexborNode, title: LexborNode | None) -> None:
    """Go from the element inwards to the content, and drop on the way back what is beside it."""
    levels = list[tuple[LexborNode | None, list[LexborNode]]]()
    path = _path(root, title)
    if len(path) > _DEEPEST:
        return
    node: LexborNode | None = root
    while node is not None and len(levels) < _DEEPEST and (title is None or node.mem_id != title.mem_id):
        children = [child for child in node.iter() if _size(child)]
        inner = path.pop() if path else _largest(children)
        own = None if inner is None else inner.mem_id
        levels.append((inner, [child for child in children if child.mem_id != own]))
        node = inner
    for inner, beside in reversed(levels):
        _drop_beside(inner, beside, title)


def _title_of(root: LexborNode) -> LexborNode | None:
    """The only `h1`, or else what looks like a heading and begins the page's title."""
    titles = root.css("h1")
    if titles:  # a linked one is the site's name
        return titles[0] if len(titles) == 1 and not _linked(titles[0]) else None
    return begins_title(root, root.css(_TITLE_LIKE)[:_MOST])


def _path(root: LexborNode, title: LexborNode | None) -> list[LexborNode]:
    """The title and the blocks around it, the outermost last."""
    path = list[LexborNode]()
    node = title
    while node is not None and node.mem_id != root.mem_id:
        path.append(node)
        node = node.parent
    return path


def _largest(children: list[LexborNode]) -> LexborNode | None:
    sizes = [(plain_size(child), child) for child in children if not _is_about_rights(child)]
    size, largest = max(sizes, key=itemgetter(0), default=(0, None))
    if largest is None or largest.tag not in _CONTAINERS:
        return None
    return largest if size >= _MAIN_BLOCK * max(sum(each for each, _ in sizes), 1) else None


def _drop_beside(block: LexborNode | None, beside: list[LexborNode], title: LexborNode | None) -> None:
    before = _ids_before(block) if block is not None and title is not None else frozenset[int]()
    stands_alone = block is not None and _has_content(block, title)
    following = None
    if block is not None and title is not None and not stands_alone:
        following = _following(beside, before)
        stands_alone = following is not None
    beside = [node for node in beside if following is None or node.mem_id != following.mem_id]
    is_last = stands_alone or not all(_is_about_rights(node) or _is_line_of_links(node) for node in beside)
    for node in reversed(beside):
        if (
            _is_about_rights(node)
            or (is_last and _is_line_of_links(node))
            or (stands_alone and _is_apart(node, node.mem_id in before))
        ):
            node.decompose(False)
        else:
            is_last = False


def _ids_before(block: LexborNode) -> frozenset[int]:
    ids = set[int]()
    node = block.prev
    while node is not None:
        ids.add(node.mem_id)
        node = node.prev
    return frozenset(ids)


def _following(beside: list[LexborNode], before: frozenset[int]) -> LexborNode | None:
    """The block after the one that holds nothing but the title, if that is the content."""
    node = next((node for node in beside if node.mem_id not in before), None)
    if node is None or node.tag not in _CONTAINERS or _is_about_rights(node):
        return None
    _narrow(node, None)
    return node if node.tag == "form" or (_size(node) and not _is_apart(node, is_before=False)) else None


def _has_content(node: LexborNode, title: LexborNode | None) -> bool:
    """Whether there is more in the block than headings and a menu."""
    if node.tag in HEADINGS or (title is not None and node.mem_id == title.mem_id):
        return False
    headings = sum(map(_size, node.css(_HEADINGS)[:_MOST]))
    if title is not None and title.tag not in HEADINGS:
        headings += _size(title)
    linked = _linked(node)
    size = _size(node)
    return size - linked > headings or (size > headings and 0 < len(node.css("a")) < _MENU)


def _is_apart(node: LexborNode, is_before: bool) -> bool:
    """Whether a block beside the content is no part of it."""
    size = _size(node)
    linked = _linked(node) / size
    is_lead = size * (1 - linked) >= _LEAD and linked <= _LEAD_LINKED
    if linked >= _LINKED or node.tag == "form" or (is_before and not is_lead):
        return True
    return _COOKIES.search(node.text()) is not None and not any(
        _COOKIES.search(heading.text()) for heading in node.css(_HEADINGS)[:_MOST]
    )


def _is_about_rights(node: LexborNode) -> bool:
    return _size(node) <= _RIGHTS_LETTERS and _RIGHTS.search(node.text()) is not None


def _is_line_of_links(node: LexborNode) -> bool:
    links = node.css("a")
    if not len(links) >= _LINE_OF_LINKS or not _LINE_LINKED * _size(node) <= _linked(node) <= _LINK_LETTERS * len(
        links
    ):
        return False
    return not any((link.attributes.get("href") or "").startswith(("mailto:", "tel:")) for link in links)
