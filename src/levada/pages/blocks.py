"""The lines of a page and how likely each belongs to its main text, by a learnt model.

A line is the text between two block boundaries; the row of a table is one line, and a listing is one. It is judged by
its length and its share of links, by those of the lines around it, by its place on the page and in the elements that
contain it, and by the words of their tags, classes and ids. Each of these facts has a weight, and the sum of the
weights is the log-odds that the line belongs to the main text. Weights, and where they come from: `data/main_text.json`
and `data/SOURCE-main-text.md`; `benchmarks/reading_model.py` learns them from the facts that this module gives.

The tree is read as lexbor writes it: one pass over balanced tags is several times as fast as asking each node.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import accumulate, chain
from typing import NamedTuple

import msgspec

from levada.pages.noise import NOISE_NAMES
from levada.pages.tags import SignInAttribute, TagsAndTexts, found_tags_and_texts, tags_and_texts

_NO_ELEMENT = re.compile(r"<!--.*?-->|<\?[^>]*>", re.DOTALL)
_NAMED = re.compile(r' (?:class|id|role|itemprop)="([^"]*)"')
_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_WORD = re.compile(r"\w+")
_MOST_NAMES = 24  # of an element
_LONGEST_TOKEN = 400  # characters of a tag with its attributes; one with more is not remembered
_MOST_REMEMBERED = 20_000  # tags with their attributes, and short lines
_LONGEST_TAG = 60  # nor is a name with more
_TOO_LONG_WORD = 15  # characters: a script without spaces
_LETTERS_PER_WORD = 3  # of such a script
_START_LETTERS = 40  # of a line, in which its first word is looked for
_TITLE_LETTERS = 40  # a line that has as many in common with the title of the page is its title
_LEAST_TITLE = 10
# What is folded away is content all the same.
_FOLDED_NAMES = "hidden collapse collapsed collapsible accordion tab tabs panel toggle expand expanded"
_FOLDED = frozenset(_FOLDED_NAMES.split())

_CONTAINER, _SUP, _NOISE, _BREAKING, _VOID, _LINK, _BREAK, _CELL, _LISTING, _TITLE = (1 << bit for bit in range(10))
_PLAIN = _BREAKING  # an element of a lower kind means nothing for the line that it is in
_STARTING = _BREAKING | _BREAK | _CELL | _LINK  # what the start of an element means for the lines
_ENDING = _BREAKING | _CELL | _LINK  # and the end
_INLINE_TAGS = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small
    span strike strong sub sup time tt u var wbr img picture source button input td th
    math maction menclose merror mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms
    mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics annotation
"""
_INLINE = frozenset(_INLINE_TAGS.split())
_VOID_TAGS = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
_VOIDS = frozenset(_VOID_TAGS.split())
_FORMATTING = frozenset(("a", "b", "strong", "em", "i", "span", "font", "u"))
_MARKED = {"a": _LINK, "br": _BREAK, "td": _CELL, "th": _CELL, "pre": _LISTING, "h1": _TITLE, "sup": _SUP}
_KNOWN_TAGS = """
    div p li td th span h1 h2 h3 h4 h5 h6 ul ol dl dt dd table tbody tr section article main header footer nav aside
    figure figcaption blockquote pre code form label button summary details address time small center body caption
"""
_TAGS = {tag: number for number, tag in enumerate(_KNOWN_TAGS.split(), 1)}

