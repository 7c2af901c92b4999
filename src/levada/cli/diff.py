"""`levada diff`: what changed on a page?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from levada.assemble.reading import Collection
    from levada.records import PageRecord, VersionInfo
    from levada.telling.line_changes import Hunk

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(diff)


def diff(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page; https:// may be left out.")],
    at: Annotated[int, typer.Option("--at", metavar="K", min=1, help="1: the last change, 2: the one before.")] = 1,
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
    from levada.assemble.folder import DataFolder
    from levada.assemble.reading import open_collection
    from levada.telling.addresses import known_page, spellings

    with open_collection(DataFolder(data)) as collection:
        page = known_page(collection, spellings(url))
        kept = collection.store.versions(page.url)
        if not kept:
            raise NotFound(_nothing_stored(page, data))
        if versions:
            _list_versions(collection, page, kept, json)
        elif len(kept) == 1 and at == 1:
            _show_unchanged(collection, page, kept[0], json)
        else:
            _show_change(collection, page, _pair(page, kept, at), context, words, json)


def _nothing_stored(page: PageRecord, data: Path) -> str:
    from levada.cli.printing import command_for

    if page.leads_to:
        return f"nothing is stored of {page.url}: its content is that of {page.leads_to}; ask for that"
    because = f" ({page.reason})" if page.reason else ""
    more = command_for("why", page.url, data)
    return f"nothing is stored of {page.url}: it is {page.state}{because}; {more} says more"


def _pair(page: PageRecord, kept: Sequence[VersionInfo], at: int) -> tuple[VersionInfo, VersionInfo]:
    """The versions before and after the change number `at`, counted back from the last."""
    if at >= len(kept):
        oldest, newest = kept[-1].version, kept[0].version
        stored = f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
        raise NotFound(f"--at {at} is further back than what is kept of {page.url}: {stored}")
    return kept[at], kept[at - 1]


def _list_versions(collection: Collection, page: PageRecord, kept: Sequence[VersionInfo], json: bool) -> None:
    from levada.cli.printing import line, printer, shortened
    from levada.telling.duration import moment, relative
    from levada.telling.page_diff import version_facts

    if json:
        print_json({"url": page.url, "versions": [version_facts(each) for each in kept]})
        return
    out = printer()
    now = collection.clock.now()
    out.print(page.url)
    for place, each in enumerate(kept, 1):
        how = f"--at {place}" if place < len(kept) else "oldest"
        alike = f"{each.similarity:4.0%} the same" if place < len(kept) else ""
        out.print(
            f"{how:>8}  version {each.version:<4} {moment(each.fetched_at)}  {relative(each.fetched_at, now):<14}"
            f" {each.words:>7,} words  {alike:<13} {shortened(line(each.title), 60)}".rstrip()
        )


def _show_unchanged(collection: Collection, page: PageRecord, only: VersionInfo, json: bool) -> None:
    from levada.cli.printing import line, printer
    from levada.telling.duration import moment, relative
    from levada.telling.page_diff import version_facts

    if json:
        print_json({"url": page.url, "title": only.title, "from": None, "to": version_facts(only), "hunks": []})
        return
    out = printer()
    when = f"{relative(only.fetched_at, collection.clock.now())} ({moment(only.fetched_at)})"
    out.print(line(only.title) or "(no title)", style="bold")
    out.print(page.url)
    if only.version == 1:
        out.print(f"has not changed since it was first stored, {when}")
    else:
        out.print(f"only version {only.version} is kept, stored {when}: nothing to compare it with")


def _show_change(
    collection: Collection,
    page: PageRecord,
    pair: tuple[VersionInfo, VersionInfo],
    context: int,
    words: bool,
    json: bool,
) -> None:
    from levada.cli.coloured_diff import unified, word_by_word
    from levada.cli.printing import printer
    from levada.telling.page_diff import change_facts, hunks_between

    hunks = hunks_between(collection, page, pair, context)
    if json:
        print_json(change_facts(page, pair, hunks))
        return
    out = printer()
    _print_header(out, page, pair, hunks, collection.clock.now())
    for each in (word_by_word if words else unified)(hunks):
        out.print(each)
    if not hunks:
        out.print("the main text is the same; what changed is around it")


def _print_header(
    out: Any, page: PageRecord, pair: tuple[VersionInfo, VersionInfo], hunks: Sequence[Hunk], now: float
) -> None:
    from levada.cli.printing import line, plural
    from levada.telling.duration import moment, relative
    from levada.telling.page_diff import lines_changed

    before, after = pair
    removed, added = lines_changed(hunks)
    out.print(line(after.title) or "(no title)", style="bold")
    out.print(page.url)
    when = f"{relative(after.fetched_at, now)} ({moment(after.fetched_at)})"
    out.print(
        f"version {before.version} → {after.version}, {when}: "
        f"{after.similarity:.0%} the same; {plural(removed, 'line')} went, {added:,} came"
    )
    if before.title != after.title:
        out.print(f"title before: {line(before.title) or '(none)'}")
    out.print()
