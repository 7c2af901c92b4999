"""The search index contract, run on every index."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from levada.core.protocols import Index
from levada.search.memory import MemoryIndex
from levada.search.opensearch.index import OpenSearchIndex
from levada.search.tantivy.index import TantivyIndex
from levada.testing import IndexContract


class TestMemory(IndexContract):
    kept: ClassVar[dict[Path, MemoryIndex]] = {}  # by folder: what is in memory cannot be opened again

    def make(self, folder: Path) -> Index:
        return self.kept.setdefault(folder, MemoryIndex())


class TestTantivy(IndexContract):
    def make(self, folder: Path) -> Index:
        return TantivyIndex(folder, writer=True, heap_bytes=16 << 20)


class TestOpenSearch(IndexContract):
    address: ClassVar[str]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, opensearch: str) -> None:
        cls.address = opensearch

    def make(self, folder: Path) -> Index:
        return OpenSearchIndex({"hosts": [self.address]}, path=folder, writer=True)
