"""A server that test processes share runs until the last of them has gone, however it went."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.servers.holding import held

ROOT = Path(__file__).parents[2]

_HOLD = """
import sys
from pathlib import Path
from tests.servers.holding import held
with held("pretended", Path(sys.argv[1])) as address:
    print(address, flush=True)
    sys.stdin.read()
"""


def runs(pipe: IO[bytes]) -> bool:
    """Whether the server still holds the other end."""
    os.set_blocking(pipe.fileno(), False)
    try:
        return bool(os.read(pipe.fileno(), 1))
    except BlockingIOError:
        return True
    finally:
        os.set_blocking(pipe.fileno(), True)


def test_holders_share_one_server_and_the_last_one_ends_it(tmp_path: Path) -> None:
    first, second = held("pretended", tmp_path), held("pretended", tmp_path)
    address = first.__enter__()
    with open(address, "rb") as pipe:
        assert second.__enter__() == address
        first.__exit__(None, None, None)
        assert runs(pipe)
        second.__exit__(None, None, None)
        assert pipe.read() == b""  # returns when the server has ended


def test_a_holder_that_is_killed_has_let_go(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        with open(holder.stdout.readline().strip(), "rb") as pipe:
            assert runs(pipe)
            holder.kill()
            assert pipe.read() == b""


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    crowded = tmp_path / "crowded"
    crowded.mkdir()
    with (
        pytest.raises(RuntimeError, match="pretended does not start: failed: no port is free"),
        held("pretended", crowded),
    ):
        raise AssertionError("nothing started")
