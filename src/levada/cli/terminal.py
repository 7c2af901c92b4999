"""Terminal output: safe text, progress bars, and small charts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from levada.cli.logs import for_machines
from levada.core.records import Visit
from levada.core.words import rough

if TYPE_CHECKING:
    from rich.console import Console


_COLUMNS = 80  # where the width of the screen is not known


def printer(file: TextIO | None = None) -> Console:
    """A console on standard output: colour on a terminal (unless NO_COLOR), plain when piped.

    Lines are never broken, so that an address can be copied.
    """
    from rich.console import Console

    out = sys.stdout if file is None else file
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:  # a letter that the terminal cannot show must not end the command
        reconfigure(errors="replace")
    console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < 1:  # some shells say COLUMNS=0, and would see nothing at all
        console.width = _COLUMNS
    return console


def say(words: str) -> None:
    """Print a line on standard output."""
    printer().print(words)


_BETWEEN = 0.1  # seconds between two drawings of a bar


@contextmanager
def progress_bar(quiet: bool = False, *, lines: bool = True) -> Iterator[Callable[[int, int, str], None]]:
    """A function to call with what is done, how much there is, and what is being done.

    On a terminal it draws a bar on standard error. Piped, it prints a line at each tenth, unless `lines` is off.
    """
    if quiet or for_machines() or not (lines or sys.stderr.isatty()):
        yield lambda done, total, what: None
        return
    if not sys.stderr.isatty():
        yield _Tenths()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
        task, drawn = bar.add_task("starting", total=None), 0.0

        def show(done: int, total: int, what: str) -> None:
            nonlocal drawn
            now = monotonic()
            if now - drawn >= _BETWEEN:
                drawn = now
                bar.update(task, completed=done, total=total, description=what)

        yield show


@contextmanager
def doing(what: str, quiet: bool = False) -> Iterator[None]:
    """Say what is being done, on standard error: with a spinner on a terminal, as a plain line when piped."""
    if quiet or for_machines():
        yield
    elif sys.stderr.isatty():
        with printer(sys.stderr).status(f"{what} ..."):
            yield
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield


class _Tenths:
    """Prints a line at each tenth that is done; a run that starts again is printed again."""

    def __init__(self) -> None:
        self._before = 0  # done
        self._told = 0  # tenths

    def __call__(self, done: int, total: int, what: str) -> None:
        tenth = done * 10 // max(1, total)
        if tenth > (self._told if done >= self._before else 0):
            print(f"{done:,} of {total:,} done: {what}", file=sys.stderr, flush=True)
        self._before, self._told = done, tenth


_MARKS = "+○●"  # first, unchanged, changed
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_CELL = 4  # columns of a bar and the gap after it


def time_line(
    visits: Sequence[Visit], now: float, next_visit: float | None, width: int, labels: tuple[str, str, str]
) -> tuple[str, str]:
    """A line with each visit at its time, `│` now and `▷` the next visit; and the labels of the first visit, of now
    and of the next one. What lies further ahead than the visits lie back is not to scale, and dashed."""
    start = visits[0].at
    ahead = max(0.0, next_visit - now) if next_visit is not None else 0.0
    past = max(now - start, 1.0)
    cells = width - 1 if not ahead else max(width // 2, round((width - 1) * past / (past + ahead)))
    line = ["─"] * (cells + 1)
    for visit in visits:
        at = min(max(round(cells * (visit.at - start) / past), 0), cells)
        mark = _MARKS[visit.outcome] if visit.outcome < len(_MARKS) else "×"
        if line[at] == "─" or mark == "●":  # of several at one place a change is shown
            line[at] = mark
    if line[cells] == "─":
        line[cells] = "│"
    if next_visit is not None:
        line += ["┄" if ahead > past else "─"] * (width - 2 - cells) + (["▷"] if cells < width - 1 else [])
    return "".join(line), _labels(labels, cells, len(line))


def _labels(labels: tuple[str, str, str], now_at: int, width: int) -> str:
    """The labels, each below its place as far as there is room, the last one at the end."""
    first, now, last = labels
    room = width - len(last) - 2 if last else width
    at = min(now_at - len(now) // 2, room - len(now))
    row = first.ljust(at) + now if at >= len(first) + 2 else first
    return f"{row.ljust(width - len(last) - 1)} {last}" if last else row


def estimate_bars(probabilities: Sequence[float], rates: Sequence[float]) -> tuple[str, str]:
    """A bar for each interval between changes, from the shortest to never; and their scale."""
    places = range(len(rates) - 1, -1, -1)
    most = max(probabilities) or 1.0
    bars, scale = "", ""
    for number, place in enumerate(places):
        if place == 0:
            bars, scale = bars + "  ", scale.ljust(number * _CELL + 2) + "never"
        elif number % 2 == 0:
            scale = scale.ljust(number * _CELL) + rough(1.0 / rates[place]).replace(" ", "")
        height = _HEIGHTS[round(8 * probabilities[place] / most)]
        bars += ("▁" if height == " " and probabilities[place] >= 0.005 else height) * 2 + "  "
    return bars.rstrip(), scale


def bar(share: float, width: int) -> str:
    """A bar of `share` of the width, to an eighth of a letter."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
