"""Collections with a history, and all that can be read of one, to compare it before and after."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from levada.core.folder import DataFolder
from levada.core.settings import BodiesSettings, Settings, StoreSettings
from levada.core.subscriptions import Subscription
from levada.store.opening import open_reading_store, open_store
from levada.store.subscriptions import SqliteSubscriptions
from tests.invariants import check_invariants
from tests.store.scenario import STORY_LIMITS, tell

__all__ = ["everything", "hook", "told_collection"]


def told_collection(path: Path, *servers: str, shards: int = 1, bodies: str = "") -> DataFolder:
    """A collection with every kind of visit behind it, one that is told of its changes, and a query log.

    `bodies`: where all its bodies lie, also small ones.
    """
    folder = DataFolder(path)
    folder.make()
    settings = StoreSettings(servers=servers, shards=shards, key="url" if shards > 1 else "site", bodies=bodies)
    folder.save_settings(Settings(store=settings, bodies=BodiesSettings(least=0)))
    with closing(open_store(folder, settings, STORY_LIMITS)) as store:
        tell(store)
    with closing(SqliteSubscriptions(folder.hooks)) as subscriptions:
        subscriptions.add(hook())
    folder.queries.write_text('{"query": "ferry"}\n', encoding="utf-8")
    return folder


def hook() -> Subscription:
    return Subscription(id="mail", url="https://example.org/hook", after=(3,))


def everything(folder: DataFolder) -> dict[str, Any]:
    """Pages with their visits and estimates, versions, the change log of each shard with its positions, what is due
    and what was refused, notifications; after its invariants are checked."""
    with closing(open_reading_store(folder)) as store:
        check_invariants(store)
        documents = list(store.scan())
        pages = {url: store.page(url) for url in sorted(store.urls_like("http", 10_000))}
        stats = store.stats(1e6)
        found = {
            "documents": {each.url: each for each in documents},
            "versions": {url: [store.document(url, each.version) for each in store.versions(url)] for url in pages},
            "pages": pages,
            "log": [shard.change_log(0, 10_000) for shard in store.logs],
            "changes": [[(each.seq, each.url) for each in shard.changes(0, 10_000)] for shard in store.logs],
            "stats": {name: getattr(stats, name) for name in stats.__struct_fields__ if name != "bytes"},
            "sites": {page.site: store.site(page.site) for page in pages.values() if page},
        }
    if folder.hooks.exists():
        with closing(sqlite3.connect(f"{folder.hooks.absolute().as_uri()}?mode=ro", uri=True)) as hooks:
            found["hooks"] = hooks.execute("SELECT * FROM hooks").fetchall()
    return found
