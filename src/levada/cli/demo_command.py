"""How is this program called from here? By its name, if the shell finds this one under it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["called_as"]

_NAME = "levada"


def called_as() -> str:
    """What to type before a command: `levada`, `.venv/bin/levada`, or `.venv/bin/python -m levada`."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_from_here(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    if called.name != _NAME or not called.exists() or (found and os.path.samefile(found, called)):
        return _NAME
    return _from_here(str(called))


def _from_here(program: str) -> str:
    whole = os.path.abspath(program)  # not resolved: the python of a .venv is a link out of it
    here = os.path.join(os.getcwd(), "")
    if not whole.startswith(here):
        return shlex.quote(whole)
    below = whole.removeprefix(here)
    return shlex.quote(below if os.sep in below else os.path.join(os.curdir, below))
