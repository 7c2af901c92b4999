"""Options that the shard commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from levada.core.errors import LevadaError, UsageError

LogArgument = Annotated[Path, typer.Argument(metavar="LOG", help="Queries, one JSON line each (levada shard capture).")]
SampleArgument = Annotated[
    Path, typer.Argument(metavar="SAMPLE", help="Documents, oldest first: .jsonl, .csv, .parquet.")
]
CollectionOption = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="Of which; default: the most asked.")
]
IdOption = Annotated[str | None, typer.Option("--id", metavar="FIELD", help="The unique field; default: _id or id.")]
MutableOption = Annotated[
    list[str] | None, typer.Option("--mutable", metavar="FIELD", help="Changes, whatever the log says.")
]
ImmutableOption = Annotated[
    list[str] | None, typer.Option("--immutable", metavar="FIELD", help="Never changes, whatever the log says.")
]


def check_request(log: Path, mutable: Sequence[str] | None = None, immutable: Sequence[str] | None = None) -> None:
    if not log.is_file():
        raise LevadaError(f"there is no log of queries {log}")
    for name in mutable or ():
        if name in (immutable or ()):
            raise UsageError(f"--mutable and --immutable both name {name[:50]!r}: it changes, or it does not")


_SIZE = re.compile(r"(\d{1,12})\s*([kmg]?)b?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_LARGEST_KEY = 4096


def read_key(values: str, key: Path | None) -> bytes:
    """The key of the hashes, from this file; a random one without a file."""
    from secrets import token_bytes

    if values not in ("keep", "hash", "drop"):
        raise UsageError(f"--values {values[:50]!r} is none of keep, hash, drop")
    if key is None:
        return token_bytes(32)
    if values != "hash":
        raise UsageError("--hash-key is for --values hash")
    try:
        with key.open("rb") as file:
            secret = file.read(_LARGEST_KEY)
    except OSError as error:
        raise LevadaError(f"--hash-key: cannot read {key}: {error.strerror}") from None
    if len(secret) < 16:
        raise UsageError(f"--hash-key: {key} has less than 16 bytes: make one with head -c 32 /dev/urandom > {key}")
    return secret


def check_sample(sample: float) -> None:
    if not 0.0 < sample <= 1.0:
        raise UsageError(f"--sample must be above 0 and at most 1, not {sample}")


def parse_size(typed: str, option: str) -> int:
    found = _SIZE.fullmatch(typed.strip())
    size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if size < 1:
        raise UsageError(f"{option} {typed[:50]!r} is no size, such as 500KB, 100MB or 2GB")
    return size


def parse_address(typed: str, option: str, host: str | None = None) -> tuple[str, int]:
    """HOST:PORT, or PORT alone where `host` is understood; [::1]:27017 for IPv6."""
    before, _, port = typed.rpartition(":")
    name = before.removeprefix("[").removesuffix("]") or host
    if name is None or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        shape = "PORT or HOST:PORT" if host else "HOST:PORT"
        raise UsageError(f"{option} {typed[:80]!r} is no address: {shape}")
    return name, int(port)
