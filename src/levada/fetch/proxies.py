"""Proxies and client certificates: a fetcher that gives each request its route.

The proxies of a list take turns. One that does not work is left out for a while, longer each time, and the request
goes through the next. A site with a session keeps to one proxy as long as that works, because a session is often
bound to an address. When none works, the answer has the reason `proxy`, so that the site rests and no page is charged.

The guard cannot see what a proxy dials. So the site's name is resolved and checked here, and the proxy is told the
address. A proxy that resolves names itself weakens that, which is said once: what it resolves may be another address.

Without a proxy or a certificate, a request passes by at the cost of one comparison.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit
from zlib import crc32

from msgspec.structs import replace

from levada.core.errors import SettingsError, UsageError
from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response, Route, RouteTrouble
from levada.core.secrets import is_reference
from levada.core.site_rules.routes import RESOLVING, ProxyAddress, RouteRule, proxy_address
from levada.fetch.credentials import read_reference, seen_openly
from levada.fetch.guard import AddressGuard
from levada.pages.urls import site_of

log = logging.getLogger(__name__)

_LEFT_OUT = 30.0  # seconds after the first failure
_LONGEST = 600.0
_DOUBTS = 5  # sites in a row that it does not reach, until it counts as one that does not work
_NAMES_KEPT = 60.0
_RESOLVING_SECONDS = 10.0
_MOST_NAMES = 1_000
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_PUBLIC_NAME = re.compile(rf"(?:{_LABEL}\.)+(?!localhost)[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])")


@dataclass
class _Health:
    failures: int = 0
    doubts: int = 0
    until: float = 0.0  # left out until then
    said: str = ""


class ProxyHealth:
    """Which proxies work, by the name that the settings have for them.

    >>> now = 0.0
    >>> health = ProxyHealth(lambda: now)
    >>> health.failed("http://one:3128", "it cannot be reached")
    >>> health.works("http://one:3128"), health.works("http://two:3128")
    (False, True)
    >>> now = 31.0
    >>> health.works("http://one:3128")
    True
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, _Health] = {}

    def works(self, name: str) -> bool:
        """Whether it is worth a try."""
        found = self._known.get(name)
        return found is None or found.until <= self._now()

    def said(self, name: str) -> str:
        found = self._known.get(name)
        return found.said if found is not None else ""

    def failed(self, name: str, said: str) -> None:
        """Leave it out for a while."""
        found = self._known.setdefault(name, _Health())
        if found.until > self._now():
            return  # another request found out before
        pause = min(_LEFT_OUT * 2 ** min(found.failures, 20), _LONGEST)
        found.failures, found.doubts, found.said = found.failures + 1, 0, said
        found.until = self._now() + pause
        if found.failures == 1:
            log.warning("the proxy %s does not work: %s; it is left out, and tried again in %g s", name, said, pause)

    def doubted(self, name: str) -> bool:
        """A site was not reached through it; returns whether too many in a row were not."""
        found = self._known.setdefault(name, _Health())
        found.doubts += 1
        if found.doubts < _DOUBTS:
            return False
        self.failed(name, f"it reached none of the last {_DOUBTS} sites")
        return True

    def answered(self, name: str) -> None:
        found = self._known.get(name)
        if found is None:
            return
        if found.failures:
            log.info("the proxy %s works again", name)
        del self._known[name]


