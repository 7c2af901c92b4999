"""No address that is not public is reached, however it is spelled."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import SettingsError
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher
from levada.fetch.guard import AddressGuard
from tests.fetch.fetching import fetch, with_fetcher
from tests.fetch.servers import answer, canary, web


def words(text: str) -> list[str]:
    return text.split()


PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1"]
PUBLIC += ["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2620:fe::fe", "2001:200::1"]

NOT_PUBLIC = words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.170 192.0.0.192
192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1
232.1.1.1 233.252.0.1 239.255.255.255 240.0.0.1 255.255.255.254 255.255.255.255
:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8
::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 64:ff9b:1:ffff::10.0.0.1
100::1 100:0:0:1::1 1fff::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1
2002:7f00:1::1 2002:a9fe:a9fe::1 2002:808:808::1 3ffe::1 3fff::1 4000::1 5f00::1 8000::1 fc00::1 fd00::1
fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fe80::a9fe:a9fe febf::1 fec0::1 feff::1 ff02::1 ff0e::1
""")

# Host names as they stand in URLs; each means an address of this machine or of its networks.
SPELLINGS = words("""
127.0.0.1 127.1 127.0.1 127.0.0.2 127.255.255.254 0 0.0.0.0 00 0x0 0.0 2130706433 0x7f000001 0x7f.1 0x7F.0.0.0x1
0177.0.0.1 0177.1 017700000001 0x7f.0.1 127.0x1 127.0.0x0.1 127.000.000.001 127.0.0.1. 127.1.
%31%32%37.0.0.1 %6cocalhost 127%2e0%2e0%2e1 localhost LOCALHOST localhost. LocalHost a.localhost x.y.localhost
[::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [0::0] [::127.0.0.1] [::7f00:1] [::ffff:127.0.0.1] [::FFFF:127.0.0.1]
[::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:0.0.0.0] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]
[64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:7f00:1::1] [2001:0:7f00:1::1] [fe80::1] [fe80::1%25lo]
[fe80::1%25eth0] [fec0::1] [fc00::1] [fd00:ec2::254] [ff02::1] [2001:db8::1] [100::1]
10.0.0.1 10.1 167772161 0xa.1 192.168.1.1 192.168.257 172.16.0.1 172.16.1 100.64.0.1 169.254.169.254 2852039166
0xa9fea9fe 0251.0376.0251.0376 169.254.43518 198.18.0.1 192.0.2.1 224.0.0.1 240.0.0.1 255.255.255.255
user@127.0.0.1 127.0.0.1@localhost a:b@[::1] ①②⑦.0.0.1 127。0。0。1 ⓛocalhost
""")


@pytest.mark.parametrize("ip", PUBLIC)
def test_a_public_address_may_be_dialled(ip: str) -> None:
    assert AddressGuard().refuses(ip, 443) is None


