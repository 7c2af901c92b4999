"""`levada serve`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.access.options import AccessOption, access_file
from levada.cli.options import BESIDE, PORT, CollectionOption, NamesOption, ServerOption, environment_folder, print_json
from levada.cli.terminal import printer
from levada.core.errors import NotFound, UsageError

if TYPE_CHECKING:
    from levada.serve.access import Tokens

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LONGEST_TOKENS = 10_000  # characters of a file of tokens that are read


def serve(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="[NAME=]DIR",
            help="The folder that holds the collection; repeat for several, each below /c/NAME/.",
        ),
    ] = None,
    names: NamesOption = None,
    every: Annotated[bool, typer.Option("--all", help="Every collection that has a name, below /c/NAME/.")] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="0: any free one.")] = PORT,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name that browsers use for this server; may be repeated."),
    ] = None,
    access: AccessOption = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="First line: a token for everything; second: a reader's.")
    ] = None,
    openid: Annotated[
        str,
        typer.Option(envvar="LEVADA_OPENID", metavar="URL", help="The OpenID Connect provider at which users log in."),
    ] = "",
    openid_client: Annotated[
        str, typer.Option(envvar="LEVADA_OPENID_CLIENT", metavar="ID", help="What it calls this server.")
    ] = "",
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A proxy in front of this server: its X-Forwarded-For and -Proto are trusted. May be repeated.",
        ),
    ] = None,
    capture: Annotated[
        bool, typer.Option("--capture", help="Write down what is asked: a shard key is advised from it.")
    ] = False,
    store: ServerOption = None,
    collection: CollectionOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object for programs, once it listens, instead of text.")
    ] = False,
) -> None:
    """Serves the dashboard and the API, of one collection or of several.

    With --store, the collection that PostgreSQL and OpenSearch hold is served without its data folder, on any number
    of machines (docs/opensearch.md).

    On this machine nobody has to log in until there is a user or a token. For others (--host) there must be a user
    ('levada users add'), a key ('levada keys add'), or a token: from --token-file, or from LEVADA_TOKEN (everything)
    and LEVADA_READ_TOKEN (reading only). The secret of an OpenID client is read from LEVADA_OPENID_SECRET. The API
    is described at /api/v1/openapi.json.

    Examples:

    ```
    levada serve
    levada serve --data news --port 9000
    levada serve --in blog --in shop
    levada serve --all
    levada serve --data blog --data shop --data law=/srv/collections/law
    levada serve --store postgresql://levada@db.example/levada --access /etc/levada/access.db
    levada serve --port 0 --json
    LEVADA_TOKEN=$(openssl rand -hex 16) levada serve --host 0.0.0.0 --name levada.example.org
    levada serve --name levada.example.org --proxy 127.0.0.1
    levada serve --openid https://id.example.org --openid-client levada --name levada.example.org
    ```
    """
    from levada.accounts.accounts import Accounts
    from levada.accounts.openid import Provider
    from levada.core.configuration.layers import data_folder
    from levada.core.folder import DataFolder
    from levada.serve.access import is_loopback
    from levada.serve.server import Served, listen, serve

    held = ExitStack()
    if collection is not None and store is None:
        raise UsageError("--collection names one of several on a server: name that with --store")
    if store is not None and not (data or names or every or environment_folder()):
        from levada.collection.storage.mirror import mirrored

        mirror = held.enter_context(mirrored(store, collection))
        folders = {mirror.path.name: mirror.path}
    else:
        folders = _folders(names or (), data or (), every=every)
    first = next(iter(folders.values()))
    shared = every or len(folders) > 1
    for folder in folders.values():
        DataFolder(folder).must_be_folder()
    accounts = Accounts(access or access_file(data_folder() if every else first))
    secret = os.environ.pop("LEVADA_OPENID_SECRET", "")
    served = Served(
        folders,
        shared,
        read_tokens(token_file),
        accounts,
        frozenset(map(host_name, name or ())),
        Provider(openid, openid_client, secret) if openid or openid_client else None,
        capture,
        not is_loopback(host),
        tuple(map(proxy_address, proxy or ())),
    )
    closed = bool(served.tokens) or accounts.has_users or served.closed
    door = listen(host, port, served.tokens, accounts)
    shown = "[::1]" if host == "::1" else host
    address = f"http://{shown}:{door.getsockname()[1]}/"
    starter = os.environ.pop(BESIDE, "")  # for this process, not for its children
    beside = int(starter) if starter.isdecimal() else None

    def ready() -> None:
        if json and not shared:
            exists = DataFolder(first).exists()
            print_json({"url": address, "data": str(first), "collection": exists, "token": closed})  # not which
        elif json:
            print_json(
                {"url": address, "collections": {each: f"{address}c/{each}/" for each in folders}, "token": closed}
            )
        else:
            _show(folders, address, shared=shared)

    with held, door:
        serve(served, door, ready, beside=beside)


def _show(folders: Mapping[str, Path], address: str, *, shared: bool) -> None:
    from levada.core.folder import DataFolder

    out = printer()
    for name, path in folders.items():
        place = f"{address}c/{name}/" if shared else address
        out.print(f"Levada serves {path} at {place}")
        if not DataFolder(path).exists():
            out.print(f"There is no collection in {path} yet: 'levada crawl URL --data {path}' starts one.")
    if shared:
        out.print(f"Levada lists them at {address}")


def _folders(names: Sequence[str], typed: Sequence[str], *, every: bool) -> dict[str, Path]:
    """The folders by the names of their collections; without any, the folder that other commands take too."""
    from levada.core.configuration.places import folder_named, named_folders

    folders = named_folders() if every else {}
    if every and not folders:
        raise NotFound("no collection has a name yet: 'levada crawl --in NAME URL' starts one")
    folders |= {name: folder_named(name) for name in names}
    if not (names or typed or every):
        usual = environment_folder() or Path("levada-data")
        return {usual.absolute().name: usual}
    for each in typed:
        before, named, after = each.partition("=")
        is_named = bool(named) and _NAME.fullmatch(before) is not None and not Path(each).exists()
        path = Path(after if is_named else each)
        name = before if is_named else path.absolute().name
        if (folders or len(typed) > 1) and not _NAME.fullmatch(name):
            raise UsageError(f"--data {each}: a folder of this name needs another for its address: --data NAME={each}")
        if name in folders:
            raise UsageError(f"two collections are called {name}: name one of them as in --data {name}-2={path}")
        folders[name] = path
    return folders


def read_tokens(path: Path | None) -> Tokens:
    from levada.serve.access import Tokens

    if path is None:
        admin, reader = os.environ.get("LEVADA_TOKEN", ""), os.environ.get("LEVADA_READ_TOKEN", "")
        return Tokens(_sendable(admin, "LEVADA_TOKEN"), _sendable(reader, "LEVADA_READ_TOKEN"))
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(_LONGEST_TOKENS).splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} cannot be read: it is not text") from None
    admin, reader, *_ = [line.strip() for line in lines] + ["", ""]
    if not admin:
        raise UsageError(f"{path} holds no token: write one on its first line")
    return Tokens(_sendable(admin, str(path)), _sendable(reader, str(path)))


def _sendable(token: str, where: str) -> str:
    if not (token.isascii() and token.isprintable()):
        raise UsageError(f"the token in {where} holds signs that no header can carry: use letters and digits")
    return token


def proxy_address(text: str) -> str:
    try:
        return str(ip_network(text)) if "/" in text else str(ip_address(text))
    except ValueError:
        why = f"--proxy must be an address or a network, as in 127.0.0.1 or 10.0.0.0/8, not {text!r}"
        raise UsageError(why) from None


def host_name(text: str) -> str:
    if not text or set(text) & set("/:@ "):
        raise UsageError(f"--name {text!r} is no host name: without http:// and without a port, as in levada.example")
    return text.lower()
