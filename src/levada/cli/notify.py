"""`levada notify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.app import make_family
from levada.cli.options import DataOption, JsonOption, print_found, print_json, print_result
from levada.cli.terminal import printer, say
from levada.core.durations import iso, moment, relative
from levada.core.words import command_for, line, plural

if TYPE_CHECKING:
    from levada.collection.notifications import NotificationInfo
    from levada.core.subscriptions import DeliveryRecord

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The notification's name.")]
_DATA = Path("levada-data")


def notify() -> None:
    """Tells you of changes by mail, Slack, Matrix, Telegram, ntfy and others.

    `levada crawl` and `levada serve` send what is due while they run; `levada crawl --once` before it ends.

    Examples:

    ```
    levada notify add 'mailto://localhost/?to=me@example.org' --site blog.example.org
    levada notify test mail
    levada notify log
    ```
    """


def add(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="mailto://SERVER/?to=YOU, https://..., or an Apprise URL.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call it; default: its kind.")] = "",
    site: Annotated[str, typer.Option(metavar="HOST", help="Only this host and those below it.")] = "",
    prefix: Annotated[str, typer.Option(metavar="URL", help="Only pages whose address begins so.")] = "",
    words: Annotated[str, typer.Option(metavar="WORDS", help="Only pages on which all of these stand.")] = "",
    least: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of the words that must differ.")
    ] = 0.0,
    least_words: Annotated[int, typer.Option(min=0, metavar="N", help="Words that came or went.")] = 0,
    kind: Annotated[str, typer.Option(metavar="KINDS", help="new,changed,gone,back; default: all.")] = "",
    came: Annotated[list[str] | None, typer.Option(metavar="WORDS", help="These came; repeat for others.")] = None,
    went: Annotated[list[str] | None, typer.Option(metavar="WORDS", help="These went; repeat for others.")] = None,
    below: Annotated[float | None, typer.Option(metavar="X", help="A price that came is below X.")] = None,
    above: Annotated[float | None, typer.Option(metavar="X", help="A price that came is above X.")] = None,
    near: Annotated[
        str, typer.Option(metavar="WORDS", help="For --below and --above: numbers in lines with these words.")
    ] = "",
    digest: Annotated[str, typer.Option(metavar="hourly|daily", help="All changes of an hour or day at once.")] = "",
    at: Annotated[str, typer.Option(metavar="HH:MM", help="Of the daily digest.")] = "08:00",
    gather: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait so long for more, and tell them together.")
    ] = 0.0,
    most: Annotated[int, typer.Option(min=0, metavar="N", help="Changes in one message, at most.")] = 0,
    quiet: Annotated[str, typer.Option(metavar="FROM-TO", help="Quiet hours such as 22:00-07:00.")] = "",
    zone: Annotated[str, typer.Option(metavar="ZONE", help="Such as Europe/Lisbon; default: this machine's.")] = "",
    title: Annotated[str, typer.Option(metavar="TEXT", help="Template: {title}, {site}, {count} ...")] = "",
    body: Annotated[str, typer.Option(metavar="TEXT", help="Template: {url}, {diff}, {came}, {went}, {link} ...")] = "",
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Tell also of all changes that are in the log.")
    ] = False,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Adds a target that is told of changes from now on.

    Mail needs nothing but a server. Other targets are Apprise URLs (pip install 'levada[notify]') or an http address,
    to which changes are posted as JSON.

    Examples:

    ```
    levada notify add 'mailto://localhost/?to=me@example.org'
    levada notify add 'mailtos://me%40example.org:SECRET@smtp.example.org' --came price --digest daily --at 07:30
    levada notify add ntfy://ntfy.sh/my-topic --site shop.example.org --below 100
    ```
    """
    import levada
    from levada.collection.notifications import NotificationOptions
    from levada.core.errors import UsageError

    if digest not in ("", "hourly", "daily"):
        raise UsageError(f'--digest must be "hourly" or "daily", not "{digest[:50]}"')
    options = NotificationOptions(
        name=name,
        site=site,
        prefix=prefix,
        words=words,
        least=least,
        least_words=least_words,
        kind=kind,
        came=tuple(came or ()),
        went=tuple(went or ()),
        below=below,
        above=above,
        near=near,
        digest=digest,  # type: ignore[arg-type]  # checked above
        at=at,
        gather=gather,
        most=most,
        quiet=quiet,
        zone=zone,
        title=title,
        body=body,
        from_beginning=from_beginning,
    )
    with levada.open(data, create=False) as collection:
        made = collection.notifications.create(target, options)
        info = collection.notifications.info(made)
    if json:
        print_json({"notification": info, "secret": made.secret})
        return
    out = printer()
    out.print(f"{info.name}: {info.target} is told of {info.about}")
    if made.secret:
        out.print(f"its requests are signed with this secret, shown only now: {made.secret}")
    out.print(f"try it: {command_for('notify test', info.name, data)}")


