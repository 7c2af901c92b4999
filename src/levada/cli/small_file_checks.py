"""Are the small files beside the database sound? Looked at without writing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from levada.assemble.folder import DataFolder
from levada.cli.checks import Check, failed, worrying

__all__ = ["small_file_checks"]


def small_file_checks(folder: DataFolder) -> Iterator[Check]:
    """Only of those that are not: who never gave an order has no file of them."""
    if trouble := _trouble(folder.orders):
        advice = f"no crawl starts with it: delete {folder.orders} and give the orders that waited again"
        yield failed("orders", trouble, advice)
    if trouble := _trouble(folder.hooks):
        advice = f"nobody is told of changes: restore a copy of {folder.hooks}, or delete it and add them again"
        yield failed("webhooks", trouble, advice)
    if trouble := _trouble(folder.trends):
        yield worrying("counts", trouble, "'levada trends' counts again")


def _trouble(path: Path) -> str:
    """What is wrong with it, if it is there; "" if nothing is."""
    try:
        if not path.exists():
            return ""
        if not path.is_file():
            return f"{path} is not a file"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except (OSError, sqlite3.OperationalError):
        return ""  # busy, or in a folder that is only ours to read: that is no damage
    except sqlite3.Error as error:
        return f"{path} cannot be read ({error})"
    return "" if said == "ok" else f"{path} is damaged ({said})"
