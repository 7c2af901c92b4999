"""`levada serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import BESIDE, PORT, DataOption, print_json
from levada.cli.terminal import printer
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.serve.access import Tokens

_LONGEST_TOKENS = 10_000  # characters of a file of tokens that are read


def serve(
    data: DataOption = Path("levada-data"),
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="0: any free one.")] = PORT,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name that browsers use for this server; may be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="First line: a token for everything; second: a reader's.")
    ] = None,
    capture: Annotated[
        bool, typer.Option("--capture", help="Write down what is asked: a shard key is advised from it.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object for programs, once it listens, instead of text.")
    ] = False,
) -> None:
    """Serves the dashboard and the API, beside a running crawl or alone.

    On this machine no token is needed. For others (--host) one is: from --token-file, or from LEVADA_TOKEN
    (everything) and LEVADA_READ_TOKEN (reading only). The API is described at /api/v1/openapi.json.

    Examples:

    ```
    levada serve
    levada serve --data news --port 9000
    levada serve --port 0 --json
    LEVADA_TOKEN=$(openssl rand -hex 16) levada serve --host 0.0.0.0 --name levada.example.org
    ```
    """
    from levada.core.folder import DataFolder
    from levada.serve.server import listen, serve

    tokens = read_tokens(token_file)
    names = frozenset(map(host_name, name or ()))
    folder = DataFolder(data)
    folder.must_be_folder()
    door = listen(host, port, tokens)
    shown = "[::1]" if host == "::1" else host
    address = f"http://{shown}:{door.getsockname()[1]}/"
    starter = os.environ.pop(BESIDE, "")  # for this process, not for its children
    beside = int(starter) if starter.isdecimal() else None

    def ready() -> None:
        if json:
            needed = bool(tokens)  # not which: what is printed here may end in a log
            print_json({"url": address, "data": str(data), "collection": folder.exists(), "token": needed})
        else:
            out = printer()
            out.print(f"Levada serves {data} at {address}")
            if not folder.exists():
                out.print(f"There is no collection in {data} yet: 'levada crawl URL --data {data}' starts one.")

    with door:
        serve(data, door, tokens, names, ready, capture=capture, beside=beside)


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


def host_name(text: str) -> str:
    if not text or set(text) & set("/:@ "):
        raise UsageError(f"--name {text!r} is no host name: without http:// and without a port, as in levada.example")
    return text.lower()
