"""Folders as exports write them: whole or not at all, with names that come from addresses."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from levada.core.errors import UsageError
from levada.core.files import draft_of

UNSAFE = re.compile(r"[^a-z0-9.\-]")


def readable_name(text: str) -> str:
    """The beginning of a file name that stays in its folder and that no other text has."""
    safe = UNSAFE.sub("_", text[:80]).lstrip(".") or "_"
    if safe == text:
        return safe
    return f"{safe}-{short_digest(text)}"


def short_digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


@contextmanager
def whole_folder(folder: Path, is_ours: Callable[[Path], bool], *, force: bool) -> Iterator[Path]:
    """A draft folder that becomes `folder` if the block succeeds, and is removed otherwise.

    With `force` it replaces an earlier export: a folder in which `is_ours` is true of everything.
    """
    folder = folder.absolute()
    _refuse_existing(folder, is_ours, force)
    draft = draft_of(folder)
    draft.mkdir(parents=True)
    try:
        yield draft
        old = draft_of(folder, "old")
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse_existing(folder: Path, is_ours: Callable[[Path], bool], force: bool) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name one that can hold an export")
    names = list(folder.iterdir())
    if names and not force:
        raise UsageError(f"{folder} is not empty: name another folder, or add --force to replace an earlier export")
    if not all(is_ours(each) for each in names):
        raise UsageError(f"{folder} contains more than an earlier export: name another folder")
