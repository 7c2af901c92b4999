"""Plug-ins for tests: a folder that looks like an installed package, with some of each group.

The page's address says what they do: `raise`, `rubbish`, `long`, `exit`, `spin`, `wait` or `eat`; else they work.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["child_program", "install"]

ENTRY_POINTS = {
    "levada.readers": {"note": "test_plugged:NoteReader"},
    "levada.extractors": {"shout": "test_plugged:Shout", "broken": "test_plugged:Broken"},
    "levada.change_filters": {"digits": "test_plugged:WithoutDigits"},
    "levada.hooks": {"seen": "test_plugged:Seen"},
    "levada.notifiers": {"told": "test_plugged:Told"},
}
CODE = """
import sys
import threading
from levada.core.records import ReadPage

def misbehave(url):
    if "raise" in url:
        raise KeyError("as the address says")
    if "exit" in url:
        sys.exit(7)
    if "rubbish" in url:
        return 7
    if "long" in url:
        return "x" * 20_000_000
    if "eat" in url:
        return "x" * 10**12
    while "spin" in url:
        pass
    if "wait" in url:
        threading.Event().wait()

class NoteReader:
    content_types = ("application/x-note",)
    def read(self, body, content_type, url):
        if wrong := misbehave(url):
            return wrong
        if "odd" in url:
            return ReadPage(title=3, links=[None])
        title, _, text = body.decode().partition("\\n\\n")
        links = ["/next", "mailto:x", "\\ud800"]
        return ReadPage(title=title, text=text, links=links, language="en", published=5.0)

class Shout:
    def __init__(self, options=None):
        self.mark = (options or {}).get("mark", "!")
    def extract(self, html, url):
        return misbehave(url) or "SHOUTED" + self.mark

class Broken:
    def __init__(self):
        raise ValueError("it never works")
    def extract(self, html, url):
        return ""

class WithoutDigits:
    def filter(self, text, url):
        return misbehave(url) or "".join(each for each in text if not each.isdigit())

class Seen:
    pages = []
    def after_page(self, page):
        misbehave(page.url)
        Seen.pages.append(page)

class Told:
    urls = []
    def notify(self, changes):
        Told.urls += [change.url for change in changes]
"""


def install(folder: Path, entry_points: Mapping[str, Mapping[str, str]] = ENTRY_POINTS) -> None:
    """Write the package; it is installed wherever `folder` is on the path."""
    (folder / "test_plugged.py").write_text(CODE)
    about = folder / "test_plugged-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: test-plugged\nVersion: 1.0\n")
    sections = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in entry_points.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(sections))


def child_program(folder: Path) -> tuple[str, str]:
    """A parser child in whose environment the package is installed."""
    path = f"sys.path.insert(0, {str(folder)!r})"
    return "-c", f"import sys; {path}; from levada.parser.child import main; main(sys.argv[1:])"
