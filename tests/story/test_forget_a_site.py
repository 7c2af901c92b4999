"""The guide `forget-a-site.md`, typed as it stands there: the site is gone, and does not come back."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

import levada as product
from tests.story.commands import levada, one_line, started, what_it_said

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "forget-a-site.md"
THEIRS = "blog.example.org"
CANARY = "xylocarpus"
SETTINGS = """
[crawl]
scope = "any"
[politeness]
delay = 0
[guard]
allow = ["{}", "{}"]
[revisit]
first = 1
floor = 0.5
[stages]
idle = 1
"""


@contextmanager
def site(pages: dict[str, str]) -> Iterator[str]:
    """The address of a site with these pages, by path. `{number}` in one is different whenever it is fetched."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = pages.get(self.path)
            self.send_response(200 if known is not None else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            text = (known or "nothing here").replace("{number}", f"news {next(numbers)}")
            self.wfile.write(text.encode())

        def log_message(self, format: str, *given: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def sites() -> Iterator[tuple[str, str]]:
    """A blog that is to be forgotten, and a site that links to it."""
    pages = {f"/{CANARY}-{n}": f"<title>{CANARY} {n}</title><p>{CANARY} words of a post {n}" for n in range(3)}
    pages["/"] = f"<title>{CANARY}</title>" + "".join(f'<p>{CANARY} <a href="{path}">post</a>' for path in list(pages))
    with (
        site(pages) as blog,
        site({"/": f'<title>Other</title><p>{{number}}: see <a href="http://{blog}/">the blog</a>'}) as other,
    ):
        yield blog, other


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```\n(levada .*?)```", GUIDE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for line in block.splitlines()]


def test_the_guide_forgets_a_site_for_good(tmp_path: Path, sites: tuple[str, str]) -> None:
    blog, other = sites
    (tmp_path / "levada.toml").write_text(SETTINGS.format(blog, other))
    assert levada("crawl", f"http://{blog}/", f"http://{other}/", "--once", cwd=tmp_path).returncode == 0
    assert levada("search", CANARY, cwd=tmp_path).returncode == 0
    typed = commands()
    assert len(typed) <= 5
    said = []
    for words in typed:
        done = levada(*(word.replace(THEIRS, blog) for word in words), cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        said.append(done.stdout)
    assert said[0] == "would forget 5 pages with 4 versions; nothing was deleted\n"
    assert said[1].startswith("forgot 5 pages with 4 versions\n")
    assert f"nothing is left of {blog}" in said[2]
    assert f"nothing is left of {blog}" in said[4]
    assert levada("search", CANARY, cwd=tmp_path).returncode == 3
    assert levada("doctor", "--forgotten", CANARY, cwd=tmp_path).returncode == 0
    assert levada("check", f"http://{other}/", cwd=tmp_path).returncode == 0  # it has changed, and links to it again
    with product.open(tmp_path / "levada-data") as collection:
        assert [row.site for row in collection.rows()] == [other]
        assert collection.stats().refused["forgotten"] >= 1
    again = levada("crawl", f"http://{blog}/", "--once", cwd=tmp_path)
    assert "was forgotten, and is crawled again" in again.stderr
    assert levada("search", CANARY, cwd=tmp_path).returncode == 0


def test_a_site_is_forgotten_while_a_crawl_runs(tmp_path: Path, sites: tuple[str, str]) -> None:
    blog, other = sites
    (tmp_path / "levada.toml").write_text(SETTINGS.format(blog, other))
    assert levada("crawl", f"http://{blog}/", f"http://{other}/", "--once", cwd=tmp_path).returncode == 0
    running = started("crawl", cwd=tmp_path)
    live = tmp_path / "levada-data" / "live.json"
    while not live.exists():
        assert running.poll() is None, what_it_said(running)
    done = levada("forget", "--site", blog, "--yes", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"finished":true' in done.stdout
    assert running.poll() is None, what_it_said(running)
    assert levada("doctor", "--forgotten", blog, cwd=tmp_path).returncode == 0
    assert levada("doctor", "--forgotten", CANARY, cwd=tmp_path).returncode == 0
    running.terminate()
    what_it_said(running)
    assert levada("doctor", "--forgotten", CANARY, cwd=tmp_path).returncode == 0
    assert levada("search", CANARY, cwd=tmp_path).returncode == 3


def test_without_a_terminal_it_must_be_told_yes(tmp_path: Path, sites: tuple[str, str]) -> None:
    blog, other = sites
    (tmp_path / "levada.toml").write_text(SETTINGS.format(blog, other))
    levada("crawl", f"http://{blog}/", "--once", cwd=tmp_path)
    assert "say --yes" in one_line(levada("forget", f"http://{blog}/", cwd=tmp_path), 2)
    assert levada("search", CANARY, cwd=tmp_path).returncode == 0
    assert "no page" in one_line(levada("forget", f"http://{blog}/nowhere", "--yes", cwd=tmp_path), 3)
    assert "no site" in one_line(levada("forget", "--site", "nowhere.example", "--yes", cwd=tmp_path), 3)
    assert "name what to forget" in one_line(levada("forget", cwd=tmp_path), 2)
    assert "is not a duration" in one_line(levada("forget", "--older-than", "soon", cwd=tmp_path), 2)
