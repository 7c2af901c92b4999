"""Query language: words, phrases, fields, and AND, OR, NOT with parentheses.

    istanbul vapur            both words (each also in its other forms: vapurlar); where few pages have both, either
    istanbul AND vapur        both, and nothing else
    İstanbul'dan              this, or its longest part alone, in its other forms: İstanbul
    "sea bus"                 these words in this order and form; "word": this form only
    "ferry island"~5          these words near each other: at most 5 others between them, in any order
    fresh*                    every word that begins so (two letters at least)
    ferry OR vapur            either; OR binds closer than the space and AND: a OR b c is (a or b) and c
    -bridge  NOT "old town"   not this
    (old town) OR -bridge     parentheses make one of several; what stands in them must all be there
    title:ferry  title:"sea bus"              in the title
    url:timetable  url:"2026/05"              in the address
    site:example.org          of this host or one below it; site:example.org:8080 of this port
    lang:tr                   in this language
    since:7d  since:24h  since:2026-01-31     changed since then (m, h, d, w; a date is midnight UTC)
    until:2026-01  until:7d                   changed up to then: a date with all of its day, month or year
    type:pdf                  a file of this type: html, pdf, docx, xlsx, pptx, odt, epub, csv, json, xml, text
    type:Product brand:"Acme Tools"           these words in a property of the structured data
    price:<100  price:10..20  rating:>=4      this number in one; also <=, >, 10.. and ..20
    published:>2026-01-31  starts:2026-05     this date in one, or within it; published:7d: since then
    data.calories:<500                        the same of any property of schema.org

Fields can be negated and joined by OR like words. Anything that is neither a word nor one of these forms (a lone dash,
punctuation) is ignored. A field that does not exist is an error where it looks like one that does (`titel:`), and is
searched as a word otherwise (`std:string`), with a note. A text of more than 20 words without AND, OR
and NOT that is no valid query is searched for its words, with a note too.

A query that is searched while it is typed is read with patience: its last word stands for every word that begins so,
an open phrase or parenthesis ends where the text ends, and an OR or a field that is not finished is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TypeAlias
from urllib.parse import unquote

import can_ada
import msgspec
from msgspec.structs import replace

from levada.core.clock import SystemClock
from levada.core.errors import BadQuery, UsageError
from levada.core.search_records import Query
from levada.pages.folding import words
from levada.search.properties import FIELDS, WordsOf, condition_of, date_span
from levada.search.synonyms import with_synonyms
from levada.search.terms import Ask, Group, Language, Since, SiteFilter, Term, Until, UrlWords, Words

LONGEST_QUERY = 10_000  # characters
MOST_TERMS = 64
DEEPEST = 20  # parentheses in parentheses
DEEPEST_HIT = 10_000  # nobody reads further, and ranking that many costs memory
LONG_TEXT = 20  # words: with more a query is a text, and its quotes and brackets are those of the text
MOST_BETWEEN = 100  # words between those of "a b"~100
OPERATORS = ("AND", "OR", "NOT")
SHORTEST_PREFIX = 2  # characters: half of all pages have a word that begins with a given letter


_EXAMPLES = {
    "title": 'title:ferry or title:"sea bus"',
    "url": "url:timetable",
    "site": "site:example.org",
    "lang": "lang:tr",
    "since": "since:7d, since:24h or since:2026-01-31",
    "until": "until:7d, until:24h or until:2026-01-31",
}
_FIELDS = (*_EXAMPLES, *FIELDS)
_ELSEWHERE = {  # what other search engines call them
    "after": "since",
    "before": "until",
    "domain": "site",
    "filetype": "type",
    "host": "site",
    "intitle": "title",
    "inurl": "url",
    "language": "lang",
}
_PIECE = re.compile(
    r"(?P<minus>-)?(?:"
    rf"(?P<field>(?ai:{'|'.join(_FIELDS)}|data\.[a-z][a-z0-9_\-]*)):"
    r'(?:"(?P<exact>[^"]*)"|(?P<value>[^\s"()]*))'
    r'|"(?P<phrase>[^"]*)"(?:~(?P<between>\d*))?'
    r'|(?P<open>")'
    r"|(?P<bracket>[()])"
    r'|(?P<word>(?:[^\s"()]|(?<=[^\s"()])\([^\s"()]*\))+)'  # f(x) is a word
    r")"
)
_UNKNOWN_FIELD = re.compile(r"([a-z][a-z_]{1,30}):(?=[^\s:/])", re.ASCII | re.IGNORECASE)
_NEAR = 0.75  # how alike a field that does not exist and one that does must be
_CURLY_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_APOSTROPHE = re.compile("['’]")
_SHORTEST_PART = 3  # letters: the "it" of "it's" says nothing
_AGO = re.compile(r"(\d{1,6})([mhdw])", re.ASCII | re.IGNORECASE)
_NOT_IN_HOSTS = frozenset("/\\?#@")
_SECONDS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.ASCII | re.IGNORECASE)


def parse_query(text: str, now: float, as_you_type: bool = False) -> Ask:
    """Parse `text` at the time `now`. `BadQuery` names the column (from 1) that cannot be understood."""
    if len(text) > LONGEST_QUERY:
        raise BadQuery(f"the query is {len(text)} characters long; {LONGEST_QUERY} are the limit")
    text = text.translate(_CURLY_QUOTES)
    try:
        return _Parser(_completed(text, now) if as_you_type else text, now, patient=as_you_type).whole()
    except _TooMany:
        raise
    except BadQuery as error:
        typed = text.split()
        groups = [_alternatives(Words(folded, each)) for each in typed if (folded := tuple(words(each)))]
        if len(groups) <= LONG_TEXT or not set(OPERATORS).isdisjoint(typed):
            raise
        return Ask(_counted(groups), notes=(f"searched as plain text, because it is no valid query: {error}",))


def _completed(text: str, now: float) -> str:
    """A half-typed query as one that can be parsed. An excluded word is taken as it stands: `-fer` while `-ferry` is
    typed must not hide every page that has a word with these letters."""
    if text.count('"') % 2:
        return f'{text}*"'
    pieces = list(_PIECE.finditer(text))
    while pieces and _is_unfinished(pieces[-1], now):
        pieces.pop()
    text = text[: pieces[-1].end()] if pieces else ""
    if pieces and pieces[-1]["field"] and not pieces[-1]["minus"] and _has_words(pieces[-1], now):
        return f"{text}*" if pieces[-1]["exact"] is None else text
    terms: list[re.Match[str] | None] = [None, None]
    terms += [piece for piece in pieces if not piece["field"] and not piece["bracket"]]
    last = terms.pop()
    if last is None or not last["word"] or last["minus"]:
        return text
    ending = "*"
    if len("".join(words(last["word"]))) == 1 and terms[-1] is not None and _stands_alone(terms[-2:]):
        ending = f" OR {terms[-1][0]}"  # one letter says little: who has it as a word comes first
    return f"{text[: last.end()]}{ending}{text[last.end() :]}"


def _has_words(piece: re.Match[str], now: float) -> bool:
    return isinstance(_term(piece, now), WordsOf | UrlWords | Words)


def _stands_alone(pieces: Sequence[re.Match[str] | None]) -> bool:
    """Whether the last piece is a word or a phrase that is wanted, and not an alternative to the one before."""
    operator, last = pieces
    joined = operator is not None and operator["word"] in OPERATORS
    return last is not None and not joined and not last["minus"] and last["word"] not in OPERATORS


def _is_unfinished(piece: re.Match[str], now: float) -> bool:
    try:
        is_open = bool(piece["field"]) and (piece[0][-1] == ":" or _term(piece, now) is None)
        return piece["word"] in OPERATORS or piece["bracket"] == "(" or is_open
    except BadQuery:
        return True


class _TooMany(BadQuery):
    """The query is understood, and too large."""


class _Token(msgspec.Struct, frozen=True):
    """An operator, a bracket, or "" with its term."""

    kind: str
    column: int
    term: Term | None = None
    negated: bool = False


_Part: TypeAlias = tuple[bool, Term]  # whether it is negated, and what


class _Parser:
    """Reads a query from left to right."""

    def __init__(self, text: str, now: float, *, patient: bool) -> None:
        self._patient = patient
        self._notes: list[str] = []
        self._tokens = list(self._read(text, now))
        self._at = 0
        self._terms = 0
        self._column = 1

    def whole(self) -> Ask:
        ask = self._sequence(None, 0)
        if not ask.must and not ask.must_not:
            raise BadQuery("column 1: there is no word to search for")
        return replace(ask, must=_counted(ask.must), notes=tuple(self._notes))

    def _read(self, text: str, now: float) -> Iterator[_Token]:
        for piece in _PIECE.finditer(text):
            column, negated = piece.start() + 1, bool(piece["minus"])
            if piece["bracket"] or (piece["word"] in OPERATORS and not negated):
                yield _Token(piece["bracket"] or piece["word"], column, None, negated)
                continue
            if piece["word"] and not self._patient and (unknown := _UNKNOWN_FIELD.match(piece["word"])):
                self._notes.append(_note_on_field(unknown[1], column + negated))
            if (term := _term(piece, now)) is not None:
                yield _Token("", column, term, negated)

    def _sequence(self, opened: _Token | None, depth: int) -> Ask:
        """What stands up to the closing bracket, or the end."""
        groups: list[Group] = []
        excluded: list[Term] = []
        last = 0  # the first group of what was read last
        while (token := self._next(opened)) is not None:
            joined = token if token.kind == "AND" else None
            if joined:
                if not groups and not excluded:
                    raise BadQuery(f"column {token.column}: AND needs a word before it")
                groups[last:] = map(_needed, groups[last:])
                self._at += 1
            elif token.kind == "OR":
                raise BadQuery(f"column {token.column}: OR needs a word before it")
            last = len(groups)
            if joined is None and (word := self._plain_word(token)):
                groups.append(_alternatives(word))
                continue
            parts = self._alternation(joined, depth)
            more, without = _put_together(parts)
            groups += map(_needed, more) if joined else more
            excluded += without
        return Ask(tuple(groups), tuple(excluded))

    def _plain_word(self, token: _Token) -> Words | None:
        """The word at this place, passed over, if it stands alone: as nearly every word of a text does."""
        term = token.term
        if token.negated or not isinstance(term, Words) or term.prefix or not term.is_loose():
            return None
        if self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].kind == "OR":
            return None
        self._at += 1
        return term

    def _next(self, opened: _Token | None) -> _Token | None:
        """The next token; None at the bracket that closes this one, which is passed over, and at the end."""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind != ")":
                return token
            self._at += 1
            if opened is not None:
                return None
            if not self._patient:
                raise BadQuery(f"column {token.column}: this ) closes nothing")
        if opened is not None and not self._patient:
            raise BadQuery(f"column {opened.column}: this ( is never closed")
        return None

    def _alternation(self, joined: _Token | None, depth: int) -> list[_Part]:
        """Operands that are joined by OR."""
        parts = [self._operand(joined, depth)]
        while self._at < len(self._tokens) and (token := self._tokens[self._at]).kind == "OR":
            self._at += 1
            parts.append(self._operand(token, depth))
        self._count(parts)
        return [(negated, part) for negated, part in parts if part != _NOTHING]

    def _operand(self, operator: _Token | None, depth: int) -> _Part:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if operator is not None and (token is None or token.kind == ")"):
            raise BadQuery(f"column {operator.column}: {operator.kind} needs a word after it")
        assert token is not None, "the caller has seen it"
        self._at += 1
        self._column = token.column
        if token.kind in ("AND", "OR") or (token.kind == "NOT" and operator is not None and operator.kind == "NOT"):
            before = operator.kind if operator else ""
            raise BadQuery(f"column {token.column}: {before} needs a word after it, not {token.kind}")
        if token.kind == "NOT":
            return (True, self._operand(token, depth)[1])
        if token.kind == "(":
            if depth == DEEPEST:
                raise BadQuery(f"column {token.column}: more than {DEEPEST} parentheses in each other")
            inside = self._sequence(token, depth + 1)
            if operator is not None and inside == _NOTHING:
                raise BadQuery(f"column {operator.column}: {operator.kind} needs a word after it")
            return (token.negated, inside)
        assert token.term is not None
        return (token.negated, token.term)

    def _count(self, parts: Sequence[_Part]) -> None:
        for negated, part in parts:
            if negated or len(parts) > 1:
                self._terms += _size(part)
            elif not isinstance(part, Ask):
                self._terms += not isinstance(part, Words) or not part.is_loose() or part.prefix
            if self._terms > MOST_TERMS:
                raise _TooMany(
                    f"column {self._column}: more than {MOST_TERMS} phrases, alternatives, filters and excluded words"
                )


_NOTHING = Ask(())


def _put_together(parts: Sequence[_Part]) -> tuple[list[Group], list[Term]]:
    """The groups and the excluded terms that alternatives add to a query."""
    if len(parts) == 1:
        ((negated, part),) = parts
        if negated:
            return [], list(_excluded(part))
        if isinstance(part, Ask):
            return list(part.must), list(part.must_not)
        return [_alternatives(part)], []
    group: list[Term] = []
    for negated, part in parts:
        if negated:
            group.append(Ask((), _excluded(part)))
        elif not isinstance(part, Ask):
            group += _alternatives(part)
        elif len(part.must) == 1 and not part.must_not:
            group += part.must[0]
        else:
            group.append(part)
    return ([tuple(group)] if group else []), []


def _excluded(part: Term) -> tuple[Term, ...]:
    """Terms of which a page may have none."""
    if isinstance(part, Ask) and len(part.must) == 1 and not part.must_not:
        return part.must[0]
    return (part,)


def _size(term: Term) -> int:
    if not isinstance(term, Ask):
        return 1
    return sum(_size(each) for group in (*term.must, term.must_not) for each in group)


def _needed(group: Group) -> Group:
    return tuple(_needed_term(term) for term in group)


def _needed_term(term: Term) -> Term:
    if isinstance(term, Words):
        return replace(term, needed=True)
    return replace(term, must=tuple(map(_needed, term.must))) if isinstance(term, Ask) else term


def _counted(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Each group once, with how often it was typed."""
    return tuple(_repeated(group, times) for group, times in Counter(groups).items())


