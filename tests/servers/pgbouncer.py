"""PgBouncer as a private pool before a PostgreSQL, in transaction mode."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import missing
from tests.servers.postgresql import own_folder
from tests.servers.private import Child, free_ports, wait_for_port

__all__ = ["pgbouncer"]


@contextmanager
def pgbouncer(folder: Path, port: int) -> Iterator[int]:
    """The port of a pool of two sessions with the server at `port`: fewer than there are clients."""
    command = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if command is None:
        missing("pgbouncer is not installed: run tests/servers/install.sh as root, or install it yourself")
    own = own_folder(folder)
    (listening,) = free_ports(1)
    (own / "users").write_text('"postgres" ""\n')
    (own / "pgbouncer.ini").write_text(
        f"""[databases]
postgres = host=127.0.0.1 port={port} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listening}
unix_socket_dir =
auth_type = trust
auth_file = {own}/users
pool_mode = transaction
default_pool_size = 2
server_reset_query =
{"user = postgres" if os.geteuid() == 0 else ""}
"""
    )
    for each in (own, own / "users", own / "pgbouncer.ini"):
        each.chmod(0o755)
    child = Child([command, own / "pgbouncer.ini"], os.environ)
    try:
        wait_for_port(listening, "pgbouncer")
        yield listening
    finally:
        child.end()
        shutil.rmtree(own, ignore_errors=True)
