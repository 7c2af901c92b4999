"""Changes of a collection: read on from a marker, or the newest first; and webhooks that are told of them.

A marker is text such as `12` or `12.7.40`, one step per shard, and stays valid for ever. Each change has its own;
reading on from it gives exactly what came after.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from levada.collection.change_facts import change_id, facts_of_changes
from levada.core.clock import SystemClock
from levada.core.errors import NotFound, TooMany, UsageError
from levada.core.plugins import load
from levada.core.protocols import Documents, Fetcher, Webhooks
from levada.core.records import ChangeEvent, ChangeFacts, ChangeSelection, Webhook
from levada.follow.feed import Feed, Place, filter_of, place_of
from levada.follow.notify import NOTIFIERS, Notifications, WebhookNotifier
from levada.pages.urls import canonical

if TYPE_CHECKING:
    from levada.collection.view import CollectionView

_LOOKED_BACK = 200  # steps of each shard's log, at first
_MOST_LOOKED_BACK = 20_000
_AT_ONCE = 1_000
_MOST_WEBHOOKS = 100
_ANY = ChangeSelection()


class FeedChange(msgspec.Struct, frozen=True):
    """One change of a page."""

    id: str  # never given to another change
    event: ChangeEvent
    marker: str = ""  # reading on from here gives what came after it; "" in lists that are not in reading order


class ChangesPage(msgspec.Struct, frozen=True):
    """Some changes, and where to read on."""

    changes: list[FeedChange]
    next: str
    more: bool  # there is more already


class ChangeFeed:
    """The change log of a collection, shard by shard; every change is read once."""

    def __init__(self, logs: Sequence[Documents]) -> None:
        self.log = Feed(logs)

    def newest(self) -> str:
        """The marker from which only later changes are read."""
        return _written(self.log.newest())

    def read(self, after: str = "", limit: int = 100, wanted: ChangeSelection = _ANY) -> ChangesPage:
        """At most `limit` changes after this marker, in order within each shard; "" is the beginning."""
        place = place_of(after)
        page = self.log.read(place, limit, wanted)
        steps = [*place, *(0,) * len(page.after)][: len(page.after)]
        changes = []
        for number, (shard, event) in enumerate(page.changes, 1):
            steps[shard] = event.seq
            at = page.after if number == len(page.changes) else tuple(steps)
            changes.append(_change(shard, event, _written(at)))
        return ChangesPage(changes, _written(page.after), page.more)

    def latest(self, limit: int, wanted: ChangeSelection = _ANY) -> list[FeedChange]:
        """The newest changes, the newest first."""
        back, found = _LOOKED_BACK, list[tuple[int, ChangeEvent]]()
        newest = self.log.newest()
        while len(found) < limit and back <= _MOST_LOOKED_BACK:
            place = tuple(max(0, step - back) for step in newest)
            found, following, more = [], place, True
            while more:
                page = self.log.read(following, _AT_ONCE, wanted)
                found += page.changes
                following, more = page.after, page.more
            if not any(place):
                break
            back *= 8
        ordered = sorted(found, key=lambda each: each[1].at, reverse=True)[:limit]
        return [_change(shard, event) for shard, event in ordered]


def change_filter(site: str = "", words: str = "", least: float = 0.0, kinds: str = "") -> ChangeSelection:
    """Changes of a host and those below it, with all these words, of at least this share of the page's words, and
    of these kinds (`new,gone`)."""
    return filter_of(site, words, least, kinds)


def new_webhook(
    hooks: Webhooks, feed: ChangeFeed, url: str, wanted: ChangeSelection, *, from_beginning: bool = False
) -> Webhook:
    """A webhook for this address, with a new secret; it is told of later changes, or of all in the log."""
    address = canonical(url)
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"'{url[:200]}' is not an http or https address")
    if len(hooks.hooks()) >= _MOST_WEBHOOKS:
        raise TooMany(f"there are {_MOST_WEBHOOKS} hooks already: remove one first")
    after = feed.log.start() if from_beginning else feed.log.newest()
    return Webhook(secrets.token_hex(8), address, secrets.token_urlsafe(32), wanted, after)


def notifications(view: CollectionView, fetcher: Fetcher) -> Notifications:
    """Tells webhooks and notifiers of changes while its `run` does."""
    clock = SystemClock()

    def feed() -> Feed | None:
        try:
            return view.changes().log
        except NotFound:
            return None  # nothing is stored yet

    def facts(changes: Sequence[ChangeEvent]) -> list[ChangeFacts]:
        collection = view.collection()
        return facts_of_changes(collection.store, changes, collection.settings.notify.dashboard)

    def webhook(hook: Webhook) -> WebhookNotifier:
        return WebhookNotifier(hook, fetcher, clock, facts)

    return Notifications(
        view.hooks,
        feed,
        clock,
        webhook,
        make_book=lambda: view.hooks(create=True),
        chosen=lambda: view.folder.settings().notify.notifiers,
        load=lambda name: load(NOTIFIERS, name, view.folder.settings().plugins.get(name)),
    )


def _change(shard: int, event: ChangeEvent, marker: str = "") -> FeedChange:
    known = msgspec.structs.replace(event, shard=shard)
    return FeedChange(change_id(known), known, marker)


def _written(place: Place) -> str:
    return ".".join(map(str, place))
