"""The grouping contract, run on every method."""

from __future__ import annotations

import pytest

from levada.grouping import METHODS, Grouping, KeyedHash, MurmurHash, grouping_named
from levada.testing import GroupingContract


class _Hashes:
    first, second, keyed = MurmurHash(13), MurmurHash(17), KeyedHash(b"secret")


class TestMethods(GroupingContract):
    @pytest.fixture(autouse=True, params=METHODS)
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self, workers: int) -> Grouping:
        return grouping_named(self.name, workers, _Hashes())
