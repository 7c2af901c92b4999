"""What does the capacity by the number of shards look like?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levada.lab.pictures import save_picture
from levada.lab.sharding.comparison import Entry

__all__ = ["draw_comparison"]

_COLOURS = {"ours": "black", "paper": "tab:red", "hashed-id": "tab:gray"}


def draw_comparison(entries: Sequence[Entry], path: Path) -> None:
    """One side for each share of active ads; capacity against shards, both by powers of two."""
    from matplotlib.figure import Figure

    actives = list(dict.fromkeys(entry.active for entry in entries))
    figure = Figure(figsize=(5 * len(actives), 4), layout="constrained")
    for axes, active in zip(figure.subplots(1, len(actives), squeeze=False)[0], actives, strict=True):
        for scheme, colour in _COLOURS.items():
            own = [entry for entry in entries if entry.active == active and entry.scheme == scheme]
            shards, capacity = [each.shards for each in own], [each.figures.capacity for each in own]
            axes.plot(shards, capacity, marker="o", color=colour, label=scheme)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{active:.0%} of the ads active")
        axes.set_xlabel("shards")
        axes.set_ylabel("capacity (one node = 1)")
        axes.legend(frameon=False)
    save_picture(figure, path)
