"""HOW MANY workers does each stage need right now?

Pure: a look at a queue in, a number of workers out. `feed_forward` is ours, and the default; the others are what
the report on a three-stage system ran, and what an expert would pick instead. The simulator and live queues run the
same arithmetic.
"""

from levada.stages.budget import share_budget
from levada.stages.chain import Chain, Sizes
from levada.stages.controller import Controller
from levada.stages.drain_time import drain_time
from levada.stages.ds2 import ds2
from levada.stages.feed_forward import feed_forward
from levada.stages.hpa import hpa
from levada.stages.keda import keda
from levada.stages.linear import linear
from levada.stages.rule import SizingRule
from levada.stages.rules import CONTROLLERS, rule_named
from levada.stages.sample import StageSample
from levada.stages.static import static

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
    "rule_named",
    "share_budget",
    "static",
]
