"""A mail server of one's own: an SMTP server in a child process that takes, refuses, hangs and dies by a plan.

It writes each message to a file before it answers, as a mail server does, and is started again on its port when it
has died. What it did before does not count: chance decides by the number of the message, which is in its folder too.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope

__all__ = ["BAD_DAYS", "MailServer", "mail_server"]

BAD_DAYS = ("refuse", "busy", "hang", "hang-after", "die", "die-after")
"""What it may do instead of taking a message; `-after`: once it has written it down."""


@dataclass(frozen=True)
class MailServer:
    port: int
    folder: Path

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def target(self, options: str = "to=me@example.org") -> str:
        return f"mailto://{self.place}/?{options}"

    def mails(self) -> list[EmailMessage]:
        """All that it has written down, in its order; a message that was sent twice is there twice."""
        found = sorted(self.folder.glob("*.eml"))
        return [message_from_bytes(each.read_bytes(), policy=policy.default) for each in found]

    def tries(self) -> int:
        """How often somebody began to send a message."""
        return sum(each.stat().st_size for each in self.folder.glob("tries-*"))


@contextmanager
def mail_server(
    folder: Path, bad_days: Sequence[str] = (), one_in: int = 0, refused: Sequence[int] = (), port: int = 0
) -> Iterator[MailServer]:
    """A server that goes on after it dies.

    Of `one_in` messages one meets one of the bad days; of each recipient the `refused` tries are refused, the first
    being 1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = json.dumps({"bad_days": list(bad_days), "one_in": one_in, "refused": list(refused)})
    running, ending = _started(folder, port, plan), Event()
    assert running.stdout is not None
    port = int(running.stdout.readline())

    def keep_up() -> None:
        nonlocal running
        while True:
            running.wait()
            if ending.is_set():
                return
            if running.stdout is not None:
                running.stdout.close()
            running = _started(folder, port, plan)

    keeper = Thread(target=keep_up, name="keeper of the mail server", daemon=True)
    keeper.start()
    try:
        yield MailServer(port, folder)
    finally:
        ending.set()
        while keeper.is_alive():
            running.kill()
            keeper.join(0.1)
        if running.stdout is not None:
            running.stdout.close()


def _started(folder: Path, port: int, plan: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.servers.mail", str(folder), str(port), plan]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


class Handler:
    """One message at a time, as Levada sends them to one target."""

    def __init__(self, folder: Path, bad_days: Sequence[str], one_in: int, refused: Sequence[int]) -> None:
        self._folder, self._bad_days, self._one_in, self._refused = folder, bad_days, one_in, refused

    def _day(self, address: str) -> str:
        tries = self._folder / f"tries-{address}"
        with tries.open("ab") as file:
            file.write(b".")
        number = tries.stat().st_size
        if number in self._refused:
            return "refuse"
        chance = Random(number)
        return chance.choice(self._bad_days) if self._one_in and not chance.randrange(self._one_in) else ""

    async def handle_RCPT(self, _server: SMTP, session: Any, envelope: Envelope, address: str, _options: Any) -> str:
        session.today = self._day(address)
        if session.today == "busy":
            return "450 4.2.1 this mailbox is busy"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 that is right"

    async def handle_DATA(self, _server: SMTP, session: Any, envelope: Envelope) -> str:
        today = session.today
        if today == "refuse":
            return "451 4.3.0 try again later"
        if today == "die":
            os._exit(1)
        if today == "hang":
            await asyncio.sleep(3600)
        content = envelope.content
        assert isinstance(content, bytes)
        found = re.search(rb"(?im)^Message-ID:\s*<(\w+)", content)
        fresh = self._folder / "fresh"
        fresh.write_bytes(content)
        number = len(list(self._folder.glob("*.eml")))
        fresh.rename(self._folder / f"{number:08}-{found[1].decode() if found else 'none'}.eml")
        if today == "die-after":
            os._exit(1)
        if today == "hang-after":
            await asyncio.sleep(3600)
        return "250 2.0.0 taken"


async def _serve(folder: Path, port: int, **plan: Any) -> None:
    handler = Handler(folder, **plan)
    loop = asyncio.get_running_loop()
    serving = await loop.create_server(lambda: SMTP(handler, hostname="mail.test"), "127.0.0.1", port)
    print(serving.sockets[0].getsockname()[1], flush=True)
    await serving.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), **json.loads(sys.argv[3])))