def _repeated(group: Group, times: int) -> Group:
    if times == 1:
        return group
    return tuple(replace(term, times=times) if isinstance(term, Words) else term for term in group)


def _note_on_field(name: str, column: int) -> str:
    """A note that a field does not exist; `BadQuery` if another one is likely to be meant."""
    lower = name.lower()
    meant = _ELSEWHERE.get(lower) or next(iter(get_close_matches(lower, _FIELDS, 1, _NEAR)), None)
    if meant:
        raise BadQuery(
            f"column {column}: there is no field {name}:, did you mean {meant}:? In quotes it is searched for as words"
        )
    return f"column {column}: there is no field {name}:, so it is searched for as a word"


def parse_page_of_hits(query: Query) -> Ask:
    """Parse `query`, and check that an index can answer this part of the hits."""
    if query.limit < 0 or query.offset < 0 or query.offset + query.limit > DEEPEST_HIT:
        raise BadQuery(f"hits can be requested from number 1 to {DEEPEST_HIT}")
    now = SystemClock().now() if query.now is None else query.now
    return with_synonyms(parse_query(query.text, now, query.as_you_type), query.synonyms)


def one_word(text: str) -> str:
    """`text` folded, if it is a single word."""
    folded = words(text)
    if len(folded) != 1:
        raise BadQuery(f"{text[:80]!r} is not one word")
    return folded[0]


