"""A worker until it is told to stop: signals, logs, the event loop."""

from __future__ import annotations

import asyncio
import signal

from levada.assemble.shared import WorkPlace
from levada.assemble.working import open_worker
from levada.cli.control_run import listen_to_logs

__all__ = ["run_worker"]


def run_worker(place: WorkPlace, stage: str, url: str) -> dict[str, int | str]:
    import uvloop

    listen_to_logs()

    async def run() -> dict[str, int | str]:
        async with open_worker(place, stage, url) as worker:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, worker.stop)
            await worker.run()
            return {"stage": stage, "messages": worker.done}

    return uvloop.run(run())
