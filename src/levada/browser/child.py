"""Browser child: a process that renders the pages which its parent sends.

    python -I -m levada.browser.child

It has a session of its own, so that a signal from the terminal reaches only the parent, which ends it in order by
closing its input. It also ends, and the browser with it, if the parent is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys

from levada.browser.messages import BrowserSetup, Rendered, ToRender, frame, read_frame
from levada.browser.tabs import Tabs
from levada.core.processes import leave_signals_to_parent

_MOST_WAITING = 256 * 1024 * 1024  # bytes of one frame


async def serve(reader: asyncio.StreamReader, output: int) -> None:
    """Render until the input ends."""
    setup = await read_frame(reader, BrowserSetup)
    tabs = Tabs(setup)
    tasks: set[asyncio.Task[None]] = set()
    writing = asyncio.Lock()

    async def render(asked: ToRender) -> None:
        await send(await tabs.render(asked))

    async def send(answer: Rendered) -> None:
        async with writing:
            await asyncio.to_thread(_write, output, frame(answer))

    try:
        while True:
            asked = await read_frame(reader, ToRender)
            task = asyncio.create_task(render(asked))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await tabs.close()


def _write(output: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(output, view) :]


async def _main() -> None:
    output = os.dup(1)
    os.dup2(2, 1)  # what else is printed is no message
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MOST_WAITING)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", closefd=False))
    await serve(reader, output)


if __name__ == "__main__":
    leave_signals_to_parent()
    asyncio.run(_main())
    sys.exit()
