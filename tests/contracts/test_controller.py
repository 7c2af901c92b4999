"""The controller contract, run on every sizing rule."""

from __future__ import annotations

import pytest

from levada.stages import CONTROLLERS, SizingRule, rule_named
from levada.testing import ControllerContract


class TestControllers(ControllerContract):
    @pytest.fixture(autouse=True, params=CONTROLLERS)
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self, least: int, most: int) -> SizingRule:
        return rule_named(self.name, least, most)
