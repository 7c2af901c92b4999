"""No script in a rendered page reaches an address that is not public, whichever way it asks."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from levada.browser.messages import Rendered
from tests.browser.tab import render_all, setup
from tests.fetch.servers import Answer, WebServer, answer, canary, web
from tests.fetch.test_guard import SPELLINGS
from tests.story.private_addresses import FORBIDDEN_SCHEMES, REDIRECTS

pytestmark = pytest.mark.timeout(300)

# What a script does with the address `u`.
WAYS = {
    "fetch": "fetch(u, {mode: 'no-cors'}).catch(() => 0);",
    "post": "fetch(u, {method: 'POST', mode: 'no-cors', body: 'x'}).catch(() => 0);",
    "keepalive": "fetch(u, {mode: 'no-cors', keepalive: true}).catch(() => 0);",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', u); x.send();",
    "beacon": "navigator.sendBeacon(u, 'x');",
    "events": "new EventSource(u);",
    "websocket": "new WebSocket(u.replace(/^http/i, 'ws'));",
    "image": "new Image().src = u;",
    "script": "const s = document.createElement('script'); s.src = u; document.head.append(s);",
    "module": "import(u).catch(() => 0);",
    "style": "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = u; document.head.append(l);",
    "prefetch": "for (const r of ['prefetch', 'preload', 'preconnect', 'dns-prefetch', 'modulepreload', 'icon',"
    " 'manifest']) { const l = document.createElement('link'); l.rel = r; l.as = 'fetch'; l.href = u;"
    " document.head.append(l); }",
    "video": "const v = document.createElement('video'); v.src = u; v.autoplay = v.muted = true;"
    " document.body.append(v);",
    "frame": "const f = document.createElement('iframe'); f.src = u; document.body.append(f);",
    "object": "const o = document.createElement('object'); o.data = u; document.body.append(o);",
    "form": "const f = document.createElement('form'); f.method = 'POST'; f.action = u; f.target = 'x' + Math.random();"
    " document.body.append(f); f.submit();",
    "popup": "window.open(u); window.open(u, '_blank', 'noopener');",
    "download": "const a = document.createElement('a'); a.href = u; a.download = 'x';"
    " document.body.append(a); a.click();",
    "ping": "const a = document.createElement('a'); a.href = '#x'; a.ping = u; document.body.append(a); a.click();",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch(${JSON.stringify(u)}, {mode: 'no-cors'})`])));",
    "font": "new FontFace('x' + Math.random(), `url(${u})`).load().catch(() => 0);",
}
# What leads the whole page away: one address each.
AWAY = {
    "location": "location.href = u;",
    "replace": "location.replace(u);",
    "form": "const f = document.createElement('form'); f.action = u; document.body.append(f); f.submit();",
    "post": "const f = document.createElement('form'); f.method = 'POST'; f.action = u;"
    " document.body.append(f); f.submit();",
    "refresh": "const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = `0; url=${u}`;"
    " document.head.append(m);",
}


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    answers: dict[str, Answer] = {}
    with web(answers) as running:
        running.answers = answers  # type: ignore[attr-defined]
        yield running


def page(script: str, addresses: list[str]) -> str:
    return (
        "<!doctype html><meta charset=utf-8><title>A page</title><body><p id=at>It stays.</p><script>"
        f"for (const u of {json.dumps(addresses)}) {{ try {{ {script} }} catch (e) {{ }} }}"
        "</script></body>"
    )


def ask_all(server: WebServer, addresses: list[str], allow: str) -> list[Rendered]:
    pages = [(f"{server.url}/{name}", page(script, addresses)) for name, script in WAYS.items()]
    return render_all(setup(server.address, allow, pages=4, seconds=100), pages, media=True)


def test_every_way_that_may_reach_a_site_does_so_where_the_guard_permits_it(server: WebServer) -> None:
    """Else the tests below would say nothing."""
    with web({}) as other:
        pages = [(f"{server.url}/{name}", page(script, [f"{other.url}/{name}"])) for name, script in WAYS.items()]
        render_all(setup(server.address, other.address, pages=4), pages, media=True)
        reached = {exchange.path.removeprefix("/") for exchange in other.exchanges}
    assert set(WAYS) - reached <= {"frame", "object", "form", "popup", "download", "ping"}
    assert not reached & {"frame", "form", "popup", "download"}


def test_no_spelling_of_a_private_address_is_reached_in_any_way(server: WebServer) -> None:
    with canary() as (port, reached):
        addresses = [f"http://{host}:{port}/{i}" for i, host in enumerate(SPELLINGS)]
        addresses += [url.format(canary=port) for url in FORBIDDEN_SCHEMES]
        done = ask_all(server, addresses, "127.0.0.1:1")
        assert reached() == 0
    assert [each.detail for each in done if each.reason] == []
    assert all(b"It stays." in each.html for each in done if not each.location)
    assert any("not a public address" in sentence for each in done for sentence in each.refused)


def test_no_redirect_leads_there_in_any_way(server: WebServer) -> None:
    with canary() as (port, reached):
        for path, (status, location) in REDIRECTS.items():
            server.answers[path] = answer(  # type: ignore[attr-defined]
                b"", f"Location: {location.format(canary=port)}", "Access-Control-Allow-Origin: *", status=status
            )
        done = ask_all(server, [server.url + path for path in REDIRECTS], "127.0.0.1:1")
        assert reached() == 0
    assert [each.detail for each in done if each.reason] == []
    assert {exchange.path for exchange in server.exchanges} >= set(REDIRECTS)


def test_a_name_that_changes_its_address_leads_no_script_there(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second answer for the name is a public address, every other the canary's."""
    asked: list[str] = []

    async def resolve(_loop: object, host: str, port: int, **_: object) -> list[object]:
        if host.endswith("rebinding.test"):
            asked.append(host)
            host = "192.88.98.1" if len(asked) % 2 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    with canary() as (port, reached):
        names = [f"http://{label}rebinding.test:{port}/" for label in ("", "a.", "a.", "b.", "b.")]
        done = ask_all(server, [f"{name}{place}" for place, name in enumerate(names)], "127.0.0.1:1")
        assert reached() == 0
    assert len(asked) > len(WAYS)
    assert any("127.0.0.1 is not a public address" in sentence for each in done for sentence in each.refused)


def test_a_page_that_leads_away_is_a_redirect_which_the_browser_does_not_follow(server: WebServer) -> None:
    with canary() as (port, reached):
        target = f"http://127.0.0.1:{port}/away"
        pages = [(f"{server.url}/{name}", page(script, [target])) for name, script in AWAY.items()]
        done = dict(zip(AWAY, render_all(setup(server.address), pages), strict=True))
        assert reached() == 0
    assert {name: each.location for name, each in done.items()} == {
        "location": target,
        "replace": target,
        "form": f"{target}?",
        "post": "",  # nobody else can send it
        "refresh": target,
    }


def test_webrtc_sends_nothing_past_the_proxy(server: WebServer) -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as udp, canary() as (port, reached):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        ices = [f"stun:127.0.0.1:{udp.getsockname()[1]}", f"turn:127.0.0.1:{port}?transport=tcp"]
        script = (
            "const c = new RTCPeerConnection({iceServers: [{urls: u, username: 'x', credential: 'x'}]});"
            "c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o));"
        )
        render_all(setup(server.address), [(f"{server.url}/rtc", page(script, ices))])
        assert reached() == 0
        with pytest.raises(BlockingIOError):
            udp.recv(100)
