"""Main module of a sender child: sends messages by mail or Apprise, and dials only what the address guard allows.

The parent writes one request per line, and gets one answer per line; the child ends when its input does. A third
party's code runs here (Apprise has a module for each of a hundred services), so an audit hook watches it: it may
connect to the addresses that the guard allows, and may not start programs, write files, or read files other than
those of Python and of TLS. The hook is not a wall against code that wants to get around it; it holds against a target
that was set up wrongly or with bad intent.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import smtplib
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

import msgspec

from levada.core.processes import leave_signals_to_parent
from levada.core.subscriptions import MAIL
from levada.fetch.guard import AddressGuard
from levada.follow.notify.targets import MAIL_PORTS, MailTarget, mail_target, without_secrets

_MEMORY = 1 << 30
_SAID = 300  # characters kept of what a server says
_SOCKET_SECONDS = 20.0
_PROGRAMS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
_DIALLED = ("socket.connect", "socket.sendto", "socket.sendmsg")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READABLE = (
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share",
    "/usr/lib",
    "/usr/local/lib",
    "/dev/null",
    "/dev/urandom",
)
_READABLE_FILES = ("/etc/mime.types", "/etc/hosts", "/etc/resolv.conf", "/etc/localtime")


class SenderSetup(msgspec.Struct, frozen=True):
    """What a child is told first."""

    kind: str
    url: str
    allow: tuple[str, ...] = ()
    ca_file: str = ""
    seconds: float = 30.0


class SendRequest(msgspec.Struct, frozen=True):
    """A message, with what a target can show of it; without an id only the target is checked."""

    id: str
    created: float = 0.0
    title: str = ""
    text: str = ""
    html: str = ""
    changes: tuple[str, ...] = ()


class SendAnswer(msgspec.Struct, frozen=True):
    """The server's own words, or why the message was not taken."""

    said: str = ""
    trouble: str = ""


class NotSent(Exception):
    """The target did not take the message; the text says why."""


class AddressNotAllowed(PermissionError):
    pass


