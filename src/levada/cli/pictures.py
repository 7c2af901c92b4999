"""How do visits, a belief and a share look in a row of letters? Pure, and never wider than said."""

from __future__ import annotations

from collections.abc import Sequence

from levada.records import Visit
from levada.telling.words import rough

__all__ = ["bar", "belief_bars", "time_line"]

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
    """Each below its place as far as there is room; the last one at the end."""
    first, now, last = labels
    room = width - len(last) - 2 if last else width
    at = min(now_at - len(now) // 2, room - len(now))
    row = first.ljust(at) + now if at >= len(first) + 2 else first
    return f"{row.ljust(width - len(last) - 1)} {last}" if last else row


def belief_bars(belief: Sequence[float], rates: Sequence[float]) -> tuple[str, str]:
    """A bar for each interval between changes, from the shortest to never; and their scale."""
    places = range(len(rates) - 1, -1, -1)
    most = max(belief) or 1.0
    bars, scale = "", ""
    for number, place in enumerate(places):
        if place == 0:
            bars, scale = bars + "  ", scale.ljust(number * _CELL + 2) + "never"
        elif number % 2 == 0:
            scale = scale.ljust(number * _CELL) + rough(1.0 / rates[place]).replace(" ", "")
        height = _HEIGHTS[round(8 * belief[place] / most)]
        bars += ("▁" if height == " " and belief[place] >= 0.005 else height) * 2 + "  "
    return bars.rstrip(), scale


def bar(share: float, width: int) -> str:
    """A bar of `share` of the width, to an eighth of a letter."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
