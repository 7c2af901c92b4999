"""What stays on the screen after a demo?

Some 25 lines that fit a terminal of 80 columns; piped, nothing is cut.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from levada.cli.demo_command import called_as
from levada.cli.demo_shards import told_shards
from levada.cli.demo_warm import told_warm
from levada.cli.printing import line, plural, printer

if TYPE_CHECKING:
    from rich.console import Console

    from levada.cli.demo_story import Story
    from levada.flow.balance import CountReport
    from levada.flow.progress import Report
    from levada.flow.trending import Trend

__all__ = ["told_crawl", "told_rest"]


def told_crawl(story: Story) -> None:
    """How the crawl went, by the truth: at once."""
    console, report, ours, turns = _console(), story.report, story.levada, story.round_robin
    hours, here = report.seconds / 3600, report.seconds / story.web.speed
    _say(
        console,
        f"[bold]{report.pages:,} pages[/] by {report.fetched:,} fetches in {hours:.1f} hours of the web's time "
        f"({here:.0f} s here).",
    )
    _say(
        console,
        f"The web's own {ours.pages:,} pages: {ours.changes:,} changes, [bold]{ours.caught:,} caught[/] by "
        f"{ours.fetches:,} of the fetches.",
    )
    _say(
        console,
        f"Fresh, by the truth: [bold green]{ours.freshness:.1%}[/] of the time; round robin, as many fetches: "
        f"{turns.freshness:.1%}.",
    )
    believed = "nothing" if report.believed_current is None else f"{report.believed_current:.1%}"
    _say(
        console,
        f"Current in the end: believed [bold]{believed}[/] of the stored pages, by the truth {story.current:.1%}.",
    )
    console.print(_reasons("Refused", report.refused, _room(console)))
    console.print(_reasons("Failed", report.failed, _room(console)))
    if staffed := _staffed(report):
        console.print(staffed)


def told_rest(story: Story) -> None:
    """What can be done with the collection, and what to try now."""
    console = _console()
    _say(console, f"\nA search for [bold]{story.question}[/]: {plural(story.hits.total, 'page')}, first of all")
    for hit in story.hits.hits:
        found = Text.assemble("  ", (line(hit.title), "bold"), "  ", (line(hit.url), "dim"))
        console.print(found, no_wrap=True, overflow="ellipsis" if console.is_terminal else "ignore")
    if story.trends:
        console.print(_trending(story.trends, _room(console)))
    if story.counting.records:
        console.print(_balance(story.counting, _room(console)))
    if story.shards:
        console.print(told_shards(story.shards))
    if story.warm:
        console.print(told_warm(story.warm))
    console.print("\nNow try:")
    program = called_as()
    for command in _commands(story):
        console.print(f"  {program} {command}", soft_wrap=True)  # it can be copied, however long it is


def _console() -> Console:
    """Breaks lines between words on a terminal; a pipe gets them whole."""
    console = printer()
    console.soft_wrap = not console.is_terminal
    return console


def _say(console: Console, text: str) -> None:
    console.print(text, markup=True)


def _room(console: Console) -> int | None:
    return console.width if console.is_terminal else None


def _reasons(name: str, counts: Mapping[str, int], room: int | None) -> str:
    """The commonest reasons, and how many there were besides."""
    said = [f"{reason} {number:,}" for reason, number in counts.items()] or ["nothing"]
    return _most_of(said, lambda most: f"{name}: {', '.join(said[:most])}{_besides(counts, most)}.", room)


def _most_of(said: Sequence[str], told: Callable[[int], str], room: int | None) -> str:
    """What is told of as many as a line holds, and of one at least."""
    texts = (told(most) for most in range(len(said), 1, -1))
    return next((text for text in texts if room is None or len(text) <= room), told(1))


def _besides(counts: Mapping[str, int], most: int) -> str:
    left = list(counts.values())[most:]
    return f", and {sum(left):,} for {plural(len(left), 'other reason')}" if left else ""


def _staffed(report: Report) -> str:
    """How the stages grew and shrank that did."""
    said = ", ".join(
        f"{each.name} {each.least} to {each.most} (mean {each.mean:.1f}, {each.decisions} steps)"
        for each in report.stages
        if each.least != each.most
    )
    return f"Workers: {said}." if said else ""


def _trending(trends: Sequence[Trend], room: int | None) -> str:
    said = [f"{each.term} ({each.language}, {each.now} of {each.changes})" for each in trends]
    return _most_of(said, lambda most: f"Trending, by the changes that added it: {', '.join(said[:most])}.", room)


def _balance(report: CountReport, room: int | None) -> str:
    """How evenly the workers were loaded, and on how many of them a term was counted, by each method."""
    ours, *others = report.balance
    start = f"Terms on {plural(len(ours.loads), 'worker')}: fullest {ours.max_over_mean:.2f} x mean, a term on "
    said = [f"{load.method} {load.max_over_mean:.2f} and {load.distribution_cost:.2f}" for load in others]
    start += f"{ours.distribution_cost:.2f}"
    return _most_of(said, lambda most: f"{start} ({', '.join(said[:most])}).", room) if said else f"{start}."


def _commands(story: Story) -> Iterator[str]:
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
