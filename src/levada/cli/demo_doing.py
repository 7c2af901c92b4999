"""What is being done while there is nothing to show yet? A line that goes when it is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from levada.cli.logs import for_machines
from levada.cli.printing import printer

__all__ = ["doing"]


@contextmanager
def doing(what: str, quiet: bool) -> Iterator[None]:
    """On standard error; a plain line that stays when piped."""
    if quiet or for_machines():
        yield
    elif sys.stderr.isatty():
        with printer(sys.stderr).status(f"{what} ..."):
            yield
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield
