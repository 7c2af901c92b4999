"""The proxy passes everything on unchanged, and records every query once.

There is no MongoDB here: pymongo talks through the proxy to a responder that speaks the wire protocol by script.
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from levada.capture.mongodb.capture_child import CaptureOptions
from levada.capture.mongodb.conversation import CaptureCounts, CaptureReading, queries_in_pcap
from levada.capture.mongodb.proxy import Proxy, TrafficCapture
from levada.core.clock import SystemClock
from tests.capture.captured_packets import pcap, segments_of
from tests.capture.mongodb_responder import Recorder, Responder, msg
from tests.capture.mongodb_traffic import ask_many, logged, told, without_origin
from tests.needs import needs

OPERATIONS = int(os.environ.get("LEVADA_OPERATIONS", "10000"))  # of all four tests together


@contextmanager
def capturing(port: int, out: Path, *options: str, code: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """The command itself, before this port; its report when it has been interrupted."""
    command = [sys.executable, "-m", "levada", "shard", "capture", "mongo", "--json", "--listen", "0"]
    running = subprocess.Popen(
        [*command, "--to", f"127.0.0.1:{port}", "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    report: dict[str, Any] = {}
    try:
        assert running.stderr is not None
        line = running.stderr.readline()
        assert "passes on to" in line, line + running.stderr.read()
        yield int(line.split()[0].rpartition(":")[2]), report
        running.send_signal(signal.SIGINT)
        said, trouble = running.communicate(timeout=60)
        report.update(msgspec.json.decode(said), trouble=trouble)
        assert running.returncode == code, trouble
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


@pytest.mark.parametrize("compressor", [None, "zlib", "snappy", "zstd"])
def test_every_operation_is_logged_once_and_passed_on_unchanged(compressor: str | None, tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    with Responder.running((compressor,) if compressor else ()) as server:
        with capturing(server.port, log) as (port, report), Recorder.running(port) as wire:
            asked = ask_many(wire.port, OPERATIONS // 4, compressor)
        received, sent = sorted(map(bytes, server.received)), sorted(map(bytes, server.sent))
        assert "find" in server.commands
    said, heard = sorted(map(bytes, wire.said)), sorted(map(bytes, wire.heard))
    assert told(logged(log)) == asked
    assert _is_passed_on(said, received)
    assert _is_passed_on(heard, sent)
    assert report["losses"] == []
    assert report["lost_bytes"] == report["heard"]["gaps"] == 0
    _check_that_a_pcap_gives_the_same(list(map(bytes, wire.said)), log, compressor)


def _is_passed_on(here: list[bytes], there: list[bytes]) -> bool:
    """Whether the bytes of each connection are the same. A heartbeat may be under way when the capture ends."""
    longest = max(map(len, here))

    def same(one: bytes, other: bytes) -> bool:
        return one == other or (len(one) < longest and (one.startswith(other) or other.startswith(one)))

    return len(here) == len(there) and all(map(same, here, there))


def test_clients_at_the_same_time_are_kept_apart(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    with (
        Responder.running(("zlib",)) as server,
        capturing(server.port, log) as (port, _),
        ThreadPoolExecutor(6) as clients,
    ):
        asked = list(clients.map(ask_many, [port] * 6, [120] * 6, [None, "zlib"] * 3))
    assert Counter(told(logged(log))) == Counter(each for client in asked for each in client)


def _check_that_a_pcap_gives_the_same(streams: list[bytes], log: Path, compressor: str | None) -> None:
    """The recorded bytes cut into segments, of which some come twice and some too late."""
    chance = random.Random(1)
    packets: list[bytes] = []
    for place, stream in enumerate(streams):
        cut = segments_of(stream, [1448, 33, 700], port=50_000 + place)
        for at in range(1, len(cut) - 2):
            if chance.random() < 0.2:
                cut[at], cut[at + 1] = cut[at + 1], cut[at]
        packets += [each for packet in cut for each in [packet] * (1 + (chance.random() < 0.1))]
    reading = CaptureReading(CaptureCounts())
    found = list(queries_in_pcap(io.BytesIO(pcap(packets)), 27_017, reading))
    assert without_origin(found) == without_origin(logged(log))
    assert reading.missing == 0
    assert reading.heard.unreadable == {}


@needs(shutil.which("tshark") is not None, "tshark is not installed: run tests/servers/install.sh as root")
def test_what_tshark_records_gives_the_same_log(tmp_path: Path) -> None:
    log, file = tmp_path / "queries.jsonl", tmp_path / "traffic.pcapng"
    with (
        Responder.running(("zstd",)) as server,
        capturing(server.port, log) as (port, _),
        recording(file, server.port),
    ):
        asked = ask_many(port, 200, "zstd")
    reading = CaptureReading(CaptureCounts())
    with file.open("rb") as opened:
        found = list(queries_in_pcap(opened, server.port, reading))
    assert told(found) == asked
    assert without_origin(found) == without_origin(logged(log))


@contextmanager
def recording(file: Path, port: int) -> Iterator[None]:
    """tshark, from when it surely records until it surely has recorded: marks sent to a port beside tell."""
    with socket.create_server(("127.0.0.1", 0)) as beside:
        mark = beside.getsockname()[1]
        command = ["tshark", "-i", "lo", "-f", f"tcp port {port} or tcp port {mark}", "-w", str(file)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not _is_marked(running, file, beside, b"the recording has begun"):
                pytest.skip("only who may capture packets can, and a container may not allow it")
            yield
            assert _is_marked(running, file, beside, b"the recording may end")
        finally:
            running.terminate()
            running.wait(30)


def _is_marked(running: subprocess.Popen[bytes], file: Path, beside: socket.socket, words: bytes) -> bool:
    clock = SystemClock()
    deadline = clock.monotonic() + 30
    while running.poll() is None and clock.monotonic() < deadline:
        with socket.create_connection(beside.getsockname()) as client, beside.accept()[0] as other:
            client.sendall(words)
            other.recv(100)
        if file.exists() and words in file.read_bytes():
            return True
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
    return False


def test_sampling_writes_a_share_and_rotation_keeps_what_it_should(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    with Responder.running() as server:
        options = ["--sample", "0.5", "--rotate", "10KB", "--keep", "2", "--values", "drop"]
        with capturing(server.port, log, *options) as (port, report):
            asked = ask_many(port, 600)
    written = report["written"]
    assert written["queries"] + written["sampled_out"] == len(asked)
    assert 0.4 < written["queries"] / len(asked) < 0.6
    assert sorted(path.name for path in tmp_path.iterdir()) == [log.name, f"{log.name}.1", f"{log.name}.2"]
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert all(not each.values for query in logged(log) for each in _conditions(query))


def _conditions(query: Any) -> list[Any]:
    from levada.sharding.queries import conditions

    return [each for each in conditions(query.filter) if each.operator != "exists"]


def test_a_full_disk_stops_no_traffic_and_is_said(tmp_path: Path) -> None:
    with Responder.running() as server:
        with capturing(server.port, Path("/dev/full")) as (port, report):
            ask_many(port, 50)
        assert len(server.commands) >= 50
    assert report["unwritten"] >= 50
    assert any("No space left" in words for words in report["losses"])
    assert report["partial"] is True


def test_tls_is_passed_on_undecoded_and_said_once(tmp_path: Path) -> None:
    hello = b"\x16\x03\x01\x02\x00\x01 hello in secret"
    log = tmp_path / "queries.jsonl"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        capturing(server.getsockname()[1], log, code=3) as (port, report),
    ):
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(hello)
                with server.accept()[0] as behind:
                    assert behind.recv(100) == hello
    assert report["heard"]["encrypted"] == 2
    assert report["heard"]["gaps"] == 0
    assert [words for words in report["losses"] if "TLS" in words]


class _Copies:
    def __init__(self) -> None:
        self.said = b""
        self.closed = asyncio.Event()

    def observe(self, connection: int, data: bytes) -> None:
        self.said += data

    def close_connection(self, connection: int) -> None:
        self.closed.set()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_much_goes_through_and_one_side_may_end_before_the_other(run: Any) -> None:
    """The server behind reads to the end before it answers: nobody may wait for ever, nothing may be cut off."""
    much = random.Random(1).randbytes(20_000_000)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(-1))[::-1])
        await writer.drain()
        writer.close()

    async def story() -> None:
        behind = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 16)
        capture = _Copies()
        proxy = Proxy("127.0.0.1", behind.sockets[0].getsockname()[1], capture)
        reader, writer = await asyncio.open_connection("127.0.0.1", await proxy.start("127.0.0.1", 0))
        writer.write(much)
        writer.write_eof()
        assert await reader.read(-1) == much[::-1]
        writer.close()
        async with asyncio.timeout(30):
            await capture.closed.wait()
        assert capture.said == much
        await proxy.stop()
        assert proxy.sides == set()
        behind.close()
        await behind.wait_closed()

    run(story())


def test_a_server_that_is_away_ends_the_connection_and_is_counted() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        proxy = Proxy("127.0.0.1", port, _Copies())
        reader, writer = await asyncio.open_connection("127.0.0.1", await proxy.start("127.0.0.1", 0))
        writer.write(b"hello?")
        with suppress(ConnectionError):
            assert await reader.read(-1) == b""
        writer.close()
        assert proxy.unreachable == 1
        await proxy.stop()

    asyncio.run(story())


class _BrokenTap:
    def observe(self, connection: int, data: bytes) -> None:
        raise RuntimeError("broken")

    def close_connection(self, connection: int) -> None:
        raise RuntimeError("broken")


def test_a_tap_that_breaks_stops_no_traffic() -> None:
    async def story(server: Any) -> int:
        proxy = Proxy("127.0.0.1", server.port, _BrokenTap())
        port = await proxy.start("127.0.0.1", 0)
        await asyncio.to_thread(ask_many, port, 30)
        await proxy.stop()
        return proxy.broken

    with Responder.running() as server:
        assert asyncio.run(story(server)) >= 30


def test_a_listener_that_dies_is_replaced_and_the_next_queries_are_heard(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    capture = TrafficCapture(CaptureOptions(str(log)), SystemClock())

    async def story() -> None:
        await capture.start()
        capture.observe(1, msg({"find": "items", "filter": {"n": 1}, "$db": "ads"}))
        await _until(lambda: capture.report().written.queries == 1)
        child = capture._child
        assert child is not None
        child.kill()
        await child.wait()
        await _until(lambda: capture.starts == 2 and capture._pipe is not None)
        capture.observe(1, b"the rest of something" + msg({"find": "items", "filter": {"n": 2}, "$db": "ads"}))
        await capture.stop()

    asyncio.run(story())
    assert told(logged(log)) == [("find", 1), ("find", 2)]
    assert capture.report().heard.gaps >= 1


def test_what_the_listener_cannot_take_is_lost_and_counted_and_never_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    capture = TrafficCapture(CaptureOptions(str(log)), SystemClock(), backlog=100_000)
    question = msg({"find": "items", "filter": {"n": 1, "text": "x" * 1000}, "$db": "ads"})

    async def story() -> None:
        await capture.start()
        assert capture._child is not None
        capture._child.send_signal(signal.SIGSTOP)
        for _ in range(1000):
            capture.observe(1, question)
        assert capture._pipe is not None
        assert capture._pipe.get_write_buffer_size() + capture._gathered_bytes <= 100_000
        capture._child.send_signal(signal.SIGCONT)
        await _until(
            lambda: capture._pipe is not None and capture._pipe.get_write_buffer_size() + capture._gathered_bytes == 0
        )
        capture.observe(1, question)
        await capture.stop()

    asyncio.run(story())
    lost = capture.lost_bytes // len(question)
    assert lost > 0
    assert len(logged(log)) == 1001 - lost


async def _until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110  another process is waited for
            await asyncio.sleep(0.01)
