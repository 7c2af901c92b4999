"""CPU per page of every process: `levada crawl` on SQLite, on PostgreSQL, and spread over PostgreSQL and RabbitMQ.

    python benchmarks/cluster.py [--json] [--pages 3000] [--fetch 2] [--catalog 1] [--controls 1] [--rounds 1]
    python benchmarks/cluster.py --slow 0.1         # a tenth of the pages is answered after five seconds

The three modes crawl the same local web in the same run, one after the other, with private servers. What is counted
is the CPU of the processes by their parts, start-up included: control, fetch workers and catalog workers with their
children, the indexer, PostgreSQL, RabbitMQ. The web is not counted. `bound` is the part that came nearest to a whole
core per process: near 100 %, more processes of it help; far below, the machine was busy with something else, or sites
were slow. `pages_per_second` is from the first request to the last, by the wall, and depends on what else the machine
does. The ratios are of the least CPU per page of the rounds, beside `local` and beside `postgresql`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
from table import show

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.servers import rabbitmq
from tests.servers.postgresql import Cluster, new_cluster, own_folder

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 600.0  # seconds for one mode


PARTS = (  # what names a process, and its part; others belong to that of their parent
    (b"web.py", "web"),
    (b"setpriv", "postgresql"),
    (b"postgres", "postgresql"),
    (b"rabbitmq", "rabbitmq"),
    (b"epmd", "rabbitmq"),
    (b"levada.follow", "index"),
    (b"--stage\0fetch", "fetch"),
    (b"--stage\0catalog", "catalog"),
    (b"levada\0control", "control"),
    (b"levada\0crawl", "crawl"),
)


def cpu_seconds() -> Counter[str]:
    """The CPU of all processes below this one, by part; what has ended is counted by its parent."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                seconds[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
    found: Counter[str] = Counter()
    waiting = [(child, "other") for child in children.get(os.getpid(), ())]
    while waiting:
        pid, part = waiting.pop()
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            part = next((name for words, name in PARTS if words in command), part)
        found[part] += seconds.get(pid, 0.0)
        waiting += [(child, part) for child in children.get(pid, ())]
    return found


