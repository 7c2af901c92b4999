"""`levada check`."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.logs import tell
from levada.cli.options import DataOption, print_json
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import Refused, UsageError
from levada.core.reasons import ADVICE
from levada.core.words import line, plural, shortened

if TYPE_CHECKING:
    from levada.collection.events import CheckResult

_COLOUR = {"new": "green", "changed": "cyan", "gone": "red", "failed": "red", "refused": "red", "moved": "magenta"}
_ORDER = ("changed", "new", "gone", "moved", "failed", "refused", "unchanged")
_INTERRUPTED = 130


def check(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL", help="The pages; https:// may be left out.")
    ] = None,
    site: Annotated[str, typer.Option(metavar="HOST", help="All pages of this site instead.")] = "",
    every: Annotated[bool, typer.Option("--all", help="All pages of the collection instead.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the results, or only leave word for the crawl.")
    ] = True,
    diff: Annotated[bool, typer.Option("--diff/--no-diff", help="With or without the lines that changed.")] = True,
    words: Annotated[bool, typer.Option("--words", help="Old and new words on one line: [-old-]{+new+}.")] = False,
    data: DataOption = Path("levada-data"),
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each page, a line each.")] = False,
) -> None:
    """Visits pages now, whatever their plans say, and shows what changed on them.

    Politeness, robots.txt and the budget hold as always. If a crawl runs in the folder, it visits these pages before
    all others; otherwise a short crawl of its own does. A page that is not known yet is added. A site that rests
    after failures is tried once, and an answer ends its rest. Of a site, or of all pages, only those are listed that
    did not stay as they were.

    Exit status: 0 if every page was visited, 1 if a visit failed, 3 if a page or site is not known or may not be
    visited.

    Examples:

    ```
    levada check https://example.org/news
    levada check example.org/a example.org/b --words
    levada check --site example.org
    levada check --all --no-wait
    levada check example.org/news --json
    ```
    """
    import levada

    named = urls or []
    if sum(map(bool, (named, site, every))) != 1:
        raise UsageError("name pages, or one of --site HOST and --all, as in: levada check https://example.org/news")
    with levada.open(data, create=bool(named) and wait) as collection:
        if not wait:
            receipt = collection.check_later(*named, site=site, every=every)
            if json:
                print_json(receipt)
            else:
                who = "the crawl that runs visits" if receipt.crawling else "no crawl runs: the next one visits"
                printer().print(f"order {receipt.number}: {who} {_what(named, site)} first")
            return
        for note in collection.check_notes(*named, site=site):
            tell(note, logging.INFO)
        shown = _Results(json, diff=diff, words=words)
        checked = 0

        def progress(done: int, total: int, what: str) -> None:
            nonlocal checked
            checked = done
            bar(done, total, what)

        try:
            with progress_bar(json, lines=False) as bar:
                for result in collection.check_all(*named, site=site, every=every, on_progress=progress):
                    shown.show(result)
        except KeyboardInterrupt:
            shown.end(checked)
            raise typer.Exit(_INTERRUPTED) from None
        shown.end(checked)
    if shown.counts["failed"]:
        raise typer.Exit(1)
    if shown.counts["refused"]:
        raise typer.Exit(Refused.exit_code)


def _what(urls: list[str], site: str) -> str:
    if urls:
        return plural(len(urls), "page")
    return f"the pages of {site}" if site else "all pages"


class _Results:
    """Prints results as they come, and counts them."""

    def __init__(self, json: bool, *, diff: bool, words: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._json = json
        self._diff = diff
        self._words = words
        self._out = printer()

    def show(self, result: CheckResult) -> None:
        from rich.text import Text

        from levada.cli.pages.diff import print_hunks

        outcome = str(result.outcome)
        self.counts[outcome] += 1
        if self._json:
            print_json(_facts(result, diff=self._diff))
            return
        self._out.print(Text.assemble((outcome, _COLOUR.get(outcome, "")), "  ", line(result.url), _why(result)))
        if title := line(result.event.title):
            self._out.print(Text(f"  {shortened(title, 200)}", "bold"))
        if result.diff is not None and self._diff:
            print_hunks(self._out, result.diff, self._words)
            self._out.print()

    def end(self, checked: int) -> None:
        """Print the summary. Unchanged pages of a site are only counted."""
        counts, visited = self.counts.copy(), max(checked, self.counts.total())
        counts["unchanged"] += visited - counts.total()
        outcomes = {outcome: counts[outcome] for outcome in _ORDER if counts[outcome]}
        if self._json:
            print_json({"checked": visited, "outcomes": outcomes})
        else:
            each = ", ".join(f"{n:,} {outcome}" for outcome, n in outcomes.items()) or "none"
            self._out.print(f"{plural(visited, 'page')} checked: {each}", style="dim")


def _why(result: CheckResult) -> tuple[str, str]:
    parts = [_reason(result)] if result.reason else []
    if result.event.leads_to:
        parts.append(f"leads to {line(result.event.leads_to)}")
    if result.changed and result.diff is not None:
        went = plural(result.diff.removed, "line")
        parts.append(f"{result.event.similarity:.0%} the same; {went} went, {result.diff.added:,} came")
    if not result.event.told:
        parts.append("nobody is told: no trigger is met")
    return (f"  {', '.join(parts)}" if parts else "", "dim")


def _reason(result: CheckResult) -> str:
    """The reason, and what to do where the visit came to nothing."""
    reason = str(result.reason)
    advice = ADVICE.get(reason) if str(result.outcome) in ("failed", "refused") else None
    return f"{reason}: {advice}" if advice else reason


def _facts(result: CheckResult, *, diff: bool) -> dict[str, Any]:
    event = result.event
    return {
        "url": result.url,
        "outcome": str(result.outcome),
        "reason": result.reason and str(result.reason),
        "changed": result.changed,
        "told": event.told,
        "title": event.title,
        "similarity": event.similarity,
        "leads_to": event.leads_to,
        "next_visit": event.next_visit,
        "diff": result.diff.facts() if diff and result.diff is not None else None,
    }
