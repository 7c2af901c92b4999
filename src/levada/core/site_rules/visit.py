"""What the rules of a site say about one visit: for the fetcher, and for the parser child.

They go with the page: with its `Request` to the fetcher and with its `RawPage` to the parser child, over RabbitMQ too.
So a fetcher and a parser know no settings, and a changed rule holds from the next visit on.
"""

from __future__ import annotations

import msgspec

from levada.core.site_rules.credentials import Credentials
from levada.core.site_rules.routes import RouteRule
from levada.core.site_rules.sessions import SessionRule


class RequestRule(msgspec.Struct, frozen=True, array_like=True):
    """How a page is asked for. `headers` are among the headers of the request already, so every fetcher sends them."""

    headers: tuple[tuple[str, str], ...] = ()
    credentials: Credentials | None = None  # with references, which the fetcher resolves; as do the next two
    session: SessionRule | None = None
    route: RouteRule | None = None


class ReadingRule(msgspec.Struct, frozen=True, array_like=True):
    """How a page is read. It goes to the child as it is, so it holds plain data and nothing that is compiled."""

    select: tuple[str, ...] = ()  # selectors of what counts; none: the main text
    remove: tuple[str, ...] = ()  # selectors of what does not
    ignore: tuple[str, ...] = ()  # what of the text does not count when it is compared
    trigger: tuple[str, ...] = ()  # what must happen for a change to be told; none: any change


class VisitRule(msgspec.Struct, frozen=True, array_like=True):
    """Both; None where the rules say nothing."""

    request: RequestRule | None = None
    reading: ReadingRule | None = None


NO_RULE = VisitRule()
