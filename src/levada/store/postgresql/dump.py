"""Dumping a schema of a PostgreSQL store to a file with `pg_dump`, and restoring it with `pg_restore`.

Both are programs of PostgreSQL and need not be installed where Levada is. A dump is one consistent snapshot, taken
while others write. Passwords go to them in the environment, which other users cannot see, unlike arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from levada.core.errors import StoreError
from levada.core.files import replacing
from levada.core.protocols import Faults
from levada.store.faults import NoFaults
from levada.store.postgresql.connection import Address, translated

_VERSIONED = Path("/usr/lib/postgresql")  # where Debian keeps the programs of each version
_MOST_SAID = 300  # characters of an error message


def dump_schema(address: Address, target: Path, *, faults: Faults | None = None, operation: str = "dump") -> None:
    """Write the schema to `target`, in the custom format of `pg_dump`; it appears only when it is complete."""
    faults = faults or NoFaults()
    quoted = address.schema.replace('"', '""')
    options = ("--format=custom", "--no-owner", "--no-privileges", f'--schema="{quoted}"')
    try:
        with replacing(target, lambda step: faults.reach(f"{operation}.{step}")) as draft:
            _run("pg_dump", address, *options, f"--file={draft}")
    except OSError as error:
        raise translated(error, str(target)) from error


def restore_schema(address: Address, source: Path) -> None:
    """Create the schema of a dump, all of it or nothing. It must not be there yet."""
    _run("pg_restore", address, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(source))


def check_dump(source: Path) -> None:
    """Raise unless `pg_restore` can list what is in this dump."""
    _finish("pg_restore", [_program("pg_restore"), "--list", str(source)], dict(os.environ))


def _run(name: str, address: Address, *options: str) -> None:
    from psycopg.conninfo import make_conninfo

    parts = {key: value for key, value in address.parts.items() if key != "password"}
    if "," in f"{parts.get('host') or ''}{parts.get('hostaddr') or ''}":
        parts.setdefault("target_session_attrs", "read-write")
    environment = dict(os.environ)
    if password := address.parts.get("password"):
        environment["PGPASSWORD"] = str(password)
    _finish(name, [_program(name), f"--dbname={make_conninfo(**parts)}", "--no-password", *options], environment)


def _finish(name: str, command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(  # noqa: S603
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[:_MOST_SAID]
        raise StoreError(f"{name} failed ({said or f'exit status {done.returncode}'}): nothing was changed")


def _program(name: str) -> str:
    """The newest such program: an older one refuses a newer server."""
    found = sorted(_VERSIONED.glob(f"*/bin/{name}"), key=_version)
    program = str(found[-1]) if found else shutil.which(name)
    if program is None:
        raise StoreError(f"{name} is not installed: install the client programs of PostgreSQL (postgresql-client)")
    return program


def _version(path: Path) -> int:
    number = path.parent.parent.name
    return int(number) if number.isdigit() else 0
