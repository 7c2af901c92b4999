"""The unit files for systemd: valid, hardened, and their commands behave as a service should."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from levada.demo.child import Web, serving
from tests.house.tree import HOUSE
from tests.needs import needs
from tests.story.commands import contents
from tests.story.guides import guide_commands

UNITS = sorted((HOUSE / "deploy" / "systemd").iterdir())
PROGRAM = "/opt/levada/bin/levada"
OURS = Path(sys.executable).parent / "levada"
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSED = 30  # of 100, where 100 is a service that may do anything
SECONDS = 60.0

Unit = dict[str, list[str]]


def unit(name: str) -> Unit:
    """The settings of a unit; several of one name follow each other."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in (HOUSE / "deploy" / "systemd" / name).read_text(encoding="utf-8").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found[key].append(value)
    return found


def seconds(text: str) -> float:
    for ending, each in (("min", 60.0), ("", 1.0)):
        if text.endswith(ending):
            return float(text.removesuffix(ending)) * each
    raise ValueError(text)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "500", "--pages", "40", "--no-hostile") as running:
        yield running


class Running:
    """A unit's main process, started and watched as systemd does it."""

    def __init__(self, name: str, machine: Path, *more: str) -> None:
        self.unit = unit(name)
        (machine / "state" / "levada").mkdir(parents=True, exist_ok=True)
        configuration = machine / "etc"
        variables = dict(
            line.split("=", 1) for line in (configuration / "environment").read_text(encoding="utf-8").splitlines()
        )
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.line.bind(str(machine / "notify"))
        self.line.settimeout(SECONDS)
        words: list[str] = []
        for word in shlex.split(self.unit["ExecStart"][0]):
            if word.startswith("$"):
                words += variables.get(word[1:], "").split()
            else:
                words.append(word.replace(PROGRAM, str(OURS)).replace("%S", str(machine / "state")))
        limit = round(seconds(self.unit["WatchdogSec"][0]) * 1e6) if self.unit["WatchdogSec"] else 0
        told = {"NOTIFY_SOCKET": str(machine / "notify"), "WATCHDOG_USEC": str(limit)}
        self.process = subprocess.Popen(
            [*words, *more],
            cwd=configuration,
            env={"PATH": os.environ["PATH"], **variables, **(told if self.unit["Type"] == ["notify"] else {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def said(self) -> str:
        return self.line.recv(1000).decode()

    def stopped(self) -> int:
        """As `systemctl stop` does it: the signal of the unit to the main process, and a limit."""
        self.process.send_signal(getattr(signal, self.unit["KillSignal"][0]))
        self.process.communicate(timeout=seconds(self.unit["TimeoutStopSec"][0]))
        return self.process.returncode

    def is_success(self, status: int) -> bool:
        known = " ".join(self.unit["SuccessExitStatus"]).split()
        return status == 0 or str(status) in known or str(128 - status) in known


@contextmanager
def running(name: str, machine: Path, *more: str) -> Iterator[Running]:
    service = Running(name, machine, *more)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            os.killpg(service.process.pid, signal.SIGKILL)
            service.process.communicate()
        service.line.close()
        (machine / "notify").unlink()


@pytest.fixture
def machine(web: Web, tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    shutil.copy(web.config, tmp_path / "etc" / "levada.toml")
    start = f"LEVADA_START={' '.join(web.start)}\n"
    (tmp_path / "etc" / "environment").write_text(start, encoding="utf-8")
    return tmp_path


@needs(ANALYZE is not None, "systemd-analyze is not installed: run tests/servers/install.sh as root")
def test_systemd_accepts_the_units_and_finds_them_hardened(tmp_path: Path) -> None:
    for path in UNITS:
        text = path.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    assert ANALYZE is not None
    done = subprocess.run(
        [ANALYZE, "verify", *map(str, sorted(tmp_path.iterdir()))], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for path in UNITS:
        if path.suffix == ".service":
            looked = subprocess.run(
                [ANALYZE, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(tmp_path / path.name)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert looked.returncode == 0, looked.stdout


def test_every_unit_runs_the_program_of_the_guide() -> None:
    guide = " ".join(guide_commands("systemd"))
    services = [path for path in UNITS if path.suffix == ".service"]
    assert len(services) == 3
    assert all(unit(path.name)["ExecStart"][0].startswith(f"{PROGRAM} ") for path in services)
    assert "/opt/levada" in guide
    assert "deploy/systemd" in guide


def test_the_crawl_is_ready_alive_and_ends_in_good_order(machine: Path) -> None:
    collection = machine / "state" / "levada" / "collection"
    for _ in range(2):  # started again, it goes on
        with running("levada.service", machine) as service:
            assert service.said() == "READY=1"
            assert collection.joinpath("levada.db").exists()
            assert service.said() == "WATCHDOG=1"
            while not contents(collection):
                time.sleep(0.1)
            status = service.stopped()
            assert service.is_success(status)
            words = service.said()
            while words == "WATCHDOG=1":
                words = service.said()
            assert words == "STOPPING=1"


def test_a_killed_service_goes_on(machine: Path) -> None:
    with running("levada.service", machine) as service:
        assert service.said() == "READY=1"
        service.process.kill()
        service.process.communicate()
        assert not service.is_success(service.process.returncode)
    with running("levada.service", machine) as service:
        assert service.said() == "READY=1"
        assert service.is_success(service.stopped())


def test_a_wrong_setting_is_not_tried_again_and_again(machine: Path) -> None:
    (machine / "etc" / "levada.toml").write_text('[revisit]\nfloor = "soon"\n', encoding="utf-8")
    with running("levada.service", machine) as service:
        _, trouble = service.process.communicate(timeout=SECONDS)
        assert "revisit.floor" in trouble
        for name in ("levada.service", "levada-serve.service"):
            assert unit(name)["RestartPreventExitStatus"] == [str(service.process.returncode)]


def test_the_dashboard_is_ready_when_it_answers(machine: Path) -> None:
    with running("levada-serve.service", machine, "--port", "0", "--json") as service:
        assert service.said() == "READY=1"
        assert service.process.stdout is not None
        url = service.process.stdout.readline().split('"url":"')[1].split('"')[0]
        with urlopen(f"{url}api/v1/status", timeout=20) as answer:
            assert answer.status == 200
        assert service.said() == "WATCHDOG=1"
        assert service.is_success(service.stopped())
        words = service.said()
        while words == "WATCHDOG=1":
            words = service.said()
        assert words == "STOPPING=1"


def test_the_hourly_run_visits_what_is_due_and_ends(machine: Path) -> None:
    assert unit("levada-once.timer")["OnCalendar"] == ["hourly"]
    for _ in range(2):
        with running("levada-once.service", machine) as service:
            out, trouble = service.process.communicate(timeout=SECONDS)
            assert service.is_success(service.process.returncode), out + trouble
    assert contents(machine / "state" / "levada" / "collection")


def test_only_one_crawl_runs_at_a_time() -> None:
    assert unit("levada.service")["Conflicts"] == ["levada-once.service"]
    assert unit("levada-once.service")["Conflicts"] == ["levada.service"]