def watch(guard: AddressGuard, readable: tuple[str, ...]) -> None:
    """Refuse what a sender has no business doing, for the rest of this process."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _DIALLED:
            address = arguments[-1] if event != "socket.connect" else arguments[1]
            if address is not None:
                _check_address(guard, address)
        elif event == "open":
            _check_file(arguments[0], arguments[2] if len(arguments) > 2 else 0, readable)
        elif event in _PROGRAMS:
            raise PermissionError("a target may not start programs on this machine")

    sys.addaudithook(hook)


def _check_address(guard: AddressGuard, address: Any) -> None:
    if not isinstance(address, tuple) or len(address) < 2:
        raise AddressNotAllowed("a target may not connect to programs on this machine")
    why = guard.refuses(str(address[0]), int(address[1]))
    if why is not None:
        raise AddressNotAllowed(f"{why} Name it in the setting guard.allow if it is meant.")


def _check_file(path: Any, flags: Any, readable: tuple[str, ...]) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a descriptor that is open already
    name = os.path.realpath(os.fsdecode(path))
    if name == "/dev/null":
        return
    if isinstance(flags, int) and flags & _WRITING:
        raise PermissionError("a target may not write files on this machine")
    if not name.startswith(readable):
        raise PermissionError("a target may not read files of this machine")


def mail(target: MailTarget, request: SendRequest) -> EmailMessage:
    """The message as mail. Its id is the same whenever it is sent again."""
    made = EmailMessage(policy=SMTP)
    made["From"] = Address("Levada", addr_spec=target.sender)
    made["To"] = ", ".join(target.recipients)
    made["Subject"] = request.title
    made["Date"] = format_datetime(datetime.fromtimestamp(request.created, UTC))
    made["Message-ID"] = f"<{request.id}@{target.sender.partition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    made["X-Levada-Changes"] = " ".join(request.changes)
    made.set_content(request.text)
    made.add_alternative(request.html, subtype="html")
    return made


class MailSender:
    """One SMTP connection, kept for the next message."""

    def __init__(self, target: MailTarget, ca_file: str, seconds: float) -> None:
        self._target = target
        self._tls = ssl.create_default_context(cafile=ca_file or None)
        self._seconds = seconds
        self._line: smtplib.SMTP | None = None

    def send(self, request: SendRequest) -> str:
        made = mail(self._target, request)
        try:
            line = self._connected()
            code, said = line.mail(self._target.sender)
            if code != 250:
                raise NotSent(f"the server takes no mail from {self._target.sender}: {code} {_said(said)}")
            for each in self._target.recipients:
                code, said = line.rcpt(each)
                if code not in (250, 251):
                    raise NotSent(f"the server does not deliver to {each}: {code} {_said(said)}")
            code, said = line.data(made.as_bytes())
            if code != 250:
                raise NotSent(f"the server refused the message: {code} {_said(said)}")
            return f"{code} {_said(said)}"
        except NotSent:
            self._drop()
            raise
        except smtplib.SMTPResponseException as error:
            self._drop()
            raise NotSent(f"the server answered {error.smtp_code} {_said(error.smtp_error)}") from None
        except smtplib.SMTPException as error:
            self._drop()
            raise NotSent(f"the mail server {self._place}: {error}") from None
        except AddressNotAllowed as error:
            raise NotSent(str(error)) from None
        except OSError as error:
            self._drop()
            raise NotSent(f"the mail server {self._place} cannot be reached: {error.strerror or error}") from None

    @property
    def _place(self) -> str:
        return f"{self._target.host}:{self._target.port}"

    def _connected(self) -> smtplib.SMTP:
        if self._line is not None:
            with suppress(smtplib.SMTPException, OSError):
                if self._line.noop()[0] == 250:
                    return self._line
            self._drop()
        target = self._target
        at_once = target.tls and target.port == 465
        line = (
            smtplib.SMTP_SSL(
                target.host, target.port, timeout=self._seconds, context=self._tls, local_hostname="levada"
            )
            if at_once
            else smtplib.SMTP(target.host, target.port, timeout=self._seconds, local_hostname="levada")
        )
        self._line = line
        line.ehlo_or_helo_if_needed()
        secure = at_once
        if not at_once and line.has_extn("starttls"):
            line.starttls(context=self._tls)
            line.ehlo()
            secure = True
        if target.tls and not secure:
            raise NotSent(f"{self._place} offers no TLS, which mailtos:// asks for: write mailto:// to do without")
        if target.password:
            if not secure and line.sock is not None and line.sock.getpeername()[0] not in ("127.0.0.1", "::1"):
                raise NotSent(f"{self._place} offers no TLS, and a password is never sent without it")
            line.login(target.user, target.password)
        return line

    def _drop(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()


class AppriseSender:
    """Any service that Apprise knows."""

    def __init__(self, url: str, seconds: float) -> None:
        import apprise

        self._heard = _Heard()
        logging.getLogger("apprise").addHandler(self._heard)
        logging.getLogger("apprise").setLevel(logging.INFO)
        self._format = apprise.NotifyFormat.TEXT
        self._apprise = apprise.Apprise(
            asset=apprise.AppriseAsset(secure_logging=True, app_id="Levada", async_mode=False)
        )
        if not self._apprise.add(url):
            scheme = url.partition("://")[0].lower()
            if scheme not in apprise.NotificationManager():  # type: ignore[no-untyped-call]
                raise NotSent(f"Apprise knows no service {scheme[:50]}")
            raise NotSent(
                f"Apprise does not understand this target: {self._heard.last or 'check how its service is written'}"
            )

    def send(self, request: SendRequest) -> str:
        self._heard.last = ""
        if not self._apprise.notify(body=request.text, title=request.title, body_format=self._format):
            raise NotSent(self._heard.last or "the service did not take the message")
        return "sent"


class _Heard(logging.Handler):
    """The last thing that Apprise has logged: it is how it says why."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING or not self.last:
            self.last = record.getMessage()[:_SAID]


def _said(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
    return " ".join(text.split())[:_SAID]


def main() -> None:
    leave_signals_to_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no answer
    setup = msgspec.json.decode(source.readline(), type=SenderSetup)
    send: Callable[[SendRequest], str] | None = None
    for row in source:
        request = msgspec.json.decode(row, type=SendRequest)
        signal.setitimer(signal.ITIMER_REAL, 2 * setup.seconds)  # a parent that was killed cannot end it
        signal.setitimer(signal.ITIMER_PROF, setup.seconds)
        try:
            if send is None:
                send = _sender(setup)
            answer = SendAnswer(said=send(request) if request.id else "understood")
        except NotSent as error:
            answer = SendAnswer(trouble=str(error))
        except Exception as error:  # of a library
            answer = SendAnswer(trouble=f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        clean = SendAnswer(
            without_secrets(answer.said, setup.url)[:_SAID], without_secrets(answer.trouble, setup.url)[:_SAID]
        )
        answers.write(msgspec.json.encode(clean) + b"\n")


def _sender(setup: SenderSetup) -> Callable[[SendRequest], str]:
    """The sender; from here on the process is watched."""
    places = (*_READABLE, *_READABLE_FILES, setup.ca_file, sys.prefix, sys.base_prefix, *filter(None, sys.path))
    readable = tuple(os.path.realpath(each) for each in places if each)
    if setup.kind == MAIL:
        made = MailSender(mail_target(setup.url), setup.ca_file, min(setup.seconds, _SOCKET_SECONDS))
        watch(AddressGuard(setup.allow, ports=MAIL_PORTS), readable)
        return made.send
    import apprise  # noqa: F401 -- before it is watched: importing may ask the machine for more

    watch(AddressGuard(setup.allow), readable)
    return AppriseSender(setup.url, setup.seconds).send


if __name__ == "__main__":
    main()