def host_named(value: str) -> str:
    """The host as a browser writes it (lower case, punycode), with its port if it is not the default."""
    try:
        host: str = can_ada.parse(f"ws://{value.strip('.')}").host
    except (ValueError, TypeError):  # TypeError: an unpaired surrogate
        host = ""
    if not host or not _NOT_IN_HOSTS.isdisjoint(value):
        raise BadQuery(f"{value!r} is not a host name, such as example.org")
    return host


def _term(piece: re.Match[str], now: float) -> Term | None:
    if piece["open"]:
        raise BadQuery(f"column {piece.end()}: this quote is never closed")
    if piece["field"]:
        field, exact = piece["field"].lower(), piece["exact"] is not None
        value = piece["exact"] if exact else piece["value"]
        if not value and field not in _EXAMPLES:
            return Words((field,), field)  # "price: 100" in a text is no field
        return _condition(field, value, exact, piece.start("exact" if exact else "value") + 1, now)
    quoted = piece["phrase"] is not None
    typed = piece["phrase"] if quoted else piece["word"] or ""
    folded = tuple(words(typed))
    if not folded:
        return None
    if piece["between"] is not None:
        return _near_words(folded, typed, piece["between"], piece.start("between"))
    return Words(folded, typed.rstrip("*"), quoted, _is_prefix(typed, folded))


