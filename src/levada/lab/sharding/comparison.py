"""How does ours compare with the paper's key and a hashed id, from two shards to 64?

A key is advised from one log and one sample, and measured on others: another draw of queries and of ads of the
same board.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.evaluation import Evaluator, Figures
from levada.sharding.log_statistics import LogStatistics
from levada.sharding.sample import Sample
from levada.sharding.scoring import Tried
from levada.sharding.workload import Workload

__all__ = ["SCHEMES", "Board", "Entry", "compare"]

SCHEMES = ("hashed-id", "paper", "hashed", "hashed+directory", "ours")

Progress = Callable[[int, int, str], None]


class Entry(msgspec.Struct, frozen=True):
    active: float
    shards: int
    scheme: str
    key: str
    figures: Figures


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
) -> list[Entry]:
    """`size`: documents, and as many queries; `counts` of shards."""
    found: list[Entry] = []
    for number, active in enumerate(actives):
        known = Board(AdsModel(active, size, size, seed=seed))
        fresh = Board(AdsModel(active, size, size, seed=seed + 1)).evaluator()
        for place, shards in enumerate(counts):
            found += _entries(known.advice(shards), active, fresh)
            if progress:
                progress(number * len(counts) + place + 1, len(actives) * len(counts), f"{shards} shards")
    return found


def _entries(advice: Advice, active: float, fresh: Evaluator) -> list[Entry]:
    return [
        Entry(active, advice.shards, scheme, tried.name, fresh.figures(tried.placement))
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
