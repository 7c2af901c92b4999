"""How far is each policy from the paper's rule to the oracle, at a glance?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levada.lab.freshness.summary import Summary
from levada.lab.pictures import save_picture

__all__ = ["draw"]

_LEFT, _RIGHT = -1.05, 1.1
_MARKS = "osD^v<>Ph*"
_OURS = "learned"


def draw(summaries: Sequence[Summary], path: Path) -> None:
    """One line per world, one mark per policy with its spread: 0 is the paper's rule, 1 the oracle. What lies
    further left is drawn at the edge. The suffix of the path says which kind of picture."""
    from matplotlib.figure import Figure

    worlds = list(dict.fromkeys(each.world for each in summaries))
    policies = list(dict.fromkeys(each.policy for each in summaries))
    figure = Figure(figsize=(9, 1.6 + 0.55 * len(worlds)), layout="constrained")
    axes = figure.subplots()
    for number, policy in enumerate(policies):
        _draw_policy(axes, policy, number, [each for each in summaries if each.policy == policy], worlds)
    _dress(axes, worlds)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    save_picture(figure, path)


def _draw_policy(axes: Any, policy: str, number: int, found: Sequence[Summary], worlds: list[str]) -> None:
    known = [each for each in found if each.gap_closed.mean is not None]
    axes.errorbar(
        [max(_LEFT + 0.05, each.gap_closed.mean or 0.0) for each in known],
        [worlds.index(each.world) for each in known],
        xerr=[each.gap_closed.deviation or 0.0 for each in known],
        fmt=_MARKS[number % len(_MARKS)],
        color="black" if policy == _OURS else f"C{number}",
        markersize=9 if policy == _OURS else 6,
        label=policy,
        zorder=3 if policy == _OURS else 2,
    )


def _dress(axes: Any, worlds: list[str]) -> None:
    axes.set_yticks(range(len(worlds)), worlds)
    axes.set_ylim(len(worlds) - 0.5, -0.5)
    axes.set_xlim(_LEFT, _RIGHT)
    axes.set_xlabel(
        "share of the gap in freshness between the paper's rule (0) and the oracle (1), at equal fetches"
    )
    axes.grid(axis="x", alpha=0.3)
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.axvline(1.0, color="grey", linewidth=0.8)
