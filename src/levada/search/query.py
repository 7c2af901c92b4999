"""Query language: words, phrases, filters.

    istanbul vapur            both words (each also in its other forms: vapurlar); where few pages have both, either
    istanbul AND vapur        both, and nothing else
    İstanbul'dan              this, or its longest part alone, in its other forms: İstanbul
    "sea bus"                 these words in this order and form; "word": this form only
    fresh*                    every word that begins so (two letters at least)
    ferry OR vapur            either; OR binds closer than the space: a OR b c is (a or b) and c
    -bridge  NOT "old town"   not this
    site:example.org          of this host or one below it; site:example.org:8080 of this port
    lang:tr                   in this language
    since:7d  since:24h  since:2026-01-31     changed since then (m, h, d, w; a date is midnight UTC)
    type:Product brand:"Acme Tools"           these words in a property of the structured data
    price:<100  price:10..20  rating:>=4      this number in one; also <=, >, 10.. and ..20
    published:>2026-01-31  starts:2026-05     this date in one, or within it; published:7d: since then
    data.calories:<500                        the same of any property of schema.org

Filters can be negated and joined by OR like words, except that OR takes no minus. Anything that is neither a word
nor one of these forms (a lone dash, punctuation) is ignored.

A query that is searched while it is typed is read with patience: its last word stands for every word that begins so,
an open phrase ends where the text ends, and an OR or a filter that is not finished is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import can_ada
import msgspec
from msgspec.structs import replace

from levada.core.clock import SystemClock
from levada.core.errors import BadQuery, UsageError
from levada.core.search_records import Query
from levada.pages.folding import words
from levada.search.properties import FIELDS, RangeOf, WordsOf, condition_of

LONGEST_QUERY = 10_000  # characters
MOST_TERMS = 64
DEEPEST_HIT = 10_000  # nobody reads further, and ranking that many costs memory
OPERATORS = ("AND", "OR", "NOT")
SHORTEST_PREFIX = 2  # characters: half of all pages have a word that begins with a given letter


class Words(msgspec.Struct, frozen=True):
    """One word, or several consecutive ones (a phrase, or what folding split: e-mail)."""

    folded: tuple[str, ...]
    typed: str
    quoted: bool = False  # only this form, not its stem
    prefix: bool = False  # the last word, or any that begins with it
    needed: bool = False  # joined by AND: no page may lack it
    times: int = 1  # how often the query has it

    def has_forms(self) -> bool:
        """Whether other forms of the word are searched too."""
        return not self.quoted and len(self.folded) == 1

    def matches(self, found: Sequence[str]) -> bool:
        """Whether these folded words, as many as these, are what is searched for."""
        if not self.prefix:
            return tuple(found) == self.folded
        *before, last = self.folded
        return list(found[:-1]) == before and len(found) == len(self.folded) and found[-1].startswith(last)


class SiteFilter(msgspec.Struct, frozen=True):
    host: str


class Language(msgspec.Struct, frozen=True):
    code: str


class Since(msgspec.Struct, frozen=True):
    at: float


Term: TypeAlias = Words | SiteFilter | Language | Since | WordsOf | RangeOf


class Ask(msgspec.Struct, frozen=True):
    """A parsed query: one of each group of `must`, and none of `must_not`; the words of `may` rank only."""

    must: tuple[tuple[Term, ...], ...]
    must_not: tuple[Term, ...] = ()
    may: tuple[tuple[Term, ...], ...] = ()

    def words(self) -> tuple[Words, ...]:
        """The words that a hit may contain."""
        return tuple(term for group in (*self.must, *self.may) for term in group if isinstance(term, Words))

    def every_word(self) -> tuple[Words, ...]:
        """The words of a hit, and those that it may not contain."""
        return (*self.words(), *(term for term in self.must_not if isinstance(term, Words)))

    def languages(self) -> frozenset[str] | None:
        """The languages that a hit can be in; None for any."""
        groups = [group for group in self.must if all(isinstance(term, Language) for term in group)]
        if not groups:
            return None
        return frozenset.intersection(
            *(frozenset(term.code for term in group if isinstance(term, Language)) for group in groups)
        )


_PIECE = re.compile(
    r"(?P<minus>-)?(?:"
    rf"(?P<field>(?ai:site|lang|since|{'|'.join(FIELDS)}|data\.[a-z][a-z0-9_\-]*)):"
    r'(?:"(?P<exact>[^"]*)"|(?P<value>[^\s"]*))'
    r'|"(?P<phrase>[^"]*)"'
    r'|(?P<open>")'
    r'|(?P<word>[^\s"]+)'
    r")"
)
_CURLY_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_APOSTROPHE = re.compile("['’]")
_SHORTEST_PART = 3  # letters: the "it" of "it's" says nothing
_AGO = re.compile(r"(\d{1,6})([mhdw])", re.ASCII | re.IGNORECASE)
_NOT_IN_HOSTS = frozenset("/\\?#@")
_SECONDS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.ASCII | re.IGNORECASE)


def parse_query(text: str, now: float, as_you_type: bool = False) -> Ask:
    """Parse `text` at the time `now`. `BadQuery` names the column (from 1) that cannot be understood."""
    if len(text) > LONGEST_QUERY:
        raise BadQuery(f"the query is {len(text)} characters long; {LONGEST_QUERY} are the limit")
    reading = _Reading()
    text = text.translate(_CURLY_QUOTES)
    for piece in _PIECE.finditer(_completed(text, now) if as_you_type else text):
        column = piece.start() + 1
        if piece["word"] in OPERATORS and not piece["minus"]:
            reading.meet_operator(piece["word"], column)
        elif (term := _term(piece, now)) is not None:
            reading.meet(term, column, negated=bool(piece["minus"]))
    return reading.end()


def _completed(text: str, now: float) -> str:
    """A half-typed query as one that can be parsed. An excluded word is taken as it stands: `-fer` while `-ferry` is
    typed must not hide every page that has a word with these letters."""
    if text.count('"') % 2:
        return f'{text}*"'
    pieces = list(_PIECE.finditer(text))
    while pieces and _is_unfinished(pieces[-1], now):
        pieces.pop()
    text = text[: pieces[-1].end()] if pieces else ""
    if pieces and pieces[-1]["field"] and not pieces[-1]["minus"] and isinstance(_term(pieces[-1], now), WordsOf):
        return f"{text}*" if pieces[-1]["exact"] is None else text
    terms: list[re.Match[str] | None] = [None, None]
    terms += [piece for piece in pieces if not piece["field"]]
    last = terms.pop()
    if last is None or not last["word"] or last["minus"]:
        return text
    ending = "*"
    if len("".join(words(last["word"]))) == 1 and terms[-1] is not None and _stands_alone(terms[-2:]):
        ending = f" OR {terms[-1][0]}"  # one letter says little: who has it as a word comes first
    return f"{text[: last.end()]}{ending}{text[last.end() :]}"


def _stands_alone(pieces: Sequence[re.Match[str] | None]) -> bool:
    """Whether the last piece is a word or a phrase that is wanted, and not an alternative to the one before."""
    operator, last = pieces
    joined = operator is not None and operator["word"] in OPERATORS
    return last is not None and not joined and not last["minus"] and last["word"] not in OPERATORS


def _is_unfinished(piece: re.Match[str], now: float) -> bool:
    try:
        is_open = bool(piece["field"]) and (piece[0][-1] == ":" or _term(piece, now) is None)
        return piece["word"] in OPERATORS or is_open
    except BadQuery:
        return True


class _Reading:
    """The parts of a query parsed so far, from left to right."""

    def __init__(self) -> None:
        self._must: list[tuple[Term, ...]] = []
        self._must_not: list[Term] = []
        self._terms = 0
        self._open: dict[str, int] = {}  # operators that wait for their right side, with their columns

    def meet_operator(self, operator: str, column: int) -> None:
        if operator in self._open or (operator != "AND" and "OR" in self._open) or (operator == "OR" and self._open):
            before = next(iter(self._open))
            raise BadQuery(f"column {column}: {before} needs a word after it, not {operator}")
        if operator == "OR" and not self._must:
            raise BadQuery(f"column {column}: OR needs a word before it")
        if operator == "AND" and not (self._must or self._must_not):
            raise BadQuery(f"column {column}: AND needs a word before it")
        if operator == "AND" and self._must:
            self._must[-1] = _needed(self._must[-1])
        self._open[operator] = column

    def meet(self, term: Term, column: int, negated: bool) -> None:
        negated = negated or "NOT" in self._open
        self._terms += negated or "OR" in self._open or not isinstance(term, Words) or term.quoted or term.prefix
        if self._terms > MOST_TERMS:
            raise BadQuery(f"column {column}: more than {MOST_TERMS} phrases, alternatives, filters and excluded words")
        if negated and "OR" in self._open:
            raise BadQuery(f"column {column}: OR cannot be followed by a minus")
        if negated:
            self._must_not.append(term)
        elif "OR" in self._open:
            group = (*self._must[-1], *_alternatives(term))
            self._must[-1] = _needed(group) if _is_needed(group) else group
        else:
            group = _alternatives(term)
            self._must.append(_needed(group) if "AND" in self._open else group)
        self._open.clear()

    def end(self) -> Ask:
        for operator, column in self._open.items():
            raise BadQuery(f"column {column}: {operator} needs a word after it")
        if not self._must and not self._must_not:
            raise BadQuery("column 1: there is no word to search for")
        counts = Counter(self._must)
        return Ask(tuple(_repeated(group, times) for group, times in counts.items()), tuple(self._must_not))


def _needed(group: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(replace(term, needed=True) if isinstance(term, Words) else term for term in group)


def _is_needed(group: tuple[Term, ...]) -> bool:
    return any(isinstance(term, Words) and term.needed for term in group)


def _repeated(group: tuple[Term, ...], times: int) -> tuple[Term, ...]:
    if times == 1:
        return group
    return tuple(replace(term, times=times) if isinstance(term, Words) else term for term in group)


def parse_page_of_hits(query: Query) -> Ask:
    """Parse `query`, and check that an index can answer this part of the hits."""
    if query.limit < 0 or query.offset < 0 or query.offset + query.limit > DEEPEST_HIT:
        raise BadQuery(f"hits can be requested from number 1 to {DEEPEST_HIT}")
    return parse_query(query.text, SystemClock().now() if query.now is None else query.now, query.as_you_type)


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


def site_names(site: str) -> list[str]:
    """What `site:` may name to mean this site: it and every host above it, with and without its port."""
    host, colon, port = site.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = site, ""
    labels = host.split(".")
    above = [".".join(labels[start:]) for start in range(len(labels))]
    return above + [f"{name}:{port}" for name in above] if port else above


def _term(piece: re.Match[str], now: float) -> Term | None:
    if piece["open"]:
        raise BadQuery(f"column {piece.end()}: this quote is never closed")
    if piece["field"]:
        field, exact = piece["field"].lower(), piece["exact"] is not None
        value = piece["exact"] if exact else piece["value"]
        if not value and field not in _EXAMPLES:
            return Words((field,), field)  # "price: 100" in a text is no field
        return _filter(field, value, piece.start("exact" if exact else "value") + 1, now)
    quoted = piece["phrase"] is not None
    typed = piece["phrase"] if quoted else piece["word"]
    folded = tuple(words(typed))
    return Words(folded, typed.rstrip("*"), quoted, _is_prefix(typed, folded)) if folded else None


def _is_prefix(typed: str, folded: tuple[str, ...]) -> bool:
    return typed.endswith("*") and len(folded[-1]) >= SHORTEST_PREFIX


def _alternatives(term: Term) -> tuple[Term, ...]:
    """The term, and the word it is a form of: endings and articles are separated by an apostrophe."""
    if not isinstance(term, Words) or term.quoted or len(term.folded) == 1:
        return (term,)
    parts = _APOSTROPHE.split(term.typed)
    *others, longest = sorted(parts, key=len)
    folded = tuple(words(longest))
    if len(folded) != 1 or len(longest) < _SHORTEST_PART or not all(len(part) < len(longest) for part in others):
        return (term,)
    return (term, Words(folded, longest, prefix=term.prefix and longest == parts[-1]))


def _filter(field: str, value: str, column: int, now: float) -> Term | None:
    try:
        if field not in _EXAMPLES:
            ago = _AGO.fullmatch(value)
            return condition_of(field, value, _moment(value, now) if ago else None)
        if not value:
            raise BadQuery(f"{field}: needs a value, such as {_EXAMPLES[field]}")
        if field == "site":
            return SiteFilter(host_named(value))
        if field == "lang":
            return Language(_language(value))
        return Since(_moment(value, now))
    except BadQuery as error:
        raise BadQuery(f"column {column}: {error}") from error


_EXAMPLES = {"site": "site:example.org", "lang": "lang:tr", "since": "since:7d, since:24h or since:2026-01-31"}


def _language(value: str) -> str:
    match = _LANGUAGE.fullmatch(value)
    if not match:
        raise BadQuery(f"{value!r} is not a language code, such as {_EXAMPLES['lang']}")
    return match[1].lower()


def _moment(value: str, now: float) -> float:
    if ago := _AGO.fullmatch(value):
        return now - int(ago[1]) * _SECONDS[ago[2].lower()]
    try:
        if _DATE.fullmatch(value):
            return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()
    except ValueError:
        pass
    raise BadQuery(f"{value!r} is not a time, such as {_EXAMPLES['since']}")


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
