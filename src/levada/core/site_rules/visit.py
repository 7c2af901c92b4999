"""What the rules of a site say about one visit: for the fetcher, the browser and the parser child.

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


class RenderRule(msgspec.Struct, frozen=True, array_like=True):
    """How a browser renders a page. It goes with the request, and only with the request for a page."""

    always: bool = False  # False: only where the page as it is served is an empty shell
    wait_for: str = ""  # a CSS selector; "": until the network is quiet
    screenshot: bool = False
    media: bool = False  # pictures, fonts, sound and video are loaded too


class ReadingRule(msgspec.Struct, frozen=True, array_like=True):
    """How a page is read. It goes to the child as it is, so it holds plain data and nothing that is compiled."""

    select: tuple[str, ...] = ()  # selectors of what counts; none: the main text
    remove: tuple[str, ...] = ()  # selectors of what does not
    ignore: tuple[str, ...] = ()  # what of the text does not count when it is compared
    trigger: tuple[str, ...] = ()  # what must happen for a change to be told; none: any change
    rendered: str = ""  # how a browser renders it first: the text of a page that it renders is another one


class VisitRule(msgspec.Struct, frozen=True, array_like=True):
    """All of them; None where the rules say nothing."""

    request: RequestRule | None = None
    reading: ReadingRule | None = None
    render: RenderRule | None = None


NO_RULE = VisitRule()
