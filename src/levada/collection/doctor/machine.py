"""Checks of the machine, its servers and the size of the installation."""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from ipaddress import ip_address
from pathlib import Path

import msgspec

from levada import __version__
from levada.collection.doctor.checks import Check, failed, fine, worrying
from levada.core.clock import SystemClock
from levada.core.durations import moment
from levada.core.errors import LevadaError
from levada.core.settings import Settings
from levada.core.words import size

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


class Package(msgspec.Struct, frozen=True):
    name: str
    version: str
    bytes: int


def requirements_of(name: str) -> list[tuple[str, str, bool]]:
    """What `name` requires: each name, the wanted versions, and whether only some machines need it."""
    needed = []
    for line in _requires(name):
        found = _REQUIREMENT.match(line)
        marker = found[3] if found else None
        if found and not (marker and _EXTRA.search(marker)):
            needed.append((found[1], found[2].strip(), marker is not None))
    return needed


def extras_of(name: str) -> dict[str, list[str]]:
    """The packages that each extra brings."""
    extras: dict[str, list[str]] = {}
    for line in _requires(name):
        found = _REQUIREMENT.match(line)
        extra = _EXTRA.search(found[3] or "") if found else None
        if found and extra:
            extras.setdefault(extra[1], []).append(found[1])
    return extras


def installed_packages(name: str) -> list[Package]:
    """`name` and all that it requires, the largest first."""
    waiting, found = [name], {}
    while waiting:
        here = waiting.pop()
        key = re.sub(r"[-_.]+", "-", here).lower()
        if key in found:
            continue
        try:
            known = distribution(here)
        except PackageNotFoundError:
            continue  # needed on other machines only; a missing one is a check of its own
        # The record of a source folder has the version of the day on which it was installed.
        number = __version__ if key == "levada" else known.version
        found[key] = Package(known.metadata["Name"], number, _weight(known))
        waiting += [each for each, _, _ in requirements_of(here)]
    return sorted(found.values(), key=lambda package: (-package.bytes, package.name.lower()))


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:  # run from a source folder that was never installed
        return []


def _weight(known: Distribution) -> int:
    files = known.files or []
    total = sum(_size(Path(str(file.locate()))) for file in files)
    if known.metadata["Name"] == "levada" and not any(file.name == "folder.py" for file in files):
        # Installed from its own source folder: its files are not in the record.
        source = Path(__file__).parents[2]
        total += sum(_size(path) for path in source.rglob("*") if path.suffix != ".pyc")
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


_LEAST = 12  # the oldest PostgreSQL that has what the store asks for
_PLACE = "PostgreSQL"


def server_checks(settings: Settings) -> Iterator[Check]:
    """Whether the PostgreSQL servers of the settings can be reached, and are new enough."""
    for dsn in settings.store.servers:
        yield _reached(dsn)


def _reached(dsn: str) -> Check:
    from levada.store.postgresql.connection import Address

    try:
        address = Address(dsn, "levada")
        with address.connect() as connection:
            number = connection.info.server_version // 10_000
    except LevadaError as error:
        return failed(_PLACE, str(error), "see store.servers in the settings")
    found = f"{number} {address.place.removeprefix('PostgreSQL ').partition(' (schema ')[0]}"
    return fine(_PLACE, found) if number >= _LEAST else failed(_PLACE, found, f"{_LEAST} or newer is needed")


_PYTHON = (3, 11)
_SQLITE = (3, 35, 0)
_HTTP2, _BROTLI, _ZSTD, _TLS = 1 << 16, 1 << 23, 1 << 26, 1 << 2
_ENOUGH_DISK, _HARDLY_ANY_DISK = 1 << 30, 50 << 20
_SPARE_FILES = 64  # database, index, logs, pipes to the children
_EARLIEST, _LATEST = 1_735_689_600.0, 4_102_444_800.0  # 2025, 2100
_FOR_USERS = {  # what each extra is for
    "parquet": "export --parquet",
    "warc": "export --warc",
    "text": "text of articles without what surrounds it",
    "lab": "lab, simulate, pictures",
    "rabbitmq": "control, work",
    "keda": "control --keda",
    "kafka": "grouping in Kafka",
    "postgresql": "store.servers, shard replay, capture of PostgreSQL",
    "mongodb": "capture of compressed traffic of MongoDB",
    "bulk": "load and warm into files",
    "mariadb": "load from MariaDB and MySQL",
    "redis": "load and warm into Redis",
    "otel": "traces",
}


def machine_checks(data: Path, settings: Settings) -> Iterator[Check]:
    """Whether Python, the packages, curl, SQLite, the disk, the limits and the clock are as needed."""
    yield _python()
    yield from _dependencies()
    yield from _extras()
    yield from _curl()
    yield _sqlite()
    yield _disk(data)
    yield _open_files(settings)
    yield _clock()
    yield _localhost()


