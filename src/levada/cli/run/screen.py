"""Live screen of a crawl; plain lines when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.filesize import decimal
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from levada.collection.crawling import RunningCrawl
from levada.core.durations import duration
from levada.core.records import Outcome
from levada.core.reports import Report, StageView
from levada.core.words import harmless, plural

_BAR = 16  # workers that are drawn
_SITES, _RECENT = 6, 5  # that are shown where there is room
_HINT = "Ctrl-C stops; the same command continues"
_STYLE = {"changed": "yellow", "first": "green", "unchanged": "dim"}


class LiveScreen:
    """A picture of the crawl on standard error, redrawn four times a second."""

    every = 0.25

    def __init__(self, hint: str = "") -> None:
        self.hint = hint or _HINT
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()

    def show(self, work: RunningCrawl, now: float) -> None:
        self._live.update(screen(work, now, self.hint), refresh=True)

    def close(self) -> None:
        self._live.update("")  # stopping draws the last picture once more, at its full height
        self._live.stop()


class PlainLines:
    """A line every few seconds while something happens, else every ten minutes: a service's log is kept.

    A line more tells whenever the number of workers of a stage changes.
    """

    every = 5.0
    at_least_every = 600.0

    def __init__(self) -> None:
        self._said: tuple[object, ...] = ()
        self._said_at = 0.0
        self._wanted: dict[str, int] = {}  # by stage, as last told

    def show(self, work: RunningCrawl, now: float) -> None:
        progress, stats = work.progress, work.stats
        if not stats.known:
            return  # it has only just begun
        for news in self._worker_news(work.stage_views()):
            print(news, file=sys.stderr, flush=True)
        counts = (progress.visits, stats.stored, stats.unvisited, stats.due, progress.refused.total())
        said = (*counts, work.paused, work.offline is not None)
        if said == self._said and now - self._said_at < self.at_least_every:
            return
        self._said, self._said_at = said, now
        fresh = progress.estimates.share(work.clock.now())
        print(
            f"visits {progress.visits} ({progress.pace(now):.0f}/s)  stored {stats.stored}  "
            f"new {stats.unvisited}  due {stats.due}  "
            f"changed {progress.outcomes[Outcome.CHANGED]}  failed {progress.failed.total()}  "
            f"refused {progress.refused.total()}  estimated current {_percent(fresh)}{'  paused' * work.paused}"
            f"{'  network down' * (work.offline is not None)}",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        pass

    def _worker_news(self, views: Sequence[StageView]) -> list[str]:
        before, self._wanted = self._wanted, {view.name: view.wanted for view in views}
        if before.keys() != self._wanted.keys():
            return [f"workers: {', '.join(f'{name} {wanted}' for name, wanted in self._wanted.items())}"]
        moved = [view for view in views if view.wanted != before[view.name]]
        return [f"workers: {each.name} {before[each.name]} -> {each.wanted} ({each.why})" for each in moved]


def screen(work: RunningCrawl, now: float, hint: str = _HINT) -> RenderableType:
    """The picture of a crawl, no higher than the terminal: with less room, fewer sites and recent pages."""
    return _Fitting(work, now, hint)


@dataclass(frozen=True, slots=True)
class _Fitting:
    _work: RunningCrawl
    _now: float
    _hint: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        busy_sites = sum(1 for _ in self._work.politeness_queue.lengths())
        sites, recent = min(_SITES, busy_sites), min(_RECENT, len(self._work.progress.recent))
        whole = self._panel(sites, recent)
        over = len(console.render_lines(whole, options, pad=False)) - options.max_height
        if over <= 0:
            yield whole
            return
        for _ in range(min(over, sites + recent)):
            if sites > recent:
                sites -= 1
            else:
                recent -= 1
        yield self._panel(sites, recent)

    def _panel(self, sites: int, recent: int) -> Panel:
        work = self._work
        parts = (_stages(work), _sites(work, sites), _trouble(work), _recent(work, recent))
        return Panel(
            Group(_headline(work, self._now), *(line for part in parts for line in ("", part))),
            title="levada",
            subtitle=_state(work, self._hint),
            border_style="cyan",
        )


def _headline(work: RunningCrawl, now: float) -> Table:
    progress, stats = work.progress, work.stats
    pace = progress.pace(now)
    waiting = stats.unvisited + stats.due
    outcomes = progress.outcomes
    table = Table.grid(padding=(0, 3))
    table.add_row(
        f"[bold]{pace:,.0f}[/] pages/s",
        f"[bold]{stats.stored:,}[/] stored",
        f"[bold]{stats.unvisited:,}[/] new to visit",
        f"[bold]{stats.due:,}[/] due again",
        f"[bold]{_percent(progress.estimates.share(work.clock.now()))}[/] estimated current",
    )
    table.add_row(
        f"{decimal(progress.wire_bytes)} in",
        f"[green]{outcomes[Outcome.FIRST]:,} first[/]",
        f"[yellow]{outcomes[Outcome.CHANGED]:,} changed[/]",
        f"{outcomes[Outcome.UNCHANGED]:,} unchanged",
        f"ETA {duration(waiting / pace)}" if pace > 0 and waiting else _idle(work),
    )
    under_way = work.under_way
    table.add_row(
        f"[dim]fetching {under_way.fetching}[/]",
        f"[dim]parsing {under_way.parsing}[/]",
        f"[dim]to commit {under_way.to_commit}[/]",
        f"[dim]leased {len(work.politeness_queue)}[/]",
        f"[dim]{stats.sites:,} sites[/]",
    )
    return table


def _stages(work: RunningCrawl) -> Table:
    """The workers of each stage, as a bar with the busy ones filled, and the reason for their number."""
    # A decision is based on means over the last rounds; queue and busy are of this moment.
    columns = ("stage", "queue", "busy", "workers", "", "why (means)")
    table = Table(*columns, box=None, header_style="dim", pad_edge=False)
    for view in work.stage_views():
        number = str(view.on) if view.on == view.wanted else f"{view.on} → {view.wanted}"
        colour = "green" if view.wanted > view.on else "yellow" if view.wanted < view.on else "cyan"
        table.add_row(
            view.name,
            str(view.queue),
            str(view.busy),
            f"[{colour}]{number}[/]",
            Text(_bar(view), style=colour),
            _one_line(view.why, "dim"),
        )
    return table


def _bar(view: StageView) -> str:
    shown = min(_BAR, max(view.on, view.busy))
    return "■" * min(view.busy, shown) + "□" * (shown - min(view.busy, shown))


def _state(work: RunningCrawl, hint: str) -> str:
    if work.paused:
        return "paused by a command: nothing is fetched until it is resumed"
    if work.offline is not None:
        return "nothing answers: the network seems to be down; it goes on by itself"
    return "held back: a queue is full" if work.held else hint


def _idle(work: RunningCrawl) -> str:
    next_due = work.stats.next_due
    return "" if next_due is None else f"next in {duration(max(0.0, next_due - work.clock.now()))}"


def _sites(work: RunningCrawl, most: int) -> Table:
    busiest = sorted(work.politeness_queue.lengths(), key=lambda line: -line[1] - line[2])[:most]
    table = Table("site", "waiting", "under way", box=None, header_style="dim", pad_edge=False)
    for site, waiting, under_way in busiest:
        table.add_row(_one_line(harmless(site)), str(waiting), _one_line("●" * under_way))
    return table


def _trouble(work: RunningCrawl) -> Text:
    """Errors and refusals, with their reasons."""
    counts = work.progress.failed + work.progress.refused
    if not counts:
        return Text("nothing failed, nothing refused", style="dim")
    words = ", ".join(f"{reason} {number}" for reason, number in counts.most_common(8))
    return Text(f"not kept: {words}", style="red")


def _recent(work: RunningCrawl, most: int) -> Table:
    table = Table.grid(padding=(0, 2))
    recent = list(work.progress.recent)
    for _, what, url in recent[len(recent) - most :]:
        table.add_row(Text(what, style=_STYLE.get(what, "red")), _one_line(harmless(url)))
    return table


def _one_line(words: str, style: str = "") -> Text:
    return Text(words, style=style, overflow="ellipsis", no_wrap=True)


def summary(report: Report, folder: str) -> str:
    """The lines that stay on the screen when a crawl has ended."""
    lines = [
        f"{plural(report.pages, 'page')} stored in {folder}; "
        f"{report.fetched:,} fetched in {duration(report.seconds)}: "
        f"{report.new:,} first, {report.changed:,} changed, {report.unchanged:,} unchanged, {report.gone:,} gone.",
    ]
    for name, counts in (
        ("failed", report.failed),
        ("refused", report.refused),
        ("plug-ins failed", report.plugin_failures),
    ):
        if counts:
            lines.append(f"{name}: " + ", ".join(f"{reason} {number}" for reason, number in counts.items()))
    if report.unvisited and report.stopped == "done":
        left = plural(report.unvisited, "URL")
        lines.append(f"not visited: {left} of sites that failed and rest now; the same command visits them later")
    if report.stopped == "offline":
        lines.append("nothing answers: the network seems to be down; the same command goes on later, and no page waits")
    if report.pages:
        lines.append(f"estimated current: {_percent(report.believed_current)} of the stored pages")
        lines.append(f'next: levada search "words" --data {folder}   ·   levada why URL --data {folder}')
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
