"""`levada embed`."""

from __future__ import annotations

from contextlib import closing
from html import escape
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from levada.cli.access.options import AccessOption, accounts_of, by_command_line
from levada.cli.options import PORT, DataOption, JsonOption, print_json
from levada.cli.terminal import printer
from levada.core.errors import UsageError


def embed(
    origin: Annotated[
        list[str],
        typer.Option(metavar="ORIGIN", help="The site that gets the box: https://blog.example; may be repeated."),
    ],
    server: Annotated[
        str, typer.Option(metavar="URL", help="Where browsers reach the server; of several collections, with /c/NAME/.")
    ] = f"http://127.0.0.1:{PORT}/",
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call the key; default: the site's host.")] = "",
    placeholder: Annotated[str, typer.Option(metavar="TEXT", help="What the empty box says.")] = "Search",
    collection: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this collection of the server; may be repeated.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=0, max=10**6, metavar="N", help="Requests a minute from one address; default: 120."),
    ] = None,
    results: Annotated[
        int | None, typer.Option(min=0, max=10_000, metavar="N", help="Search results that it reaches; default: 50.")
    ] = None,
    access: AccessOption = None,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Puts the search box of the collection on your site: makes a key, and prints the line of HTML to paste.

    The key may only search, and only for pages of the sites named. Everybody can read it in the page; `levada keys
    revoke` ends it.

    Examples:

    ```
    levada embed --origin https://blog.example.org --server https://search.example.org
    levada embed --origin https://blog.example.org --server https://search.example.org/c/blog/ --collection blog
    ```
    """
    from levada.accounts.accounts import KeyOptions, checked_origin

    place = urlsplit(server)
    if place.scheme not in ("http", "https") or not place.hostname or place.query or place.fragment:
        raise UsageError(f"--server takes an address such as https://search.example.org, not {server[:200]!r}")
    origins = [checked_origin(each) for each in origin]
    options = KeyOptions(origins=origins, collections=collection or (), rate=rate, results=results)
    with closing(accounts_of(access, data)) as accounts:
        host = urlsplit(origins[0]).hostname or "site"
        key, secret = accounts.add_key(name or host.replace(":", "."), options, by_command_line())
        is_open = not accounts.has_users
    base, shown = server.rstrip("/"), escape(placeholder)
    box = f'<script src="{escape(base)}/embed/search.js" data-key="{secret}" data-placeholder="{shown}"></script>'
    kind = "application/opensearchdescription+xml"
    link = f'<link rel="search" type="{kind}" title="{shown}" href="{escape(base)}/opensearch.xml?key={secret}">'
    if json:
        print_json({"key": key, "secret": secret, "html": box, "opensearch": link})
        return
    out = printer()
    out.print("Where the box should stand:\n")
    out.print(f"  {box}\n")
    out.print("In the <head>, if browsers should offer the collection as a search engine:\n")
    out.print(f"  {link}\n")
    out.print(f"The key '{key.name}' only searches, for pages of {', '.join(origins)}.")
    out.print(f"It ends with: levada keys revoke {key.name}")
    if place.scheme == "http" and any(each.startswith("https:") for each in origins):
        out.print("A page by https loads nothing by http: put TLS in front of the server, and name that in --server.")
    if is_open:
        out.print("A proxy on this machine opens the whole dashboard as long as there is no user: levada users add")