def _python() -> Check:
    found = sys.version.split()[0]
    if sys.version_info[:2] >= _PYTHON:
        return fine("Python", found)
    return failed("Python", found, "Levada needs Python 3.11 or newer")


def _dependencies() -> Iterator[Check]:
    known, wrong = [], 0
    for name, wanted, elsewhere in requirements_of("levada"):
        try:
            found = version(name)
        except PackageNotFoundError:
            if not elsewhere:
                wrong += 1
                yield failed(name, "not installed", f"pip install '{name}{wanted}'")
            continue
        if not _satisfies(found, wanted):
            wrong += 1
            yield failed(name, f"{found}, but {wanted} is needed", f"pip install '{name}{wanted}'")
        known.append(f"{name} {found}")
    if not wrong:
        yield fine("packages", ", ".join(known))


def _satisfies(found: str, wanted: str) -> bool:
    least = re.search(r">=\s*([0-9.]+)", wanted)
    return least is None or _numbers(found) >= _numbers(least[1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:4])


def _extras() -> Iterator[Check]:
    extras = extras_of("levada")
    for extra, use in _FOR_USERS.items():
        if extra not in extras:  # installed from a source folder before there was such a one
            continue
        there, missing = _split(extras[extra])
        if there and not missing:
            yield fine(f"extra {extra}", ", ".join(there))
        elif there:
            found = f"{', '.join(there)}; without {', '.join(missing)}"
            yield worrying(f"extra {extra}", found, f"for {use}: pip install 'levada[{extra}]'")
        else:
            yield fine(f"extra {extra}", "not installed", f"for {use}: pip install 'levada[{extra}]'")


def _split(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that are installed, with their versions, and those that are not."""
    there, missing = [], []
    for name in names:
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    return there, missing


def _curl() -> Iterator[Check]:
    try:
        import pycurl
    except ImportError as error:
        yield failed("curl", f"cannot be loaded ({error})", "pip install --force-reinstall pycurl")
        return
    about = pycurl.version_info()
    bits, tls = about[4], about[5]
    features = [("HTTP/2", _HTTP2), ("brotli", _BROTLI), ("zstd", _ZSTD)]
    there = [name for name, bit in features if bits & bit]
    missing = [name for name, bit in features if not bits & bit]
    found = f"{about[1]}, {tls or 'no TLS'}, {', '.join(there) or 'nothing more'}"
    if not bits & _TLS:
        yield failed("curl", found, "without TLS no https page can be fetched: install a pycurl wheel from PyPI")
    elif missing:
        yield fine("curl", f"{found}; without {', '.join(missing)}")
    else:
        yield fine("curl", found)
    yield _authorities()


def _authorities() -> Check:
    from levada.fetch.curl import trusted_certificates

    if found := trusted_certificates():
        return fine("authorities", found)
    advice = "install your system's ca-certificates, or name a file in SSL_CERT_FILE: https pages fail without"
    return worrying("authorities", "no file of trusted certificates found", advice)


def _sqlite() -> Check:
    if sqlite3.sqlite_version_info >= _SQLITE:
        return fine("SQLite", sqlite3.sqlite_version)
    least = ".".join(map(str, _SQLITE))
    return failed("SQLite", sqlite3.sqlite_version, f"{least} or newer is needed: use a newer Python")


def _disk(data: Path) -> Check:
    try:
        place = next((path for path in (data.absolute(), *data.absolute().parents) if path.exists()), Path("/"))
        free = shutil.disk_usage(place).free
    except OSError as error:
        return worrying("disk", f"cannot be asked ({error.strerror})", "check --data")
    found = f"{size(free)} free for {data}"
    if free < _HARDLY_ANY_DISK:
        return failed("disk", found, "make room, or use another --data folder")
    if free < _ENOUGH_DISK:
        return worrying("disk", found, "a crawl of some 10,000 pages needs about 1 GB")
    return fine("disk", found)


def _open_files(settings: Settings) -> Check:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * settings.fetch.slots + _SPARE_FILES
    shown = "no limit" if soft == resource.RLIM_INFINITY else f"{soft:,} at once"
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return fine("open files", shown)
    advice = f"fetch.slots = {settings.fetch.slots} needs {needed}: ulimit -n {needed}"
    return worrying("open files", f"{shown} ({hard:,} at most)", advice)


def _clock() -> Check:
    now = SystemClock().now()
    if _EARLIEST <= now <= _LATEST:
        return fine("clock", moment(now))
    return failed("clock", moment(now), "set the machine's clock: next visits and certificates depend on it")


def _localhost() -> Check:
    advice = "add '127.0.0.1 localhost' to /etc/hosts: the demo needs it"
    try:
        found = sorted({str(info[4][0]) for info in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)})
    except OSError as error:
        return worrying("localhost", f"has no address ({error})", advice)
    if all(ip_address(each.partition("%")[0]).is_loopback for each in found):
        return fine("localhost", ", ".join(found))
    return worrying("localhost", ", ".join(found), advice)
