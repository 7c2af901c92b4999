"""Bulk reads: a huge table read into a map by any number of instances.

The pure part says how a table is split into tasks, what a task's rows become in the map, which generation readers
see, and how source and map are compared. `levada.bulk.instance` drives it; `levada.bulk.sources`,
`levada.bulk.targets` and `levada.bulk.task_stores` hold the engines, and `levada.bulk.maps.Map` reads what was
loaded. Source: a 2021 article on a modular distributed read.

>>> facts = levada.bulk.TableFacts(rows=1_000_000, key_kind="int", key_nullable=False)
>>> tasks = levada.bulk.split(facts, [], levada.bulk.SplitMethod.MOD, collect=False, task_rows=50_000)
>>> len(tasks)
16
"""

from levada.bulk.entries import (
    DuplicateKey,
    PlainEntries,
    PlainRows,
    decoded_key,
    decoded_values,
    encoded_key,
    encoded_values,
    row_digest,
    rows_digest,
)
from levada.bulk.protocols import (
    Away,
    LeaseLost,
    LoadEnded,
    LostGround,
    MapReader,
    MapTarget,
    TableSource,
    TaskStore,
)
from levada.bulk.splitting import (
    BlockRange,
    Cut,
    HashShare,
    KeyRange,
    Modulus,
    NullKeys,
    RowRange,
    Span,
    SplitMethod,
    TableFacts,
    chosen_way,
    holds,
    parts_of,
    split,
)
from levada.bulk.tasks import (
    LoadPlan,
    LoadProgress,
    LoadRecord,
    LoadState,
    LoadStatus,
    Manifest,
    TaskLease,
    TaskResult,
    Throttle,
    checked_name,
    progress_of,
)

__all__ = [
    "Away",
    "BlockRange",
    "Cut",
    "DuplicateKey",
    "HashShare",
    "KeyRange",
    "LeaseLost",
    "LoadEnded",
    "LoadPlan",
    "LoadProgress",
    "LoadRecord",
    "LoadState",
    "LoadStatus",
    "LostGround",
    "Manifest",
    "MapReader",
    "MapTarget",
    "Modulus",
    "NullKeys",
    "PlainEntries",
    "PlainRows",
    "RowRange",
    "Span",
    "SplitMethod",
    "TableFacts",
    "TableSource",
    "TaskLease",
    "TaskResult",
    "TaskStore",
    "Throttle",
    "checked_name",
    "chosen_way",
    "decoded_key",
    "decoded_values",
    "encoded_key",
    "encoded_values",
    "holds",
    "parts_of",
    "progress_of",
    "row_digest",
    "rows_digest",
    "split",
]
