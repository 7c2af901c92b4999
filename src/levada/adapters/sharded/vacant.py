"""What stands for a shard that holds nothing and lies on another machine? Nothing is found there."""

from __future__ import annotations

from typing import Any

from levada.errors import StoreError
from levada.records import Standing

__all__ = ["VacantShard"]

_FOUND: dict[str, Any] = {
    "bring_forward": None,
    "changes": (),
    "check": None,
    "close": None,
    "delivered": None,
    "document": None,
    "fenced": (),
    "follow_seq": None,
    "happenings": (),
    "lease": (),
    "live_pages": 0,
    "newest_seq": 0,
    "outdated": (),
    "page": None,
    "release": None,
    "sample": (),
    "scan": (),
    "site": None,
    "sites": (),
    "standing": Standing(),
    "undelivered": (),
    "url_of": None,
    "urls_after": (),
    "urls_like": (),
    "versions": (),
    "waiting": (),
}


class VacantShard:
    """A move to servers leaves the files before it empty for good, but their numbers taken."""

    def __init__(self, number: int) -> None:
        self._number = number

    def settle(self, visits: Any) -> list[bool]:
        return [False] * len(visits)

    def __getattr__(self, name: str) -> Any:
        if name not in _FOUND:
            raise StoreError(
                f"shard {self._number} lies in the data folder of another machine: nothing is kept there"
            )
        found = _FOUND[name]
        return lambda *args, **named: list(found) if isinstance(found, tuple) else found
