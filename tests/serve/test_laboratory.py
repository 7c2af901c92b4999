"""The laboratory runs one part at a time, and keeps what it found and what went wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from levada.core.errors import StoreLocked
from levada.serve.lab_runs import Laboratory

CLAIM = '{"name": "a", "printed": 2.0, "band": [1.0, 3.0], "measured": 2.5, "verdict": "holds", "note": ""}'


def program(path: Path, body: str) -> tuple[str, str]:
    path.write_text(body)
    return sys.executable, str(path)


def ended(laboratory: Laboratory) -> None:
    assert laboratory._running is not None
    laboratory._running[1].wait(20)


def test_a_run_leaves_its_figures_for_later(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    first = Laboratory(lab, program(tmp_path / "ok.py", f'print(\'{{"claims": [{CLAIM}], "rows": []}}\')'))
    assert [part.ran_at for part in first.parts()] == [None] * 4
    first.start("stages")
    ended(first)
    assert not any(part.running for part in first.parts())
    told = {part.part: part for part in Laboratory(lab).parts()}
    assert [claim.measured for claim in told["stages"].claims] == [2.5]
    assert told["stages"].ran_at is not None


def test_a_run_that_fails_says_why_and_leaves_what_was_there(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "freshness.json").write_text(f'{{"claims": [{CLAIM}]}}')
    runs = Laboratory(lab, program(tmp_path / "bad.py", "import sys; sys.exit('levada: numba is not installed')"))
    runs.start("freshness")
    ended(runs)
    told = next(part for part in runs.parts() if part.part == "freshness")
    assert told.trouble == "levada: numba is not installed"
    assert len(told.claims) == 1


def test_one_at_a_time(tmp_path: Path) -> None:
    runs = Laboratory(tmp_path / "lab", program(tmp_path / "long.py", "import signal; signal.pause()"))
    runs.start("grouping")
    with pytest.raises(StoreLocked, match="grouping"):
        runs.start("stages")
    assert [part.part for part in runs.parts() if part.running] == ["grouping"]
    runs.close()
    assert runs.running() is None


def test_figures_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    (tmp_path / "stages.json").write_text("[1")
    assert all(not part.claims for part in Laboratory(tmp_path).parts())


def test_no_process_of_a_run_outlives_the_server(tmp_path: Path) -> None:
    body = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    runs = Laboratory(tmp_path / "lab", program(tmp_path / "family.py", body))
    runs.start("stages")
    assert runs._running is not None
    group = runs._running[1].pid
    while not (tmp_path / "lab" / "stages.new").read_bytes():  # until the child is there
        assert runs._running[1].poll() is None
    runs.close()
    while _is_there(group):  # a moment until the kernel has buried them
        pass


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
