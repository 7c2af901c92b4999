"""What is typed after `levada control` and `levada work`, and what comes of nonsense."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import aio_pika
import pytest

from levada.cli.app import app
from levada.core.errors import UsageError
from tests.servers.private import free_ports

pytest_plugins = ["tests.servers.fixtures"]


def levada(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "levada", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, **more})


def assert_one_line(done: subprocess.CompletedProcess[str], status: int, words: str) -> None:
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name either --stage"),
        (["--stage", "a"], "is not of the form name=queue,least,most,command"),
        (["--stage", "a=q,x,2,true"], "whole numbers"),
        (["--stage", "a=q,5,2,true"], "0 <= least <= most, not 5 to 2"),
        (["--stage", "a=q,-1,2,true"], "0 <= least <= most"),
        (["--stage", "a=q,0,0,true"], "0 <= least <= most"),
        (["--stage", "a=q,1,2"], "a command is missing"),
        (["--stage", "a=q,1,2,no-such-program-at-all"], "there is no program 'no-such-program-at-all'"),
        (["--stage", "a=q,1,2,true", "--stage", "a=p,1,2,true"], "two stages have the same name"),
        (["--stage", "a=q,1,2,true", "--period", "0"], "--period must be above 0"),
        (["--stage", "a=q,1,2,true", "--period", "nan"], "--period must be above 0"),
        (["--stage", "a=q,1,2,true", "--grace", "-1"], "--grace must be above 0"),
        (["--stage", "a=q,2,2,true", "--budget", "1"], "less than the 2 that the stages must have"),
        (["--stage", "a=q,1,2,true", "--controller", "nobody"], 'no plug-in "nobody"'),
        (["--stage", "a=q,1,2,true", "spare=x"], "not a list of numbers"),
        (["--stage", "a=q,1,2,true", "spare=1/2/3"], "one value, or one for each of the 1 stages"),
        (["--stage", "a=q,1,2,true", "--controller", "drain-time", "service=-1"], "service must be above 0"),
        (["--stage", "a=q,1,2,true", "--rabbitmq", "http://x/"], "a broker's address looks like"),
        (["--stage", "a=q,1,2", "--keda", "nowhere"], "HOST:PORT"),
        (["--stage", "a=q,1,2", "--keda", "x:1", "--kubernetes"], "either --keda or --kubernetes"),
        (["--stage", "a=q,1,2,true", "--start", "https://a.example"], "name its folder with --data"),
        (["--data", "x", "--fetch", "1,2", "--kubernetes"], "which Deployments?"),
        (["--data", "x", "--fetch", "1,2,fetch"], "with --kubernetes only"),
    ],
    ids=str,
)
def test_nonsense_is_one_line_that_says_what_to_do(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("levada.cli.run.control.listen_to_logs", lambda: None)
    with pytest.raises(UsageError, match=re.escape(words)) as refused:
        app(["control", *arguments], standalone_mode=False)
    assert "\n" not in str(refused.value)


def test_an_error_is_one_line_and_status_two() -> None:
    assert_one_line(levada("control", "--stage", "a=q,5,2,true"), 2, "0 <= least <= most, not 5 to 2")


def test_a_crawl_needs_somewhere_to_start(tmp_path: Path) -> None:
    assert_one_line(levada("control", "--data", str(tmp_path / "none")), 2, "no start: name one")


def test_a_worker_without_a_collection_says_what_to_start(tmp_path: Path) -> None:
    assert_one_line(levada("work", "--stage", "fetch", "--data", str(tmp_path)), 3, "start 'levada control --data")
    assert_one_line(levada("work", "--stage", "fly", "--data", str(tmp_path)), 2, "one of fetch, catalog")


class Controlled(NamedTuple):
    """A `levada control` that ran until something had happened."""

    rounds: list[dict[str, Any]]  # of its one stage
    said: str  # on standard error


def control_until(change_kind: Callable[[list[dict[str, Any]]], bool], *words: str, rabbitmq: str) -> Controlled:
    """Run it until the rounds, or what its workers did meanwhile, are as wanted; then end it in good order."""
    command = [sys.executable, "-m", "levada", "control", *words, "--json"]
    environment = {**os.environ, "LEVADA_RABBITMQ": rabbitmq}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True) as running,
    ):
        assert running.stdout is not None
        rounds: list[dict[str, Any]] = []
        try:
            for line in running.stdout:
                rounds.append(json.loads(line)["stages"][0])
                if change_kind(rounds):
                    break
            running.terminate()
            running.stdout.read()
            ended = running.wait()
        finally:
            running.kill()
        said.seek(0)
        words_said = said.read()
        assert ended == 0, words_said
        return Controlled(rounds, words_said)


def test_a_broker_that_is_away_holds_the_least_and_is_told_once() -> None:
    (port,) = free_ports(1)
    url = f"amqp://guest:guest@127.0.0.1:{port}/"
    words = ("--stage", "a=q,2,5,sleep 60", "--period", "0.1")
    done = control_until(lambda rounds: len(rounds) >= 5 and rounds[-1]["on"] == 2, *words, rabbitmq=url)
    assert {each["wanted"] for each in done.rounds} == {2}
    assert done.said.count("does not answer") == 1


async def fill(broker: str, queue: str, jobs: int) -> None:
    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        await channel.declare_queue(queue, durable=True)
        for _ in range(jobs):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), queue)


def test_any_command_is_started_and_stopped_by_the_length_of_its_queue(rabbitmq: str) -> None:
    queue = f"foreign-{secrets.token_hex(4)}"
    asyncio.run(fill(rabbitmq, queue, 30))
    words = ("--stage", f"a={queue},1,6,sleep 60", "--period", "0.2")

    def all_are_on(rounds: list[dict[str, Any]]) -> bool:
        last = rounds[-1]
        return (last["queue"], last["on"], last["wanted"]) == (30, 6, 6)

    done = control_until(all_are_on, *words, rabbitmq=rabbitmq)
    assert all(each["on"] <= 6 for each in done.rounds)


SLOW_WORKER = """
import asyncio, os, signal, sys, time
while not os.path.exists(sys.argv[3]):
    time.sleep(0.05)  # as a program does that loads much before it consumes
