"""Senders of messages: a child process for mail and Apprise, the fetcher for webhooks, threads for plug-ins."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from threading import Thread
from typing import Protocol

import msgspec

from levada.core.errors import LevadaError, MissingExtra, NotTold, UsageError
from levada.core.plugins import call, settle
from levada.core.processes import module_command, signals_held_back
from levada.core.protocols import Clock, Fetcher, Notifier
from levada.core.records import ChangeEvent, Request
from levada.core.subscriptions import APPRISE, Message, Subscription
from levada.follow.notify.targets import masked

_SECONDS = 60.0  # of the wall, for one call of a plug-in
SEND_SECONDS = 30.0
"""Of the wall, for one message."""
_START_SECONDS = 30.0  # more for the first: Apprise takes a while to load
_KEPT_BYTES = 1024  # of a webhook's answer: nobody looks at them
_LONGEST_ANSWER = 1 << 16
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
_CHILD = "levada.follow.notify.child"


class NotifierHangs(LevadaError):
    pass


class Sender(Protocol):
    """Sends the messages of one kind of target."""

    async def send(self, subscription: Subscription, message: Message) -> str:
        """Send it, and return what the target said; `NotTold` says why it did not take it."""
        ...

    async def close(self) -> None: ...


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=TIME,v1=HEX`: HMAC-SHA256 of `TIME.BODY`, so that a request that was overheard is of no use later."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (at, body), sha256).hexdigest()
    return f"t={at},v1={digest}"


class WebhookNotifier:
    """A notifier on the server's own loop, whose fetcher it uses; `NotTold` unless the answer is 2xx."""

    def __init__(
        self,
        hook: Subscription,
        fetcher: Fetcher,
        clock: Clock,
        facts: Callable[[Sequence[ChangeEvent]], Sequence[object]],
        message: str = "",
    ) -> None:
        self._hook = hook
        self._fetcher = fetcher
        self._clock = clock
        self._facts = facts
        self._message = message

    async def notify(self, changes: Sequence[ChangeEvent]) -> None:
        if not changes:
            return
        hook = self._hook
        body = msgspec.json.encode({"hook": hook.id, "changes": self._facts(changes)})
        headers = (
            ("Content-Type", "application/json"),
            ("Levada-Signature", signature(hook.secret, int(self._clock.now()), body)),
            *((("Levada-Message", self._message),) if self._message else ()),
        )
        answer = await self._fetcher.fetch(Request(hook.url, headers, _KEPT_BYTES, body))
        if answer.reason is not None:
            raise NotTold(f"{answer.reason}: {answer.detail}")
        if not 200 <= answer.status < 300:
            raise NotTold(f"answered {answer.status}")


class WebhookSender:
    """Posts the facts of the changes, signed; through the fetcher, and so through the address guard."""

    def __init__(self, fetcher: Callable[[], Fetcher], clock: Clock) -> None:
        self._make, self._clock = fetcher, clock
        self._fetcher: Fetcher | None = None

    async def send(self, subscription: Subscription, message: Message) -> str:
        if self._fetcher is None:
            self._fetcher = self._make()
        facts = [each.facts for each in message.changes]
        notifier = WebhookNotifier(subscription, self._fetcher, self._clock, lambda _: facts, message.id)
        await notifier.notify([each.event for each in message.changes])
        return "answered 2xx"

    async def close(self) -> None:
        if self._fetcher is not None:
            await self._fetcher.close()
            self._fetcher = None


async def on_thread(notifier: Notifier, changes: Sequence[ChangeEvent], seconds: float = _SECONDS) -> None:
    """Call a plug-in on a thread that nobody waits for; `NotifierHangs` if it does not return in time."""
    told: Future[None] = Future()
    told.set_running_or_notify_cancel()  # it can no longer be cancelled, only be left alone
    Thread(target=settle, args=(lambda: call(notifier.notify, changes), told), name="notifier", daemon=True).start()
    done = asyncio.wrap_future(told)
    await asyncio.wait((done,), timeout=seconds)  # `wait_for` may swallow that this task is cancelled
    if not done.done():
        done.cancel()
        raise NotifierHangs(f"no answer within {seconds:g} s")
    done.result()


class ChildSender:
    """Mail and Apprise, each target in a child process of its own; one that hangs is killed."""

    def __init__(
        self, allow: Callable[[], Sequence[str]], ca_file: Callable[[], str] = str, seconds: float = SEND_SECONDS
    ) -> None:
        self._allow, self._ca_file, self._seconds = allow, ca_file, seconds
        self._children: dict[str, tuple[str, asyncio.subprocess.Process]] = {}

    async def check(self, subscription: Subscription) -> None:
        """Raise `UsageError` if the target is written in a way that its service does not understand."""
        try:
            await self._ask(subscription, {"id": ""})
        except NotTold as error:
            raise UsageError(f"{masked(subscription.url)}: {error}") from None

    async def send(self, subscription: Subscription, message: Message) -> str:
        request = {
            "id": message.id,
            "created": message.created,
            "title": message.title,
            "text": message.text,
            "html": message.html,
            "changes": [each.facts.id for each in message.changes],
        }
        return await self._ask(subscription, request)

    async def _ask(self, subscription: Subscription, request: Mapping[str, object]) -> str:
        process, is_new = await self._child(subscription)
        seconds = self._seconds + (_START_SECONDS if is_new else 0.0)
        try:
            async with asyncio.timeout(seconds):
                row = await _exchanged(process, msgspec.json.encode(request))
        except TimeoutError:
            await self._end(subscription.id)
            raise NotTold(f"the target does not answer within {self._seconds:g} s") from None
        except (OSError, ValueError):
            row = b""
        except asyncio.CancelledError:
            await self._end(subscription.id)
            raise
        if not row:
            await self._end(subscription.id)
            raise NotTold("the sender ended without an answer: it used too much time or memory")
        answer = msgspec.json.decode(row)
        if answer["trouble"]:
            await self._end(subscription.id)  # the next try begins anew
            raise NotTold(answer["trouble"])
        return str(answer["said"])

    async def close(self) -> None:
        for id in list(self._children):
            await self._end(id)

    async def _child(self, subscription: Subscription) -> tuple[asyncio.subprocess.Process, bool]:
        url, process = self._children.get(subscription.id, ("", None))
        if process is not None and process.returncode is None and url == subscription.url:
            return process, False
        await self._end(subscription.id)
        if subscription.notifier == APPRISE:
            must_have_apprise()
        setup = {
            "kind": subscription.notifier,
            "url": subscription.url,
            "allow": list(self._allow()),
            "ca_file": self._ca_file(),
            "seconds": self._seconds,
        }
        with signals_held_back():
            process = await asyncio.create_subprocess_exec(
                *module_command(_CHILD),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_ANSWER,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},  # without proxies
            )
        self._children[subscription.id] = (subscription.url, process)
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(setup) + b"\n")
        return process, True

    async def _end(self, id: str) -> None:
        _, process = self._children.pop(id, ("", None))
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def must_have_apprise() -> None:
    from importlib.util import find_spec

    if find_spec("apprise") is None:
        raise MissingExtra("Apprise", "notify")


async def _exchanged(process: asyncio.subprocess.Process, row: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(row + b"\n")
    await process.stdin.drain()
    return await process.stdout.readline()
