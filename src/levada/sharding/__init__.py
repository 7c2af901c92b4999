"""WHERE: the shard key decides on which shard a document lives.

Pure: a query log and a sample of documents in, ranked shard keys with their figures out; and the placement of a
document on a shard, and of a query on shards. `advise` is Levada's own method. Beside it stand the source's method
(a key of fields by their share of the queries) and the hashed id, which an expert would take.

>>> placement = levada.sharding.hashed_placement("site", shards=4)
>>> placement.place({"site": "example.org"}) in range(4)
True
"""

from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.candidates import Tried
from levada.sharding.evaluation import Evaluator, PlacementFigures
from levada.sharding.paper import PaperKey, QueriedField, Thresholds, paper_key
from levada.sharding.placement import (
    KeyPart,
    Move,
    Placement,
    Ranges,
    ShardKey,
    Zone,
    even_ranges,
    hashed_placement,
    moved,
    quantile_ranges,
)
from levada.sharding.sample import FieldFacts, Sample, facts_of
from levada.sharding.scripts.mongodb import mongodb_script
from levada.sharding.scripts.postgresql import PostgresqlScript, Server, postgresql_script
from levada.sharding.workload import FieldUse, LogStatistics, Workload

__all__ = [
    "Advice",
    "Evaluator",
    "FieldFacts",
    "FieldUse",
    "KeyPart",
    "LogStatistics",
    "Move",
    "PaperKey",
    "Placement",
    "PlacementFigures",
    "PostgresqlScript",
    "QueriedField",
    "Ranges",
    "Sample",
    "Server",
    "ShardKey",
    "Thresholds",
    "Tried",
    "Workload",
    "Zone",
    "advise",
    "even_ranges",
    "facts_of",
    "fields_to_keep",
    "hashed_placement",
    "mongodb_script",
    "moved",
    "paper_key",
    "postgresql_script",
    "quantile_ranges",
]
