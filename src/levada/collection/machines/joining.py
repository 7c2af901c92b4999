"""A control without a data folder: all that its collection needs is on servers, and other controls may share it.

The folder that it works in is new at each start, and gone at its end. So such a control can run anywhere, and any
number of them: what they have in common is in PostgreSQL, the index in OpenSearch, bodies where `store.bodies` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from levada.collection.storage.mirror import must_be_searchable
from levada.core.errors import UsageError
from levada.core.folder import DataFolder
from levada.core.settings import saved_settings
from levada.store.bodies.opening import join_place
from levada.store.opening import NAME, place_if_new
from levada.store.sharded.plan import PlanFile
from levada.store.workplace import share

if TYPE_CHECKING:
    from levada.core.configuration.layers import Given


@contextmanager
def joined(dsn: str, name: str, given: Given) -> Iterator[Path]:
    """A folder of the collection of this name, which is made if the server does not know it yet."""
    from levada.store.postgresql.shared_plan import SharedPlan, making, shared_names

    if not NAME.fullmatch(name):
        raise UsageError(
            f"--collection {name[:50]!r}: without a data folder a collection is named by sixteen of the signs 0 to 9 "
            "and a to f, as 'openssl rand -hex 8' makes them"
        )
    with TemporaryDirectory(prefix="levada-control-") as path:
        folder = DataFolder(Path(path) / name, given)
        folder.make()
        (folder.path / "collection").write_text(name, encoding="ascii")
        with making(dsn, name):  # two that start at the same time make one collection
            if name in shared_names(dsn):
                with closing(SharedPlan(dsn, name)) as plan, closing(PlanFile(folder.placement)) as file:
                    kept = saved_settings(plan.settings() or b"")
                    file.replace(plan.read())
                folder.mirror_settings(kept, "the controls before")
                join_place(folder, kept.store.bodies, kept.bodies)
            else:
                _make(folder)
        must_be_searchable(name, folder.settings())
        yield folder.path


def _make(folder: DataFolder) -> None:
    settings = folder.settings()
    if not settings.store.servers:
        raise UsageError(
            "the collection is not there yet: name its servers as store.servers in the settings (--config)"
        )
    must_be_searchable(folder.path.name, settings)
    place_if_new(folder, settings.store)
    folder.save_settings(settings)
    share(folder, settings)
