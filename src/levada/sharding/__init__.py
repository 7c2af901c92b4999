"""WHERE does this document live?

Pure: a log of queries and a sample of documents in, ranked shard keys with their figures out; and the placement of
a document on a shard, and of a query on shards. `advise` is ours; beside it stand the source's method (a key of
fields by their share of the queries) and the hashed id, which an expert would take.
"""

from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.evaluation import Evaluator, Figures
from levada.sharding.log_statistics import FieldUse, LogStatistics
from levada.sharding.mongodb_script import mongodb_script
from levada.sharding.paper import AskedField, PaperKey, Thresholds, paper_key
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
from levada.sharding.postgresql_script import PostgresqlScript, Server, postgresql_script
from levada.sharding.sample import Sample
from levada.sharding.sample_statistics import FieldFacts, facts_of
from levada.sharding.scoring import Tried
from levada.sharding.workload import Workload

__all__ = [
    "Advice",
    "AskedField",
    "Evaluator",
    "FieldFacts",
    "FieldUse",
    "Figures",
    "KeyPart",
    "LogStatistics",
    "Move",
    "PaperKey",
    "Placement",
    "PostgresqlScript",
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
