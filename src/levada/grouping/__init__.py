"""WHO gets this record of a skewed stream?

Pure: a key in, a worker out; each sender decides alone, by what it has sent itself. `LevelledGrouping` is ours, and
the default; the others are what the Dynamic Key Grouping thesis compares, what an expert would pick instead, and
the rest of Storm's vocabulary.
"""

from levada.grouping.counting import TwoPhaseCount
from levada.grouping.d_choices import DChoicesGrouping
from levada.grouping.direct import DirectGrouping
from levada.grouping.dynamic import DynamicKeyGrouping
from levada.grouping.dynamic_text import DynamicTextGrouping
from levada.grouping.everyone import AllGrouping
from levada.grouping.key import KeyGrouping
from levada.grouping.keyed_hash import KeyedHash
from levada.grouping.keys import Hasher, Key
from levada.grouping.levelled import LevelledGrouping
from levada.grouping.local import LocalOrShuffleGrouping
from levada.grouping.lowest import GlobalGrouping
from levada.grouping.merging import Flush, Merging
from levada.grouping.methods import METHODS, Grouping, grouping_named
from levada.grouping.murmur import MurmurHash
from levada.grouping.partial import PartialKeyGrouping
from levada.grouping.routing import Routing
from levada.grouping.shuffle import ShuffleGrouping
from levada.grouping.w_choices import WChoicesGrouping

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
