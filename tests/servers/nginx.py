"""nginx as a private server: one `server` block on loopback, for as long as a test wants it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import program
from tests.servers.private import Child, free_ports, wait_for_port

__all__ = ["nginx"]

_FOLDERS = ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")


@contextmanager
def nginx(folder: Path, block: str, *, tls: bool = False) -> Iterator[int]:
    """The port of a server with these lines in its block."""
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{path}:/usr/sbin"
    try:
        command = program("nginx")
    finally:
        os.environ["PATH"] = path
    folder.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    temporary = "".join(f"{each}_temp_path {folder}/{each};\n" for each in _FOLDERS)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log {folder}/access.log;\n{temporary}types {{ text/html html; }}\n"
        f"server {{\nlisten 127.0.0.1:{port}{' ssl' if tls else ''};\n{block}\n}}\n}}\n"
    )
    child = Child([command, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"], os.environ)
    try:
        wait_for_port(port, "nginx")
        yield port
    finally:
        child.end()
