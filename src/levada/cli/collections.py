"""`levada collections`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from levada.cli.options import JsonOption, print_json
from levada.core.errors import UsageError
from levada.core.words import plural, size

if TYPE_CHECKING:
    from levada.collection.storage.named import NamedCollection

_USES = {"add": ("NAME DIR", 2), "remove": ("NAME", 1)}


def collections(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[add NAME DIR|remove NAME]", help="Give a folder a name, or forget that name."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Lists the collections that have names, and gives names to others.

    `levada crawl --in NAME` makes a collection in the user's data folder; `add` names one that lies elsewhere, and
    `remove` forgets its name and deletes nothing. Every command for a collection takes --in NAME.

    Examples:

    ```
    levada collections
    levada collections add blog /srv/blog
    levada --in blog search ferry
    levada collections remove blog
    ```
    """
    from levada.collection.storage.named import named_collections
    from levada.core.configuration.places import give_name, take_name

    verb, *rest = words or ["list"]
    if verb != "list":
        if verb not in _USES or len(rest) != _USES[verb][1]:
            usage = " or ".join(f"'levada collections {each} {names}'" for each, (names, _) in _USES.items())
            raise UsageError(f"'levada collections' lists them; to change one: {usage}")
        if verb == "add":
            folder = Path(rest[1])
            give_name(rest[0], folder)
            said = f"{rest[0]} is {folder.absolute()}"
        else:
            folder = take_name(rest[0])
            said = f"{rest[0]} is no name of {folder} any more; nothing was deleted"
        if not json:
            print(said)
            return
    found = named_collections()
    if json:
        print_json({"collections": [{**asdict(each), "path": str(each.path)} for each in found]})
    else:
        _print(found)


def _print(found: Sequence[NamedCollection]) -> None:
    from levada.cli.terminal import printer
    from levada.core.words import line

    out = printer()
    if not found:
        out.print("No collection has a name yet: levada crawl --in NAME URL")
        return
    width = max(len(each.name) for each in found)
    for each in found:
        if each.trouble:
            facts = each.trouble
        elif each.pages is None:
            facts = "no collection yet"
        else:
            facts = f"{plural(each.pages, 'page')}, {size(each.bytes)}{', a crawl runs' if each.crawling else ''}"
        out.print(f"{each.name:<{width}}  {line(facts)}  {line(str(each.path))}")
