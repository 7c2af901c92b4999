"""HOW is a huge table read by an unknown number of instances?

Pure: how a table is split into tasks, what a task's rows become in the map, which generation readers see, and how
source and map are compared. `levada.flow.loading` drives it, `levada.adapters.bulk` has the engines, and
`levada.assemble.maps.Map` reads what was loaded. Source: a 2021 article on a modular distributed read.
"""

from levada.bulk.collecting import DuplicateKey, PlainEntries, PlainRows
from levada.bulk.digest import row_digest, rows_digest
from levada.bulk.encoding import decoded_key, decoded_values, encoded_key, encoded_values
from levada.bulk.generations import LoadPlan, Manifest, checked_name
from levada.bulk.ports import MapReader, MapTarget, TableSource, TaskBook
from levada.bulk.progress import Progress, progress_of
from levada.bulk.spans import (
    BlockRange,
    Cut,
    HashShare,
    KeyRange,
    Modulus,
    NullKeys,
    RowRange,
    Span,
    holds,
    parts_of,
)
from levada.bulk.splitting import How, TableFacts, chosen_way, split
from levada.bulk.tasks import LoadRecord, LoadState, Standing, TaskLease, TaskResult
from levada.bulk.throttle import Throttle
from levada.bulk.trouble import Away, LeaseLost, LoadEnded, LostGround

__all__ = [
    "Away",
    "BlockRange",
    "Cut",
    "DuplicateKey",
    "HashShare",
    "How",
    "KeyRange",
    "LeaseLost",
    "LoadEnded",
    "LoadPlan",
    "LoadRecord",
    "LoadState",
    "LostGround",
    "Manifest",
    "MapReader",
    "MapTarget",
    "Modulus",
    "NullKeys",
    "PlainEntries",
    "PlainRows",
    "Progress",
    "RowRange",
    "Span",
    "Standing",
    "TableFacts",
    "TableSource",
    "TaskBook",
    "TaskLease",
    "TaskResult",
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
