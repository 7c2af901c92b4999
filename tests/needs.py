"""What tests need of the machine: skipped where it is not there, failed where CI=true, whose machine must have it.

The few skips that hold under CI too stand in `tests/house/test_skips.py`, each with its reason.
"""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from typing import Any, NoReturn

import pytest

__all__ = ["in_ci", "missing", "needs", "package", "program", "without_root"]


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


def missing(words: str) -> NoReturn:
    """Something that the test needs is not there."""
    if in_ci():
        pytest.fail(words)
    pytest.skip(words)


def needs(is_there: bool, words: str) -> pytest.MarkDecorator:
    """A mark for tests that need something; under CI they run without it, and fail."""
    return pytest.mark.skipif(not is_there and not in_ci(), reason=words)


def package(name: str) -> Any:
    """A module of a package that the development extra installs."""
    try:
        return import_module(name)
    except ImportError:
        missing(f"{name} is not installed: pip install 'levada[dev]'")


def program(name: str) -> str:
    """The path of a program that tests/servers/install.sh installs."""
    found = shutil.which(name)
    return found or missing(f"{name} is not installed: run tests/servers/install.sh as root, or install it yourself")


def without_root() -> list[str]:
    """What to put before a command so that closed folders are closed: root gives its right away first."""
    if os.geteuid() != 0:
        return []
    return [program("setpriv"), "--bounding-set", "-dac_override,-dac_read_search"]
