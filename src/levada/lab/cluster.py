"""How large a cluster must be: a capacity model over measured costs.

Every figure is a product of what a visit costs one part (`cluster_costs.toml`, measured by `benchmarks/cluster.py`)
and how often it happens. Queues, bursts within a second and uneven sites are not simulated: the share of a machine
that may be used (`load`) leaves room for them, and `peak` says how far the busiest hour is above the mean.
"""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec

from levada.core.errors import UsageError

_MS, _MB, _GB = 1e-3, 1e6, 1e9
_MONTH = 30 * 86_400.0
_ENGINE_MEMORY = 2.0  # GB that a database or a search engine needs beside its hot pages
_WAN_OVERHEAD = 1.1  # headers, handshakes
_REPLICAS = 2  # of the database: a primary and a standby, on two machines
_CONTROL_CORES = 1.0  # a scheduler is one process on one core; more of them share the sites


class PageCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kb: float


class CpuCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Milliseconds of one core."""

    fetch_visit: float
    fetch_version: float
    catalog_visit: float
    catalog_version: float
    control_visit: float
    database_visit: float
    database_version: float
    broker_visit: float
    index_version: float
    search_version: float
    search_query: float
    search_query_million: float
    serve_query: float


class ByteCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    database_page: float
    database_version: float
    body_share: float
    index_document: float
    written_visit: float
    written_version: float
    message_visit: float
    message_share: float


class MemoryCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Megabytes per process; bytes per page where it says so."""

    fetch_worker: float
    catalog_worker: float
    control: float
    serve: float
    broker: float
    hot_page: float
    search_page: float


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    page: PageCosts
    cpu: CpuCosts
    bytes: ByteCosts
    memory: MemoryCosts


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster has to do."""

    pages: float
    fetches: float  # per second, on average
    changed: float = 0.15  # share of the visits that store a version
    versions: float = 3.0  # kept per page
    page_kb: float = 40.0
    searches: float = 10.0  # per second
    peak: float = 2.0  # the busiest hour over the mean


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that everything runs on, and how much of it may be used."""

    cores: float = 16.0
    memory_gb: float = 64.0
    disk_gb: float = 2000.0
    disk_mb_s: float = 500.0  # that a disk writes for long
    network_mbit: float = 10_000.0
    load: float = 0.6


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """Per month, in any currency."""

    core: float = 0.0
    memory: float = 0.0  # per GB
    disk: float = 0.0  # per GB
    objects: float = 0.0  # per GB in object storage
    traffic: float = 0.0  # per GB from the web


class Part(msgspec.Struct, frozen=True):
    """What one part of the cluster needs at the peak. `bound` names what decides how many machines it takes."""

    name: str
    cores: float
    memory_gb: float
    disk_gb: float
    network_mbit: float
    machines: float  # a fraction where it shares machines with others
    bound: str
    single_limit: float  # fetches per second, on average, at which one machine (one process of `control`) is full


class Cluster(msgspec.Struct, frozen=True):
    workload: Workload
    parts: tuple[Part, ...]
    objects_gb: float
    traffic_gb: float  # from the web, per month
    machines: int
    first_limit: str  # the part that one machine can serve no longer first, as the fetches grow
    first_limit_fetches: float
    money: float | None  # per month


def read_costs(path: Path | None = None) -> Costs:
    """The measured costs, or those of a file in the same form."""
    where = str(path or "cluster_costs.toml")
    try:
        text = (path or files("levada.lab").joinpath("data", "cluster_costs.toml")).read_text(encoding="utf-8")
        costs = msgspec.convert(tomllib.loads(text), Costs, strict=False)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{where} is not a file of costs: {error}") from None
    for table in (costs.page, costs.cpu, costs.bytes, costs.memory):
        for name, value in msgspec.structs.asdict(table).items():
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{where}: {name} must be a number of at least 0, not {value}")
    if costs.page.kb == 0:
        raise UsageError(f"{where}: kb of [page] must be more than 0")
    return costs


def plan_cluster(work: Workload, machine: Machine, costs: Costs, prices: Prices | None = None) -> Cluster:
    """The parts of a cluster for this workload, and which of them outgrows one machine first."""
    sizes = _Sizes(work, costs)
    parts = tuple(_part(need, work, machine) for need in sizes.needs())
    objects = work.pages * work.versions * work.page_kb * 1000 * costs.bytes.body_share / _GB
    traffic = work.fetches * _MONTH * sizes.web_bytes / _GB
    engines = [part for part in parts if not part.name.endswith("workers") and math.isfinite(part.single_limit)]
    first = min(engines, key=lambda part: part.single_limit)
    shared = math.ceil(sum(part.machines for part in parts if part.machines < 1) - 1e-9)
    machines = sum(math.ceil(part.machines) for part in parts if part.machines >= 1) + shared
    machines = max(machines, _REPLICAS)
    money = None
    if prices is not None:
        disk = sum(part.disk_gb for part in parts) * prices.disk
        rented = machines * (machine.cores * prices.core + machine.memory_gb * prices.memory)
        money = rented + disk + objects * prices.objects + traffic * prices.traffic
    return Cluster(work, parts, objects, traffic, machines, first.name, first.single_limit, money)


