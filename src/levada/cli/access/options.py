"""What the commands about users and keys share: the access file, who types, and lists of names."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from levada.accounts.accounts import Accounts, Actor

AccessOption = Annotated[
    Path | None,
    typer.Option(
        "--access",
        envvar="LEVADA_ACCESS",
        metavar="FILE",
        help="Users and keys of the server; default: access.db in the first folder.",
    ),
]


def access_file(data: Path) -> Path:
    """Where a server of this folder keeps its users and keys, unless another file is named."""
    from levada.core.folder import DataFolder

    return DataFolder(data).access


def accounts_of(access: Path | None, data: Path) -> Accounts:
    """The users and keys of the server that has this access file, or this folder as its first."""
    from levada.accounts.accounts import Accounts
    from levada.core.folder import DataFolder

    if access is None:
        DataFolder(data).must_be_folder()
    return Accounts(access or access_file(data))


def by_command_line() -> Actor:
    """Who types, for the audit log."""
    from levada.accounts.accounts import Actor

    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a number without a name, as in some containers
        name = "unknown"
    return Actor(name, "command line", "this machine")
