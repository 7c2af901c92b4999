"""Is there what the laboratory calculates with?"""

from __future__ import annotations

from importlib.util import find_spec

from levada.errors import MissingExtra

__all__ = ["require"]


def require(*packages: str) -> None:
    """Say what to install, before anything has been done."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, "lab")
