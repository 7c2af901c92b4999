"""How much faster are the queries of a board of ads answered, if the ads are placed by what is asked for?

The paper's proof, on real servers: three private PostgreSQL instances on this machine, and the same queries against
one of them unsharded, against the hashed id, against the paper's key and against ours, with 3 shards (one on each)
and with 8 on the three. Ads have a title and a text; a query wants the newest 20. Keys are advised, and shards per
query predicted, from a sample; another draw of ads and queries is loaded and replayed. The servers are restarted
before the cold round; the operating system's cache of files stays. Each figure is of the quickest warm round.

All instances share this machine's cores, so an unsharded server has them all to itself: what several machines would
bring is not in the seconds. `busiest_shard` shows it: the CPU seconds of the busiest shard's sessions.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from table import show

from levada.lab.sharding.ads import AdsModel, ads
from levada.lab.sharding.comparison import Board
from levada.replay.run import SCHEMES, Replay, ReplayOptions, replay, schemes_of
from levada.replay.schemes import Played

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.servers.postgresql import Cluster, copy_of, new_cluster, own_folder

PAPER_QUERIES = 80_000
WORDS = Random(7).choices([f"{a}{b}{c}" for a in "bdklmst" for b in "aeiou" for c in ("n", "r", "sel", "ta")], k=400)


def main() -> None:
    options = _options()
    known = Board(AdsModel(documents=options.sample, queries=options.sample, seed=options.seed))
    fresh = Board(AdsModel(documents=options.documents, queries=options.queries, seed=options.seed + 1))
    documents = [described(ad) for ad in ads(fresh.model)]
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    with _instances(options.shared_buffers) as clusters:
        for shards in options.shards:
            print(f"{shards} shards", file=sys.stderr, flush=True)
            done = _replay(known, fresh, documents, shards, clusters, options)
            for note in done.notes:
                print(note, file=sys.stderr)
            rows += [_row(each) for each in done.played]
            print({name: round(value, 2) for name, value in _ratios(done, shards).items()}, file=sys.stderr)
            ratios |= _ratios(done, shards)
    share = min(1.0, options.queries / PAPER_QUERIES)
    print(f"{options.queries:,} queries, {share:.0%} of the paper's; {options.clients} clients", file=sys.stderr)
    show("shard_replay", rows, ratios, as_json=options.json)


def described(ad: dict[str, int]) -> dict[str, Any]:
    """The ad with a title and a text of its own, about 900 bytes."""
    chance = Random(ad["_id"])
    words = chance.choices(WORDS, k=chance.randrange(80, 200))
    return {**ad, "title": " ".join(words[:6]), "text": " ".join(words)}


def _replay(
    known: Board,
    fresh: Board,
    documents: list[dict[str, Any]],
    shards: int,
    clusters: list[Cluster],
    options: argparse.Namespace,
) -> Replay:
    schemes, _ = schemes_of(known.advice(shards), options.schemes, "_id")
    replay_options = ReplayOptions(
        tuple(cluster.address for cluster in clusters),
        queries=options.queries,
        clients=options.clients,
        rounds=("cold", *["warm"] * options.rounds),
    )
    return replay(schemes, fresh.log, documents, fresh.sample, replay_options, restart=lambda: _restart(clusters))


def _row(played: Played) -> dict[str, Any]:
    cold, warm = played.quickest("cold"), played.quickest("warm")
    assert cold is not None
    assert warm is not None
    predicted, load = played.predicted
    return {
        "scheme": played.scheme,
        "shards": played.shards,
        "cold_s": cold.seconds,
        "warm_s": warm.seconds,
        "db_cpu_s": warm.cpu_total or 0.0,
        "busiest_cpu_s": warm.cpu_busiest or 0.0,
        "busiest_shard_s": warm.cpu_busiest_shard or 0.0,
        "client_cpu_s": warm.client_cpu,
        "memory_MB": max(each or 0 for each in warm.memory) / 1e6,
        "data_MB": max(each or 0 for each in played.sizes) / 1e6,
        "per_query": warm.shards_per_query,
        "predicted": predicted,
        "load": warm.load_max_mean,
        "predicted_load": load,
    }


def _ratios(done: Replay, shards: int) -> dict[str, float]:
    """Of wall seconds, of the database's CPU seconds, and of those of the busiest shard."""
    rounds = {each.scheme: each.quickest("warm") for each in done.played}
    found: dict[str, float] = {}
    ours = rounds.get("ours")
    for name in ("id", "paper", "none"):
        other = rounds.get(name)
        if other is None or ours is None:
            continue
        found[f"ours_vs_{name}_{shards}"] = other.seconds / ours.seconds
        found[f"ours_vs_{name}_{shards}_cpu"] = (other.cpu_total or 0.0) / (ours.cpu_total or 1.0)
        shard, own = other.cpu_busiest_shard or 0.0, ours.cpu_busiest_shard or 1.0
        found[f"ours_vs_{name}_{shards}_busiest_shard"] = shard / own
    for each in done.played:
        warm = each.quickest("warm")
        if each.scheme != "none" and warm is not None:
            found[f"measured_vs_predicted_{each.scheme}_{shards}"] = warm.shards_per_query / each.predicted[0]
            found[f"measured_vs_predicted_load_{each.scheme}_{shards}"] = warm.load_max_mean / each.predicted[1]
    return found


@contextmanager
def _instances(shared_buffers: str) -> Iterator[list[Cluster]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = own_folder(Path(temporary))
        first = new_cluster(folder / "0")
        clusters = [first, *(copy_of(first, folder / str(number)) for number in (1, 2))]
        try:
            for cluster in clusters:
                cluster.settings |= {"shared_buffers": shared_buffers, "shared_preload_libraries": ""}
                cluster.start()
            yield clusters
        finally:
            for cluster in clusters:
                cluster.kill()
            shutil.rmtree(folder, ignore_errors=True)


def _restart(clusters: list[Cluster]) -> None:
    for cluster in clusters:
        with psycopg.connect(cluster.address, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        cluster.kill()
    with ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(Cluster.start, clusters))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--sample", type=int, default=40_000, help="ads and queries from which keys are advised")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3, help="warm ones, of which the quickest counts")
    parser.add_argument("--shards", type=int, nargs="+", default=[3, 8])
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=list(SCHEMES))
    parser.add_argument("--shared-buffers", default="64MB")
    parser.add_argument("--seed", type=int, default=1, help="keys are advised from it, the next one is replayed")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
