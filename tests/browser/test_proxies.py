"""What a rendered page loads goes through the proxy of its site, and through nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.browser.messages import Rendered
from levada.browser.upstream import ProxyTroubleError, connect
from levada.core.reasons import Reason
from levada.core.site_rules.routes import ProxyAddress
from tests.browser.shop import LAMPS, SHOP_BLOCK, routes, shop_files
from tests.browser.tab import render_all, setup, shown
from tests.fetch.servers import WebServer, answer, canary, web
from tests.fetch.test_guard import SPELLINGS
from tests.needs import missing, package
from tests.serve.browser_session import chromium
from tests.servers.forward_proxies import ForwardProxy, socks_proxy, tinyproxy
from tests.servers.nginx import nginx
from tests.servers.private import free_ports
from tests.story.commands import contents
from tests.story.secrets_planted import leaks, run

PASSWORD = "hush-20cf-only-for-the-proxy"
PAGE = """<!doctype html><title>A page</title><body><p id=at>Loading</p><script>
fetch('/data').then((answer) => answer.text()).then((text) => { document.getElementById('at').textContent = text; });
</script></body>"""


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web({"/data": answer(b"The ferry leaves at noon.", "Content-Type: text/plain")}) as server:
        yield server


@pytest.fixture(params=["http", "socks5", "httph", "socks5h"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ProxyAddress, ForwardProxy]]:
    scheme = request.param
    kind = socks_proxy if scheme.startswith("socks") else tinyproxy
    with kind(tmp_path / "proxy", login=f"me {PASSWORD}") as running:
        yield ProxyAddress(scheme, "127.0.0.1", running.port, "me", PASSWORD), running


def rendered(site: WebServer, address: ProxyAddress, allow: str = "") -> Rendered:
    (done,) = render_all(setup(allow or site.address), [(f"{site.url}/", PAGE)], proxy=address)
    return done


def test_scripts_reach_their_site_through_the_proxy(site: WebServer, proxy: tuple[ProxyAddress, ForwardProxy]) -> None:
    address, running = proxy
    assert "The ferry leaves at noon." in shown(rendered(site, address))
    asked = [each for each in running.asked() if site.address in each]
    assert len(asked) == site.connections > 0  # none came past it


def test_no_private_address_is_asked_of_the_proxy(site: WebServer, proxy: tuple[ProxyAddress, ForwardProxy]) -> None:
    address, running = proxy
    with canary() as (port, reached):
        addresses = [f"http://{host}:{port}/{i}" for i, host in enumerate(SPELLINGS)]
        script = f"for (const u of {json.dumps(addresses)}) {{ try {{ fetch(u, {{mode: 'no-cors'}}).catch(() => 0); }}"
        page = f"<!doctype html><title>A page</title><body><script>{script} catch (e) {{ }} }}</script></body>"
        (done,) = render_all(setup(site.address), [(f"{site.url}/", page)], proxy=address)
        assert reached() == 0
    assert done.reason is None
    assert done.refused
    assert not any(str(port) in each for each in running.asked())


def test_a_proxy_that_does_not_work_leaves_a_reason_and_nothing_goes_past_it(site: WebServer) -> None:
    (port,) = free_ports(1)
    done = rendered(site, ProxyAddress("socks5", "127.0.0.1", port, "me", PASSWORD))
    assert (done.reason, done.html) == (Reason.PROXY, b"")
    assert done.detail == f"the proxy socks5://127.0.0.1:{port} does not work: it cannot be reached"
    assert site.connections == 0


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_wrong_password_is_said_and_not_repeated(scheme: str, site: WebServer, tmp_path: Path) -> None:
    kind = socks_proxy if scheme == "socks5" else tinyproxy
    with kind(tmp_path / "proxy", login="me another") as running:
        done = rendered(site, ProxyAddress(scheme, "127.0.0.1", running.port, "me", PASSWORD))
    assert done.reason is Reason.PROXY
    assert done.detail.endswith("it does not let us in: check its user and password")
    assert PASSWORD not in done.detail
    assert site.connections == 0


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("said", [b"SSH-2.0-server\r\n\r\n", b"\x05", b"", b"\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"])
def test_what_speaks_another_protocol_is_no_proxy(scheme: str, said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await connect("192.88.98.1", 80, ProxyAddress(scheme, "127.0.0.1", port), 65_536)

    with pytest.raises(ProxyTroubleError, match="does not work: it does not speak as a proxy does"):
        asyncio.run(ask())


@pytest.mark.timeout(300)
def test_an_application_is_crawled_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package("playwright")
    chromium() or missing("no Chromium is installed")
    shop_files(tmp_path / "files")
    home = tmp_path / "home"
    home.mkdir()
    with (
        nginx(tmp_path / "nginx", SHOP_BLOCK.format(root=tmp_path / "files")) as port,
        socks_proxy(tmp_path / "socks", login=f"me {PASSWORD}") as socks,
    ):
        monkeypatch.setenv("SHOP_PROXY", f"socks5://me:{PASSWORD}@127.0.0.1:{socks.port}")
        (home / "levada.toml").write_text(
            f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n'
            f'[[site]]\nmatch = "127.0.0.1:{port}"\nrender = "auto"\nproxy = ["env:SHOP_PROXY"]\n'
        )
        done = run(home, "crawl", f"http://127.0.0.1:{port}/", "--once")
        assert done.returncode == 0, done.stderr
        stored = contents(home / "levada-data")
        assert set(stored) == {f"http://127.0.0.1:{port}{path}" for path in routes()}
        assert "It costs 103 euros" in stored[f"http://127.0.0.1:{port}/lamps/3"][1]
        assert len(socks.asked()) > LAMPS
        assert leaks(home, {"the proxy's password": PASSWORD}, done.stdout + done.stderr) == []
