"""A crawl may be killed at any instant: nothing is lost, nothing is doubled, and the same command goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from tests.faults import WRITE_POINTS
from tests.story.collections import check_whole

ROOT = Path(__file__).parents[2]
KILLS = 50
SLOWLY = "[politeness]\ndelay = 0.15\nmax_concurrent = 2\n"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", "600", "--no-hostile") as running:
        yield running


@pytest.fixture(scope="module")
def small_web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", "60", "--no-hostile") as running:
        yield running


def crawl(data: Path, config: Path, web: Web) -> subprocess.Popen[bytes]:
    """`levada crawl --once` in a process group of its own, so that all of it can be killed at once."""
    command = [sys.executable, "-m", "levada", "crawl", "--once", "--data", str(data), "--config", str(config)]
    return subprocess.Popen(
        [*command, *web.start], cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


@pytest.mark.timeout(600)
def test_fifty_kills_of_a_600_page_crawl_lose_nothing_and_double_nothing(web: Web, tmp_path: Path) -> None:
    settings = Path(web.config).read_text()
    config = tmp_path / "levada.toml"
    config.write_text(settings.replace("[politeness]\ndelay = 0\n", SLOWLY))
    assert SLOWLY in config.read_text()
    chance = random.Random(2024)
    data = tmp_path / "data"
    killed = 0
    for _ in range(KILLS):
        process = crawl(data, config, web)
        assert process.stderr is not None
        with process.stderr:
            try:
                process.wait(timeout=chance.uniform(0.25, 1.0))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
            process.wait()
    config.write_text(settings)
    last = crawl(data, config, web)
    assert last.communicate(timeout=100)[1] is not None
    assert last.returncode == 0
    assert killed >= 0.8 * KILLS, f"only {killed} runs were still at work when they were killed"
    check_whole(data, DemoWorld.build(web.seed, web.pages))


# By a crawl that goes once over a web that was never seen; tests/store has every point.
NOT_REACHED = ("release", "bring-forward", "limit-waits")


@pytest.mark.parametrize("kind", ["kill", "full"])
@pytest.mark.parametrize("point", [point for point in WRITE_POINTS if not point.startswith(NOT_REACHED)])
def test_a_crawl_that_fails_at_any_write_goes_on_where_it_was(
    kind: str, point: str, small_web: Web, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    nth = 1 if point.startswith(("add", "forget")) else 2
    arguments = [str(data), small_web.config, kind, point, str(nth), *small_web.start]
    command = [sys.executable, "-m", "tests.story.crawl_with_fault", *arguments]
    broken = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    if kind == "kill":
        assert broken.returncode == -signal.SIGKILL, broken.stderr
    else:
        assert broken.returncode == 1, broken.stderr
        assert broken.stderr.startswith("levada: "), broken.stderr
        assert "no space left" in broken.stderr
        assert len(broken.stderr.splitlines()) == 1
    whole = crawl(data, Path(small_web.config), small_web)
    said = whole.communicate(timeout=100)[1]
    assert whole.returncode == 0, said.decode()
    check_whole(data, DemoWorld.build(small_web.seed, small_web.pages))
