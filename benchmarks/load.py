"""How much CPU does a row cost on its way from PostgreSQL into Redis, beside the usual ways?

A table of customers and the categories they allow (5 rows for each key, in random order, primary key on both) goes
into a private Redis, gathered by key; `ours` by two processes. CPU is that of the loading processes, user and
system, without starting Python and its imports, for every row of the table alike; what PostgreSQL and Redis spend
themselves is counted for nobody. `naive` and `pipeline` run on a fraction of the rows, as said in their line. The
wall rate of ours runs from the start of both processes' work to the published map and the end of both. It is
compared with `COPY (SELECT the same two columns of the same rows) TO '/dev/null'` in binary, which is the cheapest
way to ask for them: nothing is gathered, sorted or sent, the server throws the rows away itself. It is one COPY, on
one core, for that is how one client asks; ours shares two cores between the two processes, the two of PostgreSQL
and Redis. Each figure is the best of its repeats; ours and COPY take `--rounds` more turns, one after the other, so
that both meet the machine in its quiet moments. `load_average` says how many others wanted it.

`cpu_vs_naive` and `cpu_vs_cursor_pipeline`: their CPU per row over ours; `rate_vs_copy`: our rows per second over
COPY's. `peak_mb` is the largest resident size of one process, and `peak_mb_twice` the same with twice the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
from table import show

ROOT = Path(__file__).parents[1]
QUERY = "SELECT msisdn, category_id FROM allowed"
MOD_TASKS = 16
BATCH = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        worker(json.loads(asked.worker))
        return
    sys.path.insert(0, str(ROOT))
    from tests.servers.holding import held

    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        source = servers.enter_context(held("postgresql", Path(folder)))
        target = servers.enter_context(held("redis", Path(folder)))
        compare(asked, source, target)


def compare(asked: argparse.Namespace, source: str, target: str) -> None:
    rows, processes = asked.rows, asked.processes
    make_table(source, rows)
    works: dict[str, Callable[[], dict[str, float]]] = {
        "naive: cursor, one SET per row": lambda: workers(source, target, "naive", 1, rows // 40),
        "server-side cursor, pipeline of 1,000": lambda: workers(source, target, "pipeline", 1, rows // 10),
        "server-side cursor, MSET of 1,000": lambda: workers(source, target, "mset", 1, rows // 4),
        f"article: MOD {MOD_TASKS}, cursor, set-all": lambda: workers(source, target, "article", processes, rows),
        "ours: ranges, COPY BINARY, raw MSET": lambda: workers(source, target, "ours", processes, rows),
        "COPY TO /dev/null": lambda: copied(source, rows),
    }
    best: dict[str, dict[str, float]] = {}
    for _ in range(asked.repeats):
        taken_in_turn(works, best)
    rivals = dict(list(works.items())[-2:])
    for _ in range(asked.rounds):
        taken_in_turn(rivals, best)
    make_table(source, 2 * rows)
    twice = workers(source, target, "ours", processes, 2 * rows)["peak"]
    naive, pipeline, _, _, ours, copy = best.values()
    ratios = {
        "cpu_vs_naive": naive["cpu"] / ours["cpu"],
        "cpu_vs_cursor_pipeline": pipeline["cpu"] / ours["cpu"],
        "rate_vs_copy": copy["wall"] / ours["wall"],
        "peak_mb": ours["peak"],
        "peak_mb_twice": twice,
        "load_average": os.getloadavg()[0],
    }
    shown = [
        {
            "how": name,
            "rows": int(each["rows"]),
            "cpu_us_per_row": 1e6 * each["cpu"],
            "rows_per_s": round(1 / each["wall"]),
            "peak_mb": round(each["peak"], 1),
        }
        for name, each in best.items()
    ]
    show("load", shown, ratios, as_json=asked.json)


def taken_in_turn(works: dict[str, Callable[[], dict[str, float]]], best: dict[str, dict[str, float]]) -> None:
    for name, work in works.items():
        found = work()
        known = best.setdefault(name, found)
        best[name] = {figure: min(known[figure], found[figure]) for figure in found if figure != "peak"} | {
            "peak": max(known["peak"], found["peak"])
        }


def make_table(source: str, rows: int) -> None:
    """Five categories of each customer, in no order."""
    with psycopg.connect(source, autocommit=True) as line:
        line.execute("DROP TABLE IF EXISTS allowed")
        line.execute("CREATE TABLE allowed (msisdn bigint, category_id int, PRIMARY KEY (msisdn, category_id))")
        line.execute(
            "INSERT INTO allowed SELECT 905320000000 + n / 5 * 7, n % 5 * 20 + n / 5 % 20"
            f" FROM generate_series(0, {rows - 1}) n ORDER BY hashint8(n)"
        )
        line.execute("VACUUM (ANALYZE, FREEZE) allowed")
        line.execute("CHECKPOINT")


def copied(source: str, rows: int) -> dict[str, float]:
    with psycopg.connect(source, autocommit=True) as line:
        started = time.perf_counter()
        line.execute(f"COPY ({QUERY}) TO '/dev/null' (FORMAT binary)")
        return {"rows": rows, "wall": (time.perf_counter() - started) / rows, "cpu": 0.0, "peak": 0.0}


def workers(source: str, target: str, how: str, processes: int, rows: int) -> dict[str, float]:
    """All start their work at once; figures are per row."""
    empty(target)
    tasks = [
        {"source": source, "target": target, "how": how, "rows": rows, "number": number, "of": processes}
        for number in range(processes)
    ]
    command = [sys.executable, __file__, "--worker"]
    running = [
        subprocess.Popen([*command, json.dumps(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for task in tasks
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for each in running:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [json.loads(each.stdout.readline()) for each in running if each.stdout is not None]
    wall = time.perf_counter() - started
    for each in running:
        each.communicate()
    cpu = sum(each["cpu"] for each in said)
    return {"rows": rows, "cpu": cpu / rows, "wall": wall / rows, "peak": max(each["peak"] for each in said)}


def empty(target: str) -> None:
    import redis

    redis.Redis.from_url(target).flushall()


def worker(task: dict[str, Any]) -> None:
    """One process of one way."""
    work = {"naive": naive, "pipeline": pipeline, "mset": mset, "article": article, "ours": ours}[task["how"]]
    if task["how"] == "ours":  # its imports are no more counted than those of the others
        for name in ("loads", "sources.packed", "sources.postgresql", "sources.postgresql_arrays"):
            import_module(f"levada.bulk.{name}")
        for name in ("targets.lmdb", "targets.redis", "task_stores.redis"):
            import_module(f"levada.bulk.{name}")
    else:
        import redis  # noqa: F401
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    work(task)
    used = time.process_time() - before
    print(json.dumps({"cpu": used, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000}), flush=True)


def naive(task: dict[str, Any]) -> None:
    import redis

    cache = redis.Redis.from_url(task["target"])
    with psycopg.connect(task["source"]) as line:
        for key, value in line.execute(f"{QUERY} LIMIT {task['rows']}"):
            cache.set(f"categories:{key}:{value}", value)


def pipeline(task: dict[str, Any]) -> None:
    import redis

    cache = redis.Redis.from_url(task["target"])
    with psycopg.connect(task["source"]) as line:
        for batch in streamed(line, f"{QUERY} LIMIT {task['rows']}"):
            orders = cache.pipeline(transaction=False)
            for key, value in batch:
                orders.set(f"categories:{key}:{value}", value)
            orders.execute()


def mset(task: dict[str, Any]) -> None:
    import redis

    cache = redis.Redis.from_url(task["target"])
    with psycopg.connect(task["source"]) as line:
        for batch in streamed(line, f"{QUERY} LIMIT {task['rows']}"):
            cache.mset({f"categories:{key}:{value}": value for key, value in batch})


def article(task: dict[str, Any]) -> None:
    """Each process takes every other remainder; the categories of a customer are gathered by the database."""
    import redis

    cache = redis.Redis.from_url(task["target"])
    with psycopg.connect(task["source"]) as line:
        for remainder in range(task["number"], MOD_TASKS, task["of"]):
            asked = (
                "SELECT msisdn, array_agg(category_id) FROM allowed WHERE msisdn IS NOT NULL"
                f" AND category_id IS NOT NULL AND mod(msisdn, {MOD_TASKS}) = {remainder} GROUP BY msisdn"
            )
            for batch in streamed(line, asked):
                cache.mset({key: bytes(values) for key, values in batch})


def ours(task: dict[str, Any]) -> None:
    from levada.bulk.loads import LoadRequest, load

    request = LoadRequest(
        task["source"], "allowed", "msisdn", "category_id", "categories", task["target"], collect=True, keep_old=0.0
    )
    done = load(request, lambda status: None).status
    assert done.done.rows == task["rows"], done
    assert done.done.keys == task["rows"] // 5, done


def streamed(line: psycopg.Connection[Any], asked: str) -> Iterator[list[Any]]:
    line.execute("SET cursor_tuple_fraction = 1")
    with line.cursor(name="rows") as cursor:
        cursor.execute(asked)
        while batch := cursor.fetchmany(BATCH):
            yield batch


if __name__ == "__main__":
    main()
