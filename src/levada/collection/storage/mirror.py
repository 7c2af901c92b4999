"""A folder that stands for a collection on servers: what a machine without the data folder serves from.

It holds the name, the plan and the settings of the collection, in the files that a data folder has, and follows them
while it is used. Pages are read from PostgreSQL and searched in OpenSearch, and commands go to PostgreSQL. What only
the data folder has (notifications, term counts, users) is not here, and nothing is crawled from it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from levada.core.errors import LevadaError, UsageError
from levada.core.folder import DataFolder
from levada.follow.index import spans_shards
from levada.store.sharded.plan import PlanFile
from levada.store.workplace import WorkPlace, server_workplace

if TYPE_CHECKING:
    from levada.core.settings import Settings
    from levada.store.postgresql.shared_plan import SharedPlan
    from levada.store.sharded.plan import PlacementRecord

log = logging.getLogger(__name__)

_LOOK = 2.0  # seconds between two looks at the plan and the settings


@contextmanager
def mirrored(dsn: str, name: str | None = None) -> Iterator[DataFolder]:
    """The folder of the collection of this name on this server, or of its only one; gone afterwards."""
    from levada.store.postgresql.shared_plan import SharedPlan

    with (
        closing(server_workplace(dsn, name)) as place,
        TemporaryDirectory(prefix="levada-served-") as path,
        closing(SharedPlan(dsn, place.name)) as plan,
    ):
        must_be_searchable(place.name, place.settings)
        # Named as the collection, for it is shown.
        mirror = _Mirror(DataFolder(Path(path) / place.name), place, plan)
        with closing(mirror):
            yield mirror.folder


def must_be_searchable(name: str, settings: Settings) -> None:
    if not spans_shards(settings.index.engine):
        raise UsageError(
            f"the index of the collection {name} lies in the data folder of the machine that crawls "
            f'(index.engine is "{settings.index.engine}"): set index.engine = "opensearch" there, and crawl once'
        )


class _Mirror:
    """The files, and the thread that keeps them as the server's are."""

    def __init__(self, folder: DataFolder, place: WorkPlace, plan: SharedPlan) -> None:
        self.folder = folder
        self._place = place
        self._plan = plan
        self._record: PlacementRecord | None = None
        self._settings: Settings | None = None
        self._ending = threading.Event()
        folder.make()
        (folder.path / "collection").write_text(place.name, encoding="ascii")
        folder.mirror_file.touch()
        self._renew()
        self._thread = threading.Thread(target=self._follow, name="mirror", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _follow(self) -> None:
        trouble = ""
        while not self._ending.wait(_LOOK):
            try:
                self._renew()
                trouble = ""
            except LevadaError as error:  # what was known is good for reading on
                if str(error) != trouble:
                    trouble = str(error)
                    log.warning("the plan and the settings stay as they are: %s", error)

    def _renew(self) -> None:
        record, settings = self._plan.read(), self._place.settings_now()
        if record != self._record:
            with closing(PlanFile(self.folder.placement)) as file:
                file.replace(record)
            self._record = record
        if self._settings is None or msgspec.json.encode(settings) != msgspec.json.encode(self._settings):
            self.folder.mirror_settings(settings, "the machine that crawls")
            self._settings = settings
