"""What may somebody outside ask of a crawl that runs, or of the next one?"""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["AddSeeds", "ChangeBudget", "DropSite", "Order", "Pause", "Resume", "Wishes"]


class Pause(msgspec.Struct, frozen=True, tag="pause"):
    """Fetch nothing more; what is under way is finished."""


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """Go on after a pause."""


class ChangeBudget(msgspec.Struct, frozen=True, tag="budget"):
    """Spend so many fetches per hour from now on; 0: no limit, None: as the settings say."""

    per_hour: Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None = None


class AddSeeds(msgspec.Struct, frozen=True, tag="add"):
    """Visit these addresses too, and their sites."""

    urls: tuple[str, ...]


class DropSite(msgspec.Struct, frozen=True, tag="drop"):
    """Visit this site (host and port) no more; what is stored of it stays."""

    site: str


Order = Pause | Resume | ChangeBudget | AddSeeds | DropSite
"""What somebody outside asks of a crawl that runs, or of the next one."""


class Wishes(msgspec.Struct, frozen=True):
    """What orders that were obeyed leave behind, until others change it."""

    paused: bool = False
    per_hour: int | None = None  # None: as the settings say
