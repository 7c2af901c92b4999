"""Notifications of a collection: set up, tested, paused and removed, and the runner that sends them.

A subscription names a target (mail, any service that Apprise knows, a webhook or a plug-in), the changes that it is
told of, and when. Its targets may hold passwords: nothing here gives them back unmasked.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from levada.collection.change_facts import changed_lines, facts_of_changes
from levada.collection.components import make_fetcher
from levada.collection.view import CollectionView
from levada.core.clock import SystemClock
from levada.core.errors import NotFound, TooMany, UsageError
from levada.core.folder import only_notifier
from levada.core.plugins import load
from levada.core.protocols import Clock, Faults, Fetcher, Subscriptions
from levada.core.records import ChangeEvent, ChangeFacts, DiffLine
from levada.core.subscriptions import (
    APPRISE,
    MAIL,
    WEBHOOK,
    Conditions,
    DeliveryRecord,
    Digest,
    MessageTemplate,
    Schedule,
    Subscription,
)
from levada.follow.feed import Feed, filter_of
from levada.follow.notify.message import checked_template, trial_message
from levada.follow.notify.runner import NOTIFIERS, NotificationRunner
from levada.follow.notify.schedule import checked, local_zone
from levada.follow.notify.sender import SEND_SECONDS, ChildSender, Sender, WebhookSender
from levada.follow.notify.targets import kind_of, masked
from levada.pages.folding import words
from levada.pages.urls import canonical
from levada.store.faults import NoFaults
from levada.store.opening import make_collection_name

if TYPE_CHECKING:
    from levada.core.settings import Settings

_MOST = 100  # subscriptions of a collection
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_FIXED = frozenset({"name", "from_beginning"})  # options that a notification keeps
_Line = Annotated[str, Meta(max_length=500)]
_Amount = Annotated[float, Meta(ge=-1e15, le=1e15)]


class NotificationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a subscription is told of, when and how; everything may be left out."""

    name: Annotated[str, Meta(max_length=63)] = ""
    site: Annotated[str, Meta(max_length=300, description="Only this host, or one below it.")] = ""
    prefix: Annotated[str, Meta(max_length=2000, description="Only pages whose address begins so.")] = ""
    words: Annotated[_Line, Meta(description="Only pages on which all of these stand.")] = ""
    least: Annotated[float, Meta(ge=0, le=1, description="Share of the words that must have changed.")] = 0.0
    kind: Annotated[str, Meta(max_length=100, description="new, changed, gone, back; several by commas.")] = ""
    came: Annotated[tuple[_Line, ...], Meta(max_length=50, description="All words of one of these came.")] = ()
    went: Annotated[tuple[_Line, ...], Meta(max_length=50, description="All words of one of these went.")] = ()
    least_words: Annotated[int, Meta(ge=0, le=10**9, description="Words that came or went, together.")] = 0
    below: Annotated[_Amount | None, Meta(description="A price that came is lower.")] = None
    above: Annotated[_Amount | None, Meta(description="A price that came is higher.")] = None
    near: Annotated[_Line, Meta(description="Any number in a line with these words, instead of a price.")] = ""
    title: Annotated[_Line, Meta(description="Template of the title.")] = ""
    body: Annotated[str, Meta(max_length=10_000, description="Template of the text about each change.")] = ""
    gather: Annotated[float, Meta(ge=0, le=604_800, description="Seconds that a change waits for others.")] = 0.0
    most: Annotated[int, Meta(ge=0, le=1_000, description="Changes in one message; 0: by the target.")] = 0
    digest: Digest = ""
    at: Annotated[str, Meta(max_length=5, description="Time of the daily digest.")] = "08:00"
    quiet: Annotated[str, Meta(max_length=20, description="22:00-07:00: messages wait until it ends.")] = ""
    zone: Annotated[str, Meta(max_length=100, description="Time zone; the machine's own unless given.")] = ""
    from_beginning: bool = False  # told of everything in the log, not only of what is to come


class NotificationInfo(msgspec.Struct, frozen=True):
    """A subscription as it is shown: without secrets.

    >>> news.notifications.list()
    []
    """

    name: str
    kind: str  # mail, apprise, webhook, or the plug-in
    target: str  # masked
    paused: bool
    about: str  # which changes and when, in words
    told: int  # changes, in all
    waiting: int  # changes that are not told yet
    failures: int  # in a row
    trouble: str  # at the last try
    retry_at: float  # epoch seconds; 0: nothing is tried again
    lost: int  # changes that had left the log before they were taken, at most
    options: dict[str, Any]  # those that were given


