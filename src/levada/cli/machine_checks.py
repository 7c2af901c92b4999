"""Is this machine fit for a crawl?"""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_address
from pathlib import Path

from levada.cli.checks import Check, failed, fine, worrying
from levada.cli.install_weight import extras_of, requirements_of
from levada.cli.printing import size
from levada.clock import SystemClock
from levada.flow.settings import Settings
from levada.telling.duration import moment

__all__ = ["machine_checks"]

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
    "otel": "traces",
}


def machine_checks(data: Path, settings: Settings) -> Iterator[Check]:
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
    from levada.adapters.web.trust import trusted_certificates

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