# Each fact has a range of slots in the table of weights; a number is a fact by the bin that it falls into.
_WORDS = (2, 3, 4, 6, 9, 13, 20, 35, 60)
_LINKED = (0.001, 0.2, 0.5, 0.8, 0.99)
_SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8)  # of the text of the page, in a container
_LINKED_IN = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)
_LINES_IN = (2, 3, 5, 9, 20, 50)
_AWAY = (1, 2, 4, 8, 16)  # lines to the next paragraph
_BELOW = (1, 2, 4, 8, 16, 40, 100)  # lines below the title
_DEEPEST = 20
_LEVELS = 4  # of containers, from the innermost one
_N_WORDS, _N_LINKED, _N_TAGS = len(_WORDS) + 1, len(_LINKED) + 1, len(_TAGS) + 1
_N_SHARES, _N_LINKED_IN, _N_LINES_IN = len(_SHARES) + 1, len(_LINKED_IN) + 1, len(_LINES_IN) + 1
_N_HEAD = len(_BELOW) + 3
_SIZE = _N_WORDS * _N_LINKED  # of a code for length and links of a line
_NO_LINE = _SIZE
_PARAGRAPH_WORDS, _PARAGRAPH_LINKED = 6, 1  # bins: 13 words or more, and less than a fifth in links
_CAPITAL_WORDS = 7  # bin: a line with 20 words is hardly in capitals
_SHORT_WORDS, _SHORT_LETTERS = 12, 120  # the words of a line with as many at most are facts
_UNIT = 1000  # of a weight: sums of whole numbers do not depend on their order
# Log-odds that decide: of 117,000 lines of the tuned half none was wrongly left out, and 17 were wrongly kept.
_HOPELESS, _SURE = -2.5 * _UNIT, 3.0 * _UNIT  # by the elements around a line
_HOPELESS_ITSELF, _SURE_ITSELF = -1.5 * _UNIT, 2.5 * _UNIT  # and by its own tag, length, links and words
_SLOTS = list(
    accumulate(
        (
            0,
            _SIZE,  # length and links
            _N_TAGS * _N_WORDS,  # innermost block element, and length
            _N_TAGS * _N_LINKED,  # and links
            3 * _N_WORDS,  # how it ends
            2 * _N_WORDS,  # begins with a digit
            2,  # capitals
            *(4 * (_SIZE + 1,)),  # the two lines before and the two after
            10,  # place among the lines
            10,  # place in the text
            _N_HEAD,  # place beside the title
            2,  # is the title
            (len(_AWAY) + 1) ** 2 * _N_WORDS,  # how far the paragraphs before and after are
            _DEEPEST + 1,
            *(_LEVELS * (_N_SHARES, _N_LINKED_IN, _N_LINES_IN)),
        )
    )
)
SLOTS = _SLOTS[-1]
(_LL, _TL, _TS, _END, _DIGIT, _CAPITAL, _P1, _P2, _X1, _X2, _PLACE, _PART, _HEAD, _IS, _NEAR, _DEPTH) = _SLOTS[:16]
_IN = [tuple(_SLOTS[16 + 3 * level : 19 + 3 * level]) for level in range(_LEVELS)]
# Facts that are looked up together, by one number each.
_JOINT = list(
    accumulate(
        (
            SLOTS,
            _N_TAGS * _SIZE,  # innermost block element, length and links
            3 * 2 * 2 * _N_WORDS,  # first and last letter, capitals, and length
            (_SIZE + 1) ** 2,  # the two lines before
            (_SIZE + 1) ** 2,  # the two lines after
            10 * 10 * _N_HEAD,  # place
            2 * (_DEEPEST + 1),  # is the title, and depth
        )
    )
)
(_OWN, _SHAPE, _BEFORE, _AFTER, _WHERE, _RANK, _ENDS_OF_JOINT) = _JOINT
_WORDS_BIN = [bisect_right(_WORDS, words) for words in range(_WORDS[-1] + 1)]
_AWAY_BIN = [bisect_right(_AWAY, away) for away in range(_AWAY[-1] + 1)]
_SENTENCE_ENDS = frozenset('.!?…。！？»”"')


class Weights(msgspec.Struct, frozen=True):
    """What each fact adds to the log-odds."""

    bias: float
    slots: tuple[float, ...]
    inner: Mapping[str, float]  # words of tag, class and id of the two innermost elements
    outer: Mapping[str, float]  # and of those around them
    words: Mapping[str, float]  # of a short line
    first: Mapping[str, float]  # the first word of a line


def _in_whole_numbers(weights: Weights) -> Weights:
    def whole(given: Mapping[str, float]) -> dict[str, float]:
        return {word: round(weight * _UNIT) for word, weight in given.items()}

    bias, slots = round(weights.bias * _UNIT), tuple(round(weight * _UNIT) for weight in weights.slots)
    return Weights(bias, slots, *map(whole, (weights.inner, weights.outer, weights.words, weights.first)))


class Container:
    """An element that is more than formatting, with the text of the lines that begin in it."""

    __slots__ = ("around", "is_noise", "lines", "linked", "place", "size", "tag")

    def __init__(self, tag: int, around: Container | None, is_noise: int = 0) -> None:
        self.tag = tag
        self.around = around
        self.is_noise = is_noise  # by its name
        self.size = self.linked = self.lines = 0
        self.place = -1  # `_place_in`, once it is asked for


