"""Connections to sites: directly, or through the proxy of a site.

What is dialled, or what the proxy is told, was checked before: an address that the guard permits, or a name where the
proxy resolves names itself. Every connection through a proxy is a tunnel: CONNECT, or SOCKS5 (RFC 1928 and 1929).
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from ipaddress import ip_address

from levada.core.site_rules.routes import ProxyAddress

_SOCKS = ("socks5", "socks5h")
_NO_ENTRY = "it does not let us in: check its user and password"
_NOT_LET_IN = (401, 407)  # tinyproxy answers 401 to a wrong password
_ADDRESS_BYTES = {1: 4, 4: 16}  # by the type of an address


class ProxyTroubleError(Exception):
    """The proxy does not work, in one sentence without its password."""

    def __init__(self, proxy: ProxyAddress, said: str) -> None:
        super().__init__(f"the proxy {proxy.url} does not work: {said}")


async def connect(
    host: str, port: int, proxy: ProxyAddress | None, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to this host. `OSError`: it is not reached; `ProxyTroubleError`: the proxy does not work."""
    if proxy is None:
        return await asyncio.open_connection(host, port, limit=limit)
    tls = ssl.create_default_context() if proxy.scheme == "https" else None
    try:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port, limit=limit, ssl=tls)
    except OSError:
        raise ProxyTroubleError(proxy, "it cannot be reached") from None
    try:
        await (_by_socks if proxy.scheme in _SOCKS else _by_tunnel)(reader, writer, host, port, proxy)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionResetError, BrokenPipeError, ValueError):
        writer.close()
        raise ProxyTroubleError(proxy, "it does not speak as a proxy does") from None
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def read_head(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """The first line of a message and its headers; ValueError if it is no head."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].split(b"\r\n")
    if b"\n" in head.replace(b"\r\n", b"") or any(line[:1] in (b" ", b"\t") for line in lines):
        raise ValueError("a head with bare or folded lines")
    return first, lines


def status_of(first: bytes) -> int:
    """The status in the first line of an answer; ValueError if there is none."""
    return int(first.partition(b" ")[2].partition(b" ")[0])


async def _by_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, proxy: ProxyAddress
) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.user or proxy.password:
        lines.append("Proxy-Authorization: Basic " + b64encode(f"{proxy.user}:{proxy.password}".encode()).decode())
    writer.write("\r\n".join([*lines, "", ""]).encode())
    first, _ = await read_head(reader)
    status = status_of(first)
    if status in _NOT_LET_IN:
        raise ProxyTroubleError(proxy, _NO_ENTRY)
    if not 200 <= status < 300:
        raise ConnectionRefusedError(f"the proxy does not connect to the site (status {status})")


async def _by_socks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, proxy: ProxyAddress
) -> None:
    has_password = bool(proxy.user or proxy.password)
    writer.write(b"\x05\x02\x00\x02" if has_password else b"\x05\x01\x00")
    version, method = await reader.readexactly(2)
    if version != 5:
        raise ValueError("no SOCKS5")
    if method == 2 and has_password:
        writer.write(b"\x01" + _counted(proxy.user) + _counted(proxy.password))
        _, refused = await reader.readexactly(2)
        if refused:
            raise ProxyTroubleError(proxy, _NO_ENTRY)
    elif method:
        raise ProxyTroubleError(proxy, _NO_ENTRY)
    writer.write(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
    _, failed, _, kind = await reader.readexactly(4)
    size = _ADDRESS_BYTES.get(kind) or (await reader.readexactly(1))[0]
    await reader.readexactly(size + 2)
    if failed:
        raise ConnectionRefusedError(f"the proxy does not reach the site ({failed})")


def _socks_address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        return b"\x03" + _counted(host)
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


def _counted(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > 255:
        raise ValueError("longer than SOCKS5 takes")
    return bytes([len(encoded)]) + encoded
