"""Checks of the machine, its servers, the installation and a data folder: `levada doctor`."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

import msgspec

from levada import __version__
from levada.core.clock import SystemClock
from levada.core.durations import moment
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.search_records import Query
from levada.core.secrets import is_reference, read_secret
from levada.core.settings import Settings
from levada.core.site_rules.credentials import references_of
from levada.core.site_rules.rendering import renders_any
from levada.core.site_rules.routes import proxy_address
from levada.core.words import plural, size
from levada.follow.epochs import epochs_of, steps_between
from levada.store.base import Shard, ShardAway
from levada.store.bodies.opening import reading_bodies
from levada.store.opening import open_reading_store, open_shard_reader, shard_folders

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_LEAST = 12  # the oldest PostgreSQL that has what the store asks for
_PYTHON = (3, 11)
_SQLITE = (3, 35, 0)
_HTTP2, _BROTLI, _ZSTD, _TLS = 1 << 16, 1 << 23, 1 << 26, 1 << 2
_ENOUGH_DISK, _HARDLY_ANY_DISK = 1 << 30, 50 << 20
_SPARE_FILES = 64  # database, index, logs, pipes to the children
_EARLIEST, _LATEST = 1_735_689_600.0, 4_102_444_800.0  # 2025, 2100
_FOR_USERS = {  # what each extra is for
    "parquet": "export --parquet",
    "warc": "export --warc",
    "documents": "PDF",
    "browser": "pages that need JavaScript",
    "text": "text of articles without what surrounds it",
    "hybrid": "search by meaning",
    "lab": "lab, simulate, pictures",
    "rabbitmq": "control, work",
    "keda": "control --keda",
    "kafka": "grouping in Kafka",
    "s3": "store.bodies in a bucket",
    "postgresql": "store.servers, shard replay, capture of PostgreSQL",
    "mongodb": "capture of compressed traffic of MongoDB",
    "bulk": "load and warm into files",
    "mariadb": "load from MariaDB and MySQL",
    "redis": "load and warm into Redis",
    "otel": "traces",
}
_PROXY_SECONDS = 3.0
_SERVER_SECONDS = 3
_ANY_PAGE = "-levadafindsnothinglikethis"  # what every page matches: it lacks this word
_SKEW = 60.0  # seconds that a folder may seem to be written in the future


class Check(msgspec.Struct, frozen=True):
    name: str
    verdict: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def fine(name: str, found: str, advice: str = "") -> Check:
    return Check(name, "ok", found, advice)


def worrying(name: str, found: str, advice: str) -> Check:
    return Check(name, "warn", found, advice)


def failed(name: str, found: str, advice: str) -> Check:
    return Check(name, "fail", found, advice)


def _either(good: bool, name: str, found: str, advice: str, otherwise: Callable[[str, str, str], Check]) -> Check:
    return fine(name, found) if good else otherwise(name, found, advice)


class Package(msgspec.Struct, frozen=True):
    name: str
    version: str
    bytes: int


def requirements_of(name: str) -> list[tuple[str, str, bool]]:
    """What `name` requires: each name, the wanted versions, and whether only some machines need it."""
    return [(each, wanted, bool(marker)) for each, wanted, marker in _requires(name) if not _EXTRA.search(marker)]


def extras_of(name: str) -> dict[str, list[str]]:
    """The packages that each extra brings."""
    extras: dict[str, list[str]] = {}
    for each, _, marker in _requires(name):
        if extra := _EXTRA.search(marker):
            extras.setdefault(extra[1], []).append(each)
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


def _requires(name: str) -> Iterator[tuple[str, str, str]]:
    """The requirements with their versions and markers."""
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:  # run from a source folder that was never installed
        return
    for line in lines:
        if found := _REQUIREMENT.match(line):
            yield found[1], found[2].strip(), found[3] or ""


def _weight(known: Distribution) -> int:
    files = known.files or []
    total = sum(_size(Path(str(file.locate()))) for file in files)
    if known.metadata["Name"] == "levada" and not any(file.name == "folder.py" for file in files):
        # Installed from its own source folder: its files are not in the record.
        source = Path(__file__).parents[1]
        total += sum(_size(path) for path in source.rglob("*") if path.suffix != ".pyc")
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def server_checks(settings: Settings) -> list[Check]:
    """Whether the servers of the settings can be reached, and are new enough; all at the same time."""
    servers = settings.store.servers
    checks: list[Check] = []
    if servers:
        with ThreadPoolExecutor(len(servers)) as pool:
            checks += pool.map(_reached, servers)
    if settings.index.engine == "opensearch":
        checks.append(search_engine_check(settings))
    return checks


def search_engine_check(settings: Settings) -> Check:
    """Whether OpenSearch answers as it should, and has all parts of its indexes."""
    from levada.search.opensearch.connection import Connection, options_of

    try:
        with closing(Connection(options_of(settings.plugins.get("opensearch")))) as connection:
            found = f"{connection.version()} at {connection.place}"
            health = connection.health(f"{connection.options.prefix}-*")
    except LevadaError as error:
        return _told(error, "OpenSearch")
    if health["status"] == "red":
        lost = plural(health["unassigned_shards"], "part")
        advice = "bring its nodes back: until then searches fail, and what is new waits in the change log"
        return failed("OpenSearch", f"{found}; {lost} of the index cannot be reached (status red)", advice)
    if health["status"] == "yellow":
        advice = "bring its nodes back, or lower plugins.opensearch.replicas"
        return worrying("OpenSearch", f"{found}; copies of the index are missing (status yellow)", advice)
    return fine("OpenSearch", found)


def _reached(dsn: str) -> Check:
    from levada.store.postgresql.connection import Address, address_parts

    try:
        parts = address_parts(dsn)  # says it if the package is missing
        from psycopg.conninfo import make_conninfo

        patience: dict[str, Any] = {} if "connect_timeout" in parts else {"connect_timeout": _SERVER_SECONDS}
        address = Address(make_conninfo(dsn, **patience), "levada")
        with address.connect() as connection:
            number = connection.info.server_version // 10_000
    except LevadaError as error:
        return failed("PostgreSQL", str(error), "see store.servers in the settings")
    found = f"{number} {address.place.removeprefix('PostgreSQL ').partition(' (schema ')[0]}"
    return _either(number >= _LEAST, "PostgreSQL", found, f"{_LEAST} or newer is needed", failed)


def way_in_checks(settings: Settings) -> Iterator[Check]:
    """Whether the proxies of the settings can be reached, and the secrets and certificates of rules be read."""
    tables = settings.site
    for name in dict.fromkeys([*settings.fetch.proxy, *(each for table in tables for each in table.proxy or ())]):
        yield _proxy(name)
    for table in tables:
        trouble = [said for reference in references_of(table) if (said := _unread(reference))]
        files = [path for path in (table.client_certificate, table.client_key) if path]
        trouble += [f"{path} cannot be read" for path in files if not os.access(path, os.R_OK)]
        if trouble:
            advice = "nothing is fetched from this site until that is there for the process that crawls"
            yield worrying(f"rule of {table.match}", "; ".join(trouble), advice)
    if renders_any(tables):
        yield _browser(settings.browser.command)


def _browser(command: str) -> Check:
    from levada.browser.process import find_browser, missing

    if said := missing(command):
        return worrying("browser", said, "without it, pages that a rule has rendered are not read")
    return fine("browser", find_browser(command) or "")


def _proxy(name: str) -> Check:
    try:
        address = proxy_address(read_secret(name) if is_reference(name) else name)
        socket.create_connection((address.host, address.port), timeout=_PROXY_SECONDS).close()
    except ValueError:
        advice = "write it with scheme and port, such as http://me:password@proxy.example:3128"
        return worrying("proxy", f"what {name} holds is no address of a proxy", advice)
    except LevadaError as error:
        return worrying("proxy", str(error), "set it where levada crawl runs")
    except OSError as error:
        advice = "start it, or correct or take out its address: sites rest while no proxy works"
        return worrying("proxy", f"{name} cannot be reached ({error.strerror or error})", advice)
    return fine("proxy", f"{name} can be reached")


def _unread(reference: str) -> str:
    """Why a secret cannot be read; "" if it can."""
    try:
        read_secret(reference)
    except LevadaError as error:
        return str(error)
    return ""


def machine_checks(data: Path, settings: Settings) -> Iterator[Check]:
    """Whether Python, the packages, curl, SQLite, the disk, the limits and the clock are as needed."""
    yield _either(
        sys.version_info[:2] >= _PYTHON, "Python", sys.version.split()[0], "Levada needs Python 3.11 or newer", failed
    )
    yield from _dependencies()
    yield from _extras()
    yield from _curl()
    yield _sqlite()
    yield _disk(data)
    yield _open_files(settings)
    yield _clock()
    yield _localhost()


def _dependencies() -> Iterator[Check]:
    known, wrong = [], 0
    for name, wanted, elsewhere in requirements_of("levada"):
        found = _version(name)
        if not found and elsewhere:
            continue
        if not found or not _satisfies(found, wanted):
            wrong += 1
            trouble = f"{found}, but {wanted} is needed" if found else "not installed"
            yield failed(name, trouble, f"pip install '{name}{wanted}'")
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
        there = ", ".join(f"{name} {found}" for name in extras[extra] if (found := _version(name)))
        missing = ", ".join(name for name in extras[extra] if not _version(name))
        advice = f"for {use}: pip install 'levada[{extra}]'"
        if there and missing:
            yield worrying(f"extra {extra}", f"{there}; without {missing}", advice)
        else:
            yield fine(f"extra {extra}", there or "not installed", "" if there else advice)


def _version(name: str) -> str:
    """Of an installed package; "" if it is not."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


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
    if bits & _TLS:
        yield fine("curl", f"{found}; without {', '.join(missing)}" if missing else found)
    else:
        yield failed("curl", found, "without TLS no https page can be fetched: install a pycurl wheel from PyPI")
    from levada.fetch.curl import trusted_certificates

    certificates = trusted_certificates()
    advice = "install your system's ca-certificates, or name a file in SSL_CERT_FILE: https pages fail without"
    found = certificates or "no file of trusted certificates found"
    yield _either(bool(certificates), "authorities", found, advice, worrying)


