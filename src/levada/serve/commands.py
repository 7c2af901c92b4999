"""Control of the crawl over HTTP: start URLs, sites, pause, budget; and webhooks."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated, Any

import msgspec

from levada.collection.checking import check_command
from levada.collection.commands import change_settings
from levada.collection.notifications import NotificationOptions, Notifications
from levada.collection.site_rules.changes import notes_on_starts, rules_for_starts
from levada.collection.starts import seeds, tidied
from levada.core.commands import AddSeeds, ChangeBudget, ControlCommand, DropSite, Pause, Resume
from levada.core.errors import NotFound, TooMany, UsageError
from levada.core.site_rules.pace import SitePaces
from levada.core.subscriptions import APPRISE, MAIL, Subscription
from levada.serve.changes import Kinds, Least, Site, Words
from levada.serve.facts import SiteAsk
from levada.serve.operations import Nothing, Operations
from levada.serve.settings import check_open
from levada.serve.view import View

CONTROLLING, HOOKING = Operations(), Operations()
_order = partial(CONTROLLING.add, status=202, errors=(404, 409, 429))
_MOST_SEEDS = 1_000
_Address = Annotated[str, msgspec.Meta(max_length=4096)]


class SeedsAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    urls: Annotated[list[_Address], msgspec.Meta(min_length=1, max_length=_MOST_SEEDS)]
    keys: Annotated[dict[str, Any], msgspec.Meta(max_length=100)] = {}  # of the rule of their sites


class BudgetAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    per_hour: Annotated[int, msgspec.Meta(ge=0, le=10**9)]  # fetches; 0: no limit


class CheckAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either some pages, or one site, or with `every` all pages."""

    urls: Annotated[list[_Address], msgspec.Meta(max_length=_MOST_SEEDS)] = []
    site: Annotated[str, msgspec.Meta(max_length=300)] = ""
    every: bool = False


class OrderAnswer(msgspec.Struct, frozen=True):
    """The command is kept; the crawl that runs, or the next one, carries it out."""

    order: int
    waiting: int  # commands that no crawl has carried out yet
    crawling: bool  # a crawl runs now


class WishesAnswer(msgspec.Struct, frozen=True):
    paused: bool
    per_hour: int  # fetches; 0: no limit


def _give(view: View, order: ControlCommand) -> OrderAnswer:
    receipt = view.submit(order)
    return OrderAnswer(receipt.number, receipt.waiting, receipt.crawling)


@_order("POST", "/seeds", "Visit these addresses too, and their sites")
def _add(view: View, ask: SeedsAsk) -> OrderAnswer:
    start = seeds(ask.urls)
    check_open(ask.keys)
    collection = view.collection()
    paces = SitePaces.of(collection.settings)
    for site in {each.site for each in start}:
        most = paces(site).most_pages
        record = collection.store.site(site)
        if record is not None and record.pages >= most:
            raise TooMany(f"{site} has {record.pages:,} pages already, and more than {most:,} are not taken")
    held = view.collection_now().settings
    changes = rules_for_starts(held, start, ask.keys)
    settings = held.replace(changes)
    start = tidied(start, settings)
    notes_on_starts(settings, start)
    if changes:
        change_settings(view.folder, changes, "the API")
    return _give(view, AddSeeds(tuple(each.url for each in start)))


@_order("DELETE", "/sites", "Visit a site no more")
def _drop(view: View, ask: SiteAsk) -> OrderAnswer:
    if view.collection().store.site(ask.site.lower()) is None:
        raise NotFound(f"no site {ask.site[:200]} is known")
    return _give(view, DropSite(ask.site.lower()))


@_order("POST", "/check", "Visit these pages, or all of a site, before all others, whatever their plans say")
def _check(view: View, ask: CheckAsk) -> OrderAnswer:
    return _give(view, check_command(view.collection(), ask.urls, ask.site, ask.every))


@_order("POST", "/pause", "Stop fetching; what is under way finishes")
def _pause(view: View, _ask: Nothing) -> OrderAnswer:
    return _give(view, Pause())


@_order("POST", "/resume", "Fetch on")
def _resume(view: View, _ask: Nothing) -> OrderAnswer:
    return _give(view, Resume())


@_order("PUT", "/budget", "Have so many fetches per hour")
def _spend(view: View, ask: BudgetAsk) -> OrderAnswer:
    return _give(view, ChangeBudget(ask.per_hour))


@CONTROLLING.add("GET", "/budget", "How many fetches there are, and whether the crawl is paused", errors=(404,))
def _desired_state(view: View, _ask: Nothing) -> WishesAnswer:
    settings = view.collection().settings
    desired = view.desired_state()
    return WishesAnswer(desired.paused, settings.budget.per_hour if desired.per_hour is None else desired.per_hour)


class HookAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    site: Site = ""
    words: Words = ""
    least: Least = 0.0
    kind: Kinds = ""
    from_beginning: bool = False  # tell of everything in the log, not only of what is to come


class HookId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class HookFacts(msgspec.Struct, frozen=True):
    id: str
    url: str
    site: str
    words: str
    least: float
    told: int  # changes, in all
    failures: int  # in a row
    trouble: str  # at the last try
    kind: str = ""  # several by commas; "": all


class NewHookAnswer(msgspec.Struct, frozen=True):
    hook: HookFacts
    secret: str  # shown only now: requests are signed with it


class HooksAnswer(msgspec.Struct, frozen=True):
    hooks: list[HookFacts]


def _facts(hook: Subscription) -> HookFacts:
    wanted, state = hook.wanted, (hook.told, hook.failures, hook.trouble)
    return HookFacts(hook.id, hook.url, wanted.site, wanted.words, wanted.least, *state, ",".join(wanted.kinds))


@HOOKING.add("GET", "/webhooks", "Who is told of changes", errors=(404,))
def _list(view: View, _ask: Nothing) -> HooksAnswer:
    return HooksAnswer(
        [_facts(hook) for hook in view.subscriptions().subscriptions() if hook.notifier not in (MAIL, APPRISE)]
    )


@HOOKING.add("POST", "/webhooks", "Tell this address of changes", status=201, errors=(404, 429))
def _add_webhook(view: View, ask: HookAsk) -> NewHookAnswer:
    if not ask.url.startswith(("http://", "https://")):
        raise UsageError(f"'{ask.url[:200]}' is not an http or https address")
    options = NotificationOptions(
        name=secrets.token_hex(8),
        site=ask.site,
        words=ask.words,
        least=ask.least,
        kind=ask.kind,
        from_beginning=ask.from_beginning,
    )
    hook = Notifications(view).create(ask.url, options)
    return NewHookAnswer(_facts(hook), hook.secret)


@HOOKING.add("DELETE", "/webhooks", "Tell this one no more", errors=(404,))
def _remove(view: View, ask: HookId) -> HooksAnswer:
    if not view.subscriptions().remove(ask.id):
        raise NotFound(f"there is no hook {ask.id}")
    return _list(view, Nothing())
