"""A control loop with somebody watching: Ctrl-C, plain lines, or JSON."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable

from levada.assemble.controlling import ControlPlan, open_control
from levada.cli.options import print_json
from levada.cli.printing import harmless
from levada.flow.control import ControlLoop, Round
from levada.telling.words import plural

__all__ = ["ChangedLines", "listen_to_logs", "run_control", "until_stopped"]


def run_control(plan: ControlPlan, *, seconds: float | None, json: bool) -> None:
    listen_to_logs()
    show = print_json if json else ChangedLines()

    async def work() -> None:
        async with open_control(plan, on_round=show) as loop:
            await until_stopped(loop, seconds)

    asyncio.run(work())


async def until_stopped(loop: ControlLoop, seconds: float | None, also: Callable[[], None] = lambda: None) -> None:
    """Run to Ctrl-C, SIGTERM, or for so many seconds; `also` is told to stop with it."""
    events = asyncio.get_running_loop()

    def stop() -> None:
        loop.stop()
        also()

    for number in (signal.SIGINT, signal.SIGTERM):
        events.add_signal_handler(number, stop)
    if seconds is not None:
        events.call_later(seconds, stop)
    await loop.run()


class ChangedLines:
    """One line on standard error whenever a stage is told another size, or the source to wait."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._held = False

    def __call__(self, done: Round) -> None:
        for stage in done.stages:
            if self._told.get(stage.stage) != stage.wanted:
                self._told[stage.stage] = stage.wanted
                words = f"{stage.stage}: {plural(stage.wanted, 'worker')} wanted, {stage.on} on ({stage.why})"
                print(harmless(words), file=sys.stderr, flush=True)
        if done.hold_source is not self._held:
            self._held = done.hold_source
            print("the source should wait" if self._held else "the source may go on", file=sys.stderr, flush=True)


def listen_to_logs() -> None:
    """Our own words on standard error; the broker's client says nothing that we do not say better."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("levada: %(message)s"))
    ours = logging.getLogger("levada")
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
