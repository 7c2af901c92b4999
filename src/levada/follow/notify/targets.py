"""Targets of notifications: what sends to an address, and how it is shown without its secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from levada.core.errors import UsageError
from levada.core.subscriptions import APPRISE, MAIL, WEBHOOK

_MAIL_SCHEMES = ("mailto", "mailtos")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_MAILBOX = re.compile(r"[^\s@<>,;:\"()\[\]\\\x00-\x1f\x7f]+@[^\s@<>,;:\"()\[\]\\\x00-\x1f\x7f]+")
_KNOWN = {"to", "from", "name"}
_SHORTEST_SECRET = 4  # characters
_HIDDEN = "***"
MAIL_PORTS = frozenset({25, 465, 587})
"""Ports that are dialled only to send mail."""


class MailTarget(msgspec.Struct, frozen=True):
    """An SMTP server and the mailboxes that it delivers to."""

    host: str
    port: int
    user: str
    password: str
    sender: str
    recipients: tuple[str, ...]
    tls: bool  # required, from the first byte on port 465, else by STARTTLS


def kind_of(url: str) -> str:
    """What sends to this target; `UsageError` if it is no address."""
    scheme = urlsplit(_plain(url)).scheme.lower()
    if _MAILBOX.fullmatch(url):
        raise UsageError(f"{url[:100]} names no mail server: write it like 'mailto://localhost/?to={url[:100]}'")
    if not scheme or not _SCHEME.fullmatch(scheme) or "://" not in url:
        raise UsageError(
            f"'{masked(url)[:100]}' is no target: write it like mailto://mail.example:587/?to=me@example.org"
        )
    if scheme in _MAIL_SCHEMES:
        mail_target(url)
        return MAIL
    return WEBHOOK if scheme in ("http", "https") else APPRISE


def mail_target(url: str) -> MailTarget:
    """`mailto://user:password@host:port/?to=A,B&from=C`; with mailtos:// only over TLS.

    >>> mail_target("mailtos://me%40example.org:secret@smtp.example.org").recipients
    ('me@example.org',)
    """
    split = urlsplit(_plain(url))
    try:
        host, port = split.hostname or "", split.port
    except ValueError:
        raise UsageError(
            f"{masked(url)} has no valid port, or a user or password in which # is not written %23, / %2F and @ %40"
        ) from None
    if not host:
        raise UsageError(f"{masked(url)} names no server: write mailto://SERVER:PORT/?to=me@example.org")
    options = dict(parse_qsl(split.query, keep_blank_values=True))
    if wrong := sorted(options.keys() - _KNOWN):
        raise UsageError(f"{masked(url)}: '{wrong[0][:50]}' is not known; known: {', '.join(sorted(_KNOWN))}")
    if split.path not in ("", "/"):
        raise UsageError(f"{masked(url)}: nothing may stand after the server but ?to=...&from=...")
    tls = split.scheme.lower() == "mailtos"
    user = unquote(split.username or "")
    asked = options.get("to", "") or (user if "@" in user else "")
    recipients = tuple(each.strip() for each in asked.split(",") if each.strip())
    if not recipients:
        raise UsageError(f"{masked(url)} names nobody to write to: add ?to=me@example.org")
    sender = options.get("from", "") or (user if "@" in user else recipients[0])
    for address in (sender, *recipients):
        if not _MAILBOX.fullmatch(address) or not address.isascii():
            raise UsageError(f"'{address[:100]}' is no mail address: write it like me@example.org")
    password = unquote(split.password or "")
    return MailTarget(host, port or (587 if tls else 25), user, password, sender, recipients, tls)


def masked(url: str) -> str:
    """The target for people and logs: a mail server and its mailboxes, or only the service and a webhook's host."""
    scheme, separator, _ = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        return _HIDDEN
    try:
        split = urlsplit(_plain(url))
        host, port = split.hostname or "", f":{split.port}" if split.port else ""
    except ValueError:
        return f"{scheme}://{_HIDDEN}"
    place = f"[{host}]{port}" if ":" in host else f"{host}{port}"
    if scheme.lower() in _MAIL_SCHEMES:
        user = f"{split.username}:{_HIDDEN}@" if split.password else f"{split.username}@" if split.username else ""
        return f"{scheme}://{user}{place}{split.path}{'?' + split.query if split.query else ''}"
    if scheme.lower() in ("http", "https"):  # of many services the path is the secret
        hidden = _HIDDEN if split.path.strip("/") or split.query else ""
        return f"{scheme}://{f'{_HIDDEN}@' if split.username else ''}{place}/{hidden}"
    return f"{scheme}://{_HIDDEN}"


def without_secrets(text: str, url: str, *more: str) -> str:
    """A sentence of a server or a library, without any part of the target that may be a secret."""
    for secret in sorted({*_secrets(url), *more}, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _HIDDEN)
    return text


def _secrets(url: str) -> Iterator[str]:
    scheme, _, rest = url.partition("://")
    yield url
    if scheme.lower() in _MAIL_SCHEMES:
        try:
            password = urlsplit(_plain(url)).password or ""
        except ValueError:
            password = ""
        yield from (password, unquote(password), quote(unquote(password)))
        return
    split = urlsplit(_plain(url))
    host = (split.hostname or "").lower()
    for part in re.split(r"[/@:?&=#]+", rest):
        if scheme.lower() in ("http", "https") and part.lower() in (host, *host.split(".")):
            continue
        yield from (part, unquote(part))


def _plain(url: str) -> str:
    """Without what `urlsplit` would raise about, which is not for people."""
    try:
        urlsplit(url)
    except ValueError:
        return ""
    return url