# An open element: its tag as written, kind, weight if it is one of the two innermost ones, weight of it and those
# around it otherwise, container, and number in document order. A plain tuple: each element of a page has one.
_Open = tuple[str, int, float, float, Container, int]


class Line:
    __slots__ = ("container", "depth", "element", "inner", "linked", "outer", "path", "text", "under_title")

    def __init__(self, stack: Sequence[_Open], under_title: bool, keeps_path: bool) -> None:
        top = stack[-1]
        self.text = ""
        self.linked = 0
        self.container = top[4]
        self.depth = len(stack)
        self.element = top[5]  # in which it begins
        self.under_title = under_title
        self.inner = top[2] + (stack[-2][2] if len(stack) > 1 else 0.0)
        self.outer = stack[-3][3] if len(stack) > 2 else 0.0
        self.path = tuple(each[0] for each in stack) if keeps_path else ()


_Element = tuple[int, int, float, float]  # kind, number of the tag, weight in the two innermost and further out
_Plain = tuple[str, _Element, int]  # an open element as written, and its number
_END_TAG = (0, 0, 0.0, 0.0)  # in place of the facts of a start tag


class Page(NamedTuple):
    lines: list[Line]
    containers: list[Container]


def names_of(written: str) -> list[str]:
    """The words of a start tag: `<div`, and those of class, id, role and itemprop, each once for a name."""
    return [
        "<" + written.partition(" ")[0],
        *(word for name in _names_in(written) for word in _words_of_name(_NAME.findall(name))),
    ]


def _names_in(written: str) -> list[str]:
    return " ".join(_NAMED.findall(written)).split()[:_MOST_NAMES] if " " in written else []


def _words_of_name(parts: Iterable[str]) -> set[str]:
    return {word for each in parts if len(each) > 1 and (word := each.lower()) not in _FOLDED}


def first_word(text: str) -> str:
    found = _WORD.search(text[:_START_LETTERS].lower())
    return found[0] if found else ""


def words_of(text: str) -> list[str]:
    """The words of a short line; a number is as many zeros as it has digits."""
    return ["0" * len(word) if word.isdigit() else word for word in _WORD.findall(text.lower())]


def is_short(text: str) -> bool:
    """Whether the words of a line are facts."""
    return len(text) < _SHORT_LETTERS and text.count(" ") < _SHORT_WORDS