class Notifications:
    """The subscriptions of a collection: who is told of changes, by mail, Apprise, webhook or plug-in.

    >>> info = news.notifications.add("mailto://localhost:2525/?to=me@example.org", name="me", came=["price"])
    >>> info.name, info.kind, info.about
    ('me', 'mail', 'changes with "price" among the words that came, at once')
    >>> news.notifications.pause("me").paused
    True
    >>> news.notifications.remove("me")
    """

    def __init__(self, view: CollectionView) -> None:
        self._view = view

    def add(self, target: str, **options: Any) -> NotificationInfo:
        """Tell this target of changes from now on; `options` are those of `NotificationOptions`."""
        return self.info(self.create(target, _checked_options("add()", options)))

    def create(self, target: str, asked: NotificationOptions) -> Subscription:
        """Like `add`; returns the subscription itself, whose secret a webhook's owner needs once."""
        self._view.folder.must_exist()
        book = self._view.subscriptions(create=True)
        made = _subscription(target, asked, self._view, book)
        if made.notifier == APPRISE:
            asyncio.run(_checked(made, self._view.folder.settings()))
        book.add(made)
        return made

    def edit(self, name: str, /, **options: Any) -> NotificationInfo:
        """Change these options, and nothing else: neither the other options nor how far it has told.

        The options are those of `add`, with `target`; None takes one back to its default. What waits already is
        still told.
        """
        known = self._known(name)
        if known.notifier not in (MAIL, APPRISE, WEBHOOK):
            raise UsageError(f"{name} is the plug-in {known.notifier}: its options are those of the plug-in")
        if fixed := sorted(_FIXED & options.keys()):
            raise UsageError(f"{fixed[0]} cannot be changed: add another notification and remove this one")
        target = options.pop("target", None) or known.url
        kept = {option: value for option, value in (_options(known) | options).items() if value is not None}
        fields = _told_of(target, _checked_options("edit()", kept))
        changed = replace(known, **fields)
        if changed.notifier != known.notifier:
            raise UsageError(f"{name} is of the kind {known.notifier}: add another notification for another kind")
        if changed.url != known.url:
            fields |= {"failures": 0, "trouble": "", "retry_at": 0.0}
            if changed.notifier == APPRISE:
                asyncio.run(_checked(changed, self._view.folder.settings()))
        return self._edited(name, **fields)

    def list(self) -> list[NotificationInfo]:
        """All subscriptions, by name."""
        return [self.info(each) for each in self._view.subscriptions().subscriptions()]

    def get(self, name: str) -> NotificationInfo:
        """One subscription; `NotFound` if there is none of this name."""
        return self.info(self._known(name))

    def pause(self, name: str) -> NotificationInfo:
        """Send nothing until `resume`; what changes meanwhile is told then."""
        return self._edited(name, paused=True)

    def resume(self, name: str, *, skip: bool = False) -> NotificationInfo:
        """Go on; with `skip` only with what changes from now on, and without the messages that wait."""
        self._known(name)
        if skip:
            self._view.subscriptions().skip(name, self._view.changes().log.newest())
        return self._edited(name, paused=False, retry_at=0.0)

    def remove(self, name: str) -> None:
        """Tell this one no more, not even of what waits."""
        self._known(name)
        self._view.subscriptions().remove(name)

    def test(self, name: str) -> str:
        """Send a test message now, and return what the target answered; `NotTold` says why it was not taken."""
        subscription = self._known(name)
        if subscription.notifier not in (MAIL, APPRISE, WEBHOOK):
            raise UsageError(f"{name} is the plug-in {subscription.notifier}: only Levada's own targets can be tested")
        message = trial_message(subscription, self._view.clock.now(), make_collection_name(self._view.folder))
        return asyncio.run(_sent_once(subscription, message, self._view.folder.settings()))

    def log(self, name: str = "", limit: int = 100) -> Sequence[DeliveryRecord]:
        """The newest messages first: what was sent, when, and what failed."""
        if name:
            self._known(name)
        return self._view.subscriptions().log(limit, name)

    def info(self, subscription: Subscription) -> NotificationInfo:
        waiting = self._view.subscriptions().waiting(subscription.id)
        due = self._view.subscriptions().unsent(subscription.id)
        return NotificationInfo(
            name=subscription.id,
            kind=subscription.notifier,
            target=masked(subscription.url),
            paused=subscription.paused,
            about=described(subscription),
            told=subscription.told,
            waiting=(waiting.count if waiting else 0) + due,
            failures=subscription.failures,
            trouble=subscription.trouble,
            retry_at=subscription.retry_at,
            lost=subscription.lost,
            options=_options(subscription),
        )

    def _known(self, name: str) -> Subscription:
        found = self._view.subscriptions().get(name)
        if found is None:
            names = ", ".join(each.id for each in self._view.subscriptions().subscriptions())
            raise NotFound(f'there is no notification "{name[:100]}"; there are: {names or "none"}')
        return found

    def _edited(self, name: str, **fields: Any) -> NotificationInfo:
        changed = self._view.subscriptions().edit(name, lambda each: replace(each, **fields))
        return self.info(changed or self._known(name))


