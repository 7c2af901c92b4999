"""Check one page now and print what changed on it: python watch_page.py https://example.org"""

import sys

import levada

with levada.open("news") as news:
    try:
        check = news.check(sys.argv[1])
    except levada.LevadaError as error:
        sys.exit(str(error))
    print(check.outcome, check.url, check.reason or "")
    if check.diff is not None:
        print(check.diff)
    print(news.why(check.url))
