"""What does serving cost, beside servers that do nothing else, and what does it cost the crawl?

    python benchmarks/serve.py [--json] [--pages 100000] [--rounds 7]

`search_p99`: the same searches over the same index, by Levada's API (its query language, other forms of words, a
snippet for every hit) and by a bare Starlette handler around tantivy's own parser; the ratio of their 99th
percentiles. `api_rate`: answers per second of CPU for a page of the collection, over those of a bare handler that
sends a constant of the same size; one client that keeps its connections. `crawl_with_clients`: pages per second of
a crawl with a hundred dashboards connected, over those without. Peers take turns in one run; the best of the rounds
counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from table import show

from crawl import web
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, Lease, NewVersion, Outcome, PageState, Visit, VisitResult
from levada.core.settings import Settings
from levada.follow.index import catch_up
from levada.pages.compression import pack_content
from levada.search.tantivy.index import TantivyIndex
from levada.store.sqlite import SqliteStore

HERE = Path(__file__).parent
SITES, BATCH, WORDS = 100, 1_000, 150
CLIENTS = 100
TICK = os.sysconf("SC_CLK_TCK")


def vocabulary(chance: random.Random, size: int = 30_000) -> list[str]:
    letters = "abcdefghiklmnoprstuvyz"
    return ["".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(size)]


def fill(folder: DataFolder, pages: int) -> list[str]:
    """Pages of words as frequent as words are (Zipf); returns searches of one to three of them."""
    chance = random.Random(1)
    words = vocabulary(chance)
    weights = [1.0 / rank for rank in range(1, len(words) + 1)]
    total = list(accumulate(weights))
    folder.make()
    folder.save_settings(Settings())
    store = SqliteStore(folder.database)
    found = [FoundUrl(f"https://s{n % SITES}.example/{n}", f"s{n % SITES}.example") for n in range(pages)]
    for start in range(0, pages, 10_000):
        store.add(found[start : start + 10_000], [], 0.0)
    while leases := store.lease(0.0, BATCH, 600.0):
        texts = [" ".join(chance.choices(words, cum_weights=total, k=WORDS)) for _ in leases]
        store.commit([result(lease, text) for lease, text in zip(leases, texts, strict=True)])
    index = TantivyIndex(folder.index, writer=True)
    catch_up(store, index, BATCH)
    index.close()
    store.close()
    asked = [chance.choices(words, cum_weights=total, k=1 + n % 3) for n in range(400)]
    return [" ".join(each) for each in asked]


def result(lease: Lease, text: str) -> VisitResult:
    version = NewVersion(
        title=text[:40],
        language="",
        charset="utf-8",
        status=200,
        headers=(),
        content_zstd=pack_content(text.encode(), text.encode(), 1),
        sketch=b"",
        words=WORDS,
        distinct_words=WORDS,
        similarity=0.0,
    )
    at = time.time()
    return VisitResult(lease, Visit(at, Outcome.FIRST), PageState.LIVE, 3600.0, at + 3600.0, version=version)


@contextmanager
def levada_server(folder: Path) -> Iterator[tuple[int, str]]:
    command = [sys.executable, "-m", "levada", "serve", "--data", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline().split()[-1].rstrip("/")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stdout.close()


@contextmanager
def bare_server(folder: DataFolder, answer: Path) -> Iterator[tuple[int, str]]:
    command = [sys.executable, str(HERE / "peers/bare_server.py"), str(folder.index / "segments"), str(answer)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, f"http://127.0.0.1:{process.stdout.readline().strip()}"
        assert process.stdin is not None
        process.stdin.close()


class Client:
    """One connection that is kept: what it costs is small beside any server."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.removeprefix("http://").partition(":")

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def get(self, path: str) -> bytes:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise SystemExit(f"{path} answered {head[:60]!r}")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return await self._reader.readexactly(length)


def search_times(address: str, path: str, asked: list[str]) -> list[float]:
    async def ask() -> list[float]:
        times = []
        async with Client(address) as client:
            for words in asked[:20]:
                await client.get(f"{path}?{urlencode({'q': words})}")
            for words in asked:
                began = time.perf_counter()
                await client.get(f"{path}?{urlencode({'q': words})}")
                times.append(time.perf_counter() - began)
        return times

    return asyncio.run(ask())


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def answers_per_cpu_second(pid: int, address: str, paths: list[str]) -> float:
    async def ask(share: list[str]) -> None:
        async with Client(address) as client:
            for path in share:
                await client.get(path)

    async def all_at_once() -> None:
        await asyncio.gather(*(ask(paths[start::8]) for start in range(8)))

    asyncio.run(all_at_once())  # warm
    before = cpu_of(pid)
    asyncio.run(all_at_once())
    return len(paths) / (cpu_of(pid) - before)


