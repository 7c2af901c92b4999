"""Output of the demo: some 25 lines that fit a terminal of 80 columns; piped, nothing is cut."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from levada.cli.terminal import printer
from levada.core.words import line, plural

if TYPE_CHECKING:
    from rich.console import Console

    from levada.core.balance import CountReport
    from levada.core.search_records import Trend
    from levada.demo.story import DemoRun, ShardStory, WarmStory


_NAME = "levada"


def called_as() -> str:
    """The program name to type before a command: `levada`, `.venv/bin/levada`, or `.venv/bin/python -m levada`."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_from_here(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    if called.name != _NAME or not called.exists() or (found and os.path.samefile(found, called)):
        return _NAME
    return _from_here(str(called))


def _from_here(program: str) -> str:
    whole = os.path.abspath(program)  # not resolved: the python of a .venv is a link out of it
    here = os.path.join(os.getcwd(), "")
    if not whole.startswith(here):
        return shlex.quote(whole)
    below = whole.removeprefix(here)
    return shlex.quote(below if os.sep in below else os.path.join(os.curdir, below))


def print_crawl(story: DemoRun) -> None:
    """Print how the crawl went, measured against the actual changes."""
    console, report, ours, turns = _console(), story.report, story.levada, story.round_robin
    hours, here = report.seconds / 3600, report.seconds / story.web.speed
    estimate = "nothing" if report.believed_current is None else f"{report.believed_current:.1%}"
    console.print(
        f"[bold]{report.pages:,} pages[/] by {report.fetched:,} fetches in {hours:.1f} hours of the web's time "
        f"({here:.0f} s here).\n"
        f"The web's own {ours.pages:,} pages: {ours.changes:,} changes, [bold]{ours.caught:,} caught[/] by "
        f"{ours.fetches:,} of the fetches.\n"
        f"Fresh, measured: [bold green]{ours.freshness:.1%}[/] of the time; round robin, as many fetches: "
        f"{turns.freshness:.1%}.\n"
        f"Current in the end: estimated [bold]{estimate}[/] of the stored pages, actually {story.current:.1%}.",
        markup=True,
    )
    console.print(_reasons("Refused", report.refused, _room(console)))
    console.print(_reasons("Failed", report.failed, _room(console)))
    # The stages that grew or shrank.
    scaled = ", ".join(
        f"{each.name} {each.least} to {each.most} (mean {each.mean:.1f}, {each.decisions} steps)"
        for each in report.stages
        if each.least != each.most
    )
    if scaled:
        console.print(f"Workers: {scaled}.")


def print_rest(story: DemoRun) -> None:
    """Print what the collection offers, and what to try next."""
    console = _console()
    found = plural(story.hits.total, "page")
    console.print(f"\nA search for [bold]{story.question}[/]: {found}, first of all", markup=True)
    for hit in story.hits.hits:
        shown = Text.assemble("  ", (line(hit.title), "bold"), "  ", (line(hit.url), "dim"))
        console.print(shown, no_wrap=True, overflow="ellipsis" if console.is_terminal else "ignore")
    if story.trends:
        console.print(_trending(story.trends, _room(console)))
    if story.counting.records:
        console.print(_balance(story.counting, _room(console)))
    if story.shards:
        console.print(shards_line(story.shards))
    if story.warm:
        console.print(warm_line(story.warm))
    console.print("\nNow try:")
    program = called_as()
    for command in _commands(story):
        console.print(f"  {program} {command}", soft_wrap=True)  # it can be copied, however long it is


def _console() -> Console:
    """A console that breaks lines between words on a terminal; piped, lines stay whole."""
    console = printer()
    console.soft_wrap = not console.is_terminal
    return console


def _room(console: Console) -> int | None:
    return console.width if console.is_terminal else None


def _reasons(name: str, counts: Mapping[str, int], room: int | None) -> str:
    """The most frequent reasons, and the number of the others."""
    said = [f"{reason} {number:,}" for reason, number in counts.items()] or ["nothing"]

    def told(most: int) -> str:
        left = list(counts.values())[most:]
        besides = f", and {sum(left):,} for {plural(len(left), 'other reason')}" if left else ""
        return f"{name}: {', '.join(said[:most])}{besides}."

    return _most_of(said, told, room)


def _most_of(said: Sequence[str], told: Callable[[int], str], room: int | None) -> str:
    """A sentence about as many as a line holds, and at least one."""
    texts = (told(most) for most in range(len(said), 1, -1))
    return next((text for text in texts if room is None or len(text) <= room), told(1))


def _trending(trends: Sequence[Trend], room: int | None) -> str:
    said = [f"{each.term} ({each.language}, {each.now} of {each.changes})" for each in trends]
    return _most_of(said, lambda most: f"Trending, by the changes that added it: {', '.join(said[:most])}.", room)


def _balance(report: CountReport, room: int | None) -> str:
    """The load of the count workers and the number of workers per term, by each method."""
    ours, *others = report.balance
    start = f"Terms on {plural(len(ours.loads), 'worker')}: fullest {ours.max_over_mean:.2f} x mean, a term on "
    said = [f"{load.method} {load.max_over_mean:.2f} and {load.distribution_cost:.2f}" for load in others]
    start += f"{ours.distribution_cost:.2f}"
    return _most_of(said, lambda most: f"{start} ({', '.join(said[:most])}).", room) if said else f"{start}."


def shards_line(story: ShardStory) -> str:
    before, after = story.before, story.after
    return (
        f"Shards asked: {before.shards_per_query:.2f} of {len(before.pages)} ({before.key}), advised "
        f"{after.shards_per_query:.2f} ({after.key})."
    )


def warm_line(story: WarmStory) -> str:
    return (
        f"Warm: {story.pages:,} pages put into a map: {story.checked_lookups:,.0f} lookups/s "
        f"(the store {story.store_lookups:,.0f})."
    )


def _commands(story: DemoRun) -> Iterator[str]:
    folder = f"--data {shlex.quote(story.folder)}"
    page = story.changed or next((hit.url for hit in story.hits.hits), "")
    yield f'search "{story.question} lang:tr" {folder}'
    yield f"trends {folder}"
    if story.changed:
        yield f"diff {story.changed} {folder}"
    if page:
        yield f"why {page} {folder}"
    yield f"why --budget {folder}"
    yield f"serve {folder}"
    yield "crawl https://example.org"