class _Need(msgspec.Struct, frozen=True):
    """What a part needs: per fetch of a second (`*_fetch`), and whatever the fetches are."""

    name: str
    core_fetch: float = 0.0
    core: float = 0.0
    memory_core: float = 0.0  # MB per core in use
    memory: float = 0.0  # MB
    disk: float = 0.0  # bytes
    written_fetch: float = 0.0  # bytes
    network_fetch: float = 0.0  # bytes
    one_core: bool = False  # a process of its own uses one core at most
    copies: int = 1  # machines that each do all of it: replicas


class _Sizes:
    def __init__(self, work: Workload, costs: Costs) -> None:
        self._work, self._costs = work, costs
        self._scale = work.page_kb / costs.page.kb
        self.web_bytes = work.page_kb * 1000 * work.changed * _WAN_OVERHEAD + 1000  # a 304 costs some headers

    def needs(self) -> list[_Need]:
        work, cpu, size, memory = self._work, self._costs.cpu, self._costs.bytes, self._costs.memory
        changed, page_bytes = work.changed, work.page_kb * 1000
        message = size.message_visit + changed * size.message_share * page_bytes
        return [
            _Need(
                "fetch workers",
                core_fetch=(cpu.fetch_visit + changed * cpu.fetch_version * self._scale) * _MS,
                memory_core=memory.fetch_worker,
                network_fetch=self.web_bytes + message,
            ),
            _Need(
                "catalog workers",
                core_fetch=(cpu.catalog_visit + changed * cpu.catalog_version) * _MS,
                memory_core=memory.catalog_worker,
                network_fetch=2 * message,
            ),
            _Need(
                "control",
                core_fetch=cpu.control_visit * _MS,
                memory_core=memory.control,
                network_fetch=2 * size.message_visit,
                one_core=True,
            ),
            _Need(
                "PostgreSQL",
                core_fetch=(cpu.database_visit + changed * cpu.database_version) * _MS,
                memory=work.pages * memory.hot_page / _MB + _ENGINE_MEMORY * 1000,
                disk=work.pages * (size.database_page + work.versions * size.database_version),
                written_fetch=2 * (size.written_visit + changed * size.written_version),  # log, then tables
                network_fetch=2 * message,
                copies=_REPLICAS,
            ),
            _Need("RabbitMQ", core_fetch=cpu.broker_visit * _MS, memory=memory.broker, network_fetch=4 * message),
            _Need("index followers", core_fetch=changed * cpu.index_version * _MS, memory_core=memory.catalog_worker),
            _Need(
                "OpenSearch",
                core_fetch=changed * cpu.search_version * self._scale * _MS,
                core=work.searches * (cpu.search_query + cpu.search_query_million * work.pages / 1e6) * _MS,
                memory=work.pages * memory.search_page / _MB + _ENGINE_MEMORY * 1000,
                disk=work.pages * size.index_document * self._scale,
                written_fetch=changed * size.index_document * self._scale * 3,  # segments are merged
                network_fetch=changed * page_bytes * 2 * size.message_share,
            ),
            _Need("serve", core=work.searches * cpu.serve_query * _MS, memory=2 * memory.serve),
        ]


def _part(need: _Need, work: Workload, machine: Machine) -> Part:
    fetches, load = work.fetches * work.peak, machine.load
    cores = need.core_fetch * fetches + need.core * work.peak
    memory = (need.memory + need.memory_core * max(1.0, cores)) / 1000
    disk, written = need.disk / _GB, need.written_fetch * fetches / _MB
    network = need.network_fetch * fetches * 8 / _MB
    shares = {
        "CPU": cores / (machine.cores * load),
        "memory": memory / (machine.memory_gb * load),
        "disk": disk / (machine.disk_gb * load),
        "disk writes": written / (machine.disk_mb_s * load),
        "network": network / (machine.network_mbit * load),
    }
    bound = max(shares, key=lambda name: shares[name])
    return Part(
        need.name,
        cores * need.copies,
        memory * need.copies,
        disk * need.copies,
        network,
        shares[bound] * need.copies,
        bound,
        _single_limit(need, work, machine),
    )


def _single_limit(need: _Need, work: Workload, machine: Machine) -> float:
    """Fetches per second, on average, at which one machine, or one process that uses one core, is full."""
    load, room = machine.load, []
    if need.core_fetch:
        cores = (_CONTROL_CORES if need.one_core else machine.cores) * load - need.core * work.peak
        room.append(cores / need.core_fetch)
    if need.written_fetch:
        room.append(machine.disk_mb_s * load * _MB / need.written_fetch)
    if need.network_fetch:
        room.append(machine.network_mbit * load * _MB / 8 / need.network_fetch)
    if need.disk > machine.disk_gb * load * _GB or need.memory / 1000 > machine.memory_gb * load:
        room.append(0.0)  # the pages alone do not fit
    return max(0.0, min(room)) / work.peak if room else math.inf
