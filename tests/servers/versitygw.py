"""An S3 server (versitygw) over a folder, as a private server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from levada.core.settings import BodiesSettings
from tests.servers.private import Child, free_ports, wait_for_port

__all__ = ["ACCESS_KEY", "BUCKET", "SECRET_KEY", "Server", "s3_settings", "use_keys"]

ACCESS_KEY = "levada-tests"
SECRET_KEY = "no-secret-at-all"
BUCKET = "levada"
_VERSION = "v1.8.0"


def program() -> str | None:
    """The program: in the path, or where tests/servers/install-go.sh keeps it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    kept = cache / "levada-tests" / f"versitygw-{_VERSION}"
    return str(kept) if kept.exists() else shutil.which("versitygw")


def s3_settings(endpoint: str, **given: Any) -> BodiesSettings:
    """How to reach this server. The keys stand in the environment: see the fixture `s3`."""
    return BodiesSettings(endpoint=endpoint, **given)


def use_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the keys where programs of AWS look for them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


class Server:
    def __init__(self) -> None:
        self._child: Child | None = None

    @staticmethod
    def installed() -> bool:
        return program() is not None

    def start(self, folder: Path, port: int = 0) -> str:
        port = port or free_ports(1)[0]
        buckets, side = folder / "buckets", folder / "sidecar"
        (buckets / BUCKET).mkdir(parents=True, exist_ok=True)  # a folder is a bucket
        side.mkdir(exist_ok=True)  # instead of extended attributes, which not every disk has
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        asked = ["--port", f"127.0.0.1:{port}", "--quiet", "posix", "--sidecar", str(side), str(buckets)]
        self._child = Child([program() or "versitygw", *asked], {**os.environ, **keys})
        wait_for_port(port, "versitygw")
        return f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        if self._child is not None:
            self._child.end()
