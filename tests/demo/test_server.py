"""The web over real sockets: keep-alive, proxy form, bad requests, and a clean end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.demo.http import WebRequest, read_head
from levada.demo.server import Running, config_text, main, serve
from levada.demo.world import ORIGIN, DemoWorld
from tests.manual_clock import ManualClock

Story = Callable[[Running], Awaitable[None]]


def with_web(story: Story, *, hostile: bool = True) -> None:
    """Run a story against a small web whose time stands still."""

    async def run() -> None:
        running = await serve(DemoWorld.build(pages=60), ManualClock(ORIGIN), hostile=hostile)
        try:
            await asyncio.wait_for(story(running), 30)
        finally:
            await running.close()

    asyncio.run(run())


async def exchange(port: int, *requests: bytes) -> bytes:
    """Everything that comes back until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(requests))
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def get(host: str, path: str = "/", *lines: str, close: bool = False) -> bytes:
    more = "".join(f"{line}\r\n" for line in (*lines, *(("Connection: close",) if close else ())))
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


def test_a_connection_is_kept_and_pipelined_requests_are_answered_in_order() -> None:
    async def story(web: Running) -> None:
        answers = await exchange(
            web.port,
            get("trendyol.localhost", "/robots.txt"),
            get("trendyol.localhost", "/nothing"),
            get("boun.localhost", close=True),
        )
        assert answers.count(b"HTTP/1.1 ") == 3
        assert answers.index(b"Disallow") < answers.index(b"404 Not Found") < answers.index(b"<title>Boun")

    with_web(story)


def test_a_request_in_pieces_is_one_request() -> None:
    async def story(web: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
        for byte in get("boun.localhost", "/robots.txt", close=True):
            writer.write(bytes([byte]))
            await writer.drain()
        assert b"200 OK" in await reader.read()
        writer.close()
        await writer.wait_closed()

    with_web(story)


def test_it_answers_as_a_proxy_does() -> None:
    async def story(web: Running) -> None:
        direct = await exchange(web.port, get("boun.localhost", close=True))
        form = b"GET http://boun.localhost/ HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n"
        assert await exchange(web.port, form) == direct

    with_web(story)


def test_head_is_get_without_the_body() -> None:
    async def story(web: Running) -> None:
        whole = await exchange(web.port, get("boun.localhost", close=True))
        first = await exchange(web.port, get("boun.localhost", close=True).replace(b"GET", b"HEAD", 1))
        assert first == whole[: whole.index(b"\r\n\r\n") + 4]

    with_web(story)


def test_links_to_other_sites_carry_the_port_that_was_asked() -> None:
    async def story(web: Running) -> None:
        body = await exchange(web.port, get(f"boun.localhost:{web.port}", close=True))
        assert f'.localhost:{web.port}/"'.encode() in body
        bare = await exchange(web.port, get("boun.localhost", close=True))
        assert b'.localhost/"' in bare

    with_web(story)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x:99999999\r\n\r\n", b"400"),
        (b'GET / HTTP/1.1\r\nHost: x"><script>\r\n\r\n', b"400"),
        (b"CONNECT boun.localhost:443 HTTP/1.1\r\nHost: boun.localhost\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: boun.localhost\r\n\r\n", b"405"),
        (b"GET / HTTP/1.1\r\nHost: boun.localhost\r\nX: " + b"x" * 70_000, b"431"),
    ],
)
def test_a_bad_request_gets_its_status_and_the_end(request_: bytes, status: bytes) -> None:
    async def story(web: Running) -> None:
        assert (await exchange(web.port, request_)).startswith(b"HTTP/1.1 " + status)

    with_web(story)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reading_of_a_request(data: bytes) -> None:
    asked = read_head(data)
    assert not isinstance(asked, WebRequest) or asked.path.startswith("/")


def test_the_page_changes_with_the_clock() -> None:
    async def story(web: Running) -> None:
        world = web.world
        page = next(page for page in world.pages if world.changes_between(page, ORIGIN, ORIGIN + 86_400))
        change = world.changes_between(page, ORIGIN, ORIGIN + 86_400)[0]
        request = get(page.site.host, page.path, close=True)
        first = (await exchange(web.port, request)).split(b"\r\n\r\n")[1]
        assert isinstance(web.clock, ManualClock)
        web.clock.advance(change - ORIGIN)
        assert (await exchange(web.port, request)).split(b"\r\n\r\n")[1] != first

    with_web(story)


def test_without_the_hostile_corner_its_hosts_are_unknown() -> None:
    async def story(web: Running) -> None:
        assert b"404" in await exchange(web.port, get("hostile.localhost", close=True))
        assert not any("hostile" in url for url in web.start_urls())

    with_web(story, hostile=False)


def _start(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "levada.demo.server", "--pages", "30", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdout is not None
    line: dict[str, object] = json.loads(process.stdout.readline())
    return line


def test_the_command_says_where_it_is_and_ends_when_told() -> None:
    with _start("--speed", "500", "--seed", "3") as process:
        said = _first_line(process)
        config = Path(str(said["config"]))
        settings = tomllib.loads(config.read_text(encoding="utf-8"))
        assert settings["guard"]["allow"] == [f"127.0.0.1:{said['port']}"]
        assert settings["clock"]["speed"] == said["speed"] == 500
        assert settings["clock"]["origin"] == said["origin"]
        assert settings["politeness"]["delay"] == 0
        assert said["seed"] == 3
        start = said["start"]
        assert isinstance(start, list)
        assert f"http://trendyol.localhost:{said['port']}/" in start
        asked = urllib.request.Request(f"http://127.0.0.1:{said['port']}/", headers={"Host": "trendyol.localhost"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, errors) == (0, b"")
        assert not config.parent.exists()


def test_the_command_ends_with_its_parent() -> None:
    with _start("--with-parent") as process:
        _first_line(process)
        process.communicate(timeout=10)  # closes its standard input, as a dead parent would
        assert process.returncode == 0


def test_a_taken_port_is_one_clear_line() -> None:
    with _start() as process:
        port = str(_first_line(process)["port"])
        with _start("--port", port) as second:
            _, errors = second.communicate(timeout=10)
            assert second.returncode == 1
            assert errors.decode().startswith(f"levada: cannot serve on port {port}: ")
            assert "name another with --port" in errors.decode()
            assert errors.count(b"\n") == 1
        process.terminate()
        process.communicate(timeout=10)


@pytest.mark.parametrize("options", [["--speed", "0"], ["--pages", "0"], ["--port", "70000"], ["--page-bytes", "1"]])
def test_wrong_options_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(options)
    assert options[0] in capsys.readouterr().err


def test_the_written_clock_is_the_served_one() -> None:
    from levada.core.clock import ScaledClock

    clock = ScaledClock(250, ORIGIN)
    read = tomllib.loads(config_text(8000, clock))["clock"]
    assert read == {"speed": 250, "origin": ORIGIN, "started": clock.started}