def _sqlite() -> Check:
    advice = f"{'.'.join(map(str, _SQLITE))} or newer is needed: use a newer Python"
    return _either(sqlite3.sqlite_version_info >= _SQLITE, "SQLite", sqlite3.sqlite_version, advice, failed)


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
    advice = "set the machine's clock: next visits and certificates depend on it"
    return _either(_EARLIEST <= now <= _LATEST, "clock", moment(now), advice, failed)


def _localhost() -> Check:
    advice = "add '127.0.0.1 localhost' to /etc/hosts: the demo needs it"
    try:
        found = sorted({str(info[4][0]) for info in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)})
    except OSError as error:
        return worrying("localhost", f"has no address ({error})", advice)
    ours = all(ip_address(each.partition("%")[0]).is_loopback for each in found)
    return _either(ours, "localhost", ", ".join(found), advice, worrying)


def small_file_checks(folder: DataFolder) -> Iterator[Check]:
    """The small databases that are damaged; those that are missing are fine."""
    if trouble := _trouble(folder.commands):
        advice = f"no crawl starts with it: delete {folder.commands} and give the waiting commands again"
        yield failed("orders", trouble, advice)
    if trouble := _trouble(folder.hooks):
        advice = f"nobody is told of changes: restore a copy of {folder.hooks}, or delete it and add them again"
        yield failed("webhooks", trouble, advice)
    if trouble := _trouble(folder.trends):
        yield worrying("counts", trouble, "'levada trends' counts again")


