"""What if a command is started with its output closed? Nobody reads it then, and nothing else may get its place.

The next file that is opened gets the lowest free number: a database under the number of standard output would be
written to by whatever prints.
"""

from __future__ import annotations

import os
import sys

__all__ = ["open_missing_streams"]


def open_missing_streams() -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_nowhere(number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def _open_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:  # else it got the number by itself
        os.dup2(nowhere, number)
        os.close(nowhere)
