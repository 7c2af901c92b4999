"""Levada's key, the paper's key and a hashed id, from 2 to 64 shards.

A key is advised from one query log and one sample, and measured on others: other queries and ads of the same board.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from levada.lab.parallel import Progress
from levada.lab.pictures import save_picture
from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.candidates import Tried
from levada.sharding.evaluation import Evaluator, PlacementFigures
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics, Workload

SCHEMES = ("hashed-id", "paper", "hashed", "hashed+directory", "ours")


class KeyEntry(msgspec.Struct, frozen=True):
    """A scheme on a number of shards, and its figures."""

    active: float
    shards: int
    scheme: str
    key: str
    figures: PlacementFigures


class Board:
    """Ads and queries of one seed, ready for advice or measurement."""

    def __init__(self, model: AdsModel) -> None:
        self.model = model
        self.log = list(ads_log(model))
        self.statistics = LogStatistics.of(self.log)
        self.sample = Sample(ads(model), fields_to_keep(self.statistics), "_id")

    def advice(self, shards: int) -> Advice:
        return advise(self.log, self.statistics, self.sample, shards)

    def evaluator(self) -> Evaluator:
        return Evaluator(Workload(self.log, self.sample), self.sample)


def compare(
    actives: Sequence[float], counts: Sequence[int], size: int, seed: int = 1, progress: Progress | None = None
) -> list[KeyEntry]:
    """`size`: of the sample and of the query log. `counts`: numbers of shards."""
    found: list[KeyEntry] = []
    for number, active in enumerate(actives):
        known = Board(AdsModel(active, size, size, seed=seed))
        fresh = Board(AdsModel(active, size, size, seed=seed + 1)).evaluator()
        for place, shards in enumerate(counts):
            found += _entries(known.advice(shards), active, fresh)
            if progress:
                progress(number * len(counts) + place + 1, len(actives) * len(counts), f"{shards} shards")
    return found


def _entries(advice: Advice, active: float, fresh: Evaluator) -> list[KeyEntry]:
    return [
        KeyEntry(active, advice.shards, scheme, tried.name, fresh.figures(tried.placement))
        for scheme in SCHEMES
        if (tried := _tried(advice, scheme)) is not None
    ]


def _tried(advice: Advice, scheme: str) -> Tried | None:
    if scheme == "ours":
        return advice.chosen
    if scheme != "hashed+directory":
        return next((each for each in advice.tried if each.kind == scheme and not each.placement.directory), None)
    hashed = _tried(advice, "hashed")
    if hashed is None:
        return None
    wider = msgspec.structs.replace(hashed.placement, directory="_id")
    return msgspec.structs.replace(hashed, placement=wider, name=f"{hashed.name} + directory of _id")


_COLOURS = {"ours": "black", "paper": "tab:red", "hashed-id": "tab:gray"}


def draw_comparison(entries: Sequence[KeyEntry], path: Path) -> None:
    """Chart of capacity over shards, both by powers of two, one part for each share of active ads."""
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
