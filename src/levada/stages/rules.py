"""Which rules of sizing are there, by name?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from levada.errors import UsageError
from levada.stages.drain_time import drain_time
from levada.stages.ds2 import ds2
from levada.stages.feed_forward import feed_forward
from levada.stages.hpa import hpa
from levada.stages.keda import keda
from levada.stages.linear import linear
from levada.stages.rule import SizingRule
from levada.stages.static import static

__all__ = ["CONTROLLERS", "rule_named"]

CONTROLLERS: dict[str, Callable[..., SizingRule]] = {
    "static": static,
    "linear": linear,
    "linear-as-written": partial(linear, as_written=True),
    "drain-time": drain_time,
    "drain-time-as-written": partial(drain_time, as_written=True),
    "hpa": hpa,
    "keda": keda,
    "ds2": ds2,
    "feed-forward": feed_forward,
}
"""Each takes `least`, `most`, `period` and `startup`, and what is its own."""


def rule_named(name: str, least: int, most: int, options: Mapping[str, Any] | None = None) -> SizingRule:
    if name not in CONTROLLERS:
        raise UsageError(f"no controller is called {name!r}: one of {', '.join(CONTROLLERS)}")
    make = CONTROLLERS[name]
    known = [key for key in inspect.signature(make).parameters if key not in ("least", "most", "as_written")]
    for key in options or {}:
        if key not in known:
            raise UsageError(f"{name} has no {key!r}: one of {', '.join(known)}")
    return make(least=least, most=most, **(options or {}))
