"""Notifications over HTTP: who is told of changes, set up, tested, paused and removed.

The older `/webhooks` (in `commands`) shows the same subscriptions as far as they are webhooks. Targets are masked in
every answer; only a webhook's signing secret is given out, once, to whoever added it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Annotated, Any

import msgspec

from levada.collection.notifications import NotificationInfo, NotificationOptions, Notifications
from levada.core.durations import iso
from levada.core.errors import TooMany, UsageError
from levada.serve.operations import Nothing, Operations, facts_of
from levada.serve.view import View

NOTIFYING = Operations()
_MOST_TESTS = 4  # that may run at the same time: each may take a minute
_OPTION = re.compile(r"--([a-z][a-z-]*)")  # as the command line names what is a field here
_testing = BoundedSemaphore(_MOST_TESTS)

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class NotificationAsk(NotificationOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target, and what it is told of, when and how."""

    target: Annotated[
        str, msgspec.Meta(min_length=1, max_length=4096, description="mailto://..., https://... or an Apprise URL.")
    ]


class NamedAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name


class EditAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    change: Annotated[
        dict[str, Any], msgspec.Meta(max_length=30, description="Fields as in `POST`; null: the default.")
    ]


class ResumeAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    skip: bool = False  # without what waits, only from now on


class MessagesAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=100, description="Only this notification's.")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class NotificationsAnswer(msgspec.Struct, frozen=True):
    notifications: list[NotificationInfo]


class NewNotificationAnswer(msgspec.Struct, frozen=True):
    notification: NotificationInfo
    secret: str  # of a webhook, shown only now: requests are signed with it


class TestAnswer(msgspec.Struct, frozen=True):
    name: str
    answer: str  # the target's own words


class MessageFacts(msgspec.Struct, frozen=True):
    message: str  # its id
    subscription: str
    created: str
    sent: str | None  # null: on its way
    attempts: int  # that failed
    trouble: str  # of the last of them
    changes: int
    title: str


class MessagesAnswer(msgspec.Struct, frozen=True):
    messages: list[MessageFacts]  # the newest first


@NOTIFYING.add("GET", "/notifications", "Who is told of changes, how far each is, and what is wrong", errors=(404,))
def _list(view: View, _ask: Nothing) -> NotificationsAnswer:
    return NotificationsAnswer(Notifications(view).list())


@NOTIFYING.add(
    "POST", "/notifications", "Tell this target of changes from now on", status=201, errors=(404, 409, 429, 501)
)
def _add_notification(view: View, ask: NotificationAsk) -> NewNotificationAnswer:
    options = NotificationOptions(**{name: getattr(ask, name) for name in NotificationOptions.__struct_fields__})
    notifications = Notifications(view)
    with _naming_fields():
        made = notifications.create(ask.target, options)
    return NewNotificationAnswer(notifications.info(made), made.secret)


@NOTIFYING.add("PUT", "/notifications", "Change options, and not what was told and what waits", errors=(404, 409, 501))
def _edit(view: View, ask: EditAsk) -> NotificationInfo:
    with _naming_fields():
        return Notifications(view).edit(ask.name, **ask.change)


@contextmanager
def _naming_fields() -> Iterator[None]:
    """Errors name fields where the command line has options."""
    try:
        yield
    except UsageError as error:
        if type(error) is not UsageError:
            raise
        raise UsageError(_OPTION.sub(lambda found: found[1].replace("-", "_"), str(error))) from None


@NOTIFYING.add("POST", "/notifications/test", "Send a test message now", errors=(404, 429, 501, 502))
def _test(view: View, ask: NamedAsk) -> TestAnswer:
    if not _testing.acquire(blocking=False):
        raise TooMany(f"{_MOST_TESTS} test messages are on their way: wait for their answers")
    try:
        return TestAnswer(ask.name, Notifications(view).test(ask.name))
    finally:
        _testing.release()


@NOTIFYING.add("POST", "/notifications/pause", "Send nothing until it is resumed", errors=(404, 409))
def _pause(view: View, ask: NamedAsk) -> NotificationInfo:
    return Notifications(view).pause(ask.name)


@NOTIFYING.add("POST", "/notifications/resume", "Go on, or try again now after failures", errors=(404, 409))
def _resume(view: View, ask: ResumeAsk) -> NotificationInfo:
    return Notifications(view).resume(ask.name, skip=ask.skip)


@NOTIFYING.add("DELETE", "/notifications", "Tell this one no more, not even of what waits", errors=(404, 409))
def _remove(view: View, ask: NamedAsk) -> NotificationsAnswer:
    notifications = Notifications(view)
    notifications.remove(ask.name)
    return NotificationsAnswer(notifications.list())


@NOTIFYING.add("GET", "/notifications/log", "The latest messages: what was sent, when, and what failed", errors=(404,))
def _log(view: View, ask: MessagesAsk) -> MessagesAnswer:
    found = Notifications(view).log(ask.name, ask.limit)
    facts = [facts_of(MessageFacts, each, created=str(iso(each.created)), sent=iso(each.sent)) for each in found]
    return MessagesAnswer(facts)