class BlockModel:
    """Tells the main text of a page line by line."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights = _in_whole_numbers(weights)
        self._elements: dict[str, _Element] = {}
        self._slots = [sum([weights.slots[slot] for slot in _slots_of(fact)]) for fact in range(_ENDS_OF_JOINT)]
        self._inside = [_weights_in(level, weights.slots) for level in range(_LEVELS)]
        self._short_lines: dict[str, float] = {}
        self._tag = cache(self._read_tag)
        self._name = lru_cache(maxsize=20_000)(self._read_name)

    def _element(self, written: str) -> _Element:
        if written.count('"') & 1:
            raise SignInAttribute
        read = _END_TAG if written[:1] == "/" else self._read_element(written)
        if len(written) < _LONGEST_TOKEN:
            if len(self._elements) >= _MOST_REMEMBERED:
                self._elements.clear()
            self._elements[written] = read
        return read

    def _read_element(self, written: str) -> _Element:
        tag = written.partition(" ")[0]
        kind, number, inner, outer = (self._tag if len(tag) < _LONGEST_TAG else self._read_tag)(tag)
        for name in _names_in(written):
            weights = (self._name if len(name) < _LONGEST_TAG else self._read_name)(name)
            inner += weights[0]
            outer += weights[1]
            kind |= weights[2]
        return kind, number, inner, outer

    def _read_tag(self, tag: str) -> _Element:
        kind = _MARKED.get(tag, 0)
        kind |= 0 if tag in _INLINE else _BREAKING
        kind |= _VOID if tag in _VOIDS else 0
        kind |= 0 if tag in _FORMATTING else _CONTAINER
        name = "<" + tag
        return kind, _TAGS.get(tag, 0), self._weights.inner.get(name, 0.0), self._weights.outer.get(name, 0.0)

    def _read_name(self, name: str) -> tuple[float, float, int]:
        parts = _NAME.findall(name)
        inner, outer = self._weights.inner.get, self._weights.outer.get
        own = around = 0.0
        for word in _words_of_name(parts):
            own += inner(word, 0.0)
            around += outer(word, 0.0)
        return own, around, _NOISE if "".join(parts).lower() in NOISE_NAMES else 0

    def page(self, html: str, *, keeps_paths: bool = False) -> Page:
        """The lines of an element as lexbor writes it, without scripts and the like."""
        if "<!--" in html or "<?" in html:
            html = _NO_ELEMENT.sub("", html)
        try:
            return self._page(tags_and_texts(html), keeps_paths)
        except SignInAttribute:
            return self._page(found_tags_and_texts(html), keeps_paths)

    def _page(self, parts_of_page: Iterable[TagsAndTexts], keeps_paths: bool) -> Page:
        """The lines by the tags and what is behind each. `SignInAttribute` if one of them is no whole tag."""
        root = Container(_TAGS["body"], None)
        containers = [root]
        stack: list[_Open] = [("", _CONTAINER, 0.0, 0.0, root, 0)]
        within: list[_Plain] = []  # what is open in the line; on the stack once something begins that is not plain
        lines: list[Line] = []
        parts: list[str] = []
        line: Line | None = None
        links = listings = titles = 0
        number = -1
        known = self._elements.get
        for written, text, element in chain.from_iterable(
            zip(tags, texts, map(known, tags), strict=True) for tags, texts in parts_of_page
        ):
            if element is None:
                if written[:2] == "a ":  # hardly one is like another
                    if written.count('"') & 1:
                        raise SignInAttribute
                    written = "a"
                element = known(written) or self._element(written)
            if element is _END_TAG:
                if within:
                    within.pop()
                    kind = 0
                elif len(stack) > 1:
                    kind = stack.pop()[1]
                else:
                    continue
                if kind & _ENDING:
                    if kind & _BREAKING:
                        if line is not None:
                            _end(line, parts, lines, listings)
                            line = None
                        listings -= kind & _LISTING
                        titles -= kind & _TITLE
                    elif kind & _LINK:
                        links -= 1
                    else:
                        parts.append(" ")
                if not text or (line is None and text.isspace()):
                    continue
            else:
                kind = element[0]
                number += 1
                if kind < _PLAIN and line is not None:
                    within.append((written, element, number))
                    if text:
                        parts.append(text)
                        if links:
                            line.linked += len(" ".join(text.split()))
                    continue
                if within:
                    for each in within:
                        _open(stack, containers, *each)
                    within.clear()
                if kind & _STARTING:
                    if kind & (_BREAKING | _BREAK):
                        if line is not None:
                            _end(line, parts, lines, listings)
                            line = None
                        listings += kind & _LISTING
                        titles += kind & _TITLE
                    else:
                        if kind & _CELL or stack[-1][1] & _SUP:
                            parts.append(" ")
                        links += kind & _LINK and 1
                if not kind & _VOID:
                    _open(stack, containers, written, element, number)
                if not text or (line is None and text.isspace()):
                    continue
            if line is None:
                line = Line(stack, titles > 0, keeps_paths)
                parts.clear()
            parts.append(text)
            if links:
                line.linked += len(" ".join(text.split()))
        if line is not None:
            _end(line, parts, lines, listings)
        for container in reversed(containers):
            if container.around is not None:
                container.around.size += container.size
                container.around.linked += container.linked
                container.around.lines += container.lines
        return Page(lines, containers)

    def scores(self, page: Page, title: str) -> list[float]:
        """The log-odds of each line; of one that soon is decided, those by the facts that were looked at."""
        whole = max(page.containers[0].size, 1)
        bias, own = self._weights.bias, self._slots
        known: dict[Container, float] = {}
        scores: list[float] = []
        codes = list(map(_size_of, page.lines))
        undecided: list[int] = []
        for line, code in zip(page.lines, codes, strict=True):
            container = line.container
            weight = known.get(container)
            if weight is None:
                weight = known[container] = self._weight_around(container, whole)
            score = bias + line.inner + line.outer + weight
            if _HOPELESS < score <= _SURE:
                score += own[_OWN + container.tag * _SIZE + code] + self._weight_of(line.text)
                if _HOPELESS_ITSELF < score <= _SURE_ITSELF:
                    undecided.append(len(scores))
            scores.append(score)
        if undecided:
            weigh = own.__getitem__
            facts = _Facts(page, title, codes)
            for at in undecided:
                scores[at] += sum(map(weigh, facts.beside(at)))
        return [score / _UNIT for score in scores]

    def _weight_around(self, container: Container, whole: int) -> float:
        """The weight of the elements around a line."""
        weight = 0.0
        each: Container | None = container
        for weights in self._inside:
            if each is None:
                break
            if each.place < 0:
                each.place = _place_in(each, whole)
            weight += weights[each.place]
            each = each.around
        return weight

    def _weight_of(self, text: str) -> float:
        """The weight of the words of a short line, or of the first word of a line."""
        if len(text) >= _SHORT_LETTERS or not is_short(text):
            return self._weights.first.get(first_word(text), 0.0)
        weight = self._short_lines.get(text)
        if weight is None:
            words = self._weights.words.get
            weight = self._weights.first.get(first_word(text), 0.0) + sum(words(word, 0.0) for word in words_of(text))
            if len(self._short_lines) >= _MOST_REMEMBERED:
                self._short_lines.clear()
            self._short_lines[text] = weight
        return weight


def _open(stack: list[_Open], containers: list[Container], written: str, element: _Element, number: int) -> None:
    kind, tag, inner, outer = element
    _, _, _, around, container, _ = stack[-1]
    if kind & _CONTAINER:
        container = Container(tag, container, kind & _NOISE)
        containers.append(container)
    stack.append((written, kind, inner, around + outer, container, number))


def _end(line: Line, parts: list[str], lines: list[Line], listings: int) -> None:
    text = "".join(parts)
    if "&" in text:
        text = unescape(text)
    if listings and "\n" in text:
        text = "\n".join([tidy for each in text.split("\n") if (tidy := " ".join(each.split()))])
    else:
        text = " ".join(text.split())
    if text:
        line.text = text
        lines.append(line)
        container = line.container
        container.size += len(text)
        container.linked += line.linked
        container.lines += 1


def _size_of(line: Line) -> int:
    """The code for the length of a line and its share of links."""
    text = line.text
    words = text.count(" ") + 1
    if len(text) > _TOO_LONG_WORD * words:
        words = len(text) // _LETTERS_PER_WORD
    length = _WORDS_BIN[words] if words < len(_WORDS_BIN) else _N_WORDS - 1
    return length * _N_LINKED + (bisect_right(_LINKED, line.linked / len(text)) if line.linked else 0)


def facts_of(page: Page, title: str) -> list[list[int]]:
    """The slots of each line, without those of its containers."""
    codes = list(map(_size_of, page.lines))
    facts = _Facts(page, title, codes)
    own = [_OWN + line.container.tag * _SIZE + code for line, code in zip(page.lines, codes, strict=True)]
    return [[slot for fact in (own[at], *facts.beside(at)) for slot in _slots_of(fact)] for at in range(len(own))]


def _slots_of(fact: int) -> tuple[int, ...]:
    """The slots of a fact of a line: itself, or those of the facts that are looked up together."""
    if fact < SLOTS:
        return (fact,)
    if fact < _SHAPE:
        tag, code = divmod(fact - _OWN, _SIZE)
        words, linked = divmod(code, _N_LINKED)
        return _LL + code, _TL + tag * _N_WORDS + words, _TS + tag * _N_LINKED + linked
    if fact < _BEFORE:
        letters, words = divmod(fact - _SHAPE, _N_WORDS)
        return (
            _END + letters // 4 * _N_WORDS + words,
            _DIGIT + letters // 2 % 2 * _N_WORDS + words,
            _CAPITAL + letters % 2,
        )
    if fact < _WHERE:
        (one, other), joint = ((_P1, _P2), _BEFORE) if fact < _AFTER else ((_X1, _X2), _AFTER)
        near, far = divmod(fact - joint, _SIZE + 1)
        return one + near, other + far
    if fact < _RANK:
        places, head = divmod(fact - _WHERE, _N_HEAD)
        return _PLACE + places // 10, _PART + places % 10, _HEAD + head
    is_title, depth = divmod(fact - _RANK, _DEEPEST + 1)
    return _IS + is_title, _DEPTH + depth


class _Facts:
    """What is to be known of the lines of a page with this title, beside their tag, length and links (`codes`)."""

    def __init__(self, page: Page, title: str, codes: Sequence[int]) -> None:
        self._lines = lines = page.lines
        self._whole = max(page.containers[0].size, 1)
        self._codes = [_NO_LINE, _NO_LINE, *codes, _NO_LINE, _NO_LINE]
        is_paragraph = [
            code >= _PARAGRAPH_WORDS * _N_LINKED and code % _N_LINKED <= _PARAGRAPH_LINKED for code in codes
        ]
        self._below = _distances(is_paragraph[::-1])[::-1]
        self._above = _distances(is_paragraph)
        self._heading = next((at for at, line in enumerate(lines) if line.under_title), None)
        self._title = title.lower()
        self._before = list(accumulate((len(line.text) for line in lines), initial=0))

    def beside(self, at: int) -> tuple[int, ...]:
        line, heading = self._lines[at], self._heading
        before, last, code, next_, after = self._codes[at : at + 5]
        text = line.text
        words = code // _N_LINKED
        end = text[-1]
        shape = 0 if end.isalnum() else 4 if end in _SENTENCE_ENDS else 8
        if text[0].isdigit():
            shape += 2
        if words < _CAPITAL_WORDS and text.isupper():
            shape += 1
        part = 10 * self._before[at] // self._whole
        place = 10 * at // len(self._lines) * 10 + min(9, part)
        head = 0 if heading is None else 1 if at < heading else 2 + bisect_right(_BELOW, at - heading)
        depth = line.depth
        rank = _DEEPEST + 1 if self._is_title(text) else 0
        return (
            _SHAPE + shape * _N_WORDS + words,
            _BEFORE + last * (_SIZE + 1) + before,
            _AFTER + next_ * (_SIZE + 1) + after,
            _WHERE + place * _N_HEAD + head,
            _RANK + rank + min(_DEEPEST, depth),
            _NEAR + (self._above[at] * (len(_AWAY) + 1) + self._below[at]) * _N_WORDS + words,
        )

    def _is_title(self, text: str) -> bool:
        if len(text) < _LEAST_TITLE or text[:_TITLE_LETTERS].lower() not in self._title:
            return False
        return len(text) <= _TITLE_LETTERS or text.lower() in self._title


def facts_in(container: Container, level: int, whole: int) -> tuple[int, int, int]:
    """The slots of a container around a line, the `level`-th from the inside, on a page with so much text."""
    return _slots_in(level, _place_in(container, whole))


def _slots_in(level: int, place: int) -> tuple[int, int, int]:
    share, linked, lines = _IN[level]
    rest, of_lines = divmod(place, _N_LINES_IN)
    of_text, of_links = divmod(rest, _N_LINKED_IN)
    return share + of_text, linked + of_links, lines + of_lines


def _place_in(container: Container, whole: int) -> int:
    """The code for how much of the text of a page a container has, in how many lines, and how much is in links."""
    size = container.size
    share = size / whole
    of_text = bisect_right(_SHARES, share) if share >= _SHARES[0] else 0  # most have a line of little text
    of_links = bisect_right(_LINKED_IN, container.linked / size) if container.linked else 0
    of_lines = bisect_right(_LINES_IN, container.lines) if container.lines > 1 else 0
    return (of_text * _N_LINKED_IN + of_links) * _N_LINES_IN + of_lines


def _weights_in(level: int, slots: Sequence[float]) -> list[float]:
    """The weight of a container around a line by its place."""
    places = range(_N_SHARES * _N_LINKED_IN * _N_LINES_IN)
    return [sum([slots[slot] for slot in _slots_in(level, place)]) for place in places]


def containers_of(line: Line) -> list[Container]:
    """The innermost elements around a line, from the inside."""
    found: list[Container] = []
    each: Container | None = line.container
    while each is not None and len(found) < _LEVELS:
        found.append(each)
        each = each.around
    return found


def _distances(is_paragraph: Sequence[bool]) -> list[int]:
    """For each line the bin of how many lines are between it and the last paragraph before it."""
    distances: list[int] = []
    away = len(_AWAY_BIN)
    for each in is_paragraph:
        distances.append(_AWAY_BIN[away] if away < len(_AWAY_BIN) else len(_AWAY))
        away = 0 if each else away + 1
    return distances


@cache
def block_model() -> BlockModel:
    """The model with the weights that come with Levada."""
    learnt = files("levada.pages").joinpath("data", "main_text.json").read_bytes()
    return BlockModel(msgspec.json.decode(learnt, type=Weights))
