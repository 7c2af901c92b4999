"""The way to a site: proxies in between, and the client certificate that is shown at its door.

An address of a proxy with a password in it is a secret: the rule holds a reference to the whole of it. Which schemes
there are, and who resolves names under each, is in docs/guides/proxies.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from levada.core.secrets import check_reference, is_reference

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings

RESOLVING = ("httph", "socks5h")
"""Schemes of proxies that are told names, and resolve them; the others are told addresses."""

SCHEMES = ("http", "https", "socks5", *RESOLVING)
_EXAMPLE = '"http://127.0.0.1:3128" or "socks5://proxy.example:1080"'


class ProxyAddress(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The address of a proxy, in its parts."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    @property
    def url(self) -> str:
        """Without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __repr__(self) -> str:
        return self.url


class RouteRule(msgspec.Struct, frozen=True, array_like=True):
    """How the requests to one site get there. Proxies are addresses, or references to them."""

    site: str
    proxies: tuple[str, ...] | None = None  # None: those of the section [fetch]; (): none
    certificate: str = ""  # a file
    key: str = ""  # a file; "": in that of the certificate
    key_password: str = ""  # a reference


def proxy_address(text: str) -> ProxyAddress:
    """The parts of an address; ValueError, without the address, if it is none."""
    parts = urlsplit(text.strip())
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    extra = parts.path not in ("", "/") or parts.query or parts.fragment
    if parts.scheme not in SCHEMES or not host or not port or extra or not text.isascii() or not text.isprintable():
        raise ValueError(f"a proxy is written with its scheme and port, as in {_EXAMPLE}; {_schemes()}")
    return ProxyAddress(parts.scheme, host, port, unquote(parts.username or ""), unquote(parts.password or ""))


def _schemes() -> str:
    return f"the schemes are {', '.join(SCHEMES[:-1])} and {SCHEMES[-1]}"


def check_proxies(proxies: Sequence[str]) -> None:
    """ValueError, without what may be a password, if one of them is wrong."""
    for text in proxies:
        if is_reference(text):
            check_reference("proxy", text)
            continue
        try:
            address = proxy_address(text)
        except ValueError as error:
            raise ValueError(f"proxy: {error}") from None
        if address.user or address.password:
            raise ValueError(
                "proxy: an address with a user or password is a secret: write where the whole address lies, "
                'as in "env:PROXY" or "file:/run/secrets/proxy"'
            )


def check_certificate(table: SiteSettings) -> None:
    """ValueError if the keys of the client certificate are wrong."""
    for key in ("client_certificate", "client_key"):
        path = getattr(table, key)
        if path is not None and not path.startswith("/"):
            raise ValueError(f'{key} takes the whole path of a PEM file, as in "/etc/levada/me.pem"')
    if table.client_key_password is not None:
        check_reference("client_key_password", table.client_key_password)


def route_of(table: SiteSettings, site: str) -> RouteRule | None:
    """The way to this site; None if the rule says nothing of it."""
    if table.proxy is None and not table.client_certificate:
        return None
    if not table.client_certificate:
        return RouteRule(site, table.proxy)
    key, password = table.client_key or "", table.client_key_password or ""
    return RouteRule(site, table.proxy, table.client_certificate, key, password)
