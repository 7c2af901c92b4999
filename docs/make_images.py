"""How does the live screen look? Crawls the bundled web for some seconds and saves the screen as it was then.

    python docs/make_images.py [--seconds 12] [--pages 8000] [--out docs/images/screen.svg]

Nothing in the picture is made up: it is what `levada demo --pages 8000` shows at that moment. The picture names no
font or file from elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console

from levada.cli.run.crawl import run_loop
from levada.cli.run.screen import screen
from levada.collection.crawling import open_crawl
from levada.collection.starts import seeds
from levada.core.folder import DataFolder
from levada.core.reports import Report
from levada.core.settings import load_settings
from levada.crawl.engine import Crawl
from levada.demo.child import Web, serving

WIDTH = 96
EVERY = 0.25  # as the live screen does: the pace is measured between looks
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description="Save a picture of the live screen.")
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--pages", type=int, default=8_000, help="large enough that the first pass is under way")
    parser.add_argument("--out", type=Path, default=HERE / "images" / "screen.svg")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving("--speed", "500", "--pages", str(options.pages)) as web:
        title = f"levada demo --pages {options.pages}"
        picture = picture_after(options.seconds, DataFolder(Path(folder) / "data"), web, title)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(picture, encoding="utf-8")
    print(f"{options.out}: {len(picture):,} bytes")


def picture_after(seconds: float, folder: DataFolder, web: Web, title: str) -> str:
    pictures: list[str] = []

    async def crawl() -> Report:
        settings = load_settings(Path(web.config))
        async with open_crawl(folder, settings, seeds(web.start)) as work:
            watching = asyncio.create_task(_watch(work, seconds, title, pictures))
            try:
                return await work.run()
            finally:
                watching.cancel()

    run_loop(crawl)
    return _standing_alone(pictures[-1])


async def _watch(work: Crawl, seconds: float, title: str, pictures: list[str]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pictures[:] = [_picture(work, title)]
        await asyncio.sleep(EVERY)
    work.stop()


def _picture(work: Crawl, title: str) -> str:
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(screen(work, time.monotonic(), "Ctrl-C ends it early"))
    return console.export_svg(title=title)


def _standing_alone(svg: str) -> str:
    """Without the fonts that rich would load from elsewhere: any fixed-width one will do."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    return re.sub(r"font-family:\s*Fira Code,\s*monospace", "font-family: ui-monospace, monospace", svg)


if __name__ == "__main__":
    main()
