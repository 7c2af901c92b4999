"""Subscriptions: who is told of which changes, when and how, and the messages that are on their way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from levada.core.records import ChangeEvent, ChangeFacts, ChangeSelection

WEBHOOK, MAIL, APPRISE = "webhook", "mail", "apprise"
BUILT_IN = (WEBHOOK, MAIL, APPRISE)
Digest = Literal["", "hourly", "daily"]


class Conditions(msgspec.Struct, frozen=True):
    """What must hold of a change besides the selection; each condition that is given must hold."""

    prefix: str = ""  # the beginning of the page's address
    came: tuple[str, ...] = ()  # all words of one of these came
    went: tuple[str, ...] = ()  # all words of one of these went
    least_words: int = 0  # words that came or went, together
    below: float | None = None  # a number that came is lower
    above: float | None = None  # a number that came is higher
    near: str = ""  # only numbers in lines with all of these words; "": numbers beside a currency


class Schedule(msgspec.Struct, frozen=True):
    """When waiting changes become a message. Times of day are in `zone`."""

    gather: float = 0.0  # seconds that the first waits for others
    most: int = 0  # changes in a message; 0: as many as the kind of target takes
    digest: Digest = ""
    at: str = "08:00"  # of the daily digest
    quiet: str = ""  # "22:00-07:00": messages wait until it ends
    zone: str = "UTC"


class MessageTemplate(msgspec.Struct, frozen=True):
    """The text of a message, with fields in braces; "": the default."""

    title: str = ""
    body: str = ""  # of each change


class Subscription(msgspec.Struct, frozen=True):
    """A target that is told of changes. `id` is its name."""

    id: str
    url: str  # may hold secrets: shown only masked
    secret: str = ""  # a webhook's requests are signed with it
    wanted: ChangeSelection = ChangeSelection()
    after: tuple[int, ...] = ()  # the position in the change log of each shard up to which changes were taken
    failures: int = 0  # in a row
    trouble: str = ""  # the error of the last attempt
    told: int = 0  # changes delivered in all
    notifier: str = WEBHOOK  # what sends: built in, or the name of a plug-in
    conditions: Conditions = Conditions()
    schedule: Schedule = Schedule()
    template: MessageTemplate = MessageTemplate()
    paused: bool = False
    created: float = 0.0
    retry_at: float = 0.0  # not before this time
    lost: int = 0  # changes that had left the log before they were taken, at most


class DescribedChange(msgspec.Struct, frozen=True):
    """A change that a message tells of."""

    event: ChangeEvent
    facts: ChangeFacts


class TakenChanges(msgspec.Struct, frozen=True):
    """What was read of the change log for a subscription: the changes that it wants, and how far it is now."""

    before: tuple[int, ...]  # the position from which it was read
    after: tuple[int, ...]
    changes: Sequence[DescribedChange]
    seen: float
    lost: int = 0  # changes that had left the log, at most


class Message(msgspec.Struct, frozen=True):
    """A message as it was composed; it is sent unchanged until the target takes it."""

    id: str  # the same for the same changes of the same subscription, whoever composes it
    subscription: str
    created: float
    title: str
    text: str
    html: str
    changes: tuple[DescribedChange, ...]
    attempts: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """The changes of a subscription that are in no message yet."""

    count: int
    since: float  # when the oldest of them was seen


class DeliveryRecord(msgspec.Struct, frozen=True):
    """One line of the notification log."""

    message: str
    subscription: str
    created: float
    sent: float | None  # None: on its way
    attempts: int  # that failed
    trouble: str  # of the last of them
    changes: int
    title: str