import aio_pika

async def work():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await aio_pika.connect(os.environ["LEVADA_RABBITMQ"]) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        queue = await channel.declare_queue(sys.argv[1], passive=True)

        async def take(message):
            async with message.process():
                await asyncio.sleep(0.5)
                print("done", flush=True, file=open(sys.argv[2], "a"))

        await queue.consume(take)
        await stop.wait()

asyncio.run(work())
"""


@pytest.mark.parametrize("startup", ["0", "3"])
def test_a_few_jobs_do_not_start_a_crowd_of_workers_that_start_slowly(
    rabbitmq: str, tmp_path: Path, startup: str
) -> None:
    queue = f"slow-{secrets.token_hex(4)}"
    script, finished, loaded = tmp_path / "worker.py", tmp_path / "finished", tmp_path / "loaded"
    script.write_text(SLOW_WORKER)
    asyncio.run(fill(rabbitmq, queue, 3))

    def all_are_done(rounds: list[dict[str, Any]]) -> bool:
        if len(rounds) >= 10:  # so long the workers load, and the controller sees none of them consume
            loaded.touch()
        return finished.exists() and finished.read_text().count("done") == 3

    stage = f"a={queue},0,20,{sys.executable} {script} {queue} {finished} {loaded}"
    words = ("--stage", stage, "--period", "0.2", f"startup={startup}")
    done = control_until(all_are_done, *words, rabbitmq=rabbitmq)
    assert max(each["on"] for each in done.rounds) <= 3 + 3, [each["wanted"] for each in done.rounds]
    assert max(each["wanted"] for each in done.rounds) <= 3 + 3


def test_a_command_that_ends_at_once_is_started_a_few_times_only(rabbitmq: str, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = tmp_path / "ends.sh"
    script.write_text(f"#!/bin/sh\necho x >> {count}\n")
    script.chmod(0o755)
    words = ("--stage", f"a=none-{secrets.token_hex(4)},1,1,{script}", "--period", "0.1")
    done = control_until(
        lambda rounds: len(rounds) >= 20 and count.exists() and count.read_text().count("x") >= 2,
        *words,
        rabbitmq=rabbitmq,
    )
    assert count.read_text().count("x") <= len(done.rounds) / 4, "no pauses between the starts"
    assert done.said.count("ends as soon as it starts") == 1
    assert done.said.count("does not exist; its size is held") == 1
