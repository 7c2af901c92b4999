"""Routes of requests in terms of curl: what is set for a proxy and a client certificate, and what failures mean.

The proxy is told the address of the site that the guard has checked, also for http: by CONNECT, or in the request of
SOCKS5. The name of the site goes into TLS and the Host header inside the tunnel. So a proxy cannot be led elsewhere
by a name that resolves differently for it. The schemes `httph` and `socks5h` tell it the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pycurl

from levada.core.reasons import Reason
from levada.core.records import Route, RouteTrouble
from levada.core.site_rules.routes import RESOLVING, ProxyAddress

_KINDS = {
    "http": pycurl.PROXYTYPE_HTTP,
    "httph": pycurl.PROXYTYPE_HTTP,
    "https": 2,  # CURLPROXY_HTTPS: pycurl has no name for it
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}
_TUNNELS = ("http", "https")
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS: pycurl has no name for it
_E_PROXY = 97  # a handshake of SOCKS that failed; older pycurls have no name for it
_BAD_CERTIFICATE = (pycurl.E_SSL_CERTPROBLEM, pycurl.E_BAD_FUNCTION_ARGUMENT)  # the second: a key that does not open
_UNREACHED = frozenset({19, 20, 21, 22, 24})  # CURLPX_REPLY_*: the proxy works, and the site does not answer it
_NOT_ALLOWED, _UNRESOLVED = 23, 27
_ASKS_PASSWORD = 407
_NO_ENTRY = "it does not let us in: check its user and password"
_NOT_LET_IN = (401, _ASKS_PASSWORD)  # tinyproxy answers 401 to a wrong password
_TLS = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT})
_WEIRD_REPLY = 8
_BROKEN_OFF = frozenset(
    {
        pycurl.E_UNSUPPORTED_PROTOCOL,
        pycurl.E_GOT_NOTHING,
        pycurl.E_RECV_ERROR,
        pycurl.E_SEND_ERROR,
        _WEIRD_REPLY,
    }
)


def route_options(route: Route) -> Iterator[tuple[int, Any]]:
    """What to set on a fresh handle."""
    if route.proxy is not None:
        yield from _proxy_options(route.proxy, route.address)
    if route.certificate:
        yield pycurl.SSLCERT, route.certificate
        yield pycurl.SSLKEY, route.key or route.certificate
        # Without one, curl would ask at the terminal.
        yield pycurl.KEYPASSWD, route.key_password


def _proxy_options(proxy: ProxyAddress, address: str) -> Iterator[tuple[int, Any]]:
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    yield pycurl.PROXY, f"{host}:{proxy.port}"
    yield pycurl.PROXYTYPE, _KINDS[proxy.scheme]
    yield _SUPPRESS_CONNECT_HEADERS, 1
    if proxy.scheme in _TUNNELS:
        yield pycurl.HTTPPROXYTUNNEL, 1
    if proxy.user or proxy.password:
        yield pycurl.PROXYAUTH, pycurl.HTTPAUTH_BASIC
        yield pycurl.PROXYUSERNAME, proxy.user
        yield pycurl.PROXYPASSWORD, proxy.password
    if address and proxy.scheme not in RESOLVING:
        yield pycurl.CONNECT_TO, [f"::{f'[{address}]' if ':' in address else address}:"]


def route_failure(curl: Any, route: Route, code: int) -> tuple[Reason, str] | None:
    """What went wrong on the way, if the way is to blame; it is noted in the route. None: nothing did."""
    if code in _BAD_CERTIFICATE and route.certificate:
        return Reason.CREDENTIALS, "the client certificate or its key cannot be used: check the files and the password"
    if route.proxy is None:
        return None
    tunnel = curl.getinfo(pycurl.HTTP_CONNECTCODE)  # what it answered to CONNECT; 0: nothing, or it was not asked
    if tunnel in _NOT_LET_IN or (not code and curl.getinfo(pycurl.RESPONSE_CODE) == _ASKS_PASSWORD):
        return _blame(route, RouteTrouble.PROXY, _NO_ENTRY)
    if not code:
        return None
    if 400 <= tunnel < 500:
        return _blame(route, RouteTrouble.REFUSAL, f"it does not connect to the site (status {tunnel})")
    if tunnel >= 500:
        return Reason.CONNECT, f"the proxy could not reach the site (status {tunnel})"
    if code in (pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_CONNECT):
        return _blame(route, RouteTrouble.PROXY, "it cannot be reached")
    if code == pycurl.E_OPERATION_TIMEDOUT and not curl.getinfo(pycurl.CONNECT_TIME):
        return _blame(route, RouteTrouble.PROXY, "it does not answer")
    if code == _E_PROXY:
        return _socks_failure(route, curl.getinfo(pycurl.PROXY_ERROR))
    is_opening = not tunnel and route.proxy.scheme in _TUNNELS and curl.getinfo(pycurl.NUM_CONNECTS) > 0
    if is_opening and code in _BROKEN_OFF:
        return _blame(route, RouteTrouble.PROXY, "it does not speak as a proxy does")
    if is_opening and route.proxy.scheme == "https" and code in _TLS:
        return _blame(route, RouteTrouble.PROXY, "its certificate or its TLS connection is not valid")
    return None


def _socks_failure(route: Route, error: int) -> tuple[Reason, str]:
    if error in _UNREACHED:
        return Reason.CONNECT, "the proxy could not reach the site"
    if error == _UNRESOLVED:
        return Reason.DNS, "the name of the site could not be resolved"
    if error == _NOT_ALLOWED:
        return _blame(route, RouteTrouble.REFUSAL, "its rules do not allow the site")
    return _blame(route, RouteTrouble.PROXY, _NO_ENTRY)


def _blame(route: Route, trouble: RouteTrouble, said: str) -> tuple[Reason, str]:
    route.trouble = trouble
    return Reason.PROXY, said
