"""Synonyms: words that a search takes for each other, from a file of the user.

    # words of one line stand for each other; from left to right where there is an arrow
    ferry, vapur, sea bus
    nyc => new york

Words are folded as everywhere in search, and may be several. A match by a synonym counts a little less than one of
the word that was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from levada.core.errors import SettingsError
from levada.pages.folding import words
from levada.search.terms import Ask, Group, Words

MOST_LINES = 20_000
_MOST_BYTES = 4_000_000
_MOST_TOGETHER = 32  # words and phrases of one line
_LONGEST = 4  # words of one phrase
_WORTH = 0.8
_COMMENT, _ARROW = "#", "=>"

Synonyms = Mapping[str, tuple[str, ...]]
"""For folded words, separated by spaces: what else is searched for."""


def read_synonyms(path: Path) -> Synonyms:
    """The synonyms in a file. `SettingsError` names the line that cannot be understood."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"search.synonyms: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        place = content[: error.start].count(b"\n") + 1
        raise SettingsError(f"search.synonyms: {path}, line {place}: this is not UTF-8") from None
    lines = text.splitlines()
    if len(content) > _MOST_BYTES or len(lines) > MOST_LINES:
        raise SettingsError(f"search.synonyms: {path} is too long: {MOST_LINES:,} lines, or 4 MB, are the limit")
    found: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, 1):
        try:
            for folded, others in _read(line).items():
                found.setdefault(folded, {}).update(dict.fromkeys(others))
        except ValueError as error:
            raise SettingsError(f"search.synonyms: {path}, line {number}: {error}") from None
    return {folded: tuple(others) for folded, others in found.items()}


def _read(line: str) -> dict[str, list[str]]:
    line = line.partition(_COMMENT)[0].strip()
    if not line:
        return {}
    left, arrow, right = line.partition(_ARROW)
    if not arrow:
        every = _phrases(left)
        if len(every) < 2:
            raise ValueError("a line needs two words at least, separated by commas, such as: ferry, vapur")
        return {folded: [typed for other, typed in every.items() if other != folded] for folded in every}
    if _ARROW in right:
        raise ValueError("there are two arrows; one is the limit, such as: nyc => new york")
    from_these, to_these = _phrases(left), _phrases(right)
    if not from_these or not to_these:
        raise ValueError("the arrow needs words on both sides, such as: nyc => new york")
    return {folded: [typed for other, typed in to_these.items() if other != folded] for folded in from_these}


def _phrases(text: str) -> dict[str, str]:
    """What stands between commas: folded, and as it is written."""
    found: dict[str, str] = {}
    for written in text.split(","):
        folded = words(written)
        if not folded:
            raise ValueError("there is no word between two commas, or beside an arrow")
        if len(folded) > _LONGEST:
            raise ValueError(f"{written.strip()[:60]!r} has {len(folded)} words; {_LONGEST} are the limit")
        found.setdefault(" ".join(folded), written.strip())
    if len(found) > _MOST_TOGETHER:
        raise ValueError(f"there are {len(found)} words; {_MOST_TOGETHER} are the limit")
    return found


def with_synonyms(ask: Ask, synonyms: Synonyms) -> Ask:
    """The query that finds synonyms of its words too; phrases and half-typed words stay as they are."""
    if not synonyms:
        return ask
    groups: list[Group] = []
    at = 0
    while at < len(ask.must):
        length, group = _expanded(ask.must[at : at + _LONGEST], synonyms)
        groups.append(group)
        at += length
    return replace(ask, must=tuple(groups))


def _expanded(groups: tuple[Group, ...], synonyms: Synonyms) -> tuple[int, Group]:
    """How many of these groups become one, and which: the longest run of words that has synonyms."""
    for length in range(len(groups), 0, -1):
        run = [_plain_word(group) for group in groups[:length]]
        known = [each for each in run if each is not None]
        if len(known) < length:
            continue
        others = synonyms.get(" ".join(word for each in known for word in each.folded), ())
        if others:
            needed = all(each.needed for each in known)
            also = tuple(
                Words(tuple(words(each)), each, needed=needed, times=known[0].times, worth=_WORTH) for each in others
            )
            typed = groups[0] if length == 1 else (Ask(groups[:length]),)
            return length, (*typed, *also)
    first = groups[0]
    if len(first) > 1:  # each of several alternatives has its own
        every = (each for term in first for each in _expanded(((term,),), synonyms)[1])
        return 1, tuple(dict.fromkeys(every))
    return 1, tuple(with_synonyms(term, synonyms) if isinstance(term, Ask) else term for term in first)


def _plain_word(group: Group) -> Words | None:
    """The word of a group that has one only, without quotes, field or star."""
    first = group[0]
    if len(group) > 1 or not isinstance(first, Words) or first.quoted or first.prefix or first.field:
        return None
    return first
