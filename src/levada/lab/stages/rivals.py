"""Which loads are all controllers tried on, and which settings of each?"""

from __future__ import annotations

import math
from itertools import product

from levada.lab.stages.jobs import Job, Options
from levada.lab.stages.loads import bursts, constant, daily, steps
from levada.lab.stages.model import Model, StageModel
from levada.lab.stages.sizing import fewest_workers

__all__ = ["CONTROLLERS", "LOADS", "MOST", "OURS", "grid_of", "load_model", "report_linear"]

OURS = "feed-forward"
LOADS = ("constant", "steps", "bursts", "daily", "lognormal", "slowed")
MOST = (80, 1000)

_PEAKS = {"steps": 8.0, "bursts": 10.0, "daily": 5.0}  # scanners; 3 otherwise
_SHARES = (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0)
_POD_PERIODS, _WINDOWS, _TOLERANCES = (0.25, 1.0, 15.0), (0.0, 1.0, 4.0, 15.0), (0.0, 0.02, 0.05, 0.1)
_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    OURS: {},
    "linear": {
        "period": (0.25, 0.5, 1.0),
        "threshold": (10.0, 15.0, 20.0, 25.0, 35.0, 50.0, 75.0, 100.0),
        "history": (1.0, 2.0, 5.0, 15.0),
    },
    "drain-time": {
        "period": (0.25, 1.0),
        "target": (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
        "stable": (1.0, 2.0, 5.0, 15.0, 30.0),
    },
    "drain-time-as-written": {
        "period": (0.25,),
        "target": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
        "stable": (0.5, 1.0, 2.0, 5.0, 15.0),
    },
    "hpa": {"period": _POD_PERIODS, "target": _SHARES, "window": _WINDOWS, "tolerance": _TOLERANCES},
    "keda": {"period": _POD_PERIODS, "jobs": (*_SHARES, 1.05), "window": _WINDOWS, "tolerance": _TOLERANCES},
    "ds2": {
        "period": (0.25, 1.0),
        "window": (1.0, 2.0, 5.0, 10.0, 20.0),
        "spare": (1.0, 1.02, 1.05, 1.1, 1.2, 1.3),
    },
}
CONTROLLERS = tuple(_GRIDS)


def load_model(load: str, seconds: float, seed: int) -> Model:
    times = "lognormal" if load == "lognormal" else "exponential"
    shapes = {
        "steps": steps((1.0, 5.0, 3.0, 8.0, 2.0), seconds),
        "bursts": bursts(2.0, 10.0, 10.0, 120.0),
        "daily": daily(1.0, 5.0, seconds / 5),
    }
    return Model(
        stages=tuple(StageModel(service=service, times=times) for service in (0.25, 5.0)),
        load=shapes.get(load, constant(3.0)),
        seconds=seconds,
        seed=seed,
        slow_from=seconds / 2 if load == "slowed" else math.inf,
    )


def grid_of(controller: str) -> list[Options]:
    axes = [[(key, (value,)) for value in values] for key, values in _GRIDS[controller].items()]
    return [tuple(options) for options in product(*axes)]


def report_linear(load: str, seconds: float, seed: int) -> Job:
    """The report's best setting, with the most workers set as it did: the static answer for the load's peak."""
    slow = 2.0 if load == "slowed" else 1.0
    peak = fewest_workers(10.0 * _PEAKS.get(load, 3.0), (0.25 * slow, 5.0 * slow), 5.25 * slow + 0.01)
    options: Options = (("period", (1.0,)), ("threshold", (75.0,)), ("history", (15.0,)))
    return Job(load_model(load, seconds, seed), "linear", (peak[0], peak[1]), options)
