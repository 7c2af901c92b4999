"""Follow a crawl as it goes, in an event loop of your own: python follow_crawl.py https://example.org"""

import asyncio
import sys
from collections import Counter
from contextlib import aclosing

import levada


async def main(url: str) -> None:
    with levada.open("news") as news:
        news.add(url)
        outcomes: Counter[str] = Counter()
        async with aclosing(news.aevents(once=True)) as events:
            async for event in events:
                outcomes[event.outcome] += 1
                print(event.outcome, event.url, event.reason or "")
        print(dict(outcomes), news.stats().stored, "pages stored")


asyncio.run(main(sys.argv[1]))
