"""The webhook: the built-in notifier, which sends changes to an address.

Requests go through the fetcher and so through the address guard; each is signed with the hook's secret.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from levada.core.errors import LevadaError
from levada.core.protocols import Clock, Fetcher
from levada.core.records import ChangeEvent, Request, Webhook

_KEPT_BYTES = 1024  # of the answer: nobody looks at them


class NotTold(LevadaError):
    """The target refused, or could not be reached."""


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=TIME,v1=HEX`: HMAC-SHA256 of `TIME.BODY`, so that a request that was overheard is of no use later."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (at, body), sha256).hexdigest()
    return f"t={at},v1={digest}"


class WebhookNotifier:
    """A notifier on the server's own loop, whose fetcher it uses; `NotTold` unless the answer is 2xx."""

    def __init__(self, hook: Webhook, fetcher: Fetcher, clock: Clock, facts: Callable[[int, ChangeEvent], Any]) -> None:
        self._hook = hook
        self._fetcher = fetcher
        self._clock = clock
        self._facts = facts

    async def notify(self, changes: Sequence[ChangeEvent]) -> None:
        if not changes:
            return
        hook = self._hook
        body = msgspec.json.encode({"hook": hook.id, "changes": [self._facts(each.shard, each) for each in changes]})
        headers = (
            ("Content-Type", "application/json"),
            ("Levada-Signature", signature(hook.secret, int(self._clock.now()), body)),
        )
        answer = await self._fetcher.fetch(Request(hook.url, headers, _KEPT_BYTES, body))
        if answer.reason is not None:
            raise NotTold(f"{answer.reason}: {answer.detail}")
        if not 200 <= answer.status < 300:
            raise NotTold(f"answered {answer.status}")
