"""`levada lab`: do the tables of the sources come out again, and how does ours compare?"""

from __future__ import annotations

import typer

from levada.cli import lab_freshness, lab_grouping, lab_sharding, lab_stages
from levada.cli.family import Family

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    lab = typer.Typer(cls=Family, name="lab", no_args_is_help=True)
    lab.callback()(_family)
    for module in (lab_freshness, lab_grouping, lab_stages, lab_sharding):
        module.register(lab)
    app.add_typer(lab)


def _family() -> None:
    """Reruns the tables of the sources, and ours beside them.

    Examples:

    ```
    levada lab freshness
    levada lab grouping --json
    ```
    """
