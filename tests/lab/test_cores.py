"""Runs on all cores end at once when they are no longer wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from levada.core.errors import LevadaError, UsageError
from levada.lab.parallel import on_all_cores

FOREVER = 600.0
PROGRAM = """
import time
from levada.lab.parallel import on_all_cores
from tests.lab.test_cores import linger

if __name__ == "__main__":
    on_all_cores(linger, [({folder!r}, number) for number in range(4)], str, processes=2)
"""


def linger(job: tuple[str, int]) -> None:
    folder, number = job
    Path(folder, f"{number}-{os.getpid()}").touch()
    time.sleep(FOREVER)


def double(number: int) -> int:
    return 2 * number


def complain(number: int) -> int:
    if number == 0:
        raise UsageError("not this one")
    time.sleep(FOREVER)
    return number


def die(number: int) -> int:
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_was_found_comes_in_the_order_of_the_jobs(processes: int) -> None:
    assert on_all_cores(double, [3, 1, 2], str, processes=processes) == [6, 2, 4]


def test_somebody_watches() -> None:
    told: list[tuple[int, int]] = []
    on_all_cores(double, [3, 1, 2], str, lambda done, total, _: told.append((done, total)), processes=2)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_first_error_ends_the_others_as_well() -> None:
    before = active_children()
    with pytest.raises(UsageError, match="not this one"):
        on_all_cores(complain, [0, 1, 2, 3], str, processes=2)
    assert active_children() == before


def test_a_process_that_dies_is_one_clear_line() -> None:
    with pytest.raises(LevadaError, match="is there enough memory"):
        on_all_cores(die, [1, 2], str, processes=2)


@pytest.mark.parametrize("whom", ["all", "parent"])
def test_ctrl_c_ends_runs_under_way_and_leaves_nobody_behind(whom: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folder=str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, str(program)], env=environment, stderr=subprocess.PIPE, start_new_session=True
    ) as started:
        deadline = time.monotonic() + 60.0
        while len(list(tmp_path.glob("*-*"))) < 2:
            assert time.monotonic() < deadline
            assert started.poll() is None
            time.sleep(0.02)
        (os.killpg if whom == "all" else os.kill)(started.pid, signal.SIGINT)
        _, said = started.communicate(timeout=60.0)
    assert said.count(b"KeyboardInterrupt") == 1  # the program's own; its children say nothing
    for marked in tmp_path.glob("*-*"):
        assert not Path("/proc", marked.name.partition("-")[2]).exists()
