"""CPU per page and memory of Levada and of a tuned Scrapy on real pages: documentation packages, served by nginx.

    python benchmarks/real.py [--json] [--pages /usr/share/doc] [--max-pages 10000] [--rounds 1]

`--pages` is any folder with HTML files. Debian's documentation is a good one: `apt-get install python3-doc
postgresql-doc sqlite3-doc libboost-doc`, or unpack such packages somewhere with `dpkg -x`. Its folders are taken one
by one, the smallest first, until the next one would have more pages than `--max-pages`; a private nginx on a free
port of the loopback interface serves them, with a table of contents from which every page can be reached. Nothing is
prepared: pages are as large, as deep and as broken as they are, and lead to files that are missing.

As in `crawl.py`, the programs take turns, read with the same functions, store in SQLite and write the same tantivy
index, and the CPU of the program and all its children is counted, start-up included. A page is an HTML file that
nginx gave out whole, by its own log. Memory is the largest sum of the proportional set sizes (PSS) of the program and
all its children, twice a second; of this, `anonymous` is what is no mapped file. `reading_ms_per_28_kilobytes` is what
reading alone costs, for some hundreds of the pages in this process, the index and everything else left out.
"""

from __future__ import annotations

import argparse
import html
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

from table import show

from levada.core.processes import tune_allocator
from levada.core.records import RawPage
from levada.pages.parse import parse_page

HERE = Path(__file__).parent
SCRAPY, LEVADA = "peers/scrapy_crawl.py", "peers/levada_crawl.py"
PEERS = {
    "scrapy": [SCRAPY, "--store"],
    "scrapy, trimmed": [SCRAPY, "--store", "--trimmed"],
    "levada": [LEVADA, "--store"],
}
ENDINGS = (".html", ".htm", ".xhtml")
SAMPLED, NEIGHBOURS, ROUNDS = 400, 20, 3  # pages of which reading is measured, so many of a folder, how often
LARGEST = 200_000  # bytes: a few listings of megabytes would decide what a page costs
PAGE_BYTES = 28_000  # the mean of 98,000 pages of Debian's documentation
LISTED = 500  # links on a page of the table of contents
SAMPLE_SECONDS = 0.5
SITE = """
daemon off;
master_process off;
pid {folder}/pid;
worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
  {temporary}
  log_format told '$status "$sent_http_content_type" $request_uri';
  access_log {folder}/access.log told buffer=64k flush=1s;
  types {{ text/html html htm xhtml; text/css css; text/javascript js; text/plain txt; image/png png; }}
  default_type application/octet-stream;
  keepalive_requests 100000;
  sendfile on;
  log_not_found off;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/root;
  }}
}}
"""


class Cost(NamedTuple):
    pages: int
    cpu: float  # milliseconds per page
    memory: float  # megabytes
    anonymous: float