@pytest.mark.parametrize("ip", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused_with_a_sentence(ip: str) -> None:
    sentence = AddressGuard().refuses(ip, 443)
    assert sentence is not None
    assert sentence.endswith(".")


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.1.1.1 ", "1.1.1.1:80", "01.1.1.1"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    assert AddressGuard().refuses(text, 80) is not None


@pytest.mark.parametrize("port", [0, -1, 22, 25, 53, 110, 143, 445, 3306, 5432, 6379, 11211, 27017, 65536])
def test_a_port_of_another_protocol_is_refused(port: int) -> None:
    assert "protocol" in (AddressGuard().refuses("1.1.1.1", port) or "")


@pytest.mark.parametrize("port", [80, 443, 591, 8000, 8080, 8443, 3000, 65535])
def test_a_port_where_web_servers_live_is_not_refused(port: int) -> None:
    assert AddressGuard().refuses("1.1.1.1", port) is None


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_what_the_standard_library_calls_private_is_never_allowed(address: IPv4Address | IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_link_local:
        assert AddressGuard().refuses(str(address), 80) is not None


@given(
    st.ip_addresses(v=4),
    st.sampled_from(["::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/96", "2002::/16"]),
)
def test_no_ipv4_address_gets_through_inside_an_ipv6_address(inner: IPv4Address, carrier: str) -> None:
    network = IPv6Network(carrier)
    shift = 80 if carrier == "2002::/16" else 0
    outer = IPv6Address(int(network.network_address) | int(inner) << shift)
    assert AddressGuard().refuses(str(outer), 80) is not None


def test_an_exception_is_exactly_one_address_and_one_port() -> None:
    guard = AddressGuard(["127.0.0.1:8100", "[::1]:8100"])
    assert guard.refuses("127.0.0.1", 8100) is None
    assert guard.refuses("0:0:0:0:0:0:0:1", 8100) is None
    for ip, port in [("127.0.0.1", 8101), ("127.0.0.2", 8100), ("::ffff:127.0.0.1", 8100), ("::1", 80)]:
        assert guard.refuses(ip, port) is not None


@pytest.mark.parametrize(
    "text",
    words(
        "127.0.0.1 127.0.0.0/8:80 localhost:80 127.0.0.1:* *:80 :80 ::1:80 127.0.0.1:0 127.0.0.1:80-90 : "
        "[127.0.0.1]:80 127.0.0.1:99999 [fe80::1%lo]:80 127.0.0.1:８０ 127.1:80"
    ),
)
def test_an_exception_that_is_not_one_address_and_port_is_a_settings_error(text: str) -> None:
    with pytest.raises(SettingsError, match="exact"):
        AddressGuard([text])


def test_no_spelling_of_a_private_address_reaches_a_listener() -> None:
    assert len(SPELLINGS) >= 60

    async def ask_all(fetcher: CurlFetcher) -> list[Response]:
        urls = [f"{scheme}://{host}:{port}/" for host in SPELLINGS for scheme in ("http", "https")]
        return await asyncio.gather(*(fetcher.fetch(Request(url)) for url in urls))

    with canary() as (port, reached):
        responses = with_fetcher(ask_all)
        assert reached() == 0
    for response in responses:
        assert response.status == 0, response
        assert response.reason in (Reason.ADDRESS, Reason.BAD_URL, Reason.DNS), response


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "[::1]", "0"])
def test_the_spellings_that_browsers_know_are_refused_by_address(host: str) -> None:
    response = fetch(f"http://{host}:8099/")
    assert response.reason is Reason.ADDRESS
    assert "not a public address" in response.detail


def test_the_exception_opens_its_own_port_and_no_other() -> None:
    with web({"/": answer(b"demo")}) as allowed, web({"/": answer(b"secret")}) as neighbour:
        assert fetch(f"{allowed.url}/", [allowed.address]).body == b"demo"
        assert fetch(f"{neighbour.url}/", [allowed.address]).reason is Reason.ADDRESS
        assert fetch(f"http://127.0.0.2:{allowed.port}/", [allowed.address]).reason is Reason.ADDRESS
        assert neighbour.connections == 0


def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    with canary() as (port, reached):
        away = answer(b"", f"Location: http://127.0.0.1:{port}/", status="302 Found")
        with web({"/": away}) as server:
            response = fetch(f"{server.url}/", [server.address])
        assert (response.status, response.reason) == (302, None)
        assert response.header("location") == f"http://127.0.0.1:{port}/"
        assert reached() == 0


@pytest.mark.parametrize("variable", ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"])
def test_a_proxy_in_the_environment_is_not_used(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with canary() as (port, reached), web({"/": answer(b"direct")}) as server:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{port}")
        assert fetch(f"{server.url}/", [server.address, f"127.0.0.1:{port}"]).body == b"direct"
        assert reached() == 0


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/", "data:,x", "gopher://a/", "dict://a/", "//a/"]
)
def test_only_http_and_https_are_spoken(url: str) -> None:
    assert fetch(url).reason is Reason.SCHEME


def test_the_address_parser_agrees_with_itself() -> None:
    assert all(ip_address(ip.partition("%")[0]) for ip in NOT_PUBLIC)
