"""Prometheus metrics of a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

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
from levada.serve.status import StatusAnswer, status_of
from levada.serve.view import View


class MetricName(NamedTuple):
    name: str
    kind: str  # gauge or counter
    words: str
    labels: tuple[str, ...] = ()


METRICS = (
    MetricName("levada_up", "gauge", "1 while the server answers"),
    MetricName("levada_crawling", "gauge", "1 while a crawl runs in the data folder"),
    MetricName("levada_paused", "gauge", "1 while the crawl is paused"),
    MetricName("levada_sites", "gauge", "Sites that are known"),
    MetricName("levada_addresses", "gauge", "Addresses that are known"),
    MetricName("levada_pages", "gauge", "Addresses", ("state",)),
    MetricName("levada_documents", "gauge", "Pages with a stored document"),
    MetricName("levada_versions", "gauge", "Stored versions of all pages"),
    MetricName("levada_stored_bytes", "gauge", "Bytes of all stored versions, packed"),
    MetricName("levada_due", "gauge", "Pages that were visited before and are due"),
    MetricName("levada_unvisited", "gauge", "Addresses that were never visited"),
    MetricName("levada_refused", "gauge", "Addresses that were refused", ("reason",)),
    MetricName("levada_believed_current", "gauge", "Share of the stored pages that is believed to be current"),
    MetricName("levada_pages_per_second", "gauge", "Visits per second over the last few seconds"),
    MetricName("levada_budget_per_hour", "gauge", "Fetches per hour that are allowed; 0 is no limit"),
    MetricName("levada_visits", "counter", "Visits since the crawl began"),
    MetricName("levada_fetches", "counter", "Exchanges that brought an answer since the crawl began"),
    MetricName("levada_failed_visits", "counter", "Visits that failed since the crawl began", ("reason",)),
    MetricName("levada_plugin_failures", "counter", "Failures of plug-ins since the start", ("plugin",)),
    MetricName("levada_stage_queue", "gauge", "Jobs that wait", ("stage",)),
    MetricName("levada_stage_busy", "gauge", "Workers that have a job", ("stage",)),
    MetricName("levada_stage_workers", "gauge", "Workers told to run", ("stage",)),
    MetricName("levada_stage_wanted", "gauge", "Workers that the controller wants", ("stage",)),
    MetricName("levada_grouping_fullest", "gauge", "Load of the fullest count worker over the mean"),
    MetricName("levada_grouping_deviation_percent", "gauge", "Deviation of the count workers' shares"),
    MetricName("levada_grouping_cost", "gauge", "Count workers per distinct term"),
)

Sample = tuple[tuple[str, ...], float]


class _Figures(Collector):
    def __init__(self, look: Callable[[], StatusAnswer]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        figures = _figures(self._look())
        for each in METRICS:
            samples = figures.get(each.name, [])
            family = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            metric = family(each.name, each.words, labels=each.labels)
            for labels, value in samples:
                metric.add_metric(labels, value)
            if samples:
                yield metric


def _figures(status: StatusAnswer) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {"levada_up": [((), 1.0)], "levada_crawling": [((), float(status.crawling))]}
    if status.stats:
        stats = status.stats
        found |= {
            "levada_sites": [((), stats.sites)],
            "levada_addresses": [((), stats.known)],
            "levada_pages": _by(stats.states),
            "levada_documents": [((), stats.stored)],
            "levada_versions": [((), stats.versions)],
            "levada_stored_bytes": [((), stats.bytes)],
            "levada_due": [((), stats.due)],
            "levada_unvisited": [((), stats.unvisited)],
            "levada_refused": _by(stats.refused),
        }
    if status.live:
        found |= _live_figures(status.live)
    failed = Counter(failures()) + Counter(status.live.plugin_failures if status.live else {})
    return found | {"levada_plugin_failures": _by(failed)}


def _live_figures(live: LiveStatus) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {
        "levada_paused": [((), float(live.paused))],
        "levada_pages_per_second": [((), live.pages_per_second)],
        "levada_budget_per_hour": [((), live.per_hour)],
        "levada_visits": [((), live.visits)],
        "levada_fetches": [((), live.fetched)],
        "levada_failed_visits": _by(live.failed),
        "levada_stage_queue": [((stage.name,), stage.queue) for stage in live.stages],
        "levada_stage_busy": [((stage.name,), stage.busy) for stage in live.stages],
        "levada_stage_workers": [((stage.name,), stage.on) for stage in live.stages],
        "levada_stage_wanted": [((stage.name,), stage.wanted) for stage in live.stages],
    }
    if live.believed_current is not None:
        found["levada_believed_current"] = [((), live.believed_current)]
    if live.balance is not None:
        found["levada_grouping_fullest"] = [((), live.balance.max_over_mean)]
        found["levada_grouping_deviation_percent"] = [((), live.balance.deviation_percent)]
        found["levada_grouping_cost"] = [((), live.balance.distribution_cost)]
    return found


def _by(counts: dict[str, int]) -> list[Sample]:
    return [((name,), float(count)) for name, count in counts.items()]


def metric_routes(view: View) -> list[Route]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(lambda: status_of(view, Nothing())))

    async def metrics(_request: Request) -> Response:
        body = await run_in_threadpool(generate_latest, registry)
        return Response(body, headers={"content-type": CONTENT_TYPE_LATEST})

    return [Route("/metrics", metrics)]