def html_files(folder: Path) -> list[Path]:
    """The HTML files below a folder, each once, links to folders not followed."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        found += [Path(place, name) for name in sorted(files) if name.endswith(ENDINGS)]
    return [path for path in found if path.is_file() and os.access(path, os.R_OK)]


def chosen(folder: Path, most: int) -> dict[str, list[Path]]:
    """Whole folders with their pages, the smallest first, with at most so many pages together."""
    parts = {part.name: html_files(part) for part in folder.iterdir() if part.is_dir()}
    taken: dict[str, list[Path]] = {}
    room = most
    for name, pages in sorted(parts.items(), key=lambda each: (len(each[1]), each[0])):
        if not pages:
            continue
        if len(pages) > room:
            break
        taken[name] = pages
        room -= len(pages)
    return taken


def write_contents(root: Path, folder: Path, parts: dict[str, list[Path]]) -> None:
    """Links to the folders, and a table of contents that leads to every page of them."""
    root.mkdir()
    (root / "contents").mkdir()
    urls = ["/" + quote(str(page.relative_to(folder))) for pages in parts.values() for page in pages]
    listings = [urls[start : start + LISTED] for start in range(0, len(urls), LISTED)]
    for number, listed in enumerate(listings):
        (root / "contents" / f"{number}.html").write_text(_listing(f"Pages, part {number}", listed))
    (root / "index.html").write_text(_listing("Pages", [f"/contents/{at}.html" for at in range(len(listings))]))
    for name in parts:
        (root / name).symlink_to((folder / name).resolve())


def _listing(title: str, urls: Sequence[str]) -> str:
    items = "".join(f'<li><a href="{html.escape(url)}">{html.escape(url)}</a>' for url in urls)
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><ul>{items}</ul>"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL at which a private nginx serves `folder/root`; it logs what it gives out to `folder/access.log`."""
    command = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if command is None:
        sys.exit("nginx is not installed: apt-get install nginx-light")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in names)
    (folder / "nginx.conf").write_text(SITE.format(folder=folder, port=port, temporary=temporary))
    server = subprocess.Popen([command, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"])
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if server.poll() is not None:
            sys.exit(f"nginx ended with status {server.returncode}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    sys.exit("nginx does not answer")


def given_out(log: Path) -> Counter[bytes]:
    """How often nginx gave out each HTML file whole. Its log is written every second, and is emptied."""
    time.sleep(1.5)
    lines = (line.split(b" ", 2) for line in log.read_bytes().splitlines())
    os.truncate(log, 0)
    return Counter(path for status, kind, path in lines if status == b"200" and kind == b'"text/html"')


class MemoryMeter:
    """The largest memory of a process and its children, while it is open."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.most = self.anonymous = 0.0

    def __enter__(self) -> MemoryMeter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            whole = anonymous = 0.0
            for pid in tree_of(self._pid):
                with suppress(OSError):  # it ended meanwhile
                    sizes = _sizes(pid)
                    whole += sizes.get("Pss", 0)
                    anonymous += sizes.get("Pss_Anon", 0)
            if whole > self.most:
                self.most, self.anonymous = whole, anonymous


def tree_of(pid: int) -> list[int]:
    """A process, its children and theirs."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _sizes(pid: int) -> dict[str, float]:
    """Megabytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    parts = (line.split() for line in lines)
    return {part[0].removesuffix(":"): int(part[1]) / 1024 for part in parts if len(part) == 3}


def run(program: list[str], start: str, log: Path) -> Cost:
    command = [sys.executable, str(HERE / program[0]), *program[1:], start]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # what counts is what nginx gave out
    with MemoryMeter(process.pid) as memory:
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[1:3])} failed with status {process.returncode}")
    pages = len(given_out(log))
    return Cost(pages, 1000 * (usage.ru_utime + usage.ru_stime) / max(pages, 1), memory.most, memory.anonymous)


def reading_cost(files: Sequence[Path]) -> float:
    """Milliseconds of CPU that reading 28 KB of pages takes: the least of three rounds over some hundreds of them."""
    pages = [RawPage(f"http://localhost{path}", path.read_bytes(), "text/html") for path in files]
    pages = [page for page in pages if len(page.body) <= LARGEST]
    tune_allocator()
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for page in pages:
            parse_page(page)
        rounds.append(time.process_time() - began)
    return 1000 * min(rounds) * PAGE_BYTES / sum(len(page.body) for page in pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=Path, default=Path("/usr/share/doc"), metavar="DIR")
    parser.add_argument("--max-pages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=PEERS, help="run one program alone, to see its memory")
    options = parser.parse_args()
    if not options.pages.is_dir():
        sys.exit(f"--pages must be a folder with HTML files, and {options.pages} is none")
    parts = chosen(options.pages, options.max_pages)
    files = [page for pages in parts.values() for page in pages]
    if not files:
        sys.exit(f"no folder in {options.pages} has HTML files and at most {options.max_pages} of them")
    peers = [options.only] if options.only else list(PEERS)
    costs: dict[str, list[Cost]] = {peer: [] for peer in peers}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_contents(folder / "root", options.pages, parts)
        with served(folder) as start:
            for _ in range(options.rounds):
                for peer in peers:
                    costs[peer].append(run(PEERS[peer], start, folder / "access.log"))
    rows = [
        {
            "program": peer,
            "pages": rounds[-1].pages,
            "CPU ms per page, least": min(cost.cpu for cost in rounds),
            "median": median(cost.cpu for cost in rounds),
            "most": max(cost.cpu for cost in rounds),
            "peak memory, MB": max(cost.memory for cost in rounds),
            "anonymous": max(cost.anonymous for cost in rounds),
        }
        for peer, rounds in costs.items()
    ]
    ratios = {
        "files": float(len(files)),
        "kilobytes_per_file": sum(page.stat().st_size for page in files) / len(files) / 1000,
    }
    step = max(1, len(files) // SAMPLED)
    runs = [files[at : at + NEIGHBOURS] for at in range(0, len(files), step * NEIGHBOURS)]
    ratios["reading_ms_per_28_kilobytes"] = reading_cost([page for run in runs for page in run])
    if not options.only:
        ours = min(cost.cpu for cost in costs["levada"])
        ratios["cpu_of_scrapy"] = min(cost.cpu for cost in costs["scrapy"]) / ours
        ratios["cpu_of_scrapy_trimmed"] = min(cost.cpu for cost in costs["scrapy, trimmed"]) / ours
    show("real", rows, ratios, as_json=options.json)


if __name__ == "__main__":
    main()
