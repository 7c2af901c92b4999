"""Control commands for a crawl, and the desired state that they leave behind."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Pause(msgspec.Struct, frozen=True, tag="pause"):
    """Start no more fetches; those under way finish."""


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """Go on after a pause."""


class ChangeBudget(msgspec.Struct, frozen=True, tag="budget"):
    """Spend this many fetches per hour from now on; 0 is no limit, None the budget of the settings."""

    per_hour: Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None = None


class AddSeeds(msgspec.Struct, frozen=True, tag="add"):
    """Crawl these URLs and their sites too."""

    urls: tuple[str, ...]


class DropSite(msgspec.Struct, frozen=True, tag="drop"):
    """Stop visiting this site (host and port); its stored pages stay."""

    site: str


class CheckNow(msgspec.Struct, frozen=True, tag="check"):
    """Visit these URLs, or all pages of `site` (with "*": of every site), before all others, whatever their plans
    say. A URL that is not known is added."""

    urls: tuple[str, ...] = ()
    site: str = ""


EVERY_SITE = "*"


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    """Something was forgotten: take nothing of it up again, and leave no byte of it in the store's files."""


ControlCommand = Pause | Resume | ChangeBudget | AddSeeds | DropSite | CheckNow | Compact
"""What a user asks of a running crawl, or of the next one."""


class DesiredState(msgspec.Struct, frozen=True):
    """What executed commands leave behind, until other commands change it."""

    paused: bool = False
    per_hour: int | None = None  # None: the budget of the settings