def described(subscription: Subscription) -> str:
    """Which changes a subscription is told of, and when, in words."""
    wanted, conditions, schedule = subscription.wanted, subscription.conditions, subscription.schedule
    kinds = " or ".join(wanted.kinds)
    parts = [f"pages that are {kinds}" if kinds else "changes"]
    parts += [f"on {wanted.site}"] if wanted.site else []
    parts += [f"below {conditions.prefix}"] if conditions.prefix else []
    parts += [f"of pages with {wanted.words}"] if wanted.words else []
    parts += [f"of at least {wanted.least:.0%} of the words"] if wanted.least else []
    parts += [f"of at least {conditions.least_words} words"] if conditions.least_words else []
    for groups, verb in ((conditions.came, "came"), (conditions.went, "went")):
        quoted = " or ".join(f'"{each}"' for each in groups)
        parts += [f"with {quoted} among the words that {verb}"] if groups else []
    what = f"a number near {conditions.near}" if conditions.near else "a price"
    parts += [f"with {what} below {conditions.below:g}"] if conditions.below is not None else []
    parts += [f"with {what} above {conditions.above:g}"] if conditions.above is not None else []
    when = "at once"
    if schedule.digest:
        when = "every hour" if schedule.digest == "hourly" else f"daily at {schedule.at} {schedule.zone}"
    elif schedule.gather:
        when = f"gathered for {schedule.gather:g} s"
    quiet = f", not from {schedule.quiet.replace('-', ' to ')} {schedule.zone}" if schedule.quiet else ""
    return f"{' '.join(parts)}, {when}{quiet}"


def notification_runner(
    view: CollectionView,
    *,
    fetcher: Fetcher | None = None,
    faults: Faults | None = None,
    clock: Clock | None = None,
    seconds: float = SEND_SECONDS,
) -> NotificationRunner:
    """Tells every subscription of this collection of changes, while its `run` does; one at a time does.

    A mail or a message by Apprise has so many `seconds`.
    """
    clock = clock or SystemClock()

    def feed() -> Feed | None:
        try:
            return view.changes().log
        except NotFound:
            return None  # nothing is stored yet

    def facts(changes: Sequence[ChangeEvent]) -> list[ChangeFacts]:
        collection = view.collection()
        return facts_of_changes(collection.store, changes, collection.settings.notify.dashboard)

    def lines(change: ChangeEvent) -> Sequence[DiffLine]:
        return changed_lines(view.collection().store, change)

    return NotificationRunner(
        view.subscriptions,
        feed,
        clock,
        facts,
        lines,
        _senders(view, fetcher, seconds),
        make_book=lambda: view.subscriptions(create=True),
        collection=lambda: make_collection_name(view.folder),
        chosen=lambda: view.folder.settings().notify.notifiers,
        load=lambda name: load(NOTIFIERS, name, view.folder.settings().plugins.get(name)),
        lock=lambda: only_notifier(view.folder),
        faults=faults or NoFaults(),
    )


async def notify_beside(folder: Path, stopping: asyncio.Event) -> list[str]:
    """Tell of changes until `stopping` is set, then send what is due; returns what could not be sent, and why."""
    view = CollectionView(folder)
    try:
        runner = notification_runner(view)
        running = asyncio.ensure_future(runner.run())
        try:
            await stopping.wait()
            runner.stop()
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return await runner.flush()
    finally:
        view.close()


