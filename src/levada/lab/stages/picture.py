"""Charts of a run, a sweep and a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levada.lab.pictures import save_picture
from levada.lab.stages.runs import Course

_OURS = "feed-forward"


def draw_course(course: Course, path: Path) -> None:
    """Queues over time above, workers on and paid below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for stage in range(course.queue.shape[1]):
        above.plot(course.at, course.queue[:, stage], label=f"queue {stage + 1}", linewidth=0.8)
        (line,) = below.plot(course.at, course.on[:, stage], label=f"stage {stage + 1}, on", linewidth=0.8)
        below.plot(course.at, course.paid[:, stage], color=line.get_color(), linewidth=0.8, alpha=0.4)
    above.set_ylabel("jobs waiting")
    below.set_ylabel("workers (pale: paid)")
    below.set_xlabel("seconds")
    for axes in (above, below):
        axes.legend(frameon=False)
    save_picture(figure, path)


def draw_sweep(rows: Sequence[str], columns: Sequence[str], values: Any, label: str, path: Path) -> None:
    """A heat map; settings that were not run are white."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2 + 0.9 * len(columns), 1.5 + 0.5 * len(rows)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    figure.colorbar(image, label=label)
    save_picture(figure, path)


def draw_comparison(points: Sequence[tuple[str, float, float]], path: Path) -> None:
    """Latency over cost; a point is a controller, its paid workers and its mean latency."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(point[0] for point in points):
        own = [point for point in points if point[0] == name]
        color = "black" if name == _OURS else None
        axes.scatter([each[1] for each in own], [each[2] for each in own], label=name, color=color, s=24)
    axes.set_xlabel("paid workers")
    axes.set_ylabel("mean latency, s")
    axes.legend(frameon=False)
    save_picture(figure, path)
