"""How does a child process leave Ctrl-C to its parent, from its first instant on?

A terminal or a service manager sends its signal to all processes at once. The parent ends in good order and its
children with it; a child that dies by itself would only be taken for a failure.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["leave_signals_to_parent", "signals_held_back"]

_SENT_TO_ALL = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Start a child inside this: it inherits the hold, and is safe until it knows what to do with signals."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SENT_TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_parent() -> None:
    """The child's first act. It ends when the parent closes what lies between them."""
    for number in _SENT_TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SENT_TO_ALL)
