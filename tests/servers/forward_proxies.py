"""Forward proxies as private servers: tinyproxy for HTTP, microsocks for SOCKS5, and what they were asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import program
from tests.servers.private import Child, free_ports, wait_for_port

__all__ = ["ForwardProxy", "socks_proxy", "tinyproxy"]

_ASKED = re.compile(r"(?:Request \(file descriptor \d+\): |connected to )(.+)")


@dataclass
class ForwardProxy:
    port: int
    log: Path
    child: Child

    def asked(self) -> list[str]:
        """What it was asked for, in its own words: `CONNECT 127.0.0.1:443 HTTP/1.1`, or `127.0.0.1:443`."""
        return _ASKED.findall(self.log.read_text(errors="replace"))

    def end(self) -> None:
        self.child.end()


@contextmanager
def tinyproxy(folder: Path, *, login: str = "", ports: str = "", port: int = 0) -> Iterator[ForwardProxy]:
    """An HTTP proxy. `login`: the user and password that it asks for; `ports`: the only ones it opens tunnels to."""
    command = program("tinyproxy")
    folder.mkdir(exist_ok=True)
    port = port or free_ports(1)[0]
    log = folder / "log"
    lines = [f"Port {port}", "Listen 127.0.0.1", "Timeout 60", f'LogFile "{log}"', "LogLevel Connect", "MaxClients 50"]
    lines += [f"BasicAuth {login}"] if login else []
    lines += [f"ConnectPort {each}" for each in ports.split()]
    (folder / "tinyproxy.conf").write_text("\n".join(lines) + "\n")
    yield from _running(ForwardProxy(port, log, Child([command, "-d", "-c", folder / "tinyproxy.conf"], os.environ)))


@contextmanager
def socks_proxy(folder: Path, *, login: str = "", port: int = 0) -> Iterator[ForwardProxy]:
    """A SOCKS5 proxy. `login`: the user and password that it asks for, in two words."""
    command = program("microsocks")
    folder.mkdir(exist_ok=True)
    port = port or free_ports(1)[0]
    user, _, password = login.partition(" ")
    options = ["-u", user, "-P", password] if login else []
    log = folder / "log"
    script = f'exec "$0" "$@" 2>"{log}"'
    child = Child(["/bin/sh", "-c", script, command, "-i", "127.0.0.1", "-p", str(port), *options], os.environ)
    yield from _running(ForwardProxy(port, log, child))


def _running(proxy: ForwardProxy) -> Iterator[ForwardProxy]:
    try:
        wait_for_port(proxy.port, "a proxy")
        yield proxy
    finally:
        proxy.end()
