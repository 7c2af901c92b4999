"""What does the search index cost in OpenSearch, beside tantivy on this machine?

The same pages of random words (frequencies as in a text: the n-th word is n times as rare as the first) are applied
to both in batches, and the same queries of one to three words are asked of both, in turn, for so many rounds. Counted
is CPU, user and system: of this process, and of the node of OpenSearch (512 MB, one processor), which has to warm up
first. The least of the rounds counts. `wall` is the time that a search takes, the median of all: on a busy machine it
says more about the machine. `load_average` says how many others wanted it.

`index_us` is per page, `search_ms` per search. `same` is the share of the first ten hits that both have in common.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from table import show

from levada.core.protocols import Index
from levada.core.records import Change
from levada.core.search_records import Query
from levada.search.opensearch.index import OpenSearchIndex
from levada.search.tantivy.index import TantivyIndex
from levada.testing.index import change

ROOT = Path(__file__).parents[1]
LETTERS = "abcdefghijklmnoprstuvyz"
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=4_000, help="in each round")
    parser.add_argument("--words", type=int, default=600, help="of a page")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.servers.opensearch import Cluster

    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            compare(asked, Path(folder), cluster.addresses[0], cluster.pids[0])
        finally:
            cluster.stop()


def compare(asked: argparse.Namespace, folder: Path, address: str, server: int) -> None:
    chance = random.Random(7)
    words = ["".join(chance.choices(LETTERS, k=chance.randrange(3, 10))) for _ in range(20_000)]
    weights = [1 / (n + 1) for n in range(len(words))]
    queries = [" ".join(chance.sample(words[20:3_000], 1 + n % 3)) for n in range(asked.queries)]
    apart: dict[str, dict[str, list[float]]] = {}
    found: dict[str, list[list[str]]] = {}
    with (
        closing(TantivyIndex(folder / "tantivy", writer=True)) as here,
        closing(OpenSearchIndex({"hosts": [address]}, path=folder, writer=True)) as there,
    ):
        indexes: dict[str, Index] = {"tantivy": here, "opensearch": there}
        for each in range(asked.rounds):
            pages = made_pages(chance, words, weights, each * asked.pages, asked)
            for name, index in indexes.items():
                figures = apart.setdefault(name, {})
                own, servers, _ = spent(partial(index.apply, pages), server)
                figures.setdefault("index_us", []).append(1e6 * own / len(pages))
                figures.setdefault("index_us_server", []).append(1e6 * servers / len(pages) if index is there else 0.0)
        for _ in range(asked.rounds):
            for name, index in indexes.items():
                figures, walls = apart[name], apart[name].setdefault("search_wall_ms", [])
                own, servers, found[name] = spent(partial(answers, index, queries, walls), server)
                figures.setdefault("search_ms", []).append(1e3 * own / len(queries))
                ours = index is here  # what the server did then was not for us
                figures.setdefault("search_ms_server", []).append(0.0 if ours else 1e3 * servers / len(queries))
    common = sum(len({*one} & {*other}) for one, other in zip(*found.values(), strict=True))
    rows: list[dict[str, Any]] = [{"engine": name, **shown(figures)} for name, figures in apart.items()]
    ratios = {
        "indexing_cpu_vs_tantivy": total(rows[1], "index_us") / total(rows[0], "index_us"),
        "search_cpu_vs_tantivy": total(rows[1], "search_ms") / total(rows[0], "search_ms"),
        "search_wall_vs_tantivy": rows[1]["search_wall_ms"] / rows[0]["search_wall_ms"],
        "same": common / sum(map(len, found["tantivy"])),
        "load_average": os.getloadavg()[0],
    }
    show(f"search servers, {asked.rounds * asked.pages} pages", rows, ratios, as_json=asked.json)


def shown(figures: dict[str, list[float]]) -> dict[str, float]:
    return {
        figure: statistics.median(values) if "wall" in figure else min(values) for figure, values in figures.items()
    }


def total(row: dict[str, Any], figure: str) -> float:
    """CPU of this process and of the server."""
    return row[figure] + row[f"{figure}_server"]


def made_pages(
    chance: random.Random, words: list[str], weights: list[float], first: int, asked: argparse.Namespace
) -> list[Change]:
    return [
        change(
            n,
            " ".join(chance.choices(words, weights, k=asked.words)),
            title=" ".join(chance.choices(words, weights, k=6)),
            language="en",
            site=f"s{n % 50}.example",
        )
        for n in range(first + 1, first + 1 + asked.pages)
    ]


def answers(index: Index, queries: Sequence[str], walls: list[float]) -> list[list[str]]:
    found = []
    for query in queries:
        began = time.perf_counter()
        found.append([hit.url for hit in index.search(Query(query)).hits])
        walls.append(1e3 * (time.perf_counter() - began))
    return found


def spent(work: Callable[[], object], server: int) -> tuple[float, float, list[list[str]]]:
    """The CPU seconds of this process and of the server, and what the work returned."""
    own, servers = own_cpu(), cpu_of(server)
    done = work()
    return own_cpu() - own, cpu_of(server) - servers, done if isinstance(done, list) else []


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
