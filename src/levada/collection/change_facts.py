"""Facts of a change: what came and went in short, and where to read more.

One place makes them for the API, events, Atom, webhooks, notifications and the command line. A short diff shows the
changed lines alone, a few of them, and of a long line the surroundings of the words that differ; what is left out is
said in its note. Changes that are told together share one limit of work, whatever pages outsiders put there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal
from urllib.parse import quote

import msgspec

from levada.collection.diff import Budget, changes_between
from levada.core.durations import iso
from levada.core.records import ChangeEvent, ChangeFacts, ChangeKind, DiffLine, Document
from levada.core.settings import DAY, HOUR
from levada.core.words import line, paragraphs, plural
from levada.store.base import Store

Period = Literal["hourly", "daily"]
PERIODS: dict[Period, float] = {"hourly": HOUR, "daily": DAY}

_MOST_LINES = 12
_LONGEST_LINE = 300  # characters
_AROUND = 60  # characters kept on each side of the words that differ
_MOST_COMPARED = 20_000_000  # characters that are read for the diffs of one answer
_SAME = "the main text is the same; what changed is around it"


class ChangeDigest(msgspec.Struct, frozen=True):
    """The changes of one hour or one day, the newest first."""

    start: float
    end: float
    changes: tuple[ChangeFacts, ...]

    def count(self, what: str) -> int:
        return sum(each.what == what for each in self.changes)

    @property
    def summary(self) -> str:
        """`3 changed, 1 new`."""
        counts = [(self.count(kind), kind) for kind in ("changed", "new", "gone", "back")]
        return ", ".join(f"{count:,} {kind}" for count, kind in counts if count)


def change_id(event: ChangeEvent) -> str:
    """The id of a change, which is never given to another."""
    return f"{event.shard}-{event.seq}"


def facts_of_changes(
    store: Store, changes: Iterable[ChangeEvent], dashboard: str = "", *, diffs: bool = True
) -> list[ChangeFacts]:
    """The facts of changes that are told together.

    `dashboard` is the address at which readers open the dashboard; without it the links lead to the pages
    themselves. Without `diffs` no text is read.
    """
    work = _Work()
    return [_facts(store, each, dashboard, work if diffs else None) for each in changes]


def digests_of(changes: Iterable[ChangeFacts], period: Period) -> list[ChangeDigest]:
    """The changes by hour or day of UTC, the newest first."""
    seconds = PERIODS[period]
    ordered = sorted(((_epoch(each.at), each) for each in changes), key=lambda each: each[0], reverse=True)
    return [
        ChangeDigest(number * seconds, (number + 1) * seconds, tuple(each for _, each in alike))
        for number, alike in groupby(ordered, key=lambda each: each[0] // seconds)
    ]


def changed_lines(store: Store, event: ChangeEvent) -> list[DiffLine]:
    """All lines that came and went with a change, uncut; none where a text is no longer kept."""
    after = store.document(event.url, event.version)
    if after is None or (event.what is ChangeKind.BACK and event.similarity == 1.0):
        return []
    work = _Work()
    new = _lines(after, work)
    if event.what is ChangeKind.GONE:
        return [DiffLine("-", ((text, True),)) for text in new]
    if event.what is ChangeKind.NEW or event.version == 1:
        return [DiffLine("+", ((text, True),)) for text in new]
    before = _version_before(store, event)
    hunks = changes_between(_lines(before, work), new, 0, work.budget) if before is not None else []
    return [each for hunk in hunks for each in hunk.lines]


class _Work:
    """What may still be read and compared for one answer."""

    def __init__(self) -> None:
        self.budget = Budget()
        self.characters = _MOST_COMPARED


class _ShortDiff(msgspec.Struct, frozen=True):
    added: int | None = None
    removed: int | None = None
    lines: tuple[DiffLine, ...] = ()
    note: str = ""


def _facts(store: Store, event: ChangeEvent, dashboard: str, work: _Work | None) -> ChangeFacts:
    short = _ShortDiff() if work is None else _short_diff(store, event, work)
    return ChangeFacts(
        id=change_id(event),
        at=str(iso(event.at)),
        what=event.what.value,
        url=event.url,
        site=event.site,
        title=event.title,
        version=event.version,
        changed=round(1.0 - event.similarity, 4),
        link=_link(event, dashboard),
        added=short.added,
        removed=short.removed,
        diff="\n".join(each.sign + each.text for each in short.lines),
        lines=short.lines,
        note=short.note,
    )


def _link(event: ChangeEvent, dashboard: str) -> str:
    if not dashboard:
        return event.url
    return f"{dashboard.rstrip('/')}/#/page?url={quote(event.url, safe='')}&after={event.version}"


def _short_diff(store: Store, event: ChangeEvent, work: _Work) -> _ShortDiff:
    if event.what is ChangeKind.GONE:
        return _ShortDiff(note=f"the page is gone; what was last stored of it is version {event.version}")
    if event.what is ChangeKind.BACK and event.similarity == 1.0:
        return _ShortDiff(0, 0, note="the page is back as it was")
    if work.characters <= 0:
        return _ShortDiff(note="not compared here, as there are many large changes; ask for the diff of this page")
    after = store.document(event.url, event.version)
    if after is None:
        return _ShortDiff(note=f"version {event.version} is no longer kept")
    new = _lines(after, work)
    if event.what is ChangeKind.NEW or event.version == 1:
        return _shortened([DiffLine("+", ((text, True),)) for text in new])
    before = _version_before(store, event)
    if before is None:
        return _ShortDiff(note=f"version {event.version - 1} is no longer kept: nothing to compare with")
    hunks = changes_between(_lines(before, work), new, 0, work.budget)
    told = _shortened([each for hunk in hunks for each in hunk.lines], _title_change(before, after))
    notes = [told.note if told.lines or told.note else _SAME]
    if before.version != event.version - 1:
        notes.append(f"compared with version {before.version}, as no version between is kept")
    return msgspec.structs.replace(told, note="; ".join(filter(None, notes)))


def _version_before(store: Store, event: ChangeEvent) -> Document | None:
    """The newest kept version that is older than that of the event: some may have been thinned out."""
    before = store.document(event.url, event.version - 1)
    if before is not None:
        return before
    older = [each.version for each in store.versions(event.url) if each.version < event.version]
    return store.document(event.url, max(older)) if older else None


def _lines(document: Document, work: _Work) -> list[str]:
    work.characters -= len(document.text) + 1_000
    return [text for text in paragraphs(document.text) if text.strip()]


def _title_change(before: Document, after: Document) -> str:
    old, new = line(before.title), line(after.title)
    return "" if old == new else f"the title was {old[:_LONGEST_LINE]!r}" if old else "the title is new"


def _shortened(lines: Sequence[DiffLine], title: str = "") -> _ShortDiff:
    """A few of the lines, some of those that went and some of those that came, each cut to what differs."""
    gone, come = ([each for each in lines if each.sign == sign] for sign in "-+")
    half = _MOST_LINES // 2
    room = max(half, _MOST_LINES - len(come)), max(half, _MOST_LINES - len(gone))
    shown = {id(each) for each in (*gone[: room[0]], *come[: room[1]])}
    kept = tuple(_cut(each) for each in lines if id(each) in shown)
    left = len(gone) + len(come) - len(kept)
    notes = [title, f"{plural(left, 'more changed line')} not shown" if left else ""]
    return _ShortDiff(len(come), len(gone), kept, "; ".join(filter(None, notes)))


def _cut(changed: DiffLine) -> DiffLine:
    """The words that differ with their surroundings, at most so many characters in all."""
    last, left, pieces = len(changed.pieces) - 1, _LONGEST_LINE, list[tuple[str, bool]]()
    for number, (text, differs) in enumerate(changed.pieces):
        if left <= 0:
            pieces.append(("…", False))
            break
        short = text if differs else _surroundings(text, start=number == 0, end=number == last)
        if len(short) > left:
            short = f"{short[: left - 1]}…"
        pieces.append((short, differs))
        left -= len(short)
    return DiffLine(changed.sign, tuple(pieces))


def _surroundings(text: str, *, start: bool, end: bool) -> str:
    """The parts of an unchanged text that lie beside a change; it may begin or end the line."""
    before, after = ("" if start else text[:_AROUND]), ("" if end else text[-_AROUND:])
    is_short = len(text) <= len(before) + len(after) + 3
    return text if is_short or (start and end) else f"{before}…{after}"


def _epoch(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
