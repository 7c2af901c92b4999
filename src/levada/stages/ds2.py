"""DS2's way: as many workers as the true rates ask for, in one step.

Source: Kalavri et al., "Three steps is all you need" (OSDI 2018). The true rate of a worker is jobs done per second
of work, waiting left out; a stage needs the rate that arrives divided by that.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.rule import OWN, SizingRule, sizing_rule, within
from levada.stages.sample import ARRIVED, BUSY, DONE, HELD, NOW, ON

__all__ = ["ds2"]

_BEGAN, _ARRIVED, _DONE, _WORKED, _LAST, _HELD = range(2, 8)


def ds2(
    least: int = 1,
    most: int = 1,
    period: float = 1.0,
    startup: float = 0.0,
    window: float = 10.0,
    spare: float = 1.1,
) -> SizingRule:
    """Right in one step for a load that stays; knows nothing of a backlog, so `spare` must make up for it.

    `window` is how long rates are measured before each decision, `spare` the share of workers on top.
    """
    if not window >= period or not spare > 0.0:
        raise UsageError(f"ds2: window must be at least the period, spare above 0, not {window} and {spare}")
    return sizing_rule("ds2", _step, (least, most), period, (window, spare), startup=startup, width=8)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: when the window began, the counts at that time, and the work done since."""
    now = sample[NOW]
    memory[_WORKED] += sample[BUSY] * (now - memory[_LAST])
    memory[_LAST] = now
    elapsed = now - memory[_BEGAN] - (sample[HELD] - memory[_HELD])
    if elapsed < parameters[OWN] - 1e-9 or memory[_WORKED] <= 0.0:
        return within(max(sample[ON], 1.0), parameters)
    done = sample[DONE] - memory[_DONE]
    load = (sample[ARRIVED] - memory[_ARRIVED]) / elapsed * memory[_WORKED] / max(done, 1.0)
    memory[_BEGAN], memory[_ARRIVED], memory[_DONE], memory[_WORKED] = now, sample[ARRIVED], sample[DONE], 0.0
    memory[_HELD] = sample[HELD]
    return within(float(math.ceil(load * parameters[OWN + 1])), parameters)
