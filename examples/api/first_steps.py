"""Crawl a site once, search it, and print what changed: python first_steps.py https://example.org"""

import sys

import levada

with levada.open("news") as news:
    news.add(sys.argv[1], scope="sites", max_depth=5)
    report = news.crawl(once=True)
    print(f"{report.pages} pages, {report.new} new, {report.changed} changed")
    for hit in news.search("ferry OR termos", limit=10):
        print(hit.title, hit.url, hit.excerpt, sep="\n  ")
    for change in news.changes(since="1d"):
        print(change.what, change.url)
