"""What a user does beside `levada control`, whose pages are visited by workers over a real RabbitMQ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import levada
from levada.core.records import PageRecord
from tests.story.test_check import PAGES, Site, run

pytestmark = pytest.mark.timeout(300)  # each command, and each worker, is a process of its own

PATIENCE = 90.0  # seconds until a wait is given up


class Control:
    """A crawl of a small site by a control and its workers."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder = folder
        self.site = site
        self.data = folder / "levada-data"

    def pages(self) -> list[PageRecord]:
        with levada.open(self.data) as news:
            return [news.why(self.site.url(name)).page for name in PAGES]

    def visits(self) -> list[int]:
        return [page.visits for page in self.pages()]

    def is_offline(self) -> bool:
        with levada.open(self.data) as news:
            live = news.live()
        return live is not None and live.offline is not None


def until(is_so: Callable[[], bool], said: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, said.read_text()
        time.sleep(0.2)


@pytest.fixture(scope="module")
def control(rabbitmq: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    folder = tmp_path_factory.mktemp("control")
    site = Site(folder / "site")
    made = Control(folder, site)
    (folder / "levada.toml").write_text(f'[guard]\nallow = ["{site.name}"]\n[politeness]\ndelay = 0.0\n')
    words = ("control", "--data", "levada-data", "--config", "levada.toml", "--start", f"http://{site.name}/")
    limits = ("--fetch", "1,1", "--catalog", "1,1", "--period", "0.3")
    with (folder / "said").open("w") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "levada", *words, *limits],
            cwd=folder,
            env=os.environ | {"LEVADA_RABBITMQ": rabbitmq},
            stdout=said,
            stderr=said,
        )
    try:
        until(lambda: stored(made) > len(PAGES) or running.poll() is not None, folder / "said")
        yield made
        running.terminate()
        assert running.wait(60) == 0, (folder / "said").read_text()
    finally:
        running.kill()
        running.wait()
        site.close()


def stored(control: Control) -> int:
    try:
        with levada.open(control.data, create=False) as news:
            return news.stats().stored
    except levada.LevadaError:  # not made yet
        return 0


def test_a_check_beside_it_shows_what_came_and_went(control: Control) -> None:
    control.site.write("two", "quite another text by now")
    checked = run(control.folder, "check", control.site.url("two"), control.site.url("one"), "--json")
    assert checked.returncode == 0, checked.stderr
    lines = [json.loads(line) for line in checked.stdout.splitlines()]
    told = {each["url"]: each for each in lines if "url" in each}
    assert told[control.site.url("two")]["outcome"] == "changed"
    assert told[control.site.url("two")]["diff"]["added"] == 1
    assert told[control.site.url("one")]["outcome"] == "unchanged"


def test_a_lower_ceiling_brings_its_pages_forward_at_once(control: Control) -> None:
    before = control.visits()
    assert min(page.next_visit or 0.0 for page in control.pages()) > time.time() + 60.0
    done = run(control.folder, "settings", "set", "revisit.floor=1", "revisit.first=1", "revisit.ceiling=2")
    assert done.returncode == 0, done.stderr
    said = control.folder / "said"
    until(lambda: all(now > then for now, then in zip(control.visits(), before, strict=True)), said)


def test_while_nothing_answers_no_page_is_put_off(control: Control) -> None:
    said, port = control.folder / "said", int(control.site.name.rpartition(":")[2])
    control.site.close()
    assert run(control.folder, "check", "--all", "--no-wait").returncode == 0
    until(control.is_offline, said)
    control.site.open(port)
    before = control.visits()
    until(lambda: not control.is_offline(), said)
    until(lambda: all(now > then for now, then in zip(control.visits(), before, strict=True)), said)
    assert [(page.reason, page.failures) for page in control.pages()] == [(None, 0)] * len(PAGES)
