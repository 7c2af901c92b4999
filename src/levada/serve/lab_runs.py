"""Runs of the laboratory on request, in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.core.durations import iso
from levada.core.errors import StoreLocked
from levada.core.processes import module_command

PROGRAM = tuple(module_command("levada", "lab"))
QUESTIONS = {
    "freshness": "When do we come back to this page?",
    "grouping": "Who gets this record?",
    "stages": "How many workers does each stage need?",
    "sharding": "Where does this document live?",
}


class ClaimFacts(msgspec.Struct, frozen=True):
    name: str
    printed: float | None
    band: tuple[float, float]
    measured: float | None
    verdict: str


class PartFacts(msgspec.Struct, frozen=True):
    part: str
    question: str
    command: str
    running: bool
    trouble: str  # of the last run
    ran_at: str | None
    claims: list[ClaimFacts]


class _Saved(msgspec.Struct):
    claims: list[ClaimFacts] = []


class Laboratory:
    """One run at a time, with what the machine has left."""

    def __init__(self, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._folder = folder
        self._running: tuple[str, subprocess.Popen[bytes]] | None = None
        self._trouble: dict[str, str] = {}

    def parts(self) -> list[PartFacts]:
        now = self.running()
        return [self._facts(part, question, part == now) for part, question in QUESTIONS.items()]

    def running(self) -> str | None:
        """What runs; what has ended since is put in its place."""
        if self._running is None:
            return None
        part, process = self._running
        if process.poll() is None:
            return part
        self._running = None
        fresh = self._path(part).with_suffix(".new")
        if process.returncode == 0:
            fresh.replace(self._path(part))
            self._trouble.pop(part, None)
        else:
            self._trouble[part] = self._words(part, process.returncode)
            fresh.unlink(missing_ok=True)
        return None

    def start(self, part: str) -> None:
        if busy := self.running():
            raise StoreLocked(f"the laboratory runs {busy} just now: wait for it")
        self._folder.mkdir(exist_ok=True)
        command = ["nice", "-n", "15", *self._program, part, "--json"]
        with self._path(part).with_suffix(".new").open("wb") as out, self._log(part).open("wb") as said:
            process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside: a part is one of four
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True
            )
        self._running = part, process

    def close(self) -> None:
        if self._running is not None:
            process = self._running[1]
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it shared its work out to
            process.wait()
            self._running = None

    def _facts(self, part: str, question: str, running: bool) -> PartFacts:
        path, claims, ran_at = self._path(part), list[ClaimFacts](), None
        with suppress(OSError, msgspec.MsgspecError):
            claims, ran_at = msgspec.json.decode(path.read_bytes(), type=_Saved).claims, iso(path.stat().st_mtime)
        return PartFacts(part, question, f"levada lab {part}", running, self._trouble.get(part, ""), ran_at, claims)

    def _words(self, part: str, status: int) -> str:
        lines: list[str] = []
        with suppress(OSError):
            lines = self._log(part).read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"it ended with status {status}"

    def _path(self, part: str) -> Path:
        return self._folder / f"{part}.json"

    def _log(self, part: str) -> Path:
        return self._folder / f"{part}.log"
