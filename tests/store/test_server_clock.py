"""Machines go by the clock of the database."""

from __future__ import annotations

import time

import pytest

from levada.core.errors import StoreError
from levada.store.postgresql.server_clock import clock_ahead, told

pytest_plugins = ["tests.servers.fixtures"]


@pytest.mark.parametrize("off", [3_600.0, -3_600.0, 30.0])
def test_a_wrong_clock_is_measured(postgresql: str, off: float) -> None:
    assert clock_ahead(postgresql, lambda: time.time() + off) == pytest.approx(off, abs=1.0)


def test_a_right_clock_is_left_alone(postgresql: str) -> None:
    assert clock_ahead(postgresql, time.time) == 0.0


def test_a_server_that_is_away_is_said() -> None:
    with pytest.raises(StoreError, match="is away"):
        clock_ahead("postgresql://nobody@127.0.0.1:9/none", time.time)


def test_the_sentence_says_which_way_and_what_to_do() -> None:
    assert "3,600 s ahead of" in told(3_600.2)
    assert "60 s behind" in told(-60.0)
    assert "timedatectl" in told(5.0)
