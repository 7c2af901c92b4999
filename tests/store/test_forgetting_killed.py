"""A forget killed before any statement is finished by the next one: on three shards, and on PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]


def killed(*arguments: str) -> int:
    command = [sys.executable, "-m", "tests.store.kill_forgetting", *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.timeout(300)
def test_on_three_shards_that_share_the_site(tmp_path: Path) -> None:
    assert killed(str(tmp_path)) > 60


@pytest.mark.timeout(300)
def test_on_a_server(tmp_path: Path, postgresql: str) -> None:
    assert killed(str(tmp_path), postgresql) > 20
