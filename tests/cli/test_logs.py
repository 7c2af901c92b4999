"""Logs for a person and for a machine."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from levada.cli.logs import LogKind, log_visits, set_up_logs, tell
from levada.cli.run.control import listen_to_logs
from levada.cli.run.crawl import make_watcher
from levada.cli.terminal import progress_bar
from levada.store.memory import MemoryStore
from levada.testing.store.visits import first, links


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    logger = logging.getLogger("levada")
    before = logger.handlers[:], logger.propagate, logger.level
    yield
    logger.handlers[:], logger.propagate = before[0], before[1]
    logger.setLevel(before[2])


def test_a_machine_reads_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogKind.JSON)
    logging.getLogger("levada.crawl.engine").warning("orders wait: %s\x1b[31m\n", "the disk is full")
    try:
        raise ValueError("no\nsense")
    except ValueError:
        logging.getLogger("levada").exception("it broke")
    one, two = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (one["level"], one["part"]) == ("warning", "levada.crawl.engine")
    assert one["message"] == "orders wait: the disk is full\x1b[31m\n"
    assert "ValueError" in two["error"]


def test_a_person_reads_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogKind.TEXT)
    logging.getLogger("levada.crawl.engine").warning("a page says \x1b[31mred\nand more")
    logging.getLogger("levada.crawl.engine").info("in the ordinary course")
    assert capsys.readouterr().err == "levada: a page says red and more\n"


def test_each_visit_is_an_object_for_a_machine_and_nothing_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    store = MemoryStore()
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    set_up_logs(LogKind.TEXT)
    log_visits([first(lease, 5.0, "text")])
    assert capsys.readouterr().err == ""
    set_up_logs(LogKind.JSON)
    log_visits([first(lease, 5.0, "text")])
    told = json.loads(capsys.readouterr().err)
    assert (told["message"], told["url"], told["outcome"]) == ("visit", "http://a/0", "first")


def test_what_a_user_must_know_comes_in_the_form_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogKind.TEXT)
    tell("no\nspace left")
    tell("watch it at http://127.0.0.1/", logging.INFO)
    assert capsys.readouterr().err == "levada: no space left\nwatch it at http://127.0.0.1/\n"
    set_up_logs(LogKind.JSON)
    tell("100% full")
    told = json.loads(capsys.readouterr().err)
    assert (told["level"], told["message"]) == ("error", "100% full")


def test_a_controller_logs_in_the_form_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogKind.JSON)
    listen_to_logs()
    logging.getLogger("levada").info("two workers")
    assert json.loads(capsys.readouterr().err)["message"] == "two workers"
    set_up_logs(LogKind.TEXT)
    listen_to_logs()
    logging.getLogger("levada").info("two\nworkers")
    assert capsys.readouterr().err == "levada: two workers\n"


def test_for_a_machine_nothing_but_objects_is_on_standard_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "levada", "--log", "json", "search", "word", "--data", "nowhere"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert json.loads(done.stderr)["level"] == "error"


def test_nobody_watches_where_a_machine_reads(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogKind.JSON)
    with progress_bar() as progress:
        progress(1, 1, "counting")
    assert capsys.readouterr().err == ""
    assert make_watcher(quiet=False) is None
