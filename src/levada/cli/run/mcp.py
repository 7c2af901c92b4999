"""`levada mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.access.options import AccessOption, access_file
from levada.cli.options import DataOption, ended_at_once, print_json
from levada.cli.terminal import printer

PORT = 8765


def mcp(
    data: DataOption = Path("levada-data"),
    allow_check: Annotated[
        bool,
        typer.Option("--allow-check", help="Let it fetch pages now, and add new ones; without it nothing is written."),
    ] = False,
    http: Annotated[bool, typer.Option("--http", help="Over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="With --http: the address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="P", min=0, max=65535, help="With --http: the port; 0: any free one.")
    ] = PORT,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name that clients use for this server; may be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="First line: a token for everything; second: a reader's.")
    ] = None,
    access: AccessOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="With --http: one JSON object for programs, once it listens.")
    ] = False,
) -> None:
    """Lets a language model search the pages, read them as Markdown and see what changed (MCP).

    An assistant starts this command itself and talks to it over standard input and output. It may run beside a crawl.
    With --http several clients share one server. Beyond this machine (--host) a token or a key is needed, as for
    `levada serve`: a key with the scope read, and with --allow-check also control.

    Examples:

    ```
    levada mcp --data news
    levada mcp --data news --allow-check
    levada mcp --data news --http --port 8765
    levada keys add assistant --scope read --data news
    ```
    """
    import levada
    from levada.accounts.accounts import Accounts
    from levada.cli.run.serve import host_name, read_tokens
    from levada.core.clock import SystemClock
    from levada.serve.access import Access, is_loopback
    from levada.serve.mcp.server import PATH, serve_http, serve_stdio
    from levada.serve.server import listen

    with levada.open(data, create=False) as collection:
        collection.stats()  # what is wrong with the store is said at once
        if not http:
            with ended_at_once():
                serve_stdio(collection, allow_check=allow_check)
            return
        tokens, names = read_tokens(token_file), frozenset(map(host_name, name or ()))
        accounts, is_closed = Accounts(access or access_file(data)), not is_loopback(host)
        now, called = SystemClock().monotonic, (data.absolute().name,)
        gate = Access(tokens, names, now, accounts, called, closed=is_closed)
        with listen(host, port, tokens, accounts) as door:
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{door.getsockname()[1]}{PATH}"

            def ready() -> None:
                if json:
                    print_json({"url": address, "data": str(data), "token": gate.is_closed, "check": allow_check})
                else:
                    printer().print(f"Levada answers language models about {data} at {address}")

            serve_http(collection, door, gate, ready, allow_check=allow_check)
