"""`levada` as a user runs it: its own process, its output and its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from levada.store.sqlite import SqliteStore

__all__ = ["Ended", "contents", "levada", "one_line", "started", "what_it_said"]

Ended = subprocess.CompletedProcess[str]
COMMAND = (sys.executable, "-m", "levada")


def levada(
    *arguments: str | Path, cwd: Path, before: Callable[[], None] | None = None, through: Sequence[str] = ()
) -> Ended:
    """Run to the end; `before` runs in the child first, `through` is a command that starts it."""
    command = [*through, *COMMAND, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, preexec_fn=before)


def started(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Running, in a process group of its own, its output in pipes."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )


def what_it_said(running: subprocess.Popen[str], seconds: float = 15.0) -> tuple[str, str]:
    """Its output and its errors, once it has ended; where it hangs if it does not."""
    try:
        return running.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGABRT)
        pytest.fail(f"it does not end:\n{running.communicate(timeout=seconds)[1]}")


def one_line(ended: Ended, code: int) -> str:
    """What it said on standard error: exactly one line, for a person."""
    assert ended.returncode == code, ended.stderr or ended.stdout
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("levada: ")
    assert "Traceback" not in ended.stdout
    return lines[0]


def contents(data: Path) -> dict[str, tuple[int, str]]:
    """Version and text of every stored page."""
    store = SqliteStore.open_reader(data / "levada.db")
    try:
        return {document.url: (document.version, document.text) for document in store.scan()}
    finally:
        store.close()
