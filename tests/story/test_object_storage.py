"""A collection with its bodies in a bucket, as a user works with it; the bucket goes away under a crawl and returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.needs import missing, package
from tests.servers.private import free_ports
from tests.servers.versitygw import BUCKET, Server, use_keys
from tests.story.commands import levada, one_line, started, what_it_said
from tests.story.test_forget_a_site import site

SETTINGS = """
[politeness]
delay = 0
[guard]
allow = ["{site}"]
[store]
bodies = "s3://{bucket}/news"
[bodies]
endpoint = "{endpoint}"
least = 0
seconds = 1
"""


def settings(folder: Path, host: str, endpoint: str) -> None:
    (folder / "levada.toml").write_text(SETTINGS.format(site=host, bucket=BUCKET, endpoint=endpoint))


def objects(folder: Path) -> int:
    return sum(path.is_file() for path in (folder / "buckets" / BUCKET / "news").glob("??/??/*"))


@pytest.fixture
def pages() -> dict[str, str]:
    found = {f"/{n}": f"<title>Ferry {n}</title><p>The ferry number {n} leaves in the morning." for n in range(6)}
    return found | {"/": "<title>Ferries</title>" + "".join(f'<p>See <a href="{path}">it</a>' for path in found)}


def test_crawl_search_diff_export_back_up_and_forget(
    tmp_path: Path, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package("obstore")
    if not Server.installed():
        missing("versitygw is not installed: run tests/servers/install-go.sh")
    use_keys(monkeypatch)
    server, port = Server(), free_ports(1)[0]
    endpoint = server.start(tmp_path, port)
    with site(pages) as host:
        settings(tmp_path, host, endpoint)
        data = ("--data", "news")
        crawled = levada("crawl", f"http://{host}/", "--once", "--config", "levada.toml", *data, cwd=tmp_path)
        assert crawled.returncode == 0, crawled.stderr
        assert objects(tmp_path) == 7
        pages["/3"] = "<title>Ferry 3</title><p>The ferry number 3 was cancelled."
        assert levada("check", f"http://{host}/3", *data, cwd=tmp_path).returncode == 0
        assert objects(tmp_path) == 8
        found = levada("search", "cancelled", *data, cwd=tmp_path)
        assert "was cancelled" in found.stdout, found.stderr
        assert "was cancelled" in levada("diff", f"http://{host}/3", *data, cwd=tmp_path).stdout
        exported = levada("export", "--format", "jsonl", "--out", "-", *data, cwd=tmp_path)
        assert len([json.loads(line) for line in exported.stdout.splitlines()]) == 7
        assert levada("backup", "news.backup", *data, cwd=tmp_path).returncode == 0
        assert levada("restore", "news.backup", "--data", "copy", cwd=tmp_path).returncode == 0
        assert "was cancelled" in levada("page", f"http://{host}/3", "--data", "copy", cwd=tmp_path).stdout

        server.stop()
        assert "cannot be reached now" in one_line(levada("page", f"http://{host}/3", *data, cwd=tmp_path), 1)
        found = levada("search", "cancelled", *data, cwd=tmp_path)
        assert (found.returncode, "Ferry 3" in found.stdout) == (0, True), found.stderr

        server = Server()
        server.start(tmp_path, port)
        checked = levada("doctor", *data, cwd=tmp_path)
        assert "8 in s3://levada/news, all there" in checked.stdout, checked.stdout
        assert levada("forget", f"http://{host}/3", "--yes", *data, cwd=tmp_path).returncode == 0
        assert objects(tmp_path) == 6
        assert levada("doctor", "--forgotten", "cancelled", *data, cwd=tmp_path).returncode == 0
    server.stop()


class _WithBlow(dict[str, str]):
    """Pages; when one is asked for, something happens first, once."""

    def __init__(self, pages: dict[str, str], blow: Callable[[], None]) -> None:
        super().__init__(pages)
        self._blows = [blow]

    def get(self, path: str, default: Any = None) -> Any:
        if path == "/3" and self._blows:
            self._blows.pop()()
        return super().get(path, default)


def test_a_crawl_waits_for_its_bucket_and_goes_on(
    tmp_path: Path, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package("obstore")
    if not Server.installed():
        missing("versitygw is not installed: run tests/servers/install-go.sh")
    use_keys(monkeypatch)
    server, port = Server(), free_ports(1)[0]
    endpoint = server.start(tmp_path, port)
    with site(_WithBlow(pages, server.stop)) as host:
        settings(tmp_path, host, endpoint)
        running = started(
            "crawl", f"http://{host}/", "--once", "--config", "levada.toml", "--data", "news", cwd=tmp_path
        )
        assert running.stderr is not None
        while "the crawl waits, and goes on when it is back" not in (said := running.stderr.readline()):
            assert said, "the crawl ended"
        server = Server()
        server.start(tmp_path, port)
        what_it_said(running, 60.0)
        assert running.returncode == 0
        assert objects(tmp_path) == 7
        assert "7 in s3://levada/news, all there" in levada("doctor", "--data", "news", cwd=tmp_path).stdout
    server.stop()
