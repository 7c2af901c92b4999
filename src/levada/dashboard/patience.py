"""How long is a connection waited for that does not say what it wants?

uvicorn ends connections that are idle between two requests. One that never asks, or sends half a head, would stay
for ever, and a thousand of these keep everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["PatientProtocol"]


class PatientProtocol(H11Protocol):
    """Closes a connection on which no whole head of a request has come for a while."""

    head_seconds = 15.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._forget_patience()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_patience()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.head_seconds, self.transport.close)

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
