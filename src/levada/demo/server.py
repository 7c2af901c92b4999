"""Server of the bundled web: one loopback port for all sites, by their Host; any crawler may use it as its proxy.

`python -m levada.demo.server --speed 500` prints one line of JSON and serves until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from levada.core.clock import ScaledClock
from levada.core.protocols import Clock
from levada.demo.gazette import Gazette
from levada.demo.hostile import answer_hostile, is_hostile, start_urls
from levada.demo.http import Answer, Connection, StreamedAnswer, WebRequest
from levada.demo.sites import SiteAnswers
from levada.demo.world import DEFAULT_PAGE_BYTES, DemoWorld

PER_PAGE_PER_DAY = 24.0  # a third of this web changes within hours

_HOST = "127.0.0.1"


@dataclass(slots=True)
class Running:
    """A web that is being served."""

    world: DemoWorld
    clock: Clock
    port: int
    hostile: bool
    gazette: Gazette | None
    _server: asyncio.Server
    _open: set[Connection]

    def start_urls(self) -> list[str]:
        """Every site's front page, and the hostile hosts' and the gazette's if they are served."""
        hostile = start_urls(self.port) if self.hostile else []
        gazette = self.gazette.start_urls(self.port) if self.gazette is not None else []
        return self.world.start_urls(self.port) + hostile + gazette

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._open)

    async def close(self) -> None:
        self._server.close()
        for connection in list(self._open):
            connection.close()
        await self._server.wait_closed()


async def serve(world: DemoWorld, clock: Clock, port: int = 0, *, hostile: bool = True, burst: bool = False) -> Running:
    """Serve the world, as it is at the clock's time, on this loopback port (0: any that is free)."""
    sites = SiteAnswers(world)
    gazette = Gazette(world.seed, clock.now()) if burst else None

    def answer(asked: WebRequest, now: float) -> Answer | StreamedAnswer:
        if hostile and is_hostile(asked.host):
            return answer_hostile(asked)
        if gazette is not None and gazette.is_of(asked.host):
            return gazette.answer(asked, now)
        return sites.answer(asked, now)

    opened: set[Connection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answer, clock, opened), _HOST, port, backlog=1024)
    return Running(world, clock, server.sockets[0].getsockname()[1], hostile, gazette, server, opened)


def config_text(port: int, clock: ScaledClock) -> str:
    """A levada.toml whose guard allows exactly this web, and whose time is this web's."""
    return (
        f'[guard]\nallow = ["{_HOST}:{port}"]\n\n'
        f"[budget]\nper_page_per_day = {PER_PAGE_PER_DAY}\n\n"
        f"[clock]\nspeed = {clock.speed!r}\norigin = {clock.origin!r}\nstarted = {clock.started!r}\n\n"
        "[politeness]\ndelay = 0\n"
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m levada.demo.server", description="Serve the bundled web.")
    parser.add_argument("--port", type=int, default=0, help="loopback port (default: any that is free)")
    parser.add_argument("--speed", type=float, default=1.0, help="seconds of its time per second (1 to 1000)")
    parser.add_argument("--pages", type=int, default=None, help="how many pages (default: 1,046, as the source)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page-bytes", type=int, default=DEFAULT_PAGE_BYTES, help="about how large a page is")
    parser.add_argument("--hostile", action=argparse.BooleanOptionalAction, default=True, help="the hostile corner")
    parser.add_argument("--burst", action=argparse.BooleanOptionalAction, default=False, help="the gazette")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    options = parser.parse_args(arguments)
    if not 0 < options.speed <= 1000:
        parser.error("--speed must be above 0 and at most 1000")
    if options.pages is not None and not 1 <= options.pages <= 1_000_000:
        parser.error("--pages must be from 1 to 1000000")
    if not 0 <= options.port <= 65535 or not 2_000 <= options.page_bytes <= 10_000_000:
        parser.error("--port must be from 0 to 65535, --page-bytes from 2000 to 10000000")
    return options


def _announce(running: Running, clock: ScaledClock, folder: Path) -> None:
    config = folder / "levada.toml"
    config.write_text(config_text(running.port, clock), encoding="utf-8")
    line = {
        "start": running.start_urls(),
        "config": str(config),
        "port": running.port,
        "origin": clock.origin,
        "started": clock.started,
        "speed": clock.speed,
        "seed": running.world.seed,
        "pages": len(running.world.pages),
    }
    print(json.dumps(line), flush=True)


async def _told_to_end(with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    if not with_parent:
        loop.add_signal_handler(signal.SIGINT, ended.set)
    else:
        # The parent holds the other end; when it dies, however it dies, the read ends.
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else ended.set())
    await ended.wait()


async def _run(options: argparse.Namespace, folder: Path) -> None:
    world = DemoWorld.build(options.seed, options.pages, page_bytes=options.page_bytes)
    clock = ScaledClock(options.speed, world.origin + 8 * 3600.0)  # the day begins at eight
    running = await serve(world, clock, options.port, hostile=options.hostile, burst=options.burst)
    try:
        _announce(running, clock, folder)
        await _told_to_end(options.with_parent)
    finally:
        await running.close()


def main(arguments: Sequence[str] | None = None) -> int:
    import uvloop

    options = _parse(arguments)
    if options.with_parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: until it ends, it is served
    folder = Path(tempfile.mkdtemp(prefix="levada-web-"))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            uvloop.run(_run(options, folder))
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        advice = "name another with --port, or none for any that is free"
        print(f"levada: cannot serve on port {options.port}: {why}; {advice}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
