"""HOW MANY: the number of workers that each stage needs now.

Pure: a sample of a queue in, a number of workers out. `feed_forward` is Levada's own and the default; the others
are those of the report on a three-stage system, and what an expert would choose. The simulator and live queues run
the same arithmetic.

>>> levada.stages.rule_named("hpa", least=1, most=8).most
8
"""

from levada.stages.autoscalers import ds2, hpa, keda, static
from levada.stages.chain import Chain, Controller, Sizes, share_budget
from levada.stages.feed_forward import feed_forward
from levada.stages.report import drain_time, linear
from levada.stages.rule import SizingRule
from levada.stages.rules import CONTROLLERS, live_rule, rule_named
from levada.stages.sample import StageSample

__all__ = [
    "CONTROLLERS",
    "Chain",
    "Controller",
    "Sizes",
    "SizingRule",
    "StageSample",
    "drain_time",
    "ds2",
    "feed_forward",
    "hpa",
    "keda",
    "linear",
    "live_rule",
    "rule_named",
    "share_budget",
    "static",
]
