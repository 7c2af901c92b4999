"""Is every page that links lead to stored, or is there a reason that a person would agree with?

    python benchmarks/link_walk.py START... [--data FOLDER] [--serve FOLDER] [--list 50] [--json]

A plain walk with lxml follows every `a`, `area` and frame of the sites of the start addresses, without any limit. Then
`levada crawl --once` crawls from the same addresses, without a delay, into a new folder or into `--data` (which may
hold that crawl already: then nothing is due, and it is only compared). Each HTML page that the walk reached is looked
up. With `--serve`, nginx serves this folder meanwhile, and START are paths in it, as of Debian's documentation:

    python benchmarks/link_walk.py --serve /usr/share/doc python3-doc/html/ postgresql-doc-15/html/

`explained` is the share of pages that are stored, lead to one that is, or have a recorded reason. The pages that are
not stored are sampled and listed with theirs: whether one agrees is for the reader to say. A page that is reached
only from pages that are not stored has the reason of those.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from hashlib import blake2b
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import local
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from lxml import etree, html
from table import show

from levada.core.errors import BadUrl
from levada.core.records import PageState
from levada.pages.urls import canonical
from levada.store.sqlite import SqliteStore

THREADS = 4
LINKS = "//a/@href | //area/@href | //frame/@src | //iframe/@src"
VOTES = "//a[not(contains(concat(' ', normalize-space(@rel), ' '), ' nofollow '))]/@href | //area/@href"
WEB = ("http", "https")


class Walked(NamedTuple):
    """An HTML page that the walk reached."""

    found_on: str
    digest: bytes  # of its whole text
    is_followed: bool  # some link to it asks nobody not to follow it


class Answer(NamedTuple):
    status: int
    content_type: str
    location: str
    body: bytes


class Walk:
    """Every page of the start sites that links lead to."""

    def __init__(self, starts: Sequence[str]) -> None:
        self.pages: dict[str, Walked] = {}
        self.others: Counter[str] = Counter()  # what is no HTML page, by status or content type
        self.most_links = 0
        self._sites = {urlsplit(start).netloc for start in starts}
        self._met = dict.fromkeys(starts, "")
        self._votes: set[str] = set(starts)
        self._connections = local()

    def run(self) -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            waiting = deque(self._met)
            while waiting:
                batch = [waiting.popleft() for _ in range(min(len(waiting), 20 * THREADS))]
                for url, answer in zip(batch, threads.map(self._fetch, batch), strict=True):
                    waiting.extend(self._read(url, answer))
        self.pages = {url: page._replace(is_followed=url in self._votes) for url, page in self.pages.items()}

    def _read(self, url: str, answer: Answer) -> Iterator[str]:
        if answer.location:
            self.others["redirect"] += 1
            yield from self._new([answer.location], url, self._votes)
        elif answer.status != 200:
            self.others[f"status {answer.status}"] += 1
        elif answer.content_type not in ("text/html", "application/xhtml+xml"):
            self.others[answer.content_type or "no content type"] += 1
        else:
            yield from self._read_html(url, answer.body)

    def _read_html(self, url: str, body: bytes) -> Iterator[str]:
        try:
            tree = html.document_fromstring(body, parser=html.HTMLParser(huge_tree=True))
        except (etree.LxmlError, ValueError):
            self.others["not read by lxml"] += 1
            return
        text = " ".join(" ".join(tree.itertext("*")).split())
        self.pages[url] = Walked(
            self._met[url], blake2b(text.encode("utf-8", "replace"), digest_size=16).digest(), True
        )
        bases = tree.xpath("//base/@href")
        base = urljoin(url, bases[0]) if bases else url
        self._votes.update(self._resolved(tree.xpath(VOTES), base))
        links = self._resolved(tree.xpath(LINKS), base)
        self.most_links = max(self.most_links, len(links))
        yield from self._new(links, url, set())

    def _new(self, links: Sequence[str], found_on: str, votes: set[str]) -> Iterator[str]:
        for link in self._resolved(links, found_on):
            votes.add(link)
            if link not in self._met:
                self._met[link] = found_on
                yield link

    def _resolved(self, links: Sequence[str], base: str) -> list[str]:
        found = {}
        for link in links:
            try:
                url = urlsplit(urljoin(base, str(link).strip()))._replace(fragment="")
            except ValueError:
                continue
            if url.scheme in WEB and url.netloc in self._sites:
                path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
                found[url._replace(path=path).geturl()] = None
        return list(found)

    def _fetch(self, url: str) -> Answer:
        """The answer of the server; a connection that it closed meanwhile is opened anew."""
        parts = urlsplit(url)
        target = parts.path + (f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?[]')}" if parts.query else "")
        connections = vars(self._connections)
        for _ in range(3):
            if parts.netloc not in connections:
                connections[parts.netloc] = HTTPConnection(parts.netloc, timeout=60)
            connection = connections[parts.netloc]
            try:
                connection.request("GET", target, headers={"User-Agent": "link-walk"})
                with connection.getresponse() as answer:
                    kind = answer.headers.get_content_type() if answer.headers["content-type"] else ""
                    is_page = kind in ("text/html", "application/xhtml+xml")
                    body = answer.read() if is_page else answer.read() and b""
                    location = answer.headers["location"] if 300 <= answer.status < 400 else None
                    return Answer(answer.status, kind, location or "", body)
            except (HTTPException, OSError):
                connection.close()
        return Answer(0, "", "", b"")


class Found(NamedTuple):
    """What became of a page that the walk reached."""

    outcome: str  # "stored", "same as" another one, a reason, or "unexplained"
    words: str = ""


class Comparison:
    """Looks up the pages of a walk in a store."""

    def __init__(self, walk: Walk, store: SqliteStore) -> None:
        self._pages = walk.pages
        self._store = store

    def find(self, url: str) -> Found:
        try:
            address = canonical(url)
        except BadUrl as error:
            return Found("bad-url", str(error))
        page = self._store.page(address)
        if page is None:
            return self._why_unknown(url)
        if page.state is PageState.LIVE:
            return Found("stored")
        reason = str(page.reason or page.state)
        if page.leads_to is None:
            return Found(reason)
        target = self._store.page(page.leads_to)
        if target is None or target.state is not PageState.LIVE:
            return Found("unexplained", f"{reason} of {page.leads_to}, which is not stored")
        other = self._pages.get(page.leads_to)
        is_equal = other is not None and other.digest == self._pages[url].digest
        words = "the same text" if is_equal else "the same main text" if reason == "duplicate" else reason
        return Found(reason, f"{words}: {page.leads_to}")

    def _why_unknown(self, url: str) -> Found:
        walked = self._pages[url]
        if not walked.is_followed:
            return Found("nofollow", f"every link to it says so, as on {walked.found_on}")
        seen = {url}
        above = walked.found_on
        while above and above in self._pages and above not in seen:
            seen.add(above)
            page = self._store.page(canonical(above))
            if page is not None:
                reason = str(page.reason or page.state)
                if page.state is PageState.LIVE:
                    return Found("unexplained", f"linked from {above}, which is stored")
                return Found(reason, f"known only from {above} ({reason})")
            above = self._pages[above].found_on
        return Found("unexplained", f"linked from {walked.found_on}")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which nginx serves a folder."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        sys.exit("nginx is not installed: install it, or serve the folder yourself and give addresses as START")
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        types = Path("/etc/nginx/mime.types")
        temporary = "".join(
            f"{each}_temp_path {place};" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = Path(place, "nginx.conf")
        config.write_text(
            f"daemon off; pid {place}/pid; error_log {place}/error.log; events {{ worker_connections 1024; }}\n"
            f"http {{ access_log off; {temporary} {f'include {types};' if types.exists() else ''}\n"
            f"server {{ listen 127.0.0.1:{port}; root {folder.resolve()}; absolute_redirect off; }} }}\n"
        )
        with subprocess.Popen([program, "-c", str(config), "-e", f"{place}/error.log"]) as server:
            try:
                for _ in range(100):
                    try:
                        socket.create_connection(("127.0.0.1", port), timeout=1).close()
                        break
                    except OSError:
                        time.sleep(0.1)
                yield f"http://127.0.0.1:{port}/"
            finally:
                server.terminate()


def crawl(starts: Sequence[str], folder: Path) -> None:
    """Crawl from these addresses into a folder, as the command does."""
    hosts = ", ".join(json.dumps(host) for host in sorted({urlsplit(start).netloc for start in starts}))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(
            f"[guard]\nallow = [{hosts}]\n[politeness]\ndelay = 0\nmax_concurrent = 32\n[crawl]\nsitemaps = false\n"
        )
        config.flush()
        command = [sys.executable, "-m", "levada", "crawl", *starts, "--data", str(folder), "--once", "--json"]
        subprocess.run([*command, "--config", config.name], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("starts", nargs="+", metavar="START")
    parser.add_argument("--serve", type=Path, metavar="FOLDER", help="serve this folder by nginx meanwhile")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the crawl is, or shall be")
    parser.add_argument(
        "--list", type=int, default=50, metavar="N", help="how many of the pages without a copy to list"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        base = stack.enter_context(served(options.serve)) if options.serve else ""
        starts = [canonical(base + start.removeprefix("/") if base else start) for start in options.starts]
        folder = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        walk = Walk(starts)
        walk.run()
        if not walk.pages:
            sys.exit(f"no page was reached from {starts[0]}: {dict(walk.others)}")
        crawl(starts, folder)
        with closing(SqliteStore.open_reader(folder / "levada.db")) as store:
            comparison = Comparison(walk, store)
            found = {url: comparison.find(url) for url in walk.pages}
    report(walk, found, options.list, as_json=options.json)


def report(walk: Walk, found: dict[str, Found], most: int, *, as_json: bool) -> None:
    counts = Counter(each.outcome for each in found.values())
    rows = [
        {"outcome": outcome, "pages": n, "%": round(100 * n / len(found), 3)} for outcome, n in counts.most_common()
    ]
    ratios = {"stored": counts["stored"] / len(found), "explained": 1 - counts["unexplained"] / len(found)}
    show("link walk", rows, ratios, as_json=as_json)
    if as_json:
        return
    print(f"walked: {len(found):,} HTML pages, at most {walk.most_links:,} links on one; others: {dict(walk.others)}")
    missing = sorted(url for url, each in found.items() if each.outcome != "stored")
    sample = [url for url in missing if found[url].outcome == "unexplained"][:most]
    rest = [url for url in missing if url not in set(sample)]
    sample += random.Random(7).sample(rest, max(0, min(most - len(sample), len(rest))))
    for url in sorted(sample, key=lambda each: (found[each].outcome, each)):
        print(f"{found[url].outcome:16} {url}  {found[url].words}")


if __name__ == "__main__":
    main()
