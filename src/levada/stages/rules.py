"""Sizing rules by name, built in or a plug-in."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any

from levada.core.errors import PluginError, UsageError
from levada.core.plugins import GROUPS, Containment, find, is_builtin
from levada.stages.feed_forward import feed_forward
from levada.stages.rule import RATE, SERVICE, SizingRule, within

CONTROLLERS = tuple(GROUPS["levada.controllers"].builtins)
"""The controllers that are built in. Each takes `least`, `most`, `period` and `startup`, and what is its own."""

Options = Mapping[str, Any] | None
_ALWAYS_GIVEN = ("period", "startup")


def rule_named(name: str, least: int, most: int, options: Options = None, table: Options = None) -> SizingRule:
    """A controller's rule for one stage; `table` is the `[plugins.NAME]` of the settings, if there is one."""
    make = find("levada.controllers", name)
    known = [key for key in inspect.signature(make).parameters if key not in ("least", "most", "as_written")]
    given = {key: value for key, value in (options or {}).items() if key in known or key not in _ALWAYS_GIVEN}
    for key in given:
        if key not in known:
            raise UsageError(f"{name} has no {key!r}: one of {', '.join(known)}")
    rule = make(*(() if table is None else (table,)), least=least, most=most, **given)
    if not isinstance(rule, SizingRule) or (rule.least, rule.most) != (least, most):
        raise PluginError(f'stages.controller: "{name}" made no SizingRule for {least} to {most} workers')
    return rule


def live_rule(name: str, least: int, most: int, options: Options = None, table: Options = None) -> SizingRule:
    """The same for live queues: where a plug-in fails, our own rule decides."""
    rule = rule_named(name, least, most, options, table)
    if is_builtin("levada.controllers", name):
        return rule
    default = feed_forward(least=least, most=most, period=rule.period, startup=rule.startup)
    known = [0.0] * default.width
    containment = Containment("levada.controllers", name)

    def step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
        def by_plugin() -> float:
            row = list(memory)
            wanted = within(float(int(rule.step(row, parameters, sample))), parameters)  # int refuses no numbers
            memory[:] = row
            return wanted

        def by_default() -> float:
            wanted = default.step(known, default.parameters, sample)
            memory[SERVICE], memory[RATE] = known[SERVICE], known[RATE]
            return wanted

        return containment.decide(by_plugin, by_default)

    return SizingRule(rule.name, step, max(rule.width, 2), rule.parameters)
