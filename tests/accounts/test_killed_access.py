"""A process that is killed while it changes users or keys leaves the file as it was, or as it was to be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.accounts.kill_access import CHANGES, POINTS


def test_killed_at_any_point_a_change_is_done_with_its_line_in_the_log_or_not_at_all(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.accounts.kill_access", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert ended.returncode == 0, ended.stderr
    whole = dict.fromkeys(POINTS, "before") | {"after-commit": "after"}
    assert json.loads(ended.stdout) == dict.fromkeys(CHANGES, whole)