@contextmanager
def dashboards(address: str, count: int) -> Iterator[None]:
    """As many open dashboards, in a process of their own that only reads."""
    script = (
        "import socket, sys, selectors\n"
        "host, port = sys.argv[1].removeprefix('http://').split(':')\n"
        "events = selectors.DefaultSelector()\n"
        "for _ in range(int(sys.argv[2])):\n"
        "    line = socket.create_connection((host, int(port)))\n"
        "    line.sendall(f'GET /api/v1/live/stream HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())\n"
        "    events.register(line, selectors.EVENT_READ)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for key, _ in events.select():\n"
        "        key.fileobj.recv(65536)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, address, str(count)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def crawl_rate(starts: list[str], clients: int) -> float:
    with tempfile.TemporaryDirectory() as path:
        data = Path(path) / "data"
        settings = Path(path) / "levada.toml"
        doors = ", ".join(f'"{start.removeprefix("http://").rstrip("/")}"' for start in starts)
        settings.write_text(f"[politeness]\ndelay = 0\nmax_concurrent = 16\n[guard]\nallow = [{doors}]\n")
        command = [sys.executable, "-m", "levada", "crawl", "--once", "--json", "--data", str(data)]
        command += ["--config", str(settings), *starts]
        if not clients:
            return _rate(command)
        with levada_server(data) as (_, address), dashboards(address, clients):
            return _rate(command)


def _rate(command: list[str]) -> float:
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    report = json.loads(said.splitlines()[-1])
    return float(report["fetched"] / report["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--crawled", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as path:
        folder = DataFolder(Path(path) / "data")
        asked = fill(folder, options.pages)
        measure_answers(folder, asked, Path(path) / "answer.json", options, rows, ratios)
    with web(options.crawled) as served:
        rates: dict[int, list[float]] = {0: [], CLIENTS: []}
        for _ in range(options.rounds):
            for clients, measured in rates.items():
                measured.append(crawl_rate(served["sites"], clients))
    for clients, measured in rates.items():
        rows.append({"what": f"crawl, {clients} dashboards", "per_second": max(measured), "p50_ms": 0.0, "p99_ms": 0.0})
    ratios["crawl_with_clients"] = max(rates[CLIENTS]) / max(rates[0])
    show("serve", rows, ratios, as_json=options.json)


def measure_answers(
    folder: DataFolder,
    asked: list[str],
    answer: Path,
    options: argparse.Namespace,
    rows: list[dict[str, Any]],
    ratios: dict[str, float],
) -> None:
    paths = [f"/api/v1/page?{urlencode({'url': f'https://s{n % SITES}.example/{n}'})}" for n in range(4_000)]
    with levada_server(folder.path) as (ours, address):
        answer.write_bytes(urlopen(address + paths[0]).read())
        with bare_server(folder, answer) as (bare, other):
            times: dict[str, list[list[float]]] = {"levada": [], "bare tantivy": []}
            rates: dict[str, list[float]] = {"levada": [], "bare Starlette": []}
            for _ in range(options.rounds):
                times["levada"].append(search_times(address, "/api/v1/search", asked))
                times["bare tantivy"].append(search_times(other, "/search", asked))
                rates["levada"].append(answers_per_cpu_second(ours, address, paths))
                rates["bare Starlette"].append(answers_per_cpu_second(bare, other, ["/page"] * len(paths)))
    best = {who: min(rounds, key=lambda each: quantiles(each, n=100)[98]) for who, rounds in times.items()}
    for who, each in best.items():
        cuts = quantiles(each, n=100)
        rows.append({"what": f"search, {who}", "per_second": 0.0, "p50_ms": 1e3 * cuts[49], "p99_ms": 1e3 * cuts[98]})
    for who, measured in rates.items():
        rows.append({"what": f"page, {who}", "per_second": max(measured), "p50_ms": 0.0, "p99_ms": 0.0})
    ratios["search_p99"] = quantiles(best["levada"], n=100)[98] / quantiles(best["bare tantivy"], n=100)[98]
    ratios["search_p50"] = quantiles(best["levada"], n=100)[49] / quantiles(best["bare tantivy"], n=100)[49]
    ratios["api_rate"] = max(rates["levada"]) / max(rates["bare Starlette"])


if __name__ == "__main__":
    main()
