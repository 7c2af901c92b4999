"""WHO: the grouping method decides which worker gets a record of a skewed stream.

Pure: a key in, a worker out. Each sender decides alone, from what it has sent itself. `LevelledGrouping` is
Levada's own method and the default. The others are the methods that the Dynamic Key Grouping thesis compares, the
ones an expert would pick instead, and the rest of Storm's groupings.

>>> grouping = levada.grouping.PartialKeyGrouping(workers=4)
>>> len({grouping.choose("ferry", now=0.0) for _ in range(100)}) <= 2  # a key reaches at most two workers
True
"""

from levada.grouping.basic import (
    AllGrouping,
    DirectGrouping,
    GlobalGrouping,
    KeyGrouping,
    LocalOrShuffleGrouping,
    ShuffleGrouping,
)
from levada.grouping.choices import DChoicesGrouping, PartialKeyGrouping, WChoicesGrouping
from levada.grouping.counting import Flush, Merging, TwoPhaseCount
from levada.grouping.dynamic import DynamicKeyGrouping, DynamicTextGrouping
from levada.grouping.keys import Hasher, Key, KeyedHash, MurmurHash
from levada.grouping.levelled import LevelledGrouping
from levada.grouping.methods import METHODS, Grouping, grouping_named
from levada.grouping.routing import Routing

__all__ = [
    "METHODS",
    "AllGrouping",
    "DChoicesGrouping",
    "DirectGrouping",
    "DynamicKeyGrouping",
    "DynamicTextGrouping",
    "Flush",
    "GlobalGrouping",
    "Grouping",
    "Hasher",
    "Key",
    "KeyGrouping",
    "KeyedHash",
    "LevelledGrouping",
    "LocalOrShuffleGrouping",
    "Merging",
    "MurmurHash",
    "PartialKeyGrouping",
    "Routing",
    "ShuffleGrouping",
    "TwoPhaseCount",
    "WChoicesGrouping",
    "grouping_named",
]
