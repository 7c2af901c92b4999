"""References to secrets: where a password or token lies, instead of itself.

    env:BLOG_PASSWORD        a variable of the environment
    file:/run/secrets/blog   a file; a line break at its end does not count
    keyring:levada/blog      a service and a user name in the keyring of the system

Settings, messages between machines, exports and logs hold references only. The secret itself is read where it is
needed, each time, so a new one is used from the next request on. No error names it.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from levada.core.errors import MissingExtra, SettingsError

FORMS = '"env:NAME", "file:/path" or "keyring:service/name"'
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_BYTES = 64 * 1024
_SECRET_NAME = re.compile(
    r"(?i)passw|passphrase|secret|token|api[_-]?key|credential|authorization|cookie|session|\bpin\b|\botp\b"
)


def is_reference(text: str) -> bool:
    """Whether a value names the place of a secret, well or badly."""
    return text.startswith(("env:", "file:", "keyring:"))


def sounds_secret(name: str) -> bool:
    """Whether a header or field of this name mostly holds a secret."""
    return bool(_SECRET_NAME.search(name))


def check_reference(name: str, text: str) -> None:
    """ValueError, without the value, unless it is a reference; `name` is the key that it is for."""
    kind, _, place = text.partition(":")
    if kind == "env" and not _ENVIRONMENT.fullmatch(place):
        raise ValueError(f'{name}: "env:" takes the name of a variable, as in "env:BLOG_PASSWORD"')
    if kind == "file" and not place.startswith("/"):
        raise ValueError(f'{name}: "file:" takes a whole path, as in "file:/run/secrets/blog"')
    if kind == "keyring" and not all(place.partition("/")[::2]):
        raise ValueError(f'{name}: "keyring:" takes a service and a name, as in "keyring:levada/blog"')
    if not is_reference(text):
        raise ValueError(f"{name} takes the place of a secret, not the secret itself: write {FORMS}")


def read_secret(reference: str) -> str:
    """The secret; `SettingsError` says what is missing and what to do. A keyring may take its time."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        found = os.environ.get(place, "")
        if not found:
            raise SettingsError(f"the variable {place} is not set: set it for the process that fetches")
    elif kind == "file":
        found = _of_file(place)
    elif kind == "keyring":
        found = _of_keyring(*place.partition("/")[::2])
    else:
        raise SettingsError(f"a secret is named by its place: {FORMS}")
    if any(mark in found for mark in "\r\n\0"):
        raise SettingsError(f"the secret of {reference} has several lines: it must be one line")
    return found


def is_slow(reference: str) -> bool:
    """Whether it should be read on a thread."""
    return reference.startswith("keyring:")


def _of_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"the secret in {path} cannot be read: {error.strerror}") from None
    try:
        found = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise SettingsError(f"the secret in {path} is not text: it must be one line of UTF-8") from None
    if not found or len(content) > _MOST_BYTES:
        what = "is empty" if not found else "is too long to be a secret"
        raise SettingsError(f"the file {path} {what}: write the secret into it, in one line")
    return found


def _of_keyring(service: str, name: str) -> str:
    try:
        keyring: Any = import_module("keyring")
    except ImportError:
        raise MissingExtra("keyring", "keyring") from None
    try:
        found = keyring.get_password(service, name)
    except keyring.errors.KeyringError as error:
        raise SettingsError(
            f"the keyring cannot be read ({type(error).__name__}): unlock it, or use env: or file:"
        ) from None
    if not found:
        raise SettingsError(
            f"the keyring has no secret for {service}/{name}: store it with 'keyring set {service} {name}'"
        )
    return str(found)
