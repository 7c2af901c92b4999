"""What does a person see while a crawl runs? One live screen on a terminal, plain lines when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.filesize import decimal
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from levada.cli.printing import harmless, plural
from levada.flow.crawl import Crawl
from levada.flow.progress import Report
from levada.flow.staffing import StageView
from levada.records import Outcome
from levada.telling.duration import duration

__all__ = ["LiveScreen", "PlainLines", "Watcher", "screen", "summary"]

_BAR = 16  # workers that are drawn
_SITES, _RECENT = 6, 5  # that are shown where there is room
_HINT = "Ctrl-C stops; the same command goes on"
_STYLE = {"changed": "yellow", "first": "green", "unchanged": "dim"}


class Watcher(Protocol):
    every: float

    def show(self, work: Crawl, now: float) -> None: ...
    def close(self) -> None: ...


class LiveScreen:
    every = 0.25

    def __init__(self) -> None:
        self.hint = _HINT
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()

    def show(self, work: Crawl, now: float) -> None:
        self._live.update(screen(work, now, self.hint), refresh=True)

    def close(self) -> None:
        self._live.update("")  # the last picture is drawn once more when it stops, and whole, however high it is
        self._live.stop()


class PlainLines:
    """A line every few seconds; one about workers only where a stage is to have another number of them."""

    every = 5.0

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}  # by stage, as last told

    def show(self, work: Crawl, now: float) -> None:
        progress, standing = work.progress, work.standing
        if not standing.known:
            return  # it has only just begun
        fresh = progress.beliefs.share(work.clock.now())
        print(
            f"visits {progress.visits} ({progress.pace(now):.0f}/s)  stored {standing.stored}  "
            f"new {standing.unvisited}  due {standing.due}  "
            f"changed {progress.outcomes[Outcome.CHANGED]}  failed {progress.failed.total()}  "
            f"refused {progress.refused.total()}  believed current {_percent(fresh)}{'  paused' * work.paused}",
            file=sys.stderr,
            flush=True,
        )
        for news in self._staff_news(work.stage_views()):
            print(news, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass

    def _staff_news(self, views: Sequence[StageView]) -> list[str]:
        before, self._wanted = self._wanted, {view.name: view.wanted for view in views}
        if before.keys() != self._wanted.keys():
            return [f"workers: {', '.join(f'{name} {wanted}' for name, wanted in self._wanted.items())}"]
        moved = [view for view in views if view.wanted != before[view.name]]
        return [f"workers: {each.name} {before[each.name]} -> {each.wanted} ({each.why})" for each in moved]


def screen(work: Crawl, now: float, hint: str = _HINT) -> RenderableType:
    """As high as the terminal at most: there are fewer sites and recent pages where there is less room."""
    return _Fitting(work, now, hint)


class _Fitting:
    def __init__(self, work: Crawl, now: float, hint: str) -> None:
        self._work = work
        self._now = now
        self._hint = hint

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        sites, recent = min(_SITES, _busy_sites(self._work)), min(_RECENT, len(self._work.progress.recent))
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


def _headline(work: Crawl, now: float) -> Table:
    progress, standing = work.progress, work.standing
    pace = progress.pace(now)
    waiting = standing.unvisited + standing.due
    outcomes = progress.outcomes
    table = Table.grid(padding=(0, 3))
    table.add_row(
        f"[bold]{pace:,.0f}[/] pages/s",
        f"[bold]{standing.stored:,}[/] stored",
        f"[bold]{standing.unvisited:,}[/] new to visit",
        f"[bold]{standing.due:,}[/] due again",
        f"[bold]{_percent(progress.beliefs.share(work.clock.now()))}[/] believed current",
    )
    table.add_row(
        f"{decimal(progress.wire_bytes)} in",
        f"[green]{outcomes[Outcome.FIRST]:,} first[/]",
        f"[yellow]{outcomes[Outcome.CHANGED]:,} changed[/]",
        f"{outcomes[Outcome.UNCHANGED]:,} unchanged",
        f"ETA {duration(waiting / pace)}" if pace > 0 and waiting else _idle(work),
    )
    table.add_row(
        f"[dim]fetching {work.fetching}[/]",
        f"[dim]parsing {work.parsing}[/]",
        f"[dim]to commit {len(work.catalog)}[/]",
        f"[dim]leased {len(work.agenda)}[/]",
        f"[dim]{standing.sites:,} sites[/]",
    )
    return table


def _stages(work: Crawl) -> Table:
    """How many workers each stage has, as a bar with the busy ones filled, and why."""
    # A decision goes by means over its last looks; queue and busy are of this moment.
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


def _state(work: Crawl, hint: str) -> str:
    if work.paused:
        return "paused by an order: nothing is fetched until another one says so"
    return "held back: a queue is full" if work.held else hint


def _idle(work: Crawl) -> str:
    next_due = work.standing.next_due
    return "" if next_due is None else f"next in {duration(max(0.0, next_due - work.clock.now()))}"


def _busy_sites(work: Crawl) -> int:
    return sum(1 for _ in work.agenda.lengths())


def _sites(work: Crawl, most: int) -> Table:
    busiest = sorted(work.agenda.lengths(), key=lambda line: -line[1] - line[2])[:most]
    table = Table("site", "waiting", "under way", box=None, header_style="dim", pad_edge=False)
    for site, waiting, under_way in busiest:
        table.add_row(_one_line(harmless(site)), str(waiting), _one_line("●" * under_way))
    return table


def _trouble(work: Crawl) -> Text:
    """Errors and refusals, with their reasons."""
    counts = work.progress.failed + work.progress.refused
    if not counts:
        return Text("nothing failed, nothing refused", style="dim")
    words = ", ".join(f"{reason} {number}" for reason, number in counts.most_common(8))
    return Text(f"not kept: {words}", style="red")


def _recent(work: Crawl, most: int) -> Table:
    table = Table.grid(padding=(0, 2))
    recent = list(work.progress.recent)
    for _, what, url in recent[len(recent) - most :]:
        table.add_row(Text(what, style=_STYLE.get(what, "red")), _one_line(harmless(url)))
    return table


def _one_line(words: str, style: str = "") -> Text:
    return Text(words, style=style, overflow="ellipsis", no_wrap=True)


def summary(report: Report, folder: str) -> str:
    """The few lines that stay."""
    lines = [
        f"{plural(report.pages, 'page')} stored in {folder}; "
        f"{report.fetched:,} fetched in {duration(report.seconds)}: "
        f"{report.new:,} first, {report.changed:,} changed, {report.unchanged:,} unchanged, {report.gone:,} gone.",
    ]
    for name, counts in (("failed", report.failed), ("refused", report.refused)):
        if counts:
            lines.append(f"{name}: " + ", ".join(f"{reason} {number}" for reason, number in counts.items()))
    if report.unvisited and report.stopped == "done":
        left = plural(report.unvisited, "URL")
        lines.append(f"not visited: {left} of sites that failed and rest now; the same command goes on there later")
    if report.pages:
        lines.append(f"believed current: {_percent(report.believed_current)} of the stored pages")
        lines.append(f'next: levada search "words" --data {folder}   ·   levada why URL --data {folder}')
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
