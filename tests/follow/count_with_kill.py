"""A count that dies: `python -m tests.follow.count_with_kill DATA POINT NTH`."""

from __future__ import annotations

import sys
from pathlib import Path

from levada.core.settings import TrendsSettings
from levada.follow.counter import count_up
from levada.store.sqlite import SqliteStore
from tests.faults import KillAt

if __name__ == "__main__":
    data, point, nth = sys.argv[1:]
    store = SqliteStore.open_reader(Path(data) / "levada.db")
    count_up(Path(data) / "trends.db", store, TrendsSettings(batch=1), faults=KillAt(point, int(nth)))
