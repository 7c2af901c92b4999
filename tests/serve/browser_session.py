"""A browser session through the dashboard of a running demo.

    python -m tests.serve.browser_session FOLDER

runs a demo, walks through every view, and leaves a picture of each in the folder, wide and narrow.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serve.served import served

__all__ = ["VIEWS", "Walk", "browser", "chromium", "demo", "open_page"]

VIEWS = ("changes", "now", "sites", "search", "page", "notifications", "balance", "stages", "shards", "loads", "lab")
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def demo(data: Path, seconds: float = 600.0) -> Iterator[str]:
    """The address of the dashboard of a demo that runs until the end of this block."""
    command = [
        sys.executable,
        "-m",
        "levada",
        "demo",
        "--data",
        str(data),
        "--seconds",
        str(seconds),
        "--pages",
        "400",
        "--no-open",
        "--no-hostile",  # a host that answers slowly is under way for long after a pause
    ]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        with served(data, "--capture") as address:
            yield address
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(30)


@contextmanager
def browser() -> Iterator[Browser]:
    path = chromium()
    assert path is not None
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def open_page(opened: Browser, size: str, scheme: str = "light") -> Iterator[Page]:
    width, height = SIZES[size]
    context = opened.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    try:
        yield context.new_page()
    finally:
        context.close()


class Walk:
    """What goes wrong in the browser is remembered, wherever it happens."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.set_default_timeout(60_000)  # Balance and Shards take a core for a while
        expect.set_options(timeout=60_000)  # a machine with much else to do needs more than the usual five seconds

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def ask(self, path: str) -> dict[str, object]:
        with urlopen(f"{self.address}/api/v1{path}", timeout=20) as answer:
            told: dict[str, object] = json.load(answer)
        return told

    def go(self, view: str) -> None:
        self.page.goto(f"{self.address}/#/{view}")
        self.page.wait_for_function("() => document.getElementById('view').dataset.at === location.hash")

    def go_page(self, url: str) -> None:
        self.go(f"page?url={quote(url, safe='')}")

    def changed_page(self) -> str:
        """The address of a page that changed lately."""
        for _ in range(120):
            try:
                changes = self.ask("/changes/latest?limit=100").get("changes", [])
            except HTTPError as error:
                if error.code not in (404, 503):  # the demo has only begun: there is no collection, or no view of it
                    raise
                changes = []
            assert isinstance(changes, list)
            if found := next((change["url"] for change in changes if change["what"] == "changed"), None):
                return str(found)
            self.page.wait_for_timeout(500)
        raise AssertionError("no page has changed")

    def ask_some(self) -> None:
        """Questions of several kinds, so that a shard key can be advised from them."""
        sites = self.ask("/sites?limit=40")["sites"]
        assert isinstance(sites, list)
        for site in sites:
            self.ask(f"/search?q={quote('istanbul site:' + site['site'], safe='')}")

    def is_too_wide(self) -> bool:
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        return wide

    def picture(self, path: Path) -> None:
        self.page.screenshot(path=str(path))


def take_pictures(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, demo(Path(data) / "data") as address, browser() as opened:
        for size in SIZES:
            with open_page(opened, size, "dark" if size == "narrow" else "light") as page:
                walk = Walk(page, address)
                walk.go("now")
                page.wait_for_selector("#line.on")
                changed = walk.changed_page()
                walk.ask_some()
                for view in VIEWS:
                    if view == "page":
                        walk.go_page(changed)
                    else:
                        walk.go("search?q=istanbul" if view == "search" else view)
                    page.wait_for_timeout(8_000 if view in ("now", "stages") else 2_000)
                    walk.picture(folder / f"dashboard-{view}-{size}.png")


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]))
