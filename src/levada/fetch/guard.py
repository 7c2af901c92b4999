"""Address guard: only public unicast addresses, and no ports of other protocols.

The guard checks the address that is dialled, at connect(). So no spelling of a host name, no redirect and no change
of DNS between check and use gets around it. The networks are those of the IANA special-purpose registries (RFC 6890
and its updates). `ipaddress.is_global` alone is not enough: it calls some multicast, 6to4 and NAT64 addresses
global, and the last two lead to any IPv4 address that they contain.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from levada.core.errors import SettingsError

# Networks that embed IPv4 addresses in IPv6 are refused as a whole: a site behind one also has a plain IPv4 address.
_REFUSED = {
    ip_network(network): kind
    for network, kind in {
        "0.0.0.0/8": "this host",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "carrier-grade NAT",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's metadata service",
        "169.254.0.0/16": "link-local or a cloud's metadata service",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved for protocols",
        "192.0.2.0/24": "documentation",
        "192.88.99.0/24": "a 6to4 relay",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved or broadcast",
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::ffff:0:0/96": "IPv4 in IPv6",
        "::ffff:0:0:0/96": "IPv4 in IPv6",
        "::/96": "IPv4 in IPv6",
        "64:ff9b::/96": "NAT64",
        "64:ff9b:1::/48": "NAT64",
        "100::/64": "discard-only",
        "2001::/32": "Teredo",
        "2001:2::/48": "benchmarking",
        "2001::/23": "reserved for protocols",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",
        "3ffe::/16": "withdrawn",
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}
_V6_UNICAST = IPv6Network("2000::/3")  # all that is allocated for the public internet

# Ports that browsers refuse, so that a page cannot make a crawler send commands to a mail server or a database.
_PORTS_REFUSED = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989, 990, 993, 995, 1433, 1521, 1719, 1720,
    1723, 2049, 2181, 2375, 2376, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 5900, 6000, 6379,
    6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 9092, 10080, 11211, 27017,
})  # fmt: skip


class AddressGuard:
    """Refuses all but public addresses and those in `allow`: exact "ip:port" ("[ip]:port" for IPv6), no ranges.

    `ports` are of the caller's own protocol, and are not refused for belonging to another than HTTP.
    """

    def __init__(self, allow: Collection[str] = (), ports: Collection[int] = ()) -> None:
        self._allowed = frozenset(_exception(text) for text in allow)
        self._ports_refused = _PORTS_REFUSED.difference(ports)

    def refuses(self, ip: str, port: int) -> str | None:
        """Why this address may not be dialled, in a sentence; None if it may."""
        if "%" in ip:
            return f"{ip} names a network interface."
        try:
            address = ip_address(ip)
        except ValueError:
            return f"{ip!r} is not an IP address."
        if (address, port) in self._allowed:
            return None
        kind = _kind(address)
        if kind is not None:
            return f"{address} is not a public address: {kind}."
        if port in self._ports_refused or not 0 < port < 65536:
            return f"Port {port} belongs to another protocol than HTTP."
        return None


def _kind(address: IPv4Address | IPv6Address) -> str | None:
    kind = next((kind for network, kind in _REFUSED.items() if address in network), None)
    is_allocated = isinstance(address, IPv4Address) or address in _V6_UNICAST
    return kind or (None if is_allocated and address.is_global else "reserved")


def _exception(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    ip, _, port = text.rpartition(":")
    bracketed = ip.startswith("[") and ip.endswith("]")
    try:
        address = ip_address(ip[1:-1] if bracketed else ip)
        if "%" in ip or bracketed != isinstance(address, IPv6Address):
            raise ValueError
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError
    except ValueError:
        raise SettingsError(
            f'guard.allow in the settings takes an exact "ip:port" such as "127.0.0.1:8080", not {text!r}'
        ) from None
    return address, int(port)
