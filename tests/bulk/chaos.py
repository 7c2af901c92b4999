"""Loads by real processes that are killed and frozen: the map is always the table.

`python -m tests.bulk.chaos --runs 20 --seed 1` makes that many runs, each from its own seed, with private servers,
and prints one line for each. 1, 2 or 4 instances start at different times; in each third of the load one is killed
with -9, and one is frozen past its lease and thawed. Whoever is killed is replaced.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg

from levada.bulk.loads import LoadRequest, load_status, verify_load
from levada.bulk.tasks import LoadState, LoadStatus

__all__ = ["Chaos"]

ROWS = 4_000
TASK_ROWS = 100
LEASE = 1.0
PATIENCE = 90.0


class Chaos:
    """One load of one table, and what befalls its instances."""

    def __init__(self, source: str, target: str, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.table = f"chaos_{seed}_{os.getpid()}"
        self.folder = folder
        self.instances = (1, 2, 4)[seed % 3]
        self.alive: list[subprocess.Popen[bytes]] = []
        self.killed = self.frozen = 0
        self.request = LoadRequest(
            source, self.table, "k", "v", self.table.replace("_", "-"), target, collect=True, task_rows=TASK_ROWS
        )

    def run(self) -> LoadStatus:
        self._make_table()
        self.start()
        self.until(lambda: self.progress() > 0.1 * self.chance.random())
        while len(self.alive) < self.instances:
            self.start()
        for third in range(3):
            share = (third + self.chance.random()) / 3
            self.until(lambda at=share: self.progress() >= at)  # type: ignore[misc]
            if third == self.chance.randrange(3) or (third == 2 and not self.frozen):
                self.freeze()
            self.kill()
            while len(self.alive) < self.instances:
                self.start()
        self.until(lambda: self.state() is LoadState.PUBLISHED)
        for instance in self.alive:
            instance.wait(PATIENCE)
        status, _ = load_status(self.request)
        assert status is not None
        return status

    def agrees(self) -> bool:
        verdict = verify_load(self.request)
        return verdict.whole and verdict.current and verdict.stored.rows == ROWS

    def start(self) -> None:
        rate = ROWS / 2.5 / self.instances
        words = ["--from", self.request.source, "--table", self.table, "--key", "k", "--collect", "v"]
        where = ["--to", self.request.target, "--name", self.request.name, "--maps", str(self.folder)]
        pace = ["--lease", str(LEASE), "--task-rows", str(TASK_ROWS), "--rows-per-second", str(rate)]
        command = [
            sys.executable,
            "-m",
            "levada",
            "load",
            *words,
            *where,
            *pace,
            "--keep-old",
            "0",
            "--fresh",
            "600",
            "--json",
        ]
        with (self.folder / "said").open("ab") as said:
            self.alive.append(subprocess.Popen(command, stdout=said, stderr=said))

    def kill(self) -> None:
        """One of those that run; it has no time to say anything."""
        victim = self.chance.choice(self.alive)
        victim.kill()
        victim.wait()
        self.alive.remove(victim)
        self.killed += 1

    def freeze(self) -> None:
        """One that holds a task, until its lease has run out; it wakes as if nothing had happened."""
        sleeper = self.chance.choice(self.alive)
        os.kill(sleeper.pid, signal.SIGSTOP)
        self.frozen += 1
        try:
            started = time.monotonic()
            self.until(lambda: self.expired() or time.monotonic() - started > 2 * LEASE)
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)

    def progress(self) -> float:
        status, _ = load_status(self.request)
        if status is None:
            return 0.0
        return 1.0 if status.record.state is LoadState.PUBLISHED else status.done.rows / ROWS

    def expired(self) -> bool:
        status, _ = load_status(self.request)
        return status is None or status.expired > 0 or status.record.state is LoadState.PUBLISHED

    def state(self) -> LoadState | None:
        if not any(instance.poll() is None for instance in self.alive):
            self.start()  # the last one was killed at the very end
        status, _ = load_status(self.request)
        return status.record.state if status is not None else None

    def until(self, change_kind: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not change_kind():
            if time.monotonic() > deadline:
                raise TimeoutError(f"seed of {self.table}: {(self.folder / 'said').read_text()[-2000:]}")
            time.sleep(0.05)

    def end(self) -> None:
        for instance in self.alive:
            instance.kill()
            instance.wait()

    def _make_table(self) -> None:
        rows = [(self.chance.randrange(-50, 700), self.chance.randrange(100)) for _ in range(ROWS)]
        with psycopg.connect(self.request.source, autocommit=True) as line:
            line.execute(f"CREATE TABLE {self.table} (k bigint NOT NULL, v int)")
            with line.cursor() as cursor, cursor.copy(f"COPY {self.table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            line.execute(f"CREATE INDEX ON {self.table} (k)")
            line.execute(f"ANALYZE {self.table}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    from tests.servers.holding import held

    wrong = 0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        source = servers.enter_context(held("postgresql", Path(folder)))
        target = servers.enter_context(held("redis", Path(folder)))
        for seed in range(asked.seed, asked.seed + asked.runs):
            place = Path(folder) / f"run-{seed}"
            place.mkdir()
            chaos = Chaos(source, target, place, seed)
            try:
                done = chaos.run()
                agrees = chaos.agrees()
            finally:
                chaos.end()
            wrong += not agrees
            print(
                f"seed {seed}: {chaos.instances} instances, {chaos.killed} killed, {chaos.frozen} frozen, "
                f"generation {done.record.generation}, digest {'equal' if agrees else 'DIFFERS'}",
                flush=True,
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