def _senders(view: CollectionView, fetcher: Fetcher | None, seconds: float) -> dict[str, Sender]:
    def made() -> Fetcher:
        return fetcher or make_fetcher(view.folder.settings(), direct=True)

    child = ChildSender(
        lambda: view.folder.settings().guard.allow,
        lambda: view.folder.settings().fetch.ca_file,
        seconds,
    )
    return {MAIL: child, APPRISE: child, WEBHOOK: WebhookSender(made, view.clock)}


async def _sent_once(subscription: Subscription, message: Any, settings: Settings) -> str:
    sender: Sender = ChildSender(lambda: settings.guard.allow, lambda: settings.fetch.ca_file)
    if subscription.notifier == WEBHOOK:
        sender = WebhookSender(lambda: make_fetcher(settings, direct=True), SystemClock())
    try:
        return await sender.send(subscription, message)
    finally:
        await sender.close()


async def _checked(subscription: Subscription, settings: Settings) -> None:
    sender = ChildSender(lambda: settings.guard.allow, lambda: settings.fetch.ca_file)
    try:
        await sender.check(subscription)
    finally:
        await sender.close()


def _checked_options(where: str, options: dict[str, Any]) -> NotificationOptions:
    try:
        return msgspec.convert(options, NotificationOptions, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None


def _subscription(target: str, asked: NotificationOptions, view: CollectionView, book: Subscriptions) -> Subscription:
    kind = kind_of(target)
    known = [each.id for each in book.subscriptions()]
    if len(known) >= _MOST:
        raise TooMany(f"there are {_MOST} notifications already: remove one first")
    fields = _told_of(target, asked)
    try:
        log = view.changes().log
        after = log.oldest() if asked.from_beginning else log.newest()
    except NotFound:
        after = ()
    return Subscription(
        id=_name(asked.name, target.partition("://")[0].lower() if kind == APPRISE else kind, known),
        secret=secrets.token_urlsafe(32) if kind == WEBHOOK else "",
        after=after,
        created=view.clock.now(),
        **fields,
    )


def _told_of(target: str, asked: NotificationOptions) -> dict[str, Any]:
    """The fields of a subscription that say who is told, of what and when."""
    kind = kind_of(target)
    for option, groups in (("came", asked.came), ("went", asked.went), ("near", (asked.near,) if asked.near else ())):
        for each in groups:
            if not words(each):
                raise UsageError(f"--{option}: there is no word in {each!r}")
    if asked.near and asked.below is None and asked.above is None:
        raise UsageError("--near says which numbers are meant: give --below or --above too")
    return {
        "url": canonical(target) if kind == WEBHOOK else target,
        "wanted": filter_of(asked.site, asked.words, asked.least, asked.kind),
        "notifier": kind,
        "conditions": Conditions(
            asked.prefix, asked.came, asked.went, asked.least_words, asked.below, asked.above, asked.near
        ),
        "schedule": checked(
            Schedule(asked.gather, asked.most, asked.digest, asked.at, asked.quiet, asked.zone or local_zone())
        ),
        "template": checked_template(MessageTemplate(asked.title, asked.body)),
    }


def _name(asked: str, kind: str, known: list[str]) -> str:
    if asked:
        if not _NAME.fullmatch(asked):
            raise UsageError(f"--name takes letters, digits, dots, hyphens and underscores, not {asked[:70]!r}")
        return asked
    numbered = (kind if number == 1 else f"{kind}-{number}" for number in range(1, len(known) + 2))
    return next(name for name in numbered if name not in known)


def _options(subscription: Subscription) -> dict[str, Any]:
    """The options that make this subscription, without those that have their defaults."""
    wanted, template = subscription.wanted, subscription.template
    held = {
        "site": wanted.site,
        "words": wanted.words,
        "least": wanted.least,
        "kind": ",".join(wanted.kinds),
        **msgspec.structs.asdict(subscription.conditions),
        **msgspec.structs.asdict(subscription.schedule),
        **msgspec.structs.asdict(template),
    }
    usual = NotificationOptions()
    return {name: value for name, value in held.items() if value != getattr(usual, name)}