class RouteFetcher:
    """A `levada.core.protocols.Fetcher` around one that takes routes; `takes_routes` says whether it does.

    `proxies` are those of requests whose rules name none; `named` are those of rules, which are told of at once too.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        guard: AddressGuard,
        proxies: Sequence[str] = (),
        *,
        named: Sequence[str] = (),
        takes_routes: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inner = fetcher
        self._guard = guard
        self._proxies = tuple(proxies)
        self._takes_routes = takes_routes
        self._now = now
        self._health = ProxyHealth(now)
        self._names: OrderedDict[tuple[str, int], tuple[float, tuple[str, ...]]] = OrderedDict()
        self._turn = 0
        self._told: set[str] = set()
        warn_of_resolving((*proxies, *named), self._told)

    async def fetch(self, request: Request) -> Response:
        rule = request.rule.route if request.rule is not None else None
        if rule is None and not self._proxies:
            return await self.inner.fetch(request)
        return await self._routed(request, rule)

    async def proxy_for(self, request: Request) -> ProxyAddress | None:
        """The proxy for what a browser loads beside the page of this request; None: it needs none.

        A site keeps to one of them as long as that works, because the browser keeps the scripts of a site.
        `UsageError` if none works.
        """
        rule = request.rule.route if request.rule is not None else None
        proxies = self._proxies if rule is None or rule.proxies is None else rule.proxies
        for name in _from(crc32(site_of(request.url).encode()), proxies):
            if self._health.works(name):
                with suppress(UsageError, ValueError):
                    return await _resolved(name)
        if proxies:
            raise UsageError("no proxy works for what the page loads")
        return None

    async def close(self) -> None:
        await self.inner.close()

    async def _routed(self, request: Request, rule: RouteRule | None) -> Response:
        proxies = self._proxies if rule is None or rule.proxies is None else rule.proxies
        if rule is None or not rule.certificate or site_of(request.url) != rule.site:
            return await self._sent(request, Route(), proxies)
        if not request.url.startswith("https:"):  # a certificate is part of TLS
            return seen_openly(request, await self._sent(request, Route(), proxies))
        try:
            route = await _certified(rule)
        except UsageError as error:
            return _failed(request, Reason.CREDENTIALS, str(error))
        return _without_refused_certificate(await self._sent(request, route, proxies))

    async def _sent(self, request: Request, route: Route, proxies: tuple[str, ...]) -> Response:
        if not (proxies or route.certificate):
            return await self.inner.fetch(request)
        if not self._takes_routes:
            return _failed(request, Reason.PROXY, "the fetcher of these settings takes no proxy and no certificate")
        if proxies:
            return await self._through_one(request, route, proxies)
        return await self.inner.fetch(replace(request, route=route))

    async def _through_one(self, request: Request, own: Route, proxies: tuple[str, ...]) -> Response:
        """The answer through the first proxy, in turn, that works."""
        tried: list[str] = []
        for name in self._in_turn(request, proxies):
            if not self._health.works(name):
                continue
            try:
                proxy = await _resolved(name)
            except (UsageError, ValueError) as error:
                self._health.failed(name, str(error))
                continue
            warn_of_resolving((proxy.url,), self._told)
            address, refusal = await self._checked(request, proxy)
            if refusal is not None:
                return refusal
            route = Route(proxy, address, own.certificate, own.key, own.key_password)
            response = await self.inner.fetch(replace(request, route=route))
            if response.reason is Reason.PROXY:
                if route.trouble is RouteTrouble.REFUSAL:
                    tried.append(f"{name}: {response.detail}")
                else:
                    self._health.failed(name, response.detail)
                continue
            if response.reason is Reason.CONNECT:
                if self._health.doubted(name):
                    continue
            elif response.status:
                self._health.answered(name)
            return response
        tried += [f"{name}: {said}" for name in proxies if (said := self._health.said(name))]
        which = "the proxy leads" if len(proxies) == 1 else f"none of the {len(proxies)} proxies leads"
        nowhere = f"{which} {'nowhere' if len(proxies) == 1 else 'anywhere'}"
        return _failed(request, Reason.PROXY, f"{nowhere} ({'; '.join(tried)})")

    def _in_turn(self, request: Request, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """All of them, from the one whose turn it is."""
        if request.rule is not None and request.rule.session is not None:
            first = crc32(site_of(request.url).encode())
        else:
            first = self._turn
            self._turn += 1
        return _from(first, proxies)

    async def _checked(self, request: Request, proxy: ProxyAddress) -> tuple[str, Response | None]:
        """The address of the site that the proxy is told, or why it is not asked at all."""
        try:
            parts = urlsplit(request.url)
            host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            return "", _failed(request, Reason.BAD_URL, f"This request cannot be made: {error}.")
        if parts.scheme not in ("http", "https"):
            return "", _failed(request, Reason.SCHEME, "Only http and https are fetched.")
        resolves = proxy.scheme in RESOLVING
        address, refusal = checked_target(self._guard, host, port, await self._addresses(host, port), resolves=resolves)
        return address, _failed(request, *refusal) if refusal is not None else None

    async def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        if _is_address(host):
            return (host,)
        known = self._names.get((host, port))
        if known is not None and known[0] > self._now():
            return known[1]
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_RESOLVING_SECONDS):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # TimeoutError is an OSError
            return ()
        addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
        self._names[host, port] = self._now() + _NAMES_KEPT, addresses
        if len(self._names) > _MOST_NAMES:
            self._names.popitem(last=False)
        return addresses


def _from(first: int, proxies: tuple[str, ...]) -> tuple[str, ...]:
    """All of them, from this one on."""
    place = first % len(proxies) if proxies else 0
    return (*proxies[place:], *proxies[:place])


def checked_target(
    guard: AddressGuard, host: str, port: int, addresses: Sequence[str], *, resolves: bool
) -> tuple[str, tuple[Reason, str] | None]:
    """Which of the addresses of a site is dialled, or told to a proxy; or why it is not asked at all.

    `resolves`: the proxy resolves names itself, and may do so where this machine cannot; then the address is "".
    """
    if resolves and not _is_address(host) and not (_NAME if addresses else _PUBLIC_NAME).fullmatch(host):
        return "", (Reason.ADDRESS, f"{host!r} may be another name of a private address.")
    if not addresses:
        return "", None if resolves else (Reason.DNS, f"The name {host} could not be resolved.")
    refusals = {each: guard.refuses(each, port) for each in addresses}
    permitted = [each for each, refusal in refusals.items() if refusal is None]
    refused = next((refusal for refusal in refusals.values() if refusal is not None), None)
    if refused is not None and (resolves or not permitted):
        return "", (Reason.ADDRESS, refused)
    return next((each for each in permitted if ":" not in each), permitted[0]), None  # more proxies have IPv4


def warn_of_resolving(proxies: Sequence[str], told: set[str]) -> None:
    """Say once of each proxy that resolves names itself what that weakens."""
    for each in proxies:
        if each.startswith(tuple(f"{scheme}://" for scheme in RESOLVING)) and each not in told:
            told.add(each)
            log.warning(
                "the proxy %s resolves names itself: the address guard checks what they resolve to here, "
                "and the proxy may find another address, also of a private network",
                each,
            )


async def _resolved(name: str) -> ProxyAddress:
    """The proxy of this name: an address, or a reference to one. An error names the reference only."""
    if not is_reference(name):
        return proxy_address(name)
    try:
        return proxy_address(await read_reference(name))
    except ValueError as error:
        raise SettingsError(f"what {name} holds is no address of a proxy: {error}") from None


async def _certified(rule: RouteRule) -> Route:
    """A route with the certificate of the rule; `UsageError` says what is missing."""
    key = rule.key or rule.certificate
    for path in (rule.certificate, key):
        if not await asyncio.to_thread(os.access, path, os.R_OK):
            raise SettingsError(f"{path} cannot be read: name PEM files with client_certificate and client_key")
    password = await read_reference(rule.key_password) if rule.key_password else ""
    return Route(certificate=rule.certificate, key=key, key_password=password)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _without_refused_certificate(response: Response) -> Response:
    """nginx answers 400 to a certificate that it does not accept, where others break off the handshake."""
    if response.status == 400 and b"SSL certificate" in response.body[:2_000]:
        said = "the site does not accept the client certificate (status 400): check it and its authority"
        return replace(response, status=0, body=b"", headers=(), reason=Reason.LOGIN_FAILED, detail=said)
    return response


def _failed(request: Request, reason: Reason, detail: str) -> Response:
    return Response(request.url, 0, reason=reason, detail=detail)