def _near_words(folded: tuple[str, ...], typed: str, between: str, column: int) -> Words:
    if not between or int(between) > MOST_BETWEEN:
        raise BadQuery(f'column {column}: ~ takes the number of words between, up to {MOST_BETWEEN}, as in "a b"~5')
    near = Words(folded, typed, quoted=True, between=int(between))
    return near if near.pairs() else Words(folded[:1], typed, quoted=True)


def _is_prefix(typed: str, folded: tuple[str, ...]) -> bool:
    return typed.endswith("*") and len(folded[-1]) >= SHORTEST_PREFIX


def _alternatives(term: Term) -> Group:
    """The term, and the word it is a form of: endings and articles are separated by an apostrophe."""
    if not isinstance(term, Words) or term.quoted or len(term.folded) == 1:
        return (term,)
    parts = _APOSTROPHE.split(term.typed)
    *others, longest = sorted(parts, key=len)
    folded = tuple(words(longest))
    if len(folded) != 1 or len(longest) < _SHORTEST_PART or not all(len(part) < len(longest) for part in others):
        return (term,)
    return (term, Words(folded, longest, prefix=term.prefix and longest == parts[-1], field=term.field))


def _condition(field: str, value: str, exact: bool, column: int, now: float) -> Term | None:
    try:
        if field not in _EXAMPLES:
            ago = _AGO.fullmatch(value)
            return condition_of(field, value, _moment(value, now) if ago else None)
        if not value:
            raise BadQuery(f"{field}: needs a value, such as {_EXAMPLES[field]}")
        match field:
            case "title" | "url":
                return _words_in(field, value, exact)
            case "site":
                return SiteFilter(host_named(value))
            case "lang":
                return Language(_language(value))
            case "since":
                return Since(_moment(value, now))
            case _:
                return Until(_moment(value, now, end=True))
    except BadQuery as error:
        raise BadQuery(f"column {column}: {error}") from error


