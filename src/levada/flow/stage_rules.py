"""By which rule is each stage of a crawl sized?

All have the controller of the settings. Where that is ours, a stage adds what is known of its workers: a fetch slot
costs nothing and starts at once, so every page that waits for one gets one; a process takes a moment to start, and
a job is much shorter than that, so a queue is drained within a time instead.
"""

from __future__ import annotations

from typing import Any

from levada.flow.settings import StagesSettings
from levada.stages import SizingRule, rule_named

__all__ = ["STAGES", "stage_rule"]

STAGES = ("fetch", "parse", "index", "count")
_STARTUP = {"fetch": 0.0, "parse": 0.3, "index": 0.5, "count": 0.5}  # seconds
# Jobs last milliseconds, so the wish is clear at each look: patience would only be late.
_SLOT: dict[str, float] = {"spare": 1.0, "patience": 0.0, "drain": 0.0, "cooldown": 2.0}
_CHILD: dict[str, float] = {"patience": 0.0, "drain": 0.25, "cooldown": 3.0}
# One at most, and anything that waits wants it.
_WRITER: dict[str, float] = {"patience": 0.0, "drain": 0.0, "cooldown": 3.0}
_OURS = {"fetch": _SLOT, "parse": _CHILD, "index": _WRITER, "count": _WRITER}


def stage_rule(stage: str, settings: StagesSettings, most: int) -> SizingRule:
    """`UsageError` if the least is more than the most."""
    options: dict[str, Any] = {"period": settings.period, "startup": _STARTUP[stage]}
    if settings.controller == "feed-forward":
        options |= _OURS[stage]
    # A crawl with few slots need not be told that it wants fewer at least.
    least = {"fetch": min(settings.fetch_least, most), "parse": settings.parse_least}.get(stage, 0)
    return rule_named(settings.controller, least, most, options)