def _trouble(path: Path) -> str:
    """What is wrong with this file; "" if nothing is, or it is not there."""
    try:
        if not path.exists():
            return ""
        if not path.is_file():
            return f"{path} is not a file"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except (OSError, sqlite3.OperationalError):
        return ""  # busy, or in a folder that we may only read: that is no damage
    except sqlite3.Error as error:
        return f"{path} cannot be read ({error})"
    return "" if said == "ok" else f"{path} is damaged ({said})"


def folder_checks(path: Path) -> Iterator[Check]:
    """Whether the collection in this folder is sound: lock, small files, databases, indexes."""
    folder = DataFolder(path)
    try:
        there = folder.exists()
    except LevadaError as error:
        yield _told(error, "collection")
        return
    if not there:
        yield fine("collection", f"none in {folder.path} yet", "levada crawl URL starts one")
        return
    yield _lock(folder.path / "lock")
    yield from small_file_checks(folder)
    if folder.unfinished.exists():
        yield worrying("forget", "begun, and not finished", "run 'levada forget' to finish it")
    try:
        shards = shard_folders(folder)
        away = _away(folder)
    except LevadaError as error:
        yield _told(error, "placement")
        return
    for number, shard in enumerate(shards):
        if number in away:
            advice = (
                "start its server, or see to the network between: a running crawl goes on with the other shards and "
                "takes this one up by itself; pages under way are visited again, and nothing is lost"
            )
            yield failed(f"database of shard {number}", str(away[number]), advice)
            continue
        of_shard = f" of shard {number}" if folder.placement.exists() else ""
        if shard.database.exists():
            yield _written_when(shard.database, of_shard)
        try:
            with closing(open_shard_reader(shard)) as store:
                yield from _database(shard, store, of_shard)
        except LevadaError as error:
            yield _told(error, f"database{of_shard}")
    yield from _bodies(folder)


