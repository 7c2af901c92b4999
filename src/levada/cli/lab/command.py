"""`levada lab`."""

from __future__ import annotations

from levada.cli.app import make_family
from levada.cli.lab.freshness import freshness
from levada.cli.lab.grouping import grouping
from levada.cli.lab.noise import noise
from levada.cli.lab.reading import reading
from levada.cli.lab.search import search
from levada.cli.lab.sharding import sharding
from levada.cli.lab.stages import stages


def lab() -> None:
    """Reruns the tables of the sources, and ours beside them.

    Examples:

    ```
    levada lab freshness
    levada lab grouping --json
    ```
    """


family = make_family(lab, freshness, grouping, stages, sharding, reading, noise, search, no_args_is_help=True)
