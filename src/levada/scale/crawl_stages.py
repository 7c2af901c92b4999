"""The stages of a crawl on one machine, and the rule that sizes each.

All stages use the controller of the settings. Our own controller also gets what is known about each stage's
workers. A fetch slot costs nothing and starts at once, so every page that waits for a slot gets one. A process
takes a moment to start, and a job is much shorter than that, so a queue is drained within a time instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from levada.core.settings import StagesSettings
from levada.scale.autoscaler import Stage
from levada.scale.pools import InProcessPool, in_process
from levada.stages import SizingRule, live_rule

STAGES = ("fetch", "parse", "index", "count")
_STARTUP = {"fetch": 0.0, "parse": 0.3, "index": 0.5, "count": 0.5}  # seconds
# Jobs last milliseconds, so each sample is clear: patience would only be late.
_SLOT: dict[str, float] = {"spare": 1.0, "patience": 0.0, "drain": 0.0, "cooldown": 2.0}
_CHILD: dict[str, float] = {"patience": 0.0, "drain": 0.25, "cooldown": 3.0}
# One at most, and any job that waits needs it.
_WRITER: dict[str, float] = {"patience": 0.0, "drain": 0.0, "cooldown": 3.0}
_OURS = {"fetch": _SLOT, "parse": _CHILD, "index": _WRITER, "count": _WRITER}


class _LimitedPool(InProcessPool, Protocol):
    most: int


PluginTables = Mapping[str, Mapping[str, Any]]


def stage_rule(stage: str, settings: StagesSettings, most: int, tables: PluginTables | None = None) -> SizingRule:
    """The rule of a stage with at most `most` workers; `UsageError` if the least is more than that.

    `tables` are the options of plug-ins by name.
    """
    options: dict[str, Any] = {"period": settings.period, "startup": _STARTUP[stage]}
    if settings.controller == "feed-forward":
        options |= _OURS[stage]
    # A crawl with few slots may have fewer than the usual least.
    least = {"fetch": min(settings.min_fetch, most), "parse": settings.min_parse}.get(stage, 0)
    return live_rule(settings.controller, least, most, options, (tables or {}).get(settings.controller))


def stages_after_fetch(
    settings: StagesSettings,
    parser: _LimitedPool,
    indexer: InProcessPool,
    counter: InProcessPool | None = None,
    tables: PluginTables | None = None,
) -> list[Stage]:
    """Parse, index and count, in the order in which a page passes them."""
    pools: list[tuple[str, InProcessPool, int]] = [("parse", parser, parser.most), ("index", indexer, 1)]
    if counter is not None:
        pools.append(("count", counter, 1))
    return [
        Stage(name, in_process(pool), stage_rule(name, settings, most, tables), settings.idle)
        for name, pool, most in pools
    ]
