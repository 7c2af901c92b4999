"""`levada control --data`: hands out the pages of a crawl, and sizes its stages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from levada.assemble.controlling import ControlPlan, StagePlan, open_control
from levada.assemble.crawling import seeds
from levada.assemble.folder import DataFolder
from levada.assemble.scheduling import HandingOut, open_handing_out
from levada.cli.control_run import ChangedLines, listen_to_logs, until_stopped
from levada.cli.crawl import read_settings
from levada.cli.options import print_json
from levada.errors import UsageError
from levada.flow.control import ControlLoop, Round

__all__ = ["run_crawl_control"]


def run_crawl_control(
    plan: ControlPlan,
    data: Path,
    urls: Sequence[str],
    config: Path | None,
    limits: Sequence[StagePlan],
    *,
    seconds: float | None,
    json: bool,
) -> None:
    folder = DataFolder(data)
    start = seeds(urls)
    if not start and not folder.exists():
        raise UsageError("where to start? levada control --data DIR --start https://example.org")
    settings = read_settings(config)
    listen_to_logs()
    show = print_json if json else ChangedLines()

    async def work() -> None:
        async with open_handing_out(folder, settings, start, plan.url) as handing:
            stages = handing.stages(limits, data, [sys.executable, "-m", "levada"])
            whole = msgspec.structs.replace(plan, stages=stages)

            def decided(done: Round) -> None:
                handing.view.decided(done)
                show(done)

            async with open_control(whole, on_round=decided, hold=handing.scheduler.hold) as loop:
                await _both(handing, loop, seconds)

    asyncio.run(work())


async def _both(handing: HandingOut, loop: ControlLoop, seconds: float | None) -> None:
    """Until one of them ends: without handing out there is nothing to control, and the other way round."""
    controlling = until_stopped(loop, seconds, handing.stop)
    tasks = [asyncio.ensure_future(handing.run()), asyncio.ensure_future(controlling)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        handing.stop()
        loop.stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
