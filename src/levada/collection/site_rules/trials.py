"""Trials of rules: what a rule would keep of the stored and of the live page, before it is set.

The live page is asked for as a check would ask for it: through the address guard, by robots.txt and with the headers
and credentials of its site's rule. Nothing of it is stored. Both pages are read in a parser child with limits.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from levada.collection.addresses import spellings
from levada.collection.checking import must_be_askable
from levada.collection.components import make_fetcher, make_parser
from levada.collection.diff import Hunk, changes_between
from levada.core.clock import SystemClock
from levada.core.durations import duration, iso, relative
from levada.core.errors import BadUrl, LevadaError, ParserDied, Refused, UsageError
from levada.core.protocols import Clock, Fetcher, Parser, Sites
from levada.core.reasons import Reason
from levada.core.records import ParsedPage, RawPage, Response, SiteRecord
from levada.core.selectors import Language, language_of
from levada.core.settings import Settings
from levada.core.site_rules.extent import path_of
from levada.core.site_rules.pace import SitePaces
from levada.core.site_rules.reading import reading_rule
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import SiteSettings
from levada.core.site_rules.visit import ReadingRule, RenderRule, RequestRule
from levada.core.words import paragraphs, shortened
from levada.crawl.executor import StoreExecutor
from levada.crawl.robots import RobotsCache
from levada.crawl.sites import SiteCache
from levada.crawl.visits import request_for
from levada.pages.change import states_in, text_part
from levada.pages.compression import unpack_text
from levada.pages.documents.recognition import JSON, document_kind
from levada.pages.parse import Form, form_of
from levada.pages.parts.ignoring import ignored_pieces
from levada.pages.parts.rule import compiled_rule
from levada.pages.robots import RobotsRules
from levada.pages.urls import canonical, scheme_of, site_of
from levada.store.reading import OpenedCollection

READING_KEYS = ("select", "remove", "ignore", "trigger")
"""The keys of a rule that a trial is about."""

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_LONGEST_WAIT = 30.0  # seconds between robots.txt and the page; a site that asks for more is not asked
_MOST_LOOKED_AT = 20  # entries of a key that are looked at one by one
_MOST_EXAMPLES = 5
_LONGEST_EXAMPLE = 300  # characters
_CONTEXT = 3


class EntryTrial(msgspec.Struct, frozen=True):
    """One entry of a rule on one page: what it finds there.

    >>> trial = news.try_rule(start, select=["h1"], live=False)
    >>> trial.stored.entries[0].key, trial.stored.entries[0].entry
    ('select', 'h1')
    """

    key: str  # select, remove, ignore or trigger
    entry: str
    found: int  # lines that are kept, removed or ignored; of a trigger: 1 if it holds
    examples: tuple[str, ...] = ()
    note: str = ""  # why it finds nothing, if that is known


class ReadingTrial(msgspec.Struct, frozen=True):
    """What a rule keeps of one page.

    >>> reading = news.try_rule(start, select=["h1"], live=False).stored
    >>> reading.version, reading.reason
    (1, None)
    """

    url: str  # where a redirect led, if there was one
    at: float  # when it was fetched
    version: int  # of the stored page; 0: the live one
    title: str
    text: str  # what would be stored
    compared: str  # what of it would be compared
    reason: Reason | None  # why nothing would be stored
    entries: tuple[EntryTrial, ...]


class RuleTrial(msgspec.Struct, frozen=True):
    """What a rule would keep of a page, as it is stored and as it is now; `why_...` says what is missing.

    >>> trial = news.try_rule(start, select=["h1"], live=False)
    >>> trial.stored.text != "", trial.live, trial.changed
    (True, None, None)
    """

    url: str
    match: str  # of the rule that would be for this page, or where it redirects to, and what is below it
    rule: dict[str, list[str]]  # what was tried: what was given, and the rules in force for the rest
    stored: ReadingTrial | None
    live: ReadingTrial | None
    why_not_stored: str
    why_not_live: str
    hunks: tuple[Hunk, ...]  # from the stored to the live text
    changed: bool | None  # whether the live page would be a new version; None: there is nothing to compare
    told: bool | None  # whether that would be told: always if the rule has no triggers

    @property
    def finds(self) -> bool:
        """Whether the rule keeps something of one of the pages."""
        return any(each is not None and each.reason is None for each in (self.stored, self.live))

    def facts(self) -> dict[str, Any]:
        """The same for programs: the keys of `levada try --json`."""
        readings = {"stored": _reading_facts(self.stored), "live": _reading_facts(self.live)}
        return msgspec.structs.asdict(self) | readings


def _reading_facts(reading: ReadingTrial | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    facts = msgspec.structs.asdict(reading)
    return {"fetched_at": iso(facts.pop("at")), **facts}


class LivePage(msgspec.Struct, frozen=True):
    """A page as it was just fetched."""

    url: str
    at: float
    body: bytes
    content_type: str


FetchLive = Callable[[str, Settings, OpenedCollection | None], Awaitable[LivePage]]


async def tried(
    url: str,
    given: Mapping[str, Sequence[str] | None],
    settings: Settings,
    reader: OpenedCollection | None,
    *,
    stored: bool = True,
    live: bool = True,
    fetch: FetchLive | None = None,
) -> RuleTrial:
    """Try a rule; keys that are None are as the rules in force have them. `fetch` replaces `live_page`."""
    address = _address(reader, url)
    rule = tried_rule(address, given, settings)
    why_not_stored, why_not_live = "it was not asked for", "it was not asked for"
    page, kept, kept_at = None, None, (0, 0.0)
    if stored:
        kept, kept_at, why_not_stored = _stored(reader, address)
    if live:
        try:
            page = await (fetch or live_page)(address, settings, reader)
        except LevadaError as error:
            why_not_live = str(error)
    if kept is None and page is None:
        raise Refused(f"there is nothing to try it on: the live page: {why_not_live}; a stored one: {why_not_stored}")
    parser = make_parser(settings)
    try:
        before = after = None
        if kept is not None:
            before = await _Reading(parser, kept, rule).trial(*kept_at)
        if page is not None:
            raw = RawPage(page.url, page.body, page.content_type)
            after = await _Reading(parser, raw, rule).trial(0, page.at)
    finally:
        await parser.close()
    hunks, changed, told = _compared(before, after, rule)
    return RuleTrial(
        url=address,
        match=match_of(address if page is None else page.url),
        rule={key: list(entries) for key in READING_KEYS if (entries := getattr(rule, key))},
        stored=before and before.shown,
        live=after and after.shown,
        why_not_stored="" if before else why_not_stored,
        why_not_live="" if after else why_not_live,
        hunks=hunks,
        changed=changed,
        told=told,
    )


def tried_rule(url: str, given: Mapping[str, Sequence[str] | None], settings: Settings) -> ReadingRule:
    """The rule that a trial is about; `UsageError` says what is wrong with it."""
    if wrong := next((key for key in given if key not in READING_KEYS), None):
        raise UsageError(f"a trial has no key {wrong!r}: {', '.join(READING_KEYS)}")
    keys = {key: tuple(value) for key, value in given.items() if value is not None}
    try:
        checked = msgspec.convert({"match": "*", **keys}, SiteSettings, strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).partition(" - at `$")[0]) from None
    in_force = SiteRules(settings.site).visit_rule(url).reading or ReadingRule()
    own = reading_rule(checked) or ReadingRule()
    return msgspec.structs.replace(in_force, **{key: getattr(own, key) for key in keys})


def match_of(url: str) -> str:
    """The match of a rule for this page, and what is below it; of a front page, for the whole site.

    >>> match_of("https://shop.example/lamp?colour=red")
    'shop.example/lamp'
    """
    path = path_of(url).partition("?")[0]
    return site_of(url) + (path if path != "/" else "")


def _address(reader: OpenedCollection | None, url: str) -> str:
    """The address at which the page is known, or would be."""
    found = spellings(url)
    known = (page for each in found if reader is not None and (page := reader.store.page(each)))
    return next((page.url for page in known), found[0])


def _stored(reader: OpenedCollection | None, url: str) -> tuple[RawPage | None, tuple[int, float], str]:
    """The newest stored version, its number and time, and why there is none."""
    if reader is None:
        return None, (0, 0.0), "there is no collection here"
    document = reader.store.document(url)
    if document is None:
        page = reader.store.page(url)
        if page is None:
            return None, (0, 0.0), f"it is not known in {reader.folder.path}"
        because = f" ({page.reason})" if page.reason else ""
        return None, (0, 0.0), f"nothing is stored of it: it is {page.state}{because}"
    kind = next((value for name, value in document.headers if name.lower() == "content-type"), "")
    return RawPage(url, document.body, kind), (document.version, document.fetched_at), ""


# The live page


class _KnownSites(Sites):
    """The sites of a collection, or none; what a trial learns of them is not kept."""

    def __init__(self, reader: OpenedCollection | None) -> None:
        self._reader = reader

    def site(self, site: str) -> SiteRecord | None:
        return None if self._reader is None else self._reader.store.site(site)

    def save(self, record: SiteRecord) -> None:
        pass

    def sites(self) -> Iterator[SiteRecord]:
        return iter(())


async def live_page(url: str, settings: Settings, reader: OpenedCollection | None) -> LivePage:
    """The page as it is now; `Refused` says why it cannot be had."""
    clock: Clock = SystemClock() if reader is None else reader.clock
    fetcher, executor = make_fetcher(settings), StoreExecutor()
    try:
        sites = SiteCache(_KnownSites(reader), executor, settings.politeness)
        return await _LiveFetch(settings, reader, fetcher, sites, clock).page(url)
    finally:
        executor.close()
        await fetcher.close()


class RecentPages:
    """Live pages that were fetched lately, so that a rule that is being typed asks no site for each letter.

    Between two requests to a site there is its delay. Threads may share it.
    """

    def __init__(self, clock: Clock, seconds: float = 60.0, most: int = 20) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._pages: OrderedDict[tuple[str, RequestRule | None, RenderRule | None], tuple[float, LivePage]] = (
            OrderedDict()
        )
        self._asked: dict[str, float] = {}  # when a site was asked last
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def fetch(self, *, anew: bool) -> FetchLive:
        """Fetches a page, or has it still; `anew` fetches it in any case."""

        async def fetched(url: str, settings: Settings, reader: OpenedCollection | None) -> LivePage:
            rule, site = SiteRules(settings.site).visit_rule(url), site_of(url)
            key = url, rule.request, rule.render
            with self._locks[site]:
                at, page = self._pages.get(key, (0.0, None))
                if page is None or anew or self._clock.monotonic() > at + self._seconds:
                    next_at = self._asked.get(site, float("-inf")) + SitePaces.of(settings)(site).delay
                    await self._clock.sleep(max(0.0, next_at - self._clock.monotonic()))
                    try:
                        page = await live_page(url, settings, reader)
                    finally:
                        self._asked[site] = self._clock.monotonic()
                    self._pages[key] = self._asked[site], page
                    self._pages.move_to_end(key)
                    if len(self._pages) > self._most:
                        self._pages.popitem(last=False)
            return page

        return fetched


async def _no_news(origin: str, rules: RobotsRules) -> None:
    """Nobody is told of what a robots.txt says."""


class _LiveFetch:
    def __init__(
        self, settings: Settings, reader: OpenedCollection | None, fetcher: Fetcher, sites: SiteCache, clock: Clock
    ) -> None:
        self._reader = reader
        self._fetcher = fetcher
        self._clock = clock
        self._paces = SitePaces.of(settings)
        self._rules = SiteRules(settings.site)
        self._robots = RobotsCache(fetcher, sites, clock, settings.politeness, _no_news, lambda: self._rules)

    async def page(self, url: str) -> LivePage:
        asked: set[str] = set()  # sites that had a request
        for _ in range(1 + _MOST_REDIRECTS):
            response = await self._answer(url, asked)
            location = response.header("location")
            if response.status not in _REDIRECTS or not location:
                return self._content(url, response)
            try:
                url = canonical(location, url)
            except BadUrl as error:
                raise Refused(f"it redirects to an address that cannot be read: {error}") from None
            if scheme_of(url) not in ("http", "https"):
                raise Refused(f"it redirects to {url[:200]}, which is not http")
        raise Refused(f"it redirects more than {_MOST_REDIRECTS} times")

    async def _answer(self, url: str, asked: set[str]) -> Response:
        site, now = site_of(url), self._clock.now()
        if (opens_at := self._paces(site).opens_at(now)) > now:
            raise Refused(f"the active hours of {site} begin {relative(opens_at, now)}")
        if self._reader is not None:
            must_be_askable(self._reader, url)
        verdict = await self._robots.verdict(url)
        if verdict.reason is not None:
            raise Refused(_said(verdict.reason, f"robots.txt of {site}"))
        if verdict.asked or site in asked:
            await self._wait(site, verdict.delay)
        asked.add(site)
        rule = self._rules.visit_rule(url)
        return await self._fetcher.fetch(request_for(url, rule.request, render=rule.render))

    async def _wait(self, site: str, delay: float | None) -> None:
        seconds = max(self._paces(site).delay, delay or 0.0)
        if seconds > _LONGEST_WAIT:
            raise Refused(f"{site} asks for {duration(seconds)} between two requests: 'levada check' waits so long")
        await self._clock.sleep(seconds)

    def _content(self, url: str, response: Response) -> LivePage:
        if response.reason is not None:
            raise Refused(_said(response.reason, response.detail))
        if not 200 <= response.status < 300:
            raise Refused(f"the site answers with status {response.status}")
        return LivePage(url, self._clock.now(), response.body, response.header("content-type") or "")


def _said(reason: Reason, detail: str) -> str:
    if reason is Reason.ROBOTS:
        return f"{detail} does not allow it"
    return f"it cannot be fetched ({reason}){': ' if detail else ''}{detail}"


# Reading


class _Reading:
    """One page, read by the rule and then by each of its entries."""

    def __init__(self, parser: Parser, raw: RawPage, rule: ReadingRule) -> None:
        self._parser = parser
        self._raw = raw
        self._rule = rule
        form = form_of(raw)
        self._is_html, self._is_json = form is Form.HTML, form is Form.DOCUMENT and document_kind(raw) == JSON
        self._killed: Reason | None = None  # why the parser died of this page: then no more is looked at

    async def trial(self, version: int, at: float) -> _Read:
        parsed = await self._parsed(self._rule)
        text, rule, compiled = _text_of(parsed), self._rule, compiled_rule(self._rule)
        compared = compiled.compared_text(text).decode("utf-8", "replace")
        holding = compiled.triggers.hold(compared)
        entries = [
            *[await self._found("select", each, rule.remove) for each in rule.select[:_MOST_LOOKED_AT]],
            *[await self._found("remove", each) for each in rule.remove[:_MOST_LOOKED_AT]],
            *[_entry("ignore", each, ignored_pieces(each, text)) for each in rule.ignore[:_MOST_LOOKED_AT]],
            *[EntryTrial("trigger", each, int(holds)) for each, holds in zip(rule.trigger, holding, strict=True)],
        ]
        shown = ReadingTrial(
            url=self._raw.url,
            at=at,
            version=version,
            title=parsed.title,
            text=text.decode("utf-8", "replace"),
            compared=compared,
            reason=parsed.reason,
            entries=tuple(entries),
        )
        return _Read(shown, parsed.text_digest)

    async def _found(self, key: str, selector: str, removed: tuple[str, ...] = ()) -> EntryTrial:
        """What one selector finds, after others removed something."""
        language, _ = language_of(selector)
        wanted, is_it = ("JSON", self._is_json) if language is Language.JSONPATH else ("HTML", self._is_html)
        if not is_it:
            return EntryTrial(key, selector, 0, note=f"it is for {wanted}, and this page is none")
        if self._killed is not None:
            return EntryTrial(key, selector, 0, note=f"not looked at ({self._killed})")
        parsed = await self._parsed(ReadingRule((selector,), removed))
        note = "" if parsed.reason in (None, Reason.NO_MATCH) else str(parsed.reason)
        return _entry(key, selector, _text_of(parsed).decode("utf-8", "replace").split("\n"), note)

    async def _parsed(self, rule: ReadingRule) -> ParsedPage:
        page = msgspec.structs.replace(self._raw, rule=rule if rule != ReadingRule() else None)
        try:
            return await self._parser.parse(page)
        except ParserDied as death:
            self._killed = Reason(death.cause)
            return ParsedPage(page.kind, reason=self._killed)


class _Read(NamedTuple):
    shown: ReadingTrial
    digest: bytes  # by which a visit compares


def _text_of(parsed: ParsedPage) -> bytes:
    """The text that would be stored, without the ends of a document's pages."""
    return unpack_text(parsed.content_zstd).replace(b"\f", b"\n") if parsed.content_zstd else b""


def _entry(key: str, entry: str, lines: Sequence[str], note: str = "") -> EntryTrial:
    there = [each for each in lines if each.strip()]
    examples = tuple(dict.fromkeys(shortened(each, _LONGEST_EXAMPLE) for each in there))
    return EntryTrial(key, entry, len(there), examples[:_MOST_EXAMPLES], note)


def _compared(
    before: _Read | None, after: _Read | None, rule: ReadingRule
) -> tuple[tuple[Hunk, ...], bool | None, bool | None]:
    """The difference from the stored to the live text, whether it makes a version, and whether that is told."""
    if before is None or after is None or before.shown.reason is not None:
        return (), None, None
    if after.shown.reason is not None:
        return (), False, False
    hunks = changes_between(paragraphs(before.shown.text), paragraphs(after.shown.text), _CONTEXT)
    changed = text_part(before.digest) != text_part(after.digest)
    states = [states_in(each.digest) for each in (after, before)]
    return tuple(hunks), changed, changed and compiled_rule(rule).triggers.are_met(*states)