def list_(data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Lists who is told of changes.

    Examples:

    ```
    levada notify list
    levada notify list --data news --json
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        found = collection.notifications.list()
    print_found(
        json, {"notifications": found}, found, "nobody is told of changes: levada notify add TARGET", _show_all, found
    )


def show(name: NameArgument, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Shows one notification with all its options, and its latest messages.

    Examples:

    ```
    levada notify show mail
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        info, sent = collection.notifications.get(name), collection.notifications.log(name, 10)
    if json:
        print_json({"notification": info, "messages": sent})
        return
    out = printer()
    _show_all([info])
    for option, value in info.options.items():
        out.print(f"  {option}: {', '.join(value) if isinstance(value, tuple) else value}")
    _show_log(sent)


def edit(
    name: NameArgument,
    changes: Annotated[
        list[str], typer.Argument(metavar="OPTION=VALUE", help="An option of `add`; no value: its default.")
    ],
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Changes options of a notification; what it has told and what waits stay as they are.

    The options are those of `levada notify add` without dashes, and target. `came` and `went` may be repeated.

    Examples:

    ```
    levada notify edit mail digest=daily at=07:30
    levada notify edit mail came=price came=discount site=
    levada notify edit mail 'target=mailto://mail.example.org/?to=me@example.org'
    ```
    """
    import levada

    asked = _edits(changes)
    with levada.open(data, create=False) as collection:
        _shown(collection.notifications.edit(name, **asked), json)


def _edits(changes: Sequence[str]) -> dict[str, object]:
    from levada.collection.notifications import NotificationOptions
    from levada.core.errors import UsageError
    from levada.core.suggestions import near_names

    known = ("target", *NotificationOptions.__struct_fields__)
    asked: dict[str, object] = {}
    for change in changes:
        option, equals, value = change.partition("=")
        field = option.strip().lstrip("-").replace("-", "_")
        if not equals:
            raise UsageError(f"{change[:80]!r} has no value: write OPTION=VALUE, such as digest=daily")
        if field not in known:
            raise UsageError(f"there is no option {option[:50]!r}: {near_names(field, known)}")
        if field in ("came", "went") and value:
            before = asked.get(field)
            asked[field] = (*before, value) if isinstance(before, tuple) else (value,)
        else:
            asked[field] = value or None
    return asked


def pause(name: NameArgument, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Sends nothing until it is resumed; what changes meanwhile is told then.

    Examples:

    ```
    levada notify pause mail
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        _shown(collection.notifications.pause(name), json)


def resume(
    name: NameArgument,
    skip: Annotated[bool, typer.Option("--skip", help="Without what waits, only from now on.")] = False,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Goes on after a pause, or tries again now after failures.

    Examples:

    ```
    levada notify resume mail
    levada notify resume mail --skip
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        _shown(collection.notifications.resume(name, skip=skip), json)


def remove(name: NameArgument, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Removes a notification, and the messages that wait for it.

    Examples:

    ```
    levada notify remove mail
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        collection.notifications.remove(name)
    print_result(json, {"removed": name}, say, f"{name} is told no more")


def send_test(name: NameArgument, data: DataOption = _DATA, json: JsonOption = False) -> None:
    """Sends a test message now, and says what the target answered.

    Examples:

    ```
    levada notify test mail
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        target = collection.notifications.get(name).target
        said = collection.notifications.test(name)
    print_result(json, {"name": name, "answer": said}, say, f"{target} took the test message: {line(said)}")


def log(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only this notification's.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="The newest N.")] = 50,
    data: DataOption = _DATA,
    json: JsonOption = False,
) -> None:
    """Lists the messages: what was sent, when, and what failed.

    Examples:

    ```
    levada notify log
    levada notify log mail --limit 10 --json
    ```
    """
    import levada

    with levada.open(data, create=False) as collection:
        found = collection.notifications.log(name, limit)
    facts = [
        {"created": iso(each.created), "sent": iso(each.sent), **{key: getattr(each, key) for key in _LOG_KEYS}}
        for each in found
    ]
    print_found(json, {"messages": facts}, found, "no message was composed yet", _show_log, found)


_LOG_KEYS = ("message", "subscription", "attempts", "trouble", "changes", "title")


def _shown(info: NotificationInfo, json: bool) -> None:
    print_result(json, {"notification": info}, _show_all, [info])


def _show_all(found: Sequence[NotificationInfo]) -> None:
    out = printer()
    for each in found:
        state = "paused" if each.paused else f"failing: {line(each.trouble)}" if each.failures else "working"
        out.print(f"{each.name}  {each.target}", style="bold")
        out.print(f"  {each.about}")
        out.print(f"  {plural(each.told, 'change')} told, {each.waiting:,} waiting, {state}")
        if each.lost:
            out.print(f"  up to {plural(each.lost, 'change')} had left the change log before they were told")


def _show_log(found: Sequence[DeliveryRecord]) -> None:
    from levada.core.clock import SystemClock

    out, now = printer(), SystemClock().now()
    for each in found:
        when = f"sent {relative(each.sent, now)}" if each.sent is not None else "waits"
        failed = f"; failed {plural(each.attempts, 'time')}: {line(each.trouble)}" if each.attempts else ""
        out.print(
            f"{moment(each.created)}  {each.subscription:<12} {when:<16} {plural(each.changes, 'change'):<11} "
            f"{line(each.title)}{failed}"
        )


list_.__name__, send_test.__name__ = "list", "test"
family = make_family(notify, add, list_, show, edit, send_test, pause, resume, remove, log, no_args_is_help=True)
