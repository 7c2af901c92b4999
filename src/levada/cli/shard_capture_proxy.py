"""The proxy before a MongoDB, with somebody watching: until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import typer

from levada.adapters.mongodb.proxy import Proxy
from levada.adapters.mongodb.tap import Tap
from levada.adapters.mongodb.tap_wire import Orders, TapReport
from levada.cli.options import print_json
from levada.cli.printing import size
from levada.cli.shard_capture_options import counted
from levada.clock import SystemClock
from levada.errors import LevadaError, NotFound

__all__ = ["run_proxy"]

_LOOK_SECONDS = 1.0
_LINE_SECONDS = 60.0


def run_proxy(listen: tuple[str, int], to: tuple[str, int], orders: dict[str, Any], json: bool) -> None:
    import uvloop

    with _checked(Path(orders["out"])):
        report = uvloop.run(_run(listen, to, Orders(**orders)))
    if json:
        print_json(report)
    else:
        _summary(report)
    if not _found(report):
        raise typer.Exit(NotFound.exit_code)


@contextmanager
def _checked(out: Path) -> Iterator[None]:
    """A mistake in the name is better found now than in the traffic. A file that nothing came into goes again."""
    new = not out.exists()
    try:
        os.close(os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    except OSError as error:
        raise LevadaError(f"cannot write {out}: {error.strerror}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            if new and not out.stat().st_size:
                out.unlink()


async def _run(listen: tuple[str, int], to: tuple[str, int], orders: Orders) -> dict[str, Any]:
    tap = Tap(orders, SystemClock(), backlog=orders.memory)
    await tap.start()
    proxy = Proxy(*to, tap)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        port = await _listen(proxy, listen)
        words = f"{listen[0]}:{port} passes on to {to[0]}:{to[1]}; queries go to {orders.out}; Ctrl-C ends it"
        print(words, file=sys.stderr, flush=True)
        await _watch(proxy, tap, ended)
    finally:
        await proxy.stop()
        report = await tap.stop()
    return _facts(report, tap, proxy, orders.out)


async def _listen(proxy: Proxy, listen: tuple[str, int]) -> int:
    try:
        return await proxy.start(*listen)
    except OSError as error:
        raise LevadaError(f"cannot listen on {listen[0]}:{listen[1]}: {error.strerror or error}") from None


async def _watch(proxy: Proxy, tap: Tap, ended: asyncio.Event) -> None:
    """Each trouble is said when it is first met; how far it is, once a minute."""
    said: set[str] = set()
    looks = 0
    while not ended.is_set():
        for words in _troubles(tap.report(), tap, proxy):
            if words not in said:
                print(f"levada: {words}", file=sys.stderr, flush=True)
                said.add(words)
        looks += 1
        if looks % round(_LINE_SECONDS / _LOOK_SECONDS) == 0:
            print(_line(tap.report()), file=sys.stderr, flush=True)
        try:
            await asyncio.wait_for(ended.wait(), _LOOK_SECONDS)
        except TimeoutError:
            continue


def _troubles(report: TapReport, tap: Tap, proxy: Proxy) -> list[str]:
    troubles = {
        "some traffic is under TLS: it is passed on, and not read": report.heard.encrypted,
        "some connections are refused: the MongoDB behind cannot be reached": proxy.unreachable,
        "some traffic is passed on without being read: reading lags behind, or has died": tap.lost_bytes,
        "the process that reads has died and was started again": tap.starts > 1,
        "some messages could not be read": len(report.heard.unreadable),
        f"some queries could not be written: {report.trouble}": report.unwritten,
    }
    return [words for words, met in troubles.items() if met]


def _line(report: TapReport) -> str:
    return f"{counted(report.written.queries)} written, {size(report.written.bytes)}"


def _facts(report: TapReport, tap: Tap, proxy: Proxy, out: str) -> dict[str, Any]:
    losses = _troubles(report, tap, proxy)
    return {
        "out": out,
        **msgspec.to_builtins(report),
        "connections": proxy.connections,
        "unreachable": proxy.unreachable,
        "lost_bytes": tap.lost_bytes,
        "starts": tap.starts,
        "partial": bool(losses),
        "losses": losses,
    }


def _found(facts: dict[str, Any]) -> bool:
    return bool(facts["written"]["queries"] or facts["unwritten"])


def _summary(facts: dict[str, Any]) -> None:
    words = f"{counted(facts['written']['queries'])} in {facts['out']}" if _found(facts) else "no query was found"
    print(words, file=sys.stderr)
    for words in facts["losses"]:
        print(f"partial: {words}", file=sys.stderr)
