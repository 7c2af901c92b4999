"""`levada diff`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from levada.cli.options import DataOption, JsonOption, print_json
from levada.cli.terminal import printer
from levada.core.durations import moment, relative
from levada.core.errors import NotFound
from levada.core.words import command_for, line, plural, shortened

if TYPE_CHECKING:
    from rich.console import Console

    from levada.collection.diff import Diff, Hunk
    from levada.core.records import DiffLine, VersionInfo


_COLOUR = {"-": "red", "+": "green", " ": ""}
_BRACKETS = {"-": ("[-", "-]"), "+": ("{+", "+}")}


def unified(hunks: Sequence[Hunk]) -> Iterator[Text]:
    """The lines as `diff -u` writes them."""
    for hunk in hunks:
        yield _header(hunk)
        for each in hunk.lines:
            yield drawn_line(each)


def drawn_line(changed: DiffLine) -> Text:
    """A line with its sign, in its colour; the words that differ stand out."""
    colour = _COLOUR[changed.sign]
    shown = Text(changed.sign, colour)
    for text, differs in changed.pieces:
        shown.append(text, f"bold reverse {colour}" if differs and len(changed.pieces) > 1 else colour)
    return shown


def word_by_word(hunks: Sequence[Hunk]) -> Iterator[Text]:
    """Each rewritten line once, with both: `the [-old-]{+new+} word`."""
    for hunk in hunks:
        yield _header(hunk)
        for old, new in _paired(hunk.lines):
            yield _merged(old, new)


def _header(hunk: Hunk) -> Text:
    before = f"-{hunk.before_line},{hunk.before_count}"
    return Text(f"@@ {before} +{hunk.after_line},{hunk.after_count} @@", "cyan")


def _paired(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """Removed lines, each with the one that replaced it; an unchanged line is a pair with itself."""
    gone: list[DiffLine] = []
    for sign, alike in groupby(lines, attrgetter("sign")):
        if sign == "-":
            gone = list(alike)
            continue
        yield from zip_longest(gone, alike if sign == "+" else ())
        gone = []
        if sign == " ":
            yield from ((each, each) for each in alike)
    yield from zip_longest(gone, ())


def _merged(old: DiffLine | None, new: DiffLine | None) -> Text:
    shown = Text()
    if old is new and old is not None:
        return Text(old.text)
    before, after = (list(each.pieces) if each else [] for each in (old, new))
    while before or after:
        for sign, pieces in (("-", before), ("+", after)):
            while pieces and pieces[0][1]:
                _mark(shown, sign, pieces.pop(0)[0])
        # What is left at the front is in both, or (once one side is used up) in neither.
        if before and after:
            shown.append(before.pop(0)[0])
            after.pop(0)
        elif before or after:
            shown.append((before or after).pop(0)[0])
    return shown


def _mark(shown: Text, sign: str, text: str) -> None:
    start, end = _BRACKETS[sign]
    word = text.rstrip()
    shown.append(f"{start}{word}{end}", f"bold {_COLOUR[sign]}")
    shown.append(text[len(word) :])


def diff(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page; https:// may be left out.")],
    at: Annotated[int, typer.Option(metavar="K", min=1, help="1: the last change, 2: the one before.")] = 1,
    context: Annotated[int, typer.Option(metavar="N", min=0, help="Unchanged lines to show around a change.")] = 3,
    words: Annotated[bool, typer.Option("--words", help="Old and new words on one line: [-old-]{+new+}.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="List the stored versions instead.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows what changed on a page, the last time or earlier.

    The main text is compared line by line; within a line that was rewritten, the words that differ stand out.
    How many versions are kept is the setting `store.keep_versions`.

    Examples:

    ```
    levada diff https://example.org/news
    levada diff example.org/news --at 2
    levada diff example.org/news --words --context 0
    levada diff example.org/news --versions
    ```
    """
    import levada
    from levada.collection.diff import nothing_stored, version_facts

    with levada.open(data, create=False) as collection:
        kept = collection.versions(url)
        if not kept:
            page = collection.why(url).page
            more = "" if page.leads_to else f"; {command_for('why', page.url, data)} says more"
            raise NotFound(f"{nothing_stored(page)}{more}")
        if versions:
            found = collection.why(url).page.url
            if json:
                print_json({"url": found, "versions": [version_facts(each) for each in kept]})
            else:
                _list_versions(found, kept, collection.now())
            return
        if at >= len(kept) > 1 or at > len(kept):
            oldest, newest = kept[-1].version, kept[0].version
            stored = f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
            raise NotFound(f"--at {at} is further back than what is kept of {url}: {stored}")
        change = collection.diff(
            url, kept[at].version if len(kept) > 1 else None, kept[at - 1].version, context=context
        )
        if json:
            print_json(change.facts())
        else:
            _show(change, words, collection.now())


def _list_versions(url: str, kept: Sequence[VersionInfo], now: float) -> None:
    out = printer()
    out.print(url)
    for place, each in enumerate(kept, 1):
        how = f"--at {place}" if place < len(kept) else "oldest"
        alike = f"{each.similarity:4.0%} the same" if place < len(kept) else ""
        out.print(
            f"{how:>8}  version {each.version:<4} {moment(each.fetched_at)}  {relative(each.fetched_at, now):<14}"
            f" {each.words:>7,} words  {alike:<13} {shortened(line(each.title), 60)}".rstrip()
        )


def _show(change: Diff, words: bool, now: float) -> None:
    out, old, new = printer(), change.old, change.new
    when = f"{relative(new.fetched_at, now)} ({moment(new.fetched_at)})"
    out.print(line(new.title) or "(no title)", style="bold")
    out.print(change.url)
    if old is None:
        only = f"only version {new.version} is kept, stored {when}: nothing to compare it with"
        out.print(f"has not changed since it was first stored, {when}" if new.version == 1 else only)
        return
    out.print(
        f"version {old.version} → {new.version}, {when}: "
        f"{new.similarity:.0%} the same; {plural(change.removed, 'line')} went, {change.added:,} came"
    )
    if old.title != new.title:
        out.print(f"title before: {line(old.title) or '(none)'}")
    out.print()
    print_hunks(out, change, words)


def print_hunks(out: Console, change: Diff, words: bool) -> None:
    for each in (word_by_word if words else unified)(change.hunks):
        out.print(each)
    if not change.hunks:
        out.print("the main text is the same; what changed is around it")
