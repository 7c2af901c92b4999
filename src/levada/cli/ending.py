"""How does a calculation end at Ctrl-C that no line of Python interrupts?"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ended_at_once"]


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Compiled arithmetic may run for a minute, and Python hears of a signal only after it. Meanwhile the system
    itself ends the process: only for what has written nothing yet, and has no children."""
    if threading.current_thread() is not threading.main_thread():  # nobody else may say what a signal does
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
