"""A count that dies: `python -m tests.flow.count_with_kill DATA POINT NTH`."""

from __future__ import annotations

import sys
from pathlib import Path

from levada.adapters.faults import KillAt
from levada.adapters.sqlite import SqliteStore
from levada.assemble.counting import count_up
from levada.flow.settings import TrendsSettings

if __name__ == "__main__":
    data, point, nth = sys.argv[1:]
    store = SqliteStore.open_reader(Path(data) / "levada.db")
    count_up(Path(data) / "trends.db", store, TrendsSettings(batch=1), faults=KillAt(point, int(nth)))
