"""`levada users`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.access.options import AccessOption, accounts_of, by_command_line
from levada.cli.app import make_family
from levada.cli.options import DataOption, JsonOption, print_found, print_json, print_result
from levada.cli.terminal import printer, say
from levada.core.errors import UsageError
from levada.core.words import line

if TYPE_CHECKING:
    from levada.accounts.records import AuditEntry, UserInfo

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
_DATA = Path("levada-data")
_LONGEST_INPUT = 10_000


def users() -> None:
    """Says who may use a server: readers, editors and admins, who log in with a password or by OpenID Connect.

    A reader reads. An editor also controls the crawl: adds, checks, pauses, sets the budget. An admin does everything.
    They are kept in access.db in the data folder (of several, the first), or in the file that --access names.

    Examples:

    ```
    levada users add ada --role admin
    levada users list
    levada users log
    ```
    """


def add(
    name: NameArgument,
    role: Annotated[str, typer.Option(metavar="ROLE", help="reader, editor or admin.")] = "reader",
    collection: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this collection of the server; may be repeated.")
    ] = None,
    openid: Annotated[
        str, typer.Option(metavar="IDENTITY", help="Logs in by OpenID Connect: mail address, or subject.")
    ] = "",
    access: AccessOption = None,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Adds a user. The password is asked twice on a terminal, and read from standard input otherwise.

    With a user, a server is closed to everybody who does not log in, on this machine too.

    Examples:

    ```
    levada users add ada --role admin
    levada users add bob --role editor --collection shop < password.txt
    levada users add eve --openid eve@example.org
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        if accounts.exist and any(each.name.lower() == name.lower() for each in accounts.users()):
            raise UsageError(
                f"there is a user {name} already: change the role with 'levada users role', "
                "or the password with 'levada users password'"
            )
        password = "" if openid else _password(name)
        user = accounts.add_user(
            name, role, by_command_line(), password=password, openid=openid, collections=collection or ()
        )
        is_admin = any(each.role == "admin" for each in accounts.users())
    if json:
        print_json({"user": user, "access": str(accounts.path)})
        return
    out = printer()
    out.print(f"{user.name} is {_article(user.role)} now, in {accounts.path}")
    if not is_admin:
        out.print(
            "nobody is an admin yet, who could add users and keys in the dashboard: levada users add NAME --role admin"
        )


def list_(access: AccessOption = None, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Lists the users, with their roles.

    Examples:

    ```
    levada users list
    levada users list --data news --json
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        found = accounts.users()
    nothing = f"there is no user in {accounts.path}: levada users add NAME"
    print_found(json, {"users": found}, found, nothing, _show_users, found)


def role(
    name: NameArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="reader, editor or admin.")],
    collection: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this collection from now on; may be repeated.")
    ] = None,
    all_collections: Annotated[bool, typer.Option("--all-collections", help="All collections from now on.")] = False,
    access: AccessOption = None,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Gives a user another role, which counts from their next request on.

    Examples:

    ```
    levada users role ada editor
    levada users role bob reader --collection blog --collection shop
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        user = accounts.set_role(name, role, by_command_line())
        if collection or all_collections:
            user = accounts.set_collections(name, collection or (), by_command_line())
    print_result(json, {"user": user}, say, f"{user.name} is {_article(user.role)} now{_limits(user)}")


def password(
    name: NameArgument, access: AccessOption = None, data: DataOption = _DATA, json: JsonOption = False
) -> None:
    """Gives a user another password, and ends their sessions.

    Examples:

    ```
    levada users password ada
    levada users password ada < password.txt
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        accounts.user(name)
        user = accounts.set_password(name, _password(name), by_command_line())
    print_result(json, {"user": user}, say, f"{user.name} has another password, and must log in again")


def remove(name: NameArgument, access: AccessOption = None, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Removes a user and ends their sessions.

    Examples:

    ```
    levada users remove ada
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        accounts.remove_user(name, by_command_line())
    print_result(json, {"removed": name}, say, f"{name} is removed, and logged out")


def log(
    who: Annotated[str, typer.Argument(metavar="WHO", help="Only what this user or key did.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="The newest N.")] = 50,
    access: AccessOption = None,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Lists who did what, when and from where, the newest first.

    Examples:

    ```
    levada users log
    levada users log ada --limit 10 --json
    ```
    """
    with closing(accounts_of(access, data)) as accounts:
        found = accounts.log(limit, who)
    print_found(json, {"entries": found}, found, "nothing is in the log", _show_log, found)


def _password(name: str) -> str:
    """Asked twice on a terminal; else the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(_LONGEST_INPUT).rstrip("\r\n")
    from getpass import getpass

    first = getpass(f"Password for {line(name)}: ", sys.stderr)
    if getpass("Once more: ", sys.stderr) != first:
        raise UsageError("the two passwords differ: try again")
    return first


def _show_users(found: Sequence[UserInfo]) -> None:
    out = printer()
    wide = max(len(each.name) for each in found)
    for each in found:
        how = " and ".join(
            part
            for part in ("password" if each.password else "", f"OpenID {each.openid}" if each.openid else "")
            if part
        )
        out.print(f"{each.name:<{wide}}  {each.role:<6}  {how}{_limits(each)}")


def _show_log(found: Sequence[AuditEntry]) -> None:
    out = printer()
    for each in found:
        when = each.at.replace("T", " ").partition(".")[0]
        about = f" {line(each.object)}" if each.object else ""
        ended = "" if each.outcome == "done" else f": {line(each.outcome)}"
        out.print(f"{when}  {line(each.who)} ({each.kind}, {line(each.origin)})  {line(each.action)}{about}{ended}")


def _limits(user: UserInfo) -> str:
    return f", only for {', '.join(user.collections)}" if user.collections else ""


def _article(role: str) -> str:
    return f"an {role}" if role[:1] in "ae" else f"a {role}"


list_.__name__ = "list"
family = make_family(users, add, list_, role, password, remove, log, no_args_is_help=True)
