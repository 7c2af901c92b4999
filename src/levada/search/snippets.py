"""Snippets: the piece of a page's text that best shows why it matched.

One regular expression finds words that begin like one of the query's, whatever their case and accents. Only these
few are folded and compared, so the cost is one pass over the text. The window with the most different words wins,
then the one with the most words, then the first. It begins and ends with a sentence where one fits.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from levada.core.search_records import Pieces
from levada.pages.folding import LONGEST_WORD, fold, words
from levada.search.terms import Words


class Excerpt(NamedTuple):
    pieces: Pieces = ()
    page: int = 0  # on which the first word in it stands; 0: the text has no pages


# Accents, Hebrew and Arabic points, and joiners: they occur within words.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200d"
)
_WORD = re.compile(rf"[\w{_MARKS}]+")
# What stands for plain letters or within a word, in small letters too: a text without any of these is plain.
_ACCENTED = re.compile("[\xaa\xb2\xb3\xb5\xb9\xba\xc0-\u1fff\u200b-\u200d\u212a]")
_LEAD = 3  # letters that the forms of a word share
_BEFORE = 40  # characters of context before the first matching word
_MOST_MATCHES = 100  # matches of one word
_BLOCKS = ((0x30, 0x24F), (0x370, 0x52F), (0x620, 0x6FF), (0x1E00, 0x1FFF))
_UNSPACED = "\u0e00"  # from here on scripts are (nearly) written without spaces
_HIGH = re.compile(f"[{_UNSPACED}-\U0010ffff]")  # also dashes and quotation marks
_SPACES = re.compile(r"\s+")
_PAGE_BREAK = "\f"  # `levada.pages.documents`
_SENTENCE = re.compile(r"(?:[.!?…][\"'”’»)\]]*[ \t]+|[。！？]|[ \t]*[\n\f])\s*")  # its end, up to the next one
_ENDS_EARLY = 0.6  # the share of a snippet that is left if it ends with a sentence


class _Match(NamedTuple):
    start: int
    end: int
    number: int  # of the word in the query


_NOWHERE = _Match(0, 0, 0)


def excerpt(
    text: str,
    words: Sequence[Words],
    is_form: Callable[[str, str], bool] = lambda typed, found: False,
    size: int = 200,
) -> Excerpt:
    """About `size` characters of `text` in pieces, with True on the matching words. `is_form(typed, found)` says
    whether a word of the page is another form of one that was typed.

    Where form feeds separate the pages of a document, the first piece says the page.
    """
    matches = _matches(text, words, is_form)
    start, end = _window(text, matches, size)
    first = next((match.start for match in matches if match.start >= start), start)
    page = text.count(_PAGE_BREAK, 0, first) + 1 if _PAGE_BREAK in text else 0
    if page:  # what stands before the first word is of its page, too
        start = max(start, text.rfind(_PAGE_BREAK, 0, first) + 1)
    pieces: list[tuple[str, bool]] = [(f"p. {page} · ", False)] if page else []
    if start:
        pieces.append(("… ", False))
    pieces += _pieces(text, matches, start, end)
    if end < len(text):
        pieces.append((" …", False))
    return Excerpt(_on_one_line(pieces), page)


class TitleMarker:
    """Marks the words of one query in titles.

    A title has few words: each is folded and looked up. A regular expression would have to be made for every query.
    """

    def __init__(self, words: Sequence[Words]) -> None:
        self._words = words
        self._by_word: defaultdict[str, list[Words]] = defaultdict(list)
        self._by_start: defaultdict[str, list[Words]] = defaultdict(list)
        for each in (part for whole in words for part in _each_alone(whole)):
            self._by_word[each.folded[0]].append(each)
            if each.has_forms() or each.prefix:
                self._by_start[each.folded[0][:_LEAD]].append(each)
        self._leads = {each[:_LEAD] for each in self._by_word}
        # A beginning that is shorter than that is looked up by its own length.
        self._lengths = {_LEAD} | {len(each) for each in self._by_start if len(each) < _LEAD}

    def marked(self, title: str, is_form: Callable[[str, str], bool]) -> Pieces:
        """The whole title in pieces, with True on the matching words."""
        if "_" in title or (not title.isascii() and any(map(str.isalpha, _HIGH.findall(title)))):
            found = _matches(title, self._words, is_form)
        else:
            found = self._found(title, is_form)
        return _on_one_line(_pieces(title, found, 0, len(title)))

    def _found(self, title: str, is_form: Callable[[str, str], bool]) -> list[_Match]:
        folded = _WORD.findall(title.lower()) if title.isascii() else [_folded(word) for word in _WORD.findall(title)]
        leads = self._leads
        lengths = self._lengths
        likely = [at for at, word in enumerate(folded) if any(word[:length] in leads for length in lengths)]
        if not likely:
            return []
        places = list(_WORD.finditer(title))
        found: list[_Match] = []
        for at in likely:
            word = folded[at]
            for each in self._by_word.get(word, ()):
                last = at + len(each.folded)
                if last <= len(folded) and each.matches(folded[at:last]):
                    found.append(_Match(places[at].start(), places[last - 1].end(), 0))
            for each in chain.from_iterable(self._by_start.get(start, ()) for start in {word[:n] for n in lengths}):
                start, end = places[at].span()
                begins_so = each.prefix and len(each.folded) == 1 and each.matches([word])
                other_form = each.has_forms() and word != each.folded[0]
                if begins_so or (other_form and is_form(each.typed, title[start:end])):
                    found.append(_Match(start, end, 0))
        return sorted(found)


@lru_cache(maxsize=1 << 12)
def _folded(word: str) -> str:
    return word.lower() if word.isascii() else fold(word).strip()


def _pieces(text: str, matches: Sequence[_Match], start: int, end: int) -> list[tuple[str, bool]]:
    pieces: list[tuple[str, bool]] = []
    here = start
    for match in matches:
        if here <= match.start and match.end <= end:
            pieces += [(text[here : match.start], False), (text[match.start : match.end], True)]
            here = match.end
    pieces.append((text[here:end], False))
    return pieces


def _on_one_line(pieces: Sequence[tuple[str, bool]]) -> Pieces:
    return tuple([(_spaced(piece), asked) for piece, asked in pieces if piece])


def _spaced(piece: str) -> str:
    """The same with a single space in place of line breaks and others, which few pieces have."""
    return piece if piece.isprintable() and "  " not in piece else _SPACES.sub(" ", piece)


def _matches(text: str, words: Sequence[Words], is_form: Callable[[str, str], bool]) -> list[_Match]:
    single = [part for each in words for part in _each_alone(each)]
    # Small letters alone are looked for several times as fast. None of these texts changes its length by it.
    small = text.lower() if text.isascii() or not _ACCENTED.search(text) else None
    found = [match for number, each in enumerate(single) for match in _matches_of(text, small, each, number, is_form)]
    found.sort()
    return [match for before, match in zip([_NOWHERE, *found], found, strict=False) if match.start >= before.end]


def _each_alone(each: Words) -> list[Words]:
    """What is looked for in one piece: words that may stand apart are looked for one by one."""
    if each.between is None:
        return [each]
    return [Words((word,), word, quoted=True) for word in dict.fromkeys(each.folded)]


def _matches_of(
    text: str, small: str | None, each: Words, number: int, is_form: Callable[[str, str], bool]
) -> list[_Match]:
    """Where one word is; `small` is a plain text (`_ACCENTED`) in small letters."""
    found: list[_Match] = []
    seen: dict[str, bool] = {}
    is_plain = small is not None and all(map(str.isascii, each.folded))
    searched = small if small is not None and is_plain else text
    for candidate in _pattern(each.folded, each.quoted, is_plain).finditer(searched):
        start, end = candidate.span()
        if start and text[start] < _UNSPACED and text[start - 1].isalnum():
            continue  # begins inside a word
        word = text[start:end]
        if word not in seen:
            may_be_form = not each.quoted and len(word) <= LONGEST_WORD
            seen[word] = each.matches(words(word)) or (may_be_form and is_form(each.typed, word))
        if seen[word]:
            found.append(_Match(start, end, number))
            if len(found) == _MOST_MATCHES:
                break
    return found


def _window(text: str, matches: list[_Match], size: int) -> tuple[int, int]:
    """Where the snippet begins and ends: at a sentence, if that leaves room for the words."""
    first, last = _best_span(matches, size - _BEFORE)
    earliest = max(0, last - size)
    starts = [found.end() for found in _SENTENCE.finditer(text, earliest, first) if found.end() <= first]
    if starts:
        start = starts[-1] if last - starts[-1] > _ENDS_EARLY * size else starts[0]
    else:
        start = 0 if earliest == 0 else _word_start(text, max(0, first - _BEFORE), first)
    end = start + size
    if end >= len(text):
        return start, len(text)
    ends = [found.start() + len(found[0].rstrip()) for found in _SENTENCE.finditer(text, max(last - 1, start), end)]
    if ends and ends[-1] - start >= _ENDS_EARLY * size and ends[-1] >= last:
        return start, min(ends[-1], end)
    return start, _word_end(text, end)


def _best_span(matches: list[_Match], width: int) -> tuple[int, int]:
    """Where the words of the window of `width` begin and end that has the most different words, then the most words,
    then is the first."""
    best, best_worth = (0, 0), (0, 0)
    inside: Counter[int] = Counter()
    last = 0
    for first, match in enumerate(matches):
        while last < len(matches) and matches[last].end <= match.start + width:
            inside[matches[last].number] += 1
            last += 1
        worth = (len(inside), last - first)
        if worth > best_worth:
            best, best_worth = (match.start, matches[max(last - 1, first)].end), worth
        if last > first:
            inside[match.number] -= 1
            if not inside[match.number]:
                del inside[match.number]
        last = max(last, first + 1)
    return best


def _word_start(text: str, start: int, before: int) -> int:
    if start == 0:
        return 0
    space = _SPACES.search(text, start, before)
    return space.end() if space else start


def _word_end(text: str, end: int) -> int:
    space = max(text.rfind(" ", end - 40, end), text.rfind("\n", end - 40, end))
    return space if space > 0 else end


@cache
def _spellings() -> dict[str, str]:
    """The characters that fold to each letter or pair of letters, as the inside of a character class."""
    spellings: dict[str, str] = {}
    for first, last in _BLOCKS:
        for code in range(first, last + 1):
            folded = fold(chr(code)).strip()
            if 1 <= len(folded) <= 2:
                spellings[folded] = spellings.get(folded, "") + re.escape(chr(code))
    return spellings


def _letters(word: str, is_plain: bool) -> str:
    if is_plain:
        return word
    spellings = _spellings()
    parts: list[str] = []
    place = 0
    while place < len(word):
        pair = word[place : place + 2]
        if len(pair) == 2 and pair in spellings:  # ß is ss, œ is oe
            parts.append(f"(?:{_letter(pair)}|{_letter(pair[0])}{_letter(pair[1])})")
            place += 2
        else:
            parts.append(_letter(pair[0]))
            place += 1
    return "".join(parts)


def _letter(folded: str) -> str:
    # Possessive: a hostile page of marks must not make the engine try every way to divide them.
    return f"[{_spellings().get(folded, re.escape(folded))}][{_MARKS}]*+"


@lru_cache(maxsize=512)
def _pattern(folded: tuple[str, ...], quoted: bool, is_plain: bool) -> re.Pattern[str]:
    """What begins like these words; in a plain text in small letters (`_ACCENTED`) they are written so."""
    if len(folded) == 1 and not quoted and folded[0] < _UNSPACED:
        cuts_a_pair = not is_plain and len(folded[0]) > _LEAD and folded[0][_LEAD - 1 : _LEAD + 1] in _spellings()
        return re.compile(_letters(folded[0][: _LEAD - cuts_a_pair], is_plain) + _rest(folded[0], is_plain))
    return re.compile(r"[\W_]{0,8}".join(_letters(word, is_plain) for word in folded) + _rest(folded[-1], is_plain))


def _rest(word: str, is_plain: bool) -> str:
    """The rest of the word, where the script separates words."""
    if is_plain:
        return r"\w*+"
    return rf"[\w{_MARKS}\u0900-\u0dff]*+" if word[-1] < _UNSPACED else ""
