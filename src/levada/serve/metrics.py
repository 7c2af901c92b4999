"""Prometheus metrics of a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.collection.live import LiveStatus
from levada.core.plugins import failures
from levada.serve.operations import Nothing
from levada.serve.status import StandingFacts, status_of
from levada.serve.view import View


class MetricName(NamedTuple):
    kind: str
    name: str
    words: str
    figure: str  # where it is found in `_Figures`
    label: str = ""


_gauge, _counter = partial(MetricName, "gauge"), partial(MetricName, "counter")
METRICS = (
    _gauge("levada_up", "1 while the server answers", "up"),
    _gauge("levada_crawling", "1 while a crawl runs in the data folder", "crawling"),
    _gauge("levada_paused", "1 while the crawl is paused", "live.paused"),
    _gauge("levada_offline_since", "Since when nothing answers, while the network seems to be down", "live.offline"),
    _gauge("levada_shard_away_since", "Since when a shard does not answer; figures are without its", "away", "shard"),
    _gauge("levada_sites", "Sites that are known", "stats.sites"),
    _gauge("levada_addresses", "Addresses that are known", "stats.known"),
    _gauge("levada_pages", "Addresses", "stats.states", "state"),
    _gauge("levada_documents", "Pages with a stored document", "stats.stored"),
    _gauge("levada_versions", "Stored versions of all pages", "stats.versions"),
    _gauge("levada_stored_bytes", "Bytes of all stored versions, packed", "stats.bytes"),
    _gauge("levada_due", "Pages that were visited before and are due", "stats.due"),
    _gauge("levada_unvisited", "Addresses that were never visited", "stats.unvisited"),
    _gauge("levada_refused", "Addresses that were refused", "stats.refused", "reason"),
    _gauge(
        "levada_believed_current", "Share of the stored pages that is estimated to be current", "live.believed_current"
    ),
    _gauge("levada_pages_per_second", "Visits per second over the last few seconds", "live.pages_per_second"),
    _gauge("levada_budget_per_hour", "Fetches per hour that are allowed; 0 is no limit", "live.per_hour"),
    _counter("levada_visits", "Visits since the crawl began", "live.visits"),
    _counter("levada_fetches", "Exchanges that brought an answer since the crawl began", "live.fetched"),
    _counter("levada_failed_visits", "Visits that failed since the crawl began", "live.failed", "reason"),
    _counter("levada_plugin_failures", "Failures of plug-ins since the start", "plugin_failures", "plugin"),
    _gauge("levada_stage_queue", "Jobs that wait", "live.stages.queue", "stage"),
    _gauge("levada_stage_busy", "Workers that have a job", "live.stages.busy", "stage"),
    _gauge("levada_stage_workers", "Workers told to run", "live.stages.on", "stage"),
    _gauge("levada_stage_wanted", "Workers that the controller wants", "live.stages.wanted", "stage"),
    _gauge("levada_grouping_fullest", "Load of the fullest count worker over the mean", "live.balance.max_over_mean"),
    _gauge(
        "levada_grouping_deviation_percent", "Deviation of the count workers' shares", "live.balance.deviation_percent"
    ),
    _gauge("levada_grouping_cost", "Count workers per distinct term", "live.balance.distribution_cost"),
)


class _Figures(msgspec.Struct):
    up: bool
    crawling: bool
    stats: StandingFacts | None
    live: LiveStatus | None
    plugin_failures: dict[str, int]
    away: dict[str, float]

    def samples(self, path: str) -> list[tuple[tuple[str, ...], float]]:
        """The values of a metric with their labels; none where nothing is known."""
        found: Any = self
        for name in path.split("."):
            if isinstance(found, tuple):
                found = {stage.name: getattr(stage, name) for stage in found}
            elif found is not None:
                found = getattr(found, name)
        if isinstance(found, dict):
            return [((label,), value) for label, value in found.items()]
        return [] if found is None else [((), found)]


class _Collector(Collector):
    def __init__(self, view: View) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        status = status_of(self._view, Nothing())
        failed = Counter(failures()) + Counter(status.live.plugin_failures if status.live else {})
        away = {str(each.number): each.since for each in self._view.away()}
        figures = _Figures(True, status.crawling, status.stats, status.live, failed, away)
        for each in METRICS:
            family = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            metric = family(each.name, each.words, labels=(each.label,) if each.label else ())
            for labels, value in figures.samples(each.figure):
                metric.add_metric(labels, value)
            if metric.samples:
                yield metric


def metric_routes(view: View) -> list[Route]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(view))

    async def metrics(_request: Request) -> Response:
        body = await run_in_threadpool(generate_latest, registry)
        return Response(body, headers={"content-type": CONTENT_TYPE_LATEST})

    return [Route("/metrics", metrics)]
