"""A still web for benchmarks: the bundled web's pages, rendered beforehand, one loopback port per site.

A page has some thousand words, as the bundled web's have, and around them what pages of today carry: a menu
with classes, a side bar, scripts, styles and structured data, 20 to 40 KB in all.

Run as a program it prints one line of JSON, {sites: [URL, ...], pages: N, bytes: mean}, and serves until its
standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from functools import partial
from typing import cast
from zlib import crc32

import uvloop

from levada.demo.sites import render
from levada.demo.world import DemoWorld

ROBOTS = b"User-agent: *\nDisallow: /hesap/\nDisallow: /account/\nDisallow: /konto/\n"


def answer(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Server: still\r\nCache-Control: max-age=60\r\n\r\n" + body


MISSING = answer("404 Not Found", "text/plain", b"not here\n")


class Asked:
    """When the first and the last request came since somebody asked for that (`/.asked`)."""

    first = last = 0.0

    def note(self) -> None:
        self.last = time.monotonic()
        self.first = self.first or self.last

    def told(self) -> bytes:
        between, self.first = self.last - self.first, 0.0
        return answer("200 OK", "text/plain", str(between).encode())


asked = Asked()


class Still(asyncio.Protocol):
    """Answers from a dictionary, as cheaply as may be; a `share` of the pages after so many `seconds`."""

    def __init__(self, answers: dict[bytes, bytes], share: float, seconds: float) -> None:
        self._answers = answers
        self._share, self._seconds = share, seconds
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            path = self._data.split(b" ", 2)[1]
            self._data = self._data[end + 4 :]
            if path == b"/.asked":
                self._transport.write(asked.told())
                continue
            asked.note()
            answer = self._answers.get(path, MISSING)
            if self._share and crc32(path) % 1000 < 1000 * self._share and path != b"/robots.txt":
                asyncio.get_running_loop().call_later(self._seconds, self._transport.write, answer)
            else:
                self._transport.write(answer)


def furnished(body: bytes, links: list[str], number: int) -> bytes:
    """A page with what surrounds the words of a page nowadays."""
    near = [links[(number * 7 + step) % len(links)] for step in range(24)]
    menu = "".join(
        f'<li class="menu__item menu__item--level-1"><a class="menu__link" href="{link}" data-track="m{place}">'
        f'<span class="menu__label">Menu {place}</span></a></li>'
        for place, link in enumerate(links[:16])
    )
    side = "".join(
        f'<article class="card card--small" data-id="{number}{place}"><a class="card__link" href="{link}">'
        f'<img class="card__image" loading="lazy" width="320" height="180" alt="" src="/static/{place}.webp">'
        f'<h3 class="card__title">Related story number {place}</h3></a></article>'
        for place, link in enumerate(near)
    )
    rules = "".join(f".card--{place}{{margin:{place}px;padding:0 {place}px;color:#{place:06x}}}" for place in range(60))
    script = "".join(f'window.q.push({{"event":"v{place}","page":{number},"at":{place * 37}}});' for place in range(70))
    head = f"<style>{rules}</style><script>window.q=[];{script}</script>"
    before = f'<nav class="menu" aria-label="Main"><ul class="menu__list">{menu}</ul></nav>'
    after = f'<aside class="sidebar">{side}</aside>'
    page = body.replace(b"</head>", head.encode() + b"</head>", 1).replace(b"<body>", b"<body>" + before.encode(), 1)
    return page.replace(b"</body>", after.encode() + b"</body>", 1)


def answers_of_sites(pages: int, page_bytes: int) -> tuple[list[dict[bytes, bytes]], int, int]:
    world = DemoWorld.build(1, pages, page_bytes=page_bytes)
    sites: list[dict[bytes, bytes]] = []
    total = 0
    for site in world.sites:
        answers = {b"/robots.txt": answer("200 OK", "text/plain", ROBOTS)}
        links = [page.path for page in site.pages]
        for number, page in enumerate(site.pages):
            body = furnished(render(world, page, 1), links, number)
            total += len(body)
            answers[page.path.encode()] = answer("200 OK", "text/html; charset=utf-8", body)
        sites.append(answers)
    return sites, len(world.pages), total


async def serve(pages: int, page_bytes: int, slow: float, slow_seconds: float) -> None:
    sites, count, total = answers_of_sites(pages, page_bytes)
    loop = asyncio.get_running_loop()
    starts = []
    for answers in sites:
        server = await loop.create_server(partial(Still, answers, slow, slow_seconds), "127.0.0.1", 0, backlog=512)
        starts.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    print(json.dumps({"sites": starts, "pages": count, "bytes": total // count}), flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else ended.set())
    await ended.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--page-bytes", type=int, default=8_000)
    parser.add_argument("--slow", type=float, default=0.0, help="the share of pages that are answered late")
    parser.add_argument("--slow-seconds", type=float, default=5.0)
    options = parser.parse_args()
    uvloop.run(serve(options.pages, options.page_bytes, options.slow, options.slow_seconds))
