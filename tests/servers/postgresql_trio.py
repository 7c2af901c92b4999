"""Three PostgreSQL instances, each with a port and a folder of its own."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.servers import postgresql
from tests.servers.postgresql import Cluster, copy_of, new_cluster, own_folder

__all__ = ["Server"]

_INSTANCES = 3


class Server:
    def __init__(self) -> None:
        self._clusters: list[Cluster] = []
        self._folder: Path | None = None

    @staticmethod
    def installed() -> bool:
        return postgresql.Server.installed()

    def start(self, folder: Path) -> str:
        """The three addresses, with spaces between."""
        self._folder = own_folder(folder)
        first = new_cluster(self._folder / "0")
        copies = [copy_of(first, self._folder / str(number)) for number in range(1, _INSTANCES)]
        self._clusters = [first, *copies]
        with ThreadPoolExecutor(_INSTANCES) as pool:
            list(pool.map(Cluster.start, self._clusters))
        return " ".join(each.address for each in self._clusters)

    def stop(self) -> None:
        for cluster in self._clusters:
            cluster.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
