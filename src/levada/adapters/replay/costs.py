"""What did the database's processes cost: CPU seconds and memory?

Read from /proc where the server runs on this machine and its processes can be seen. Else it is not known; then the
server itself says for how long its sessions were busy, which is no less than that (PostgreSQL 14 and newer).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

__all__ = ["backend_pid", "busy_seconds", "cpu_seconds", "memory_bytes"]

_PROC = Path("/proc")
_COUNTS_BUSY = 140_000
_USER_TIME, _SYSTEM_TIME = 11, 12  # of what follows the name in /proc/PID/stat


def backend_pid(connection: psycopg.Connection[Any]) -> int | None:
    """The process that serves this connection, if it is one of this machine."""
    pid = connection.info.backend_pid
    if not _is_here(connection.info.host, connection.info.hostaddr):
        return None
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    return pid if words.startswith(b"postgres") else None


def cpu_seconds(pids: Sequence[int | None]) -> float | None:
    """Of all of them since they began; None where one cannot be seen."""
    spent = [None if pid is None else _on_cpu(pid) for pid in pids]
    known = [each for each in spent if each is not None]
    return sum(known) if known and len(known) == len(spent) else None


def memory_bytes(pids: Sequence[int | None]) -> int | None:
    """What they hold of their own, and the most that one of them has touched of what they share."""
    facts = [_status(pid) for pid in pids if pid is not None]
    if not facts or len(facts) < len(pids) or not all(facts):
        return None
    return sum(each["RssAnon"] for each in facts) + max(each["RssShmem"] for each in facts)


def busy_seconds(connection: psycopg.Connection[Any]) -> float | None:
    """For how long statements were run in this database, all sessions together, since the server counts."""
    if connection.info.server_version < _COUNTS_BUSY:
        return None
    sql = "SELECT active_time / 1000 FROM pg_stat_database WHERE datname = current_database()"
    row = connection.execute(sql).fetchone()
    return float(row[0]) if row else None


def _is_here(host: str, address: str) -> bool:
    if host.startswith(("/", "@")) or not (host or address):
        return True
    try:
        return ip_address(address or host).is_loopback
    except ValueError:
        return host == "localhost"


def _on_cpu(pid: int) -> float | None:
    """By the scheduler, to the nanosecond; where it keeps no such books, in ticks."""
    try:
        return int((_PROC / str(pid) / "schedstat").read_bytes().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return _ticks(pid)


def _ticks(pid: int) -> float | None:
    try:
        after_name = (_PROC / str(pid) / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        ticks = int(after_name[_USER_TIME]) + int(after_name[_SYSTEM_TIME])
    except (OSError, ValueError, IndexError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def _status(pid: int) -> dict[str, int]:
    """In bytes; nothing where the process cannot be seen."""
    try:
        lines = (_PROC / str(pid) / "status").read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        if name in ("RssAnon", "RssShmem"):
            found[name] = int(rest.split()[0]) * 1024
    return found if len(found) == 2 else {}
