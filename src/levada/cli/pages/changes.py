"""`levada changes`."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.logs import tell_partial
from levada.cli.options import DataOption, print_json
from levada.cli.terminal import printer
from levada.core.errors import NotFound
from levada.core.words import line, plural, shortened

if TYPE_CHECKING:
    from levada.core.records import ChangeFacts

_COLOUR = {"new": "green", "changed": "cyan", "gone": "red", "back": "magenta"}
_INDENT = " " * 9


def changes(
    since: Annotated[str, typer.Option(metavar="TIME", help="How far back: 90m, 24h, 7d, 2026-01-31.")] = "1d",
    site: Annotated[str, typer.Option(metavar="HOST", help="Only this host, or one below it.")] = "",
    words: Annotated[str, typer.Option(metavar="WORDS", help="Only pages on which all of these stand.")] = "",
    kind: Annotated[str, typer.Option(metavar="KINDS", help="Only new, changed, gone, back; several by commas.")] = "",
    least: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=1, help="Share of the words that must have changed, 0 to 1.")
    ] = 0.0,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="At most the newest N.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with new ones as they come, until Ctrl-C.")] = False,
    diff: Annotated[bool, typer.Option("--diff/--no-diff", help="With or without the lines that changed.")] = True,
    data: DataOption = Path("levada-data"),
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each change, a line each.")] = False,
) -> None:
    """Lists what changed lately, with the lines that came and went.

    The newest change comes last. Of a large change a few lines are shown; `levada diff URL` shows all of it.

    Examples:

    ```
    levada changes
    levada changes --since 7d --site example.org --kind new,gone
    levada changes --words 'price list' --least 0.1 --no-diff
    levada changes --follow
    levada changes --since 1h --json
    ```
    """
    import levada

    with levada.open(data, create=False) as collection, suppress(KeyboardInterrupt):
        # Begun before the first is read, so that none is missed between.
        coming = collection.follow(site=site, words=words, least=least, kinds=kind) if follow else iter(())
        found, counts = deque[levada.ChangeEvent](maxlen=limit), Counter[str]()
        for change in collection.changes(since, site=site, words=words, least=least, kinds=kind):
            found.append(change)
            counts[change.what.value] += 1
        tell_partial(collection.unreachable(), "its changes are missing here")
        out = _Changes(json)
        for change in sorted(found, key=lambda each: each.at):
            out.show(collection.facts(change, diff=diff))
        if not follow:
            out.end(counts, len(found), since)
            return
        told = {(change.shard, change.seq) for change in found}
        for change in coming:
            if (change.shard, change.seq) not in told:
                out.show(collection.facts(change, diff=diff))


class _Changes:
    """Prints changes as they are shown, with a heading for each day."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self._out = printer()
        self._day = ""

    def show(self, change: ChangeFacts) -> None:
        if self._json:
            print_json(change)
            return
        from rich.text import Text

        from levada.cli.pages.diff import drawn_line

        out, (day, _, time) = self._out, change.at.partition("T")
        if day != self._day:
            out.print(Text(f"{day} (UTC)", "bold"))
            self._day = day
        title = shortened(line(change.title), 200) or "(no title)"
        out.print(Text.assemble(f"  {time[:5]}  ", (change.what, _COLOUR[change.what]), "  ", (title, "bold")))
        about = f"{_INDENT}{line(change.url)}"
        out.print(Text.assemble(about, (_size(change), "dim")))
        for each in change.lines:
            out.print(Text(_INDENT) + drawn_line(each))
        if change.note:
            out.print(Text(f"{_INDENT}({line(change.note)})", "dim"))

    def end(self, counts: Counter[str], shown: int, since: str) -> None:
        total = counts.total()
        if not total:
            raise NotFound(f"nothing changed since {since}: look further back with --since, or start a crawl")
        if not self._json:
            each = ", ".join(f"{count:,} {what}" for what, count in counts.most_common())
            only = "" if shown == total else f"; the newest {shown:,} shown"
            self._out.print(f"{plural(total, 'change')} since {since}: {each}{only}", style="dim")


def _size(change: ChangeFacts) -> str:
    parts = [f"{change.changed:.0%} of the words"] if change.what == "changed" else []
    if change.added or change.removed:
        parts.append(f"{plural(change.added or 0, 'line')} came, {change.removed or 0:,} went")
    return f"  {'; '.join(parts)}" if parts else ""
