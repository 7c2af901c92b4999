"""A small collection, as a crawl would have left it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from typer.testing import CliRunner, Result

from levada.cli.app import app
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.hashing import content_digest
from levada.core.reasons import Reason
from levada.core.records import (
    FOREVER,
    DiscoveredBy,
    FoundUrl,
    Lease,
    NewVersion,
    Outcome,
    PageState,
    RobotsRecord,
    SiteRecord,
    Visit,
    VisitResult,
)
from levada.core.settings import ClockSettings, Settings
from levada.pages.compression import pack_content
from levada.pages.urls import site_of
from levada.store.sqlite import SqliteStore

__all__ = [
    "BLOCKED",
    "DOWN",
    "ESCAPE",
    "FRONT",
    "GONE",
    "HOUR",
    "NEW",
    "NOW",
    "PLAIN",
    "SCRIPT",
    "VAPUR",
    "Answer",
    "build",
    "command",
    "drop",
    "settle",
]

NOW = 1_800_000_000.0
HOUR = 3_600.0
FRONT = "https://example.org/"
VAPUR = "https://example.org/vapur"
SCRIPT = "https://example.org/script"
GONE = "https://example.org/gone"
BLOCKED = "https://example.org/private/x"
DOWN = "https://example.org/down"
NEW = "https://example.org/new"
ESCAPE = "https://haber.example.net/escape"
PLAIN = "http://plain.example:8080/"

VAPUR_TEXTS = (
    "İstanbul vapur saatleri\nKadıköy 08:15\nÜsküdar 09:00\nBeşiktaş 10:00\nson satır",
    "İstanbul vapur saatleri\nKadıköy 08:30\nÜsküdar 09:00\nBeşiktaş 10:00\nson satır",
    "İstanbul vapur saatleri\nKadıköy 08:30\nÜsküdar 09:00\nBeşiktaş 10:45 ve 11:00\nson satır\nyeni hat",
)
HEADERS = (
    ("content-type", "text/html; charset=utf-8"),
    ("content-encoding", "gzip"),
    ("content-length", "17"),
    ("transfer-encoding", "chunked"),
    ("x-name", "değer\r\nInjected: yes"),
)


class Answer:
    """What a command said, and how it ended."""

    def __init__(self, result: Result) -> None:
        self.out: str = result.stdout
        self.bytes: bytes = result.stdout_bytes
        self.said: str = result.stderr
        self.code: int = result.exit_code


def command(*words: str) -> Callable[..., Answer]:
    """The command of these words, with errors shown as the root shows them."""

    def run(*arguments: object) -> Answer:
        result = CliRunner().invoke(app, [*words, *map(str, arguments)])
        answer = Answer(result)
        if isinstance(result.exception, LevadaError):
            answer.code, answer.said = result.exception.exit_code, f"{answer.said}{result.exception}\n"
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return answer

    return run


def version(title: str, text: str, similarity: float = 0.0, *, language: str = "tr") -> NewVersion:
    return NewVersion(
        title=title,
        language=language,
        charset="utf-8",
        status=200,
        headers=HEADERS,
        content_zstd=pack_content(text.encode(), f"<p>{text}</p>".encode(), 3),
        sketch=b"",
        words=len(text.split()),
        distinct_words=len(set(text.split())),
        similarity=similarity,
    )


def build(path: Path) -> Path:
    """A data folder whose own clock stands (nearly) still at `NOW`."""
    folder = DataFolder(path)
    folder.make()
    folder.save_settings(Settings(clock=ClockSettings(speed=1e-12, origin=NOW, started=1.0)))
    store = SqliteStore(folder.database)
    try:
        _fill(store)
    finally:
        store.close()
    return path


def drop(path: Path, site: str) -> None:
    """As a crawl obeys that order."""
    store = SqliteStore(DataFolder(path).database)
    try:
        record = store.site(site)
        assert record is not None
        store.save(replace(record, admitted=False, rest_until=FOREVER))
    finally:
        store.close()


def settle(
    store: SqliteStore,
    url: str,
    at: float,
    outcome: Outcome,
    *,
    new: NewVersion | None = None,
    interval: float | None = HOUR,
    state: PageState = PageState.LIVE,
    reason: Reason | None = None,
    leads_to: str | None = None,
    failures: int = 0,
    next_in: float = HOUR,
    found: tuple[FoundUrl, ...] = (),
) -> None:
    lease = _lease_of(store, url)
    digest = content_digest(new.content_zstd) if new else None
    visit = Visit(at, outcome, new.similarity if new and outcome is Outcome.CHANGED else 1.0)
    result = VisitResult(
        lease,
        visit,
        state,
        interval,
        at + next_in,
        reason=reason,
        leads_to=leads_to,
        failures=failures,
        body_digest=digest,
        text_digest=digest,
        version=new,
        found=found,
    )
    assert store.commit([result]) == [True]


def _lease_of(store: SqliteStore, url: str) -> Lease:
    """Everything is due far in the future; what was not wanted is given back."""
    leases = store.lease(NOW + 1e9, 100, 60.0)
    store.release([lease for lease in leases if lease.page.url != url])
    return next(lease for lease in leases if lease.page.url == url)


def _found(url: str, how: DiscoveredBy = DiscoveredBy.LINK, depth: int = 1) -> FoundUrl:
    return FoundUrl(url, site_of(url), how=how, depth=depth, admit=how is DiscoveredBy.SEED)


def _fill(store: SqliteStore) -> None:
    start = NOW - 10 * HOUR
    store.add([_found(url, DiscoveredBy.SEED, 0) for url in (FRONT, ESCAPE, PLAIN)], [], start)
    links = tuple(_found(url) for url in (VAPUR, SCRIPT, GONE, BLOCKED, DOWN, NEW))
    first = Outcome.FIRST
    settle(store, FRONT, start, first, new=version("İstanbul: ana sayfa", "İstanbul şehri"), found=links)
    settle(
        store,
        ESCAPE,
        start,
        first,
        new=version("\x1b[31mkırmızı\x1b]0;pwned\x07 haber", "son \x1b[2Jdakika haberi"),
    )
    settle(store, PLAIN, start, first, new=version("Plain & <simple>", "ferry times \x00\x0b and more", language="en"))
    settle(store, SCRIPT, start, first, new=version("<script>alert(1)</script> [bold]x[/bold]", "ferry ferry"))
    settle(store, GONE, start, first, new=version("once", "it was here"))
    gone = {"state": PageState.GONE, "reason": Reason.GONE, "failures": 1, "interval": None, "next_in": 24 * HOUR}
    settle(store, GONE, start + HOUR, Outcome.GONE, **gone)  # type: ignore[arg-type]
    refused = {"state": PageState.REFUSED, "reason": Reason.ROBOTS, "failures": 1, "interval": None}
    settle(store, BLOCKED, start, Outcome.REFUSED, next_in=24 * HOUR, **refused)  # type: ignore[arg-type]
    failed = {"state": PageState.FAILED, "reason": Reason.CONNECT, "failures": 2, "interval": None}
    settle(store, DOWN, start, Outcome.FAILED, **failed)  # type: ignore[arg-type]
    settle(store, DOWN, NOW - HOUR, Outcome.FAILED, next_in=2 * HOUR, **failed)  # type: ignore[arg-type]
    _fill_vapur(store, start)
    robots = RobotsRecord("User-agent: *\nDisallow: /private/\n", start, start + 24 * HOUR)
    store.save(SiteRecord("example.org", admitted=True, robots=(("https", robots),), delay=2.0))
    store.save(SiteRecord("plain.example:8080", admitted=True, failures=6, rest_until=NOW + 600))


def _fill_vapur(store: SqliteStore, start: float) -> None:
    """Changed twice, as the paper's rule would have it: 60 min, 46.15 min, 33.44 min."""
    one, two, three = VAPUR_TEXTS
    settle(store, VAPUR, start, Outcome.FIRST, new=version("Vapur saatleri", one))
    second = version("Vapur saatleri", two, 0.9)
    settle(store, VAPUR, start + HOUR, Outcome.CHANGED, new=second, interval=HOUR / 1.3)
    third = version("Vapur saatleri (yeni)", three, 0.75)
    last = {"interval": HOUR / 1.3 / 1.38, "next_in": HOUR / 1.3 / 1.38}
    settle(store, VAPUR, NOW - 600, Outcome.CHANGED, new=third, **last)  # type: ignore[arg-type]
