"""Start URLs of a crawl: adding them, and why some led nowhere; and waits that a wrong clock left behind."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from levada.collection.addresses import outside_hours, refusal_words
from levada.core.errors import LevadaError, Refused, StoreError, UsageError
from levada.core.folder import DataFolder, writing
from levada.core.reasons import ADVICE, Reason
from levada.core.records import DiscoveredBy, FoundUrl, PageRecord, PageState
from levada.core.settings import DAY, GuardSettings, RevisitSettings, Settings
from levada.core.site_rules.pace import widest_revisit
from levada.core.site_rules.rendering import renders_any
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import SiteSettings, planning_tables
from levada.core.words import command_for, shortened
from levada.crawl.rescheduling import Rescheduling
from levada.pages.urls import seed_address, site_of
from levada.store.base import Store
from levada.store.opening import store_limits
from levada.store.reading import OpenedCollection, open_collection

_SPREAD = 1.1  # so much longer may last what doubles (`flow.retry`)
_TOLD = 3  # sentences, where other start addresses did better
_LARGEST_SHELL = 256 * 1024  # bytes
_MOST_HOPS = 50  # redirects that are followed from a start address
_TROUBLED = (PageState.FAILED, PageState.REFUSED, PageState.GONE, PageState.QUARANTINED)

log = logging.getLogger(__name__)


def seeds(urls: Sequence[str]) -> list[FoundUrl]:
    """The addresses that a user asked for; `BadUrl` if one is none."""
    addresses = [seed_address(url) for url in urls]
    return [FoundUrl(address, site_of(address), how=DiscoveredBy.SEED, admit=True) for address in addresses]


def tidied(start: Sequence[FoundUrl], settings: Settings) -> list[FoundUrl]:
    """These without the parameters of queries that do not count by the rules of their sites."""
    rules = SiteRules(settings.site)
    return [replace(each, url=rules.tidied(each.url)) for each in start]


def add_start(start: Sequence[FoundUrl], store: Store, now: float) -> int:
    """Hold the start URLs; how many were new."""
    new = store.add(start, [], now)
    for site in sorted({each.site for each in start}):
        record = store.site(site)
        if record is not None and record.dropped:
            log.warning("%s was dropped and is not visited: add it in the dashboard to take it up again", site)
    return new


class _PlannedBy(msgspec.Struct, frozen=True):
    """The settings by which the visits of a collection are planned."""

    revisit: RevisitSettings
    guard: GuardSettings
    site: tuple[SiteSettings, ...] = ()  # the rules of sites, as far as they concern plans
    reads_pdf: bool = False  # not a setting: whether the extra is installed
    renders: bool = False  # nor is this: whether a browser is there for those who want it


def _reads_pdf() -> bool:
    return find_spec("pypdfium2") is not None


def _renders(settings: Settings) -> bool:
    if not renders_any(settings.site):
        return False
    from levada.browser.process import missing

    return not missing(settings.browser.command)


def _no_longer(folder: DataFolder, settings: Settings) -> set[Reason]:
    """The reasons that held at the crawl before, and do not now."""
    try:
        before = msgspec.json.decode(folder.planned.read_bytes(), type=_PlannedBy)
        read_pdf, rendered = before.reads_pdf, before.renders
    except (OSError, msgspec.MsgspecError):
        read_pdf = rendered = False
    gone = set()
    if _reads_pdf() and not read_pdf:
        gone.add(Reason.NEEDS_EXTRA)
    if _renders(settings) and not rendered:
        gone.add(Reason.BROWSER_MISSING)
    return gone


def planned_by(folder: DataFolder, settings: Settings) -> Settings:
    """These settings with those by which the visits are planned; a folder of an earlier version: with the kept ones."""
    try:
        planned = msgspec.json.decode(folder.planned.read_bytes(), type=_PlannedBy)
        return replace(settings, revisit=planned.revisit, guard=planned.guard, site=planned.site)
    except (OSError, msgspec.MsgspecError):
        pass
    try:
        return DataFolder(folder.path).settings()  # without what this command was given
    except StoreError:
        return settings


def keep_planned_by(folder: DataFolder, settings: Settings) -> None:
    """Note that the visits are planned by these settings: all that others wanted sooner has come forward.

    A change of settings whose rescheduling was not finished is not noted, so the next crawl does it.
    """
    content = msgspec.json.format(
        msgspec.json.encode(
            _PlannedBy(
                settings.revisit, settings.guard, planning_tables(settings.site), _reads_pdf(), _renders(settings)
            )
        )
    )
    with suppress(OSError):
        if folder.planned.read_bytes() == content:
            return
    fresh = folder.planned.with_suffix(".new")
    with writing(folder.path):
        fresh.write_bytes(content)
        fresh.replace(folder.planned)


def reschedule(folder: DataFolder, store: Store, settings: Settings, now: float) -> None:
    """Bring forward what the settings of this crawl want sooner than those by which the visits are planned."""
    gone = _no_longer(folder, settings)
    moved = Rescheduling(store, planned_by(folder, settings), settings, now, no_longer=gone).run()
    keep_planned_by(folder, settings)
    if moved:
        log.info(
            "the settings or extras changed: %s visited sooner than planned",
            "1 page is" if moved == 1 else f"{moved:,} pages are",
        )


def forget_demo(folder: DataFolder) -> None:
    """Let no demo replace the collection any more: another crawl adds to it now."""
    with suppress(OSError):
        (folder.path / "demo.json").unlink(missing_ok=True)


def limit_waits(store: Store, settings: Settings, now: float) -> None:
    """What a clock that was ahead has planned, or a ceiling that was higher, is due now."""
    revisit, rest = settings.revisit, settings.politeness.max_backoff
    longest = max(
        widest_revisit(settings).ceiling,
        8 * DAY if any(each.hours for each in settings.site) else 0.0,
        revisit.max_retry,
        rest,
        DAY,
        store_limits(settings).delay,
    )
    sites = store.limit_waits(now, now + _SPREAD * longest)
    if sites:
        of = "1 site" if sites == 1 else f"{sites:,} sites"
        log.warning("what was to wait longer than the settings allow, on %s, is due now: was the clock wrong?", of)


def _closed_sites(collection: OpenedCollection) -> list[str]:
    """Sentences about sites that were not asked because of their hours."""
    if not any(table.hours for table in collection.settings.site):
        return []
    names = [record.site for record in collection.store.sites() if not record.dropped]
    closed = [words for name in sorted(names) if (words := outside_hours(collection, name))]
    more = [f"and {len(closed) - _TOLD} more sites are outside their hours"] if len(closed) > _TOLD else []
    return closed[:_TOLD] + more


class _Trouble(msgspec.Struct, frozen=True):
    """Why nothing is stored of a start address."""

    start: str
    end: str  # where its redirects end
    reason: Reason | None
    advice: str
    may_pass: bool = False

    def __str__(self) -> str:
        leads = "" if self.end == self.start else f", which leads to {shortened(self.end, 200)}"
        because = f" ({self.reason})" if self.reason else ""
        return f"nothing is stored of {shortened(self.start, 200)}{leads}{because}: {self.advice}"


def check_starts(path: Path, start: Sequence[FoundUrl]) -> list[str]:
    """Sentences about the start addresses of a crawl of which nothing is stored, or an empty shell.

    An error if all of them failed: `Refused` if trying again is of no use, else `LevadaError`.
    """
    with open_collection(DataFolder(path)) as collection:
        start = tidied(start, collection.settings)
        known = [page for each in start if (page := collection.store.page(each.url)) is not None]
        stats = collection.store.stats(collection.clock.now())
        closed = _closed_sites(collection)
        troubles = [trouble for page in known if (trouble := _trouble(collection, page)) is not None]
        shells = [advice for page in known[:_TOLD] if (advice := _shell(collection, page))]
    if not stats.known:
        raise UsageError(f"no page is known in {path}: name a start, as in: levada crawl https://example.org")
    if known and len(troubles) == len(known):
        others = len(troubles) - 1
        more = f" (and {others} more of the start addresses)" if others else ""
        kind = LevadaError if any(trouble.may_pass for trouble in troubles) else Refused
        raise kind(f"{troubles[0]}{more}")
    if known and not stats.stored and all(page.visits for page in known):
        raise LevadaError(f"the start addresses lead on, but nothing could be stored: {_says_more(known[0].url, path)}")
    sentences = [str(trouble) for trouble in troubles[:_TOLD]]
    if len(troubles) > _TOLD:
        sentences.append(f"and {len(troubles) - _TOLD} more of the start addresses")
    return sentences + closed + shells


def _shell(collection: OpenedCollection, start: PageRecord) -> str:
    """What to do about a page that only scripts would fill; "" if this is none, or a rule speaks of it."""
    from levada.browser.shell import Shell, shell_of

    url = start.leads_to or start.url
    document = collection.store.document(url)
    if document is None or document.facts is not None or len(document.body) > _LARGEST_SHELL:
        return ""
    if "render" in SiteRules(collection.settings.site).rule_for(url).sources:
        return ""
    if shell_of(document.body) is not Shell.YES:
        return ""
    folder = collection.folder.path
    rule = f"levada sites set {site_of(url)} render=auto --data {quote(str(folder))}"
    return f"{shortened(url, 200)} is empty until scripts fill it: {rule}, then {command_for('check', url, folder)}"


def _trouble(collection: OpenedCollection, start: PageRecord) -> _Trouble | None:
    """None if a page was met where the address leads to, or may still be."""
    page = start
    for _ in range(_MOST_HOPS):
        more = _says_more(page.url, collection.folder.path)
        if page.leads_to is None:
            if page.state not in _TROUBLED:
                return None
            advice = _advice(page, more)
            return _Trouble(start.url, page.url, page.reason, advice, page.state is PageState.FAILED)
        following = collection.store.page(page.leads_to)
        if following is None:
            advice = refusal_words(collection, [page.leads_to]) or more
            return _Trouble(start.url, page.leads_to, None, advice)
        page = following
    return _Trouble(start.url, start.url, Reason.REDIRECTS, ADVICE[Reason.REDIRECTS])


def _advice(page: PageRecord, more: str) -> str:
    if page.reason is Reason.ADDRESS:
        return (
            "not a public address: if the site is yours, allow it with "
            f"levada settings set guard.allow={_allowed_address(page.url)}"
        )
    return ADVICE.get(page.reason, more) if page.reason else more


def _allowed_address(url: str) -> str:
    """What `guard.allow` takes for the server of a URL, as far as the URL tells: an address and a port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if host == "localhost":
        return f"127.0.0.1:{port}"
    try:
        address = ip_address(host)
    except ValueError:
        return f"ADDRESS:{port}, where ADDRESS is that of {host}"
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _says_more(url: str, path: Path) -> str:
    return f"{command_for('why', url, path)} says more"
