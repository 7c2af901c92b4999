"""Is the estimated share of current pages right? The demo, minute by minute: the estimate beside the actual share.

For each seed the bundled web with its gazette is crawled at 500 times its speed, as `levada demo` does, and asked at
each minute how many of the stored pages are current. The hostile hosts are left out, because nobody knows what is
current there. `worst_gap` is the largest difference from the fifth minute on, in percentage points.

Five seeds of ten minutes take fifty minutes; `--seconds` shortens that.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from table import show

from levada.collection.crawling import RunningCrawl, open_crawl, run_to_end
from levada.collection.starts import seeds as start_urls
from levada.core.folder import DataFolder
from levada.core.records import Outcome, VisitResult
from levada.core.settings import load_settings
from levada.demo.child import serving
from levada.demo.story import current_share
from levada.demo.world import DemoWorld

MINUTE = 60.0
FROM = 5  # the first minute that counts


def curve(seed: int, seconds: float) -> list[dict[str, Any]]:
    """The estimated and the actual share at each minute of one demo."""
    visits: list[tuple[str, float]] = []
    asked: list[tuple[float, float, int]] = []  # when, what the estimate was, and after how many visits

    def committed(results: Sequence[VisitResult]) -> None:
        visits.extend((each.lease.page.url, each.visit.at) for each in results if each.visit.outcome <= Outcome.CHANGED)

    async def watch(crawl: RunningCrawl) -> None:
        while True:
            await asyncio.sleep(MINUTE)
            now = crawl.clock.now()
            asked.append((now, crawl.progress.estimates.share(now) or 0.0, len(visits)))

    async def crawl(folder: Path, config: Path, urls: Sequence[str]) -> None:
        settings = load_settings(config)
        async with open_crawl(DataFolder(folder), settings, start_urls(urls), on_committed=committed) as running:
            watching = asyncio.create_task(watch(running))
            await run_to_end(running, seconds)
            watching.cancel()

    options = ("--seed", str(seed), "--speed", "500", "--burst", "--no-hostile")
    with tempfile.TemporaryDirectory(prefix="levada-calibration-") as scratch, serving(*options) as web:
        asyncio.run(crawl(Path(scratch), Path(web.config), web.start))
        world = DemoWorld.build(web.seed, web.pages)
    rows = []
    for minute, (now, estimated, many) in enumerate(asked, 1):
        actual = current_share(world, visits[:many], now)
        shares = {"estimated": 100 * estimated, "actual": 100 * actual, "gap": 100 * (estimated - actual)}
        rows.append({"seed": seed, "minute": minute, **shares, "visits": many})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23, 24, 25])
    parser.add_argument("--seconds", type=float, default=10 * MINUTE + 5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for seed in options.seeds for row in curve(seed, options.seconds)]
    counted = [abs(row["gap"]) for row in rows if row["minute"] >= FROM]
    show("calibration", rows, {"worst_gap": max(counted, default=0.0)}, as_json=options.json)


if __name__ == "__main__":
    main()
