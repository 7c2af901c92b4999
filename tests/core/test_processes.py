"""Memory that two processes share, and memory that a process gives back."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import subprocess
import sys

import pytest

from levada.core.processes import shared_file


def forbidden(_name: str) -> int:
    raise PermissionError(errno.EPERM, "not in this container")


@pytest.fixture(params=["memory", "forbidden", "missing"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "forbidden":
        monkeypatch.setattr(os, "memfd_create", forbidden, raising=False)
    elif request.param == "missing":
        monkeypatch.delattr(os, "memfd_create", raising=False)


@pytest.mark.usefixtures("_system")
def test_what_is_written_through_one_map_is_read_through_another() -> None:
    with shared_file(5_000) as file:
        assert os.fstat(file.fileno()).st_size == 5_000
        with mmap.mmap(file.fileno(), 5_000) as one, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as other:
            assert other[:] == bytes(5_000)
            one[10:14] = b"page"
            assert other[8:16] == b"\0\0page\0\0"


@pytest.mark.usefixtures("_system")
def test_no_room_is_an_error_here_and_not_when_it_is_used() -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            shared_file(100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


KEPT = """
import sys
from pathlib import Path
from levada.core.processes import FreedMemory, tune_allocator

def held() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

tune_allocator()
freed = FreedMemory(1_000)
before = held()
pieces = [bytes(3_000) for _ in range(20_000)]
del pieces[:-1]  # the last one keeps the heap from shrinking at its end
freed.passed(999)
kept = held() - before
freed.passed(1)
print(kept, held() - before)
"""


def test_freed_memory_goes_back_once_enough_has_passed() -> None:
    said = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True).stdout
    kept, left = map(int, said.split())
    assert kept > 40_000_000
    assert left < kept / 4
