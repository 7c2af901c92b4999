"""`levada keys`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.access.options import AccessOption, accounts_of, by_command_line
from levada.cli.app import make_family
from levada.cli.options import DataOption, JsonOption, print_found, print_json, print_result, split_names
from levada.cli.terminal import printer, say
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.accounts.records import KeyInfo

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What to call the key.")]
_DATA = Path("levada-data")
_DURATION = re.compile(r"(\d{1,6})([mhdwy])")
_SECONDS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}


def keys() -> None:
    """Makes keys for programs and search boxes: each has scopes, may expire, and can be revoked.

    Examples:

    ```
    levada keys add deploy --scope control --expires 90d
    levada keys list
    levada keys revoke deploy
    ```
    """


def add(
    name: NameArgument,
    scope: Annotated[
        str, typer.Option(metavar="SCOPES", help="search, read, metrics, control, admin; several by commas.")
    ] = "read",
    expires: Annotated[str, typer.Option(metavar="TIME", help="When it ends: 12h, 90d, 1y; default: never.")] = "",
    collection: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this collection of the server; may be repeated.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Pages of this site may use it: https://blog.example; may be repeated."),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10**6,
            metavar="N",
            help="Requests a minute from one address; 0: any; default: 120 for search only.",
        ),
    ] = None,
    results: Annotated[
        int | None,
        typer.Option(
            min=0, max=10_000, metavar="N", help="Search results that it reaches; default: 50 for search only."
        ),
    ] = None,
    access: AccessOption = None,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Makes a key and prints it, once. Programs send it as `Authorization: Bearer KEY`.

    Examples:

    ```
    levada keys add reports --scope read --expires 90d
    levada keys add prometheus --scope metrics
    levada keys add blog --scope search --origin https://blog.example.org
    ```
    """
    from levada.accounts.accounts import KeyOptions

    options = KeyOptions(
        scopes=split_names(scope),
        collections=collection or (),
        origins=origin or (),
        seconds=lifetime(expires) if expires else None,
        rate=rate,
        results=results,
    )
    with closing(accounts_of(access, data)) as accounts:
        key, secret = accounts.add_key(name, options, by_command_line())
    if json:
        print_json({"key": key, "secret": secret, "access": str(accounts.path)})
        return
    out = printer()
    out.print(secret)
    out.print(f"This is the key '{key.name}', shown only now: {_about(key)}")


def lifetime(text: str) -> float:
    """The seconds of a duration such as 90d."""
    found = _DURATION.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"--expires takes a duration such as 12h, 90d or 1y, not {text[:50]!r}")
    return int(found[1]) * _SECONDS[found[2]]


def list_(access: AccessOption = None, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Lists the keys: what each may do, and until when.

    Examples:

    ```
    levada keys list
    levada keys list --json
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        found = accounts.keys()
    nothing = f"there is no key in {accounts.path}: levada keys add NAME"
    print_found(json, {"keys": found}, found, nothing, _show, found)


def revoke(name: NameArgument, access: AccessOption = None, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Revokes a key: the next request with it is refused.

    Examples:

    ```
    levada keys revoke deploy
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        accounts.revoke_key(name, by_command_line())
    print_result(json, {"revoked": name}, say, f"the key '{name}' is revoked")


def _show(found: Sequence[KeyInfo]) -> None:
    out = printer()
    wide = max(len(each.name) for each in found)
    for each in found:
        out.print(f"{each.name:<{wide}}  {_about(each)}")


def _about(key: KeyInfo) -> str:
    parts = [", ".join(key.scopes)]
    if key.collections:
        parts.append(f"only for {', '.join(key.collections)}")
    if key.origins:
        parts.append(f"for pages of {', '.join(key.origins)}")
    if key.rate:
        parts.append(f"{key.rate:,} requests a minute from one address")
    if key.results:
        parts.append(f"the first {key.results:,} results")
    end = (key.expires or "").partition("T")[0]
    parts.append(f"expired on {end}" if key.expired else f"until {end}" if end else "never expires")
    return "; ".join(parts)


list_.__name__ = "list"
family = make_family(keys, add, list_, revoke, no_args_is_help=True)
