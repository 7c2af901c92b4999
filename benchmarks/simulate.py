"""How many simulated seconds per second does the stages simulator run, beside SimPy and Ciw?

One core, one and the same static model: jobs at 30 a second, 14 workers of 0.25 s, then 174 of 5 s, all times
exponential, a queue of 100 jobs before each. No polls and no entry step: the peers would pay for each by an event.
Each is written the way its own documentation does it. CPU time of this process, the best of the repeats, without
compilation; the mean latency stands beside the speed, so that one sees that all simulate the same.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Generator
from statistics import fmean
from typing import Any

import ciw
import simpy
from table import show

from levada.lab.stages.model import Model, StageModel, constant
from levada.lab.stages.runs import begun, simulate
from levada.stages import static

RATE, TIMES, WORKERS, CAPACITY = 30.0, (0.25, 5.0), (14, 174), 100

Run = Callable[[float, int], float]  # seconds and a seed in, the mean latency out


def ours(seconds: float, seed: int) -> float:
    stages = tuple(StageModel(service=each, capacity=CAPACITY, entry=0.0, poll=0.0) for each in TIMES)
    model = Model(stages=stages, load=constant(1.0), interval=1 / RATE, seconds=seconds, seed=seed)
    return simulate(begun(model, WORKERS), tuple(static(each, each) for each in WORKERS)).latency_mean_s


def with_simpy(seconds: float, seed: int) -> float:
    chance, environment, latencies = random.Random(seed), simpy.Environment(), []
    stages = [simpy.Resource(environment, each) for each in WORKERS]

    def job() -> Generator[Any, Any, None]:
        made = environment.now
        for stage, mean in zip(stages, TIMES, strict=True):
            if len(stage.queue) >= CAPACITY:
                return
            with stage.request() as worker:
                yield worker
                yield environment.timeout(chance.expovariate(1 / mean))
        latencies.append(environment.now - made)

    def source() -> Generator[Any, Any, None]:
        while True:
            yield environment.timeout(chance.expovariate(RATE))
            environment.process(job())

    environment.process(source())
    environment.run(seconds)
    return fmean(latencies)


def with_ciw(seconds: float, seed: int) -> float:
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(RATE), None],
        service_distributions=[ciw.dists.Exponential(1 / each) for each in TIMES],
        routing=[[0.0, 1.0], [0.0, 0.0]],
        number_of_servers=list(WORKERS),
        queue_capacities=[CAPACITY, CAPACITY],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(seconds)
    made: dict[int, float] = {}
    done: dict[int, float] = {}
    for record in simulation.get_all_records():
        if record.node == 1:
            made[record.id_number] = record.arrival_date
        else:
            done[record.id_number] = record.exit_date
    return fmean(done[each] - made[each] for each in done)


def measure(run: Run, seconds: float, repeats: int) -> tuple[float, float]:
    """Simulated seconds per second of the processor, and the mean latency over all repeats."""
    best, latencies = 0.0, []
    for seed in range(1, repeats + 1):
        started = time.process_time()
        latencies.append(run(seconds, seed))
        best = max(best, seconds / (time.process_time() - started))
    return best, fmean(latencies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10_000.0, help="simulated, for ours")
    parser.add_argument("--peer-seconds", type=float, default=500.0, help="simulated, for the others")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    ours(10.0, 1)
    found = {
        "levada": measure(ours, asked.seconds, asked.repeats),
        f"SimPy {simpy.__version__}": measure(with_simpy, asked.peer_seconds, asked.repeats),
        f"Ciw {ciw.__version__}": measure(with_ciw, asked.peer_seconds, asked.repeats),
    }
    rows = [
        {"simulator": name, "simulated_s_per_s": round(speed), "mean_latency_s": latency}
        for name, (speed, latency) in found.items()
    ]
    own, of_simpy, of_ciw = (speed for speed, _ in found.values())
    show("simulate", rows, {"vs_simpy": own / of_simpy, "vs_ciw": own / of_ciw}, as_json=asked.json)


if __name__ == "__main__":
    main()
