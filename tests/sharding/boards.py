"""A small board of ads for tests."""

from __future__ import annotations

from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics

__all__ = ["advice_on", "small_board"]


def small_board(size: int = 4_000, active: float = 0.35, seed: int = 1) -> AdsModel:
    return AdsModel(active=active, documents=size, queries=size, seed=seed)


def advice_on(model: AdsModel, shards: int) -> Advice:
    log = list(ads_log(model))
    statistics = LogStatistics.of(log)
    return advise(log, statistics, Sample(ads(model), fields_to_keep(statistics), "_id"), shards)
