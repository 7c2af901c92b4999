"""How does the hot key grow and shrink over time, and what do deviation and cost come to?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levada.lab.grouping.comparison import Cell
from levada.lab.grouping.growth import Growth
from levada.lab.pictures import save_picture

__all__ = ["draw"]

_OURS = "levelled"


def draw(growths: Sequence[Growth], cells: Sequence[Cell], path: Path) -> None:
    """Left: workers of the hot key, second by second. Right: every cell of the comparison, one mark per method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    if growths:
        _draw_growth(left, growths)
    if cells:
        _draw_cells(right, cells)
    save_picture(figure, path)


def _draw_growth(axes: Any, growths: Sequence[Growth]) -> None:
    for growth in growths:
        share = [second / max(1, len(growth.workers) - 1) for second in range(len(growth.workers))]
        label = f"{growth.method}, {len(growth.workers):,} s"
        axes.plot(share, growth.workers, label=label, color="black" if growth.method == _OURS else None)
    axes.set_xlabel("share of the run; the key is hot (80 %) for the first half of the records")
    axes.set_ylabel("workers that get the hot key, of 10")
    axes.legend(frameon=False)


def _draw_cells(axes: Any, cells: Sequence[Cell]) -> None:
    for method in dict.fromkeys(cell.method for cell in cells):
        own = [cell for cell in cells if cell.method == method]
        axes.scatter(
            [max(1e-5, cell.deviation_percent) for cell in own],
            [cell.distribution_cost for cell in own],
            label=method,
            color="black" if method == _OURS else None,
            s=24,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("load deviation, percent")
    axes.set_ylabel("distribution cost, workers per key")
    axes.legend(frameon=False)