def _bodies(folder: DataFolder) -> Iterator[Check]:
    """Whether the place of the bodies can be reached, and has all that versions name."""
    from levada.collection.storage.bodies import lost_bodies, must_be_ours

    try:
        bodies = reading_bodies(folder)
        if bodies is None:
            return
        with closing(bodies), closing(open_reading_store(folder)) as store:
            must_be_ours(folder, bodies)
            if store.away:
                yield worrying("bodies", "not looked at, because a shard cannot be reached", "see above")
                return
            checked, lost = lost_bodies(store, bodies)
    except LevadaError as error:
        yield _told(error, "bodies")
        return
    if not lost:
        yield fine("bodies", f"{checked:,} in {bodies.name}, all there")
    for each in lost:
        advice = "put a copy of the object back; else 'levada check' stores the page again when it changes"
        yield failed("bodies", f"version {each.version} of {each.url}: {each.trouble}", advice)


def _away(folder: DataFolder) -> Mapping[int, ShardAway]:
    """The shards on servers that do not answer; all are asked at the same time."""
    if not folder.placement.exists():
        return {}
    with closing(open_reading_store(folder)) as store:
        return dict(store.away)


def _told(error: LevadaError, name: str) -> Check:
    found, _, advice = str(error).rpartition(": ")
    return failed(name, found or advice, advice if found else "")


def _database(folder: DataFolder, store: Shard, of_shard: str) -> Iterator[Check]:
    store.check()
    stats = store.stats(SystemClock().now())
    held = f"{plural(stats.stored, 'page')} stored of {stats.known:,} known, {size(stats.bytes)}"
    yield fine(f"database{of_shard}", f"sound; format {store.format}; {held}")
    yield _index(folder, store, f"index{of_shard}")


def _index(folder: DataFolder, store: Shard, name: str) -> Check:
    from levada.follow.index import open_index, spans_shards
    from levada.store.opening import collection_folder

    root = collection_folder(folder)
    settings = root.settings()
    spans = spans_shards(settings.index.engine)
    try:
        with closing(open_index(folder, settings.index.engine, lambda: settings)) as index:
            position, newest = index.position(), store.newest_seq()
            found = index.search(Query(_ANY_PAGE, limit=0)).total
    except LevadaError as error:
        if spans:
            return _told(error, name)
        advice = f"delete {folder.index}: the next search rebuilds it"
        if folder.index.is_dir() and not os.access(folder.index, os.W_OK):
            advice = f"who searches must be able to write in {folder.index}: a lock is taken there"
        return worrying(name, str(error), advice)
    epochs = epochs_of(store)
    if position > newest and not (epochs and newest <= epochs[-1].begins):  # changes up to there may be lost
        advice = f"it belongs to another collection; delete {folder.index}: the next search rebuilds it"
        if spans:
            advice = "the documents are an older copy; the next search or crawl builds the index anew"
        return worrying(name, f"at step {position:,}, the documents only at {newest:,}", advice)
    if position < newest:
        behind = steps_between(position, newest, epochs)
        return fine(name, f"{plural(behind, 'step')} behind the documents", "the next search or crawl catches up")
    if spans and len(shard_folders(root)) > 1:  # one index has the pages of all
        return fine(name, f"up to date, at step {position:,}")
    shown = sum(document.searchable for document in store.scan())
    # A crawl may go on meanwhile.
    if found != shown and store.newest_seq() == newest:
        advice = "delete it on its servers" if spans else f"delete {folder.index}"
        return worrying(
            name,
            f"finds {plural(found, 'page')}, and {shown:,} are to be found",
            f"{advice}: the next search rebuilds it",
        )
    return fine(name, f"up to date, at step {position:,}, with {plural(shown, 'page')}")


def _lock(path: Path) -> Check:
    """Who holds the lock. It is tried as a shared lock for an instant, so nothing is written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return fine("in use", "by nobody")
    except OSError as error:
        return worrying("in use", f"cannot be told ({error.strerror})", f"check who may read {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return fine("in use", "by nobody")
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        return fine("in use", f"by process {holder}" if holder.isdigit() else "by a process")
    finally:
        os.close(descriptor)


def _written_when(database: Path, of_shard: str) -> Check:
    ahead = database.stat().st_mtime - SystemClock().now()
    if ahead <= _SKEW:
        return fine(f"folder's time{of_shard}", "not ahead of the clock")
    advice = "the clock has gone back: set it, or pages wait that much longer for their next visit"
    return worrying(f"folder's time{of_shard}", f"written {ahead:,.0f} s in the future", advice)