def _words_in(field: str, value: str, exact: bool) -> Words | UrlWords | None:
    folded = tuple(words(unquote(value) if field == "url" else value))
    if not folded:
        return None
    prefix = _is_prefix(value, folded)
    if field == "url":
        return UrlWords(folded, prefix)
    return Words(folded, value.rstrip("*"), quoted=exact, prefix=prefix, field="title")


def _language(value: str) -> str:
    match = _LANGUAGE.fullmatch(value)
    if not match:
        raise BadQuery(f"{value!r} is not a language code, such as {_EXAMPLES['lang']}")
    return match[1].lower()


def _moment(value: str, now: float, *, end: bool = False) -> float:
    if ago := _AGO.fullmatch(value):
        return now - int(ago[1]) * _SECONDS[ago[2].lower()]
    if span := date_span(value):
        return math.nextafter(span[1], -math.inf) if end else span[0]
    raise BadQuery(f"{value!r} is not a time, such as {_EXAMPLES['until' if end else 'since']}")


def since_moment(typed: str, now: float) -> float:
    """The time that `7d`, `24h` or `2026-01-31` means, as in `since:`."""
    try:
        (group,) = parse_query(f"since:{typed}", now).must
    except (BadQuery, ValueError):
        group = ()
    if len(group) == 1 and isinstance(group[0], Since):
        return group[0].at
    raise UsageError(f"--since {typed!r} is not a time, such as 7d, 24h or 2026-01-31")


def length_of_time(typed: str, name: str) -> float:
    """The seconds of `90m`, `24h` or `7d`. `name` is the option that held it."""
    try:
        seconds = -since_moment(typed, 0.0) if typed[-1:].isalpha() else 0.0
    except UsageError:
        seconds = 0.0
    if not 0.0 < seconds <= 1e9:
        raise UsageError(f"{name} {typed[:50]!r} is not a duration, such as 90m, 24h, 7d or 2w")
    return seconds
