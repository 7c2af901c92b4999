"""How does the crawl in a data folder stand? What it wrote there, and whether it still runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from socket import gethostname

import msgspec
from msgspec import structs

from levada.flow.live import LiveStatus

__all__ = ["live_content", "read_live"]

_SILENT = 10.0  # seconds after which a crawl of another machine, which writes every second, is taken for dead


class _Written(LiveStatus, frozen=True, kw_only=True):
    host: str


class _Host(msgspec.Struct):
    host: str = ""


def live_content(status: LiveStatus) -> bytes:
    """What to write of it; this machine's name goes with it."""
    return msgspec.json.encode(_Written(host=gethostname(), **structs.asdict(status)))


def read_live(path: Path) -> LiveStatus | None:
    """As it was written last; None if whoever wrote it is gone."""
    try:
        content, written_at = path.read_bytes(), path.stat().st_mtime
        status, host = msgspec.json.decode(content, type=LiveStatus), msgspec.json.decode(content, type=_Host).host
    except (OSError, msgspec.MsgspecError):
        return None
    if host not in ("", gethostname()):  # another machine shares the folder: its processes cannot be looked up
        return status if time.time() - written_at < _SILENT else None
    return status if _is_alive(status.pid) else None


def _is_alive(pid: int) -> bool:
    """A crawl that was killed leaves its last words behind."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
