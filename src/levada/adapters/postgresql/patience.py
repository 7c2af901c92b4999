"""What if another process holds what we need for longer than we wait? Some more tries; then it is an error.

A transaction that waited in vain was undone whole, so it may be made again. Ending a crawl, and all that it has
under way, for a lock that somebody held for some seconds would cost more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from levada.errors import StoreLocked

__all__ = ["patient"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 6


def patient(operation: Callable[P, T]) -> Callable[P, T]:
    """Of an operation that is one transaction; between two tries lies the wait for the lock itself."""

    @wraps(operation)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        for left in range(_TRIES - 1, 0, -1):
            try:
                return operation(*args, **kwargs)
            except StoreLocked as error:
                log.warning("%s; %s tries are left", error, left)
        return operation(*args, **kwargs)

    return tried