@contextmanager
def web(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    command = [sys.executable, str(HERE / "web.py"), "--pages", str(options.pages)]
    command += ["--slow", str(options.slow), "--slow-seconds", str(options.slow_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.stdin.close()


class Servers:
    """A PostgreSQL and a RabbitMQ, and a folder for what crawls write."""

    def __init__(self, folder: Path, cluster: Cluster, broker: str) -> None:
        self.folder, self.broker = folder, broker
        self._cluster = cluster
        self._made = 0

    def new(self, name: str) -> Path:
        self._made += 1
        return self.folder / f"{self._made}-{name}"

    def database(self) -> str:
        name = f"bench{self._made}"
        with psycopg.connect(self._cluster.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"{self._cluster.address.rpartition('/')[0]}/{name}"


@contextmanager
def servers() -> Iterator[Servers]:
    folder, home = Path(tempfile.mkdtemp(prefix="levada-cluster-")), own_folder(Path(tempfile.gettempdir()))
    cluster, broker = new_cluster(home / "data"), rabbitmq.Server()
    cluster.settings |= {"fsync": "on", "full_page_writes": "on", "shared_preload_libraries": ""}
    (folder / "broker").mkdir()
    with ExitStack() as closing:
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        closing.callback(shutil.rmtree, home, ignore_errors=True)
        closing.callback(cluster.kill)
        closing.callback(broker.stop)
        cluster.start()
        yield Servers(folder, cluster, broker.start(folder / "broker"))


def config(path: Path, sites: list[str], slots: int, dsn: str = "") -> Path:
    allowed = ", ".join(f'"{site.removeprefix("http://").rstrip("/")}"' for site in sites)
    store = f'[store]\nservers = ["{dsn}"]\n' if dsn else ""
    path.write_text(
        f"[guard]\nallow = [{allowed}]\n[fetch]\nslots = {slots}\n[politeness]\ndelay = 0\nmax_concurrent = 16\n"
        f"[parse]\nchildren = 1\n[crawl]\nsitemaps = false\n{store}"
    )
    return path


def between_requests(sites: list[str]) -> float:
    """Seconds between the first and the last request since this was asked last."""
    with urlopen(f"{sites[0]}.asked") as answer:
        return float(answer.read())


class Measured:
    """What a mode cost, from its making on."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._cpu, self._began = cpu_seconds(), time.monotonic()
        self.pages = 0
        self.wall = self.fetching = 0.0
        self.parts: Counter[str] = Counter()

    def ended(self, pages: int, sites: list[str], crawl: float = 0.0) -> Measured:
        self.wall, self.pages = time.monotonic() - self._began, pages
        self.fetching = between_requests(sites)
        self.parts = cpu_seconds()
        self.parts.subtract(self._cpu)
        self.parts["crawl"] += crawl  # of a process that has ended, its children included
        return self

    def row(self, processes: Counter[str]) -> dict[str, Any]:
        kept = ("crawl", "fetch", "catalog", "control", "index", "postgresql", "rabbitmq")
        shares = {part: self.parts[part] / self.wall / max(1, processes[part]) for part in kept if part != "postgresql"}
        bound = max(shares, key=lambda part: shares[part])
        return {
            "mode": self.mode,
            "pages": self.pages,
            "pages_per_second": self.pages / self.fetching,
            "cpu_ms": self.per_page,
            **{f"{part}_ms": 1000 * self.parts[part] / self.pages for part in kept},
            "bound": f"{bound} at {shares[bound]:.0%} of a core each",
        }

    @property
    def per_page(self) -> float:
        return 1000 * sum(cpu for part, cpu in self.parts.items() if part not in ("web", "other")) / self.pages


def alone(mode: str, at: Servers, site: dict[str, Any], options: argparse.Namespace) -> Measured:
    """One `levada crawl`."""
    data = at.new("data")
    dsn = at.database() if mode == "postgresql" else ""
    file = config(at.new("levada.toml"), site["sites"], options.slots, dsn)
    measured = Measured(mode)
    words = ["crawl", *site["sites"], "--data", str(data), "--config", str(file), "--once", "--json"]
    process = subprocess.Popen([sys.executable, "-m", "levada", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"levada crawl failed: {said[-500:]}")
    return measured.ended(json.loads(said.splitlines()[-1])["new"], site["sites"], usage.ru_utime + usage.ru_stime)


def spread(at: Servers, site: dict[str, Any], options: argparse.Namespace) -> Measured:
    """Control and workers, each a process of its own."""
    dsn = at.database()
    file = config(at.new("levada.toml"), site["sites"], options.slots, dsn)
    environment = os.environ | {"LEVADA_RABBITMQ": at.broker, "LEVADA_STORE": dsn}
    measured = Measured("spread")
    starts = [word for url in site["sites"] for word in ("--start", url)]
    started: list[subprocess.Popen[bytes]] = []
    with closing(Counters(dsn)) as counters, ExitStack() as running, (at.folder / "said").open("w") as said:

        def start(*words: str) -> None:
            command = [sys.executable, "-m", "levada", *words]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environment)
            started.append(process)
            running.callback(process.wait)
            running.callback(process.send_signal, signal.SIGTERM)

        data = at.new("data")
        none = ("--fetch", "0,0", "--catalog", "0,0")
        start("control", "--data", str(data), "--config", str(file), *none, *starts)
        until(lambda: counters() is not None, at, started)
        for number in range(1, options.controls):
            copy = at.new(f"data-{number}")
            copy.mkdir()
            for name in ("collection", "placement.json", "settings.json"):
                shutil.copy(data / name, copy)
            start("control", "--data", str(copy), *none)
        for stage, count in (("fetch", options.fetch), ("catalog", options.catalog)):
            for _ in range(count):
                start("work", "--stage", stage)
        until(lambda: is_done(counters(), site["pages"]), at, started)
        measured.ended((counters() or {})["stored"], site["sites"])
    return measured


class Counters:
    """The store's counters, over one connection: what it asks is counted to the server."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._schema = ""

    def __call__(self) -> dict[str, int] | None:
        """None until the collection is there."""
        if not self._schema:
            ask = self._connection.execute("SELECT to_regclass('levada_shared.slices') IS NOT NULL").fetchone()
            if ask is None or not ask[0]:
                return None
            names = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'levada\\_%\\_0'"
            self._schema = str((self._connection.execute(names).fetchone() or ("",))[0])
        rows = self._connection.execute(f"SELECT name, n FROM {self._schema}.counters".encode())
        return dict(rows.fetchall())

    def close(self) -> None:
        self._connection.close()


def is_done(counts: dict[str, int] | None, pages: int) -> bool:
    return bool(counts) and counts.get("stored", 0) >= pages and not counts.get("unvisited", 0)


def until(is_so: Any, at: Servers, started: list[subprocess.Popen[bytes]]) -> None:
    ends = time.monotonic() + LIMIT
    while not is_so():
        if time.monotonic() > ends or any(process.poll() is not None for process in started):
            sys.exit(f"it does not end:\n{(at.folder / 'said').read_text()[-2000:]}")
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--controls", type=int, default=1)
    parser.add_argument("--fetch", type=int, default=2)
    parser.add_argument("--catalog", type=int, default=1)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--slow", type=float, default=0.0, help="the share of pages that are answered late")
    parser.add_argument("--slow-seconds", type=float, default=5.0)
    parser.add_argument("--modes", default="local,postgresql,spread")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    processes = Counter({"fetch": options.fetch, "catalog": options.catalog, "control": options.controls})
    best: dict[str, Measured] = {}
    with web(options) as site, servers() as at:
        for _ in range(options.rounds):
            for mode in options.modes.split(","):
                done = spread(at, site, options) if mode == "spread" else alone(mode, at, site, options)
                if mode not in best or done.per_page < best[mode].per_page:
                    best[mode] = done
    ratios = {
        f"{mode}_vs_{other}": best[mode].per_page / best[other].per_page
        for other in ("local", "postgresql")
        for mode in ("postgresql", "spread")
        if mode != other and mode in best and other in best
    }
    show("cluster", [each.row(processes) for each in best.values()], ratios, as_json=options.json)


if __name__ == "__main__":
    main()
