"""The server for language models (Model Context Protocol), over standard input and output or over HTTP.

Beyond this machine a token or a key is needed, as for `levada serve`, and on it too once there is a user. The Host and
Origin headers must name this machine, so that no page in a browser can ask (the SDK checks them). Who guesses tokens is
slowed down.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from levada import __version__
from levada.accounts.records import Right
from levada.collection.collection import Collection
from levada.core.errors import LevadaError, MissingExtra, UsageError
from levada.serve.access import Access, AccessRefusal
from levada.serve.mcp.tools import INSTRUCTIONS, Tool, tools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

log = logging.getLogger(__name__)

PATH = "/mcp"
_RESOURCE = "levada://page{?url}"
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_READING = "/api/v1/page"  # what one must be allowed to read
_DECIDING = frozenset({"authorization", "host"})
_SESSION_SECONDS = 1800.0
_MOST_SESSIONS = 100
_MOST_BYTES = 1 << 20  # of a request


def language_model_server(collection: Collection, *, allow_check: bool = False) -> Server[Any]:
    """A server of the SDK that answers from this collection; only `check`, if it is allowed, writes."""
    try:
        import mcp_types as types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise MissingExtra("mcp", "mcp") from error
    offered = tools(allow_check=allow_check)

    async def answer(tool: Tool, arguments: object) -> str:
        return await asyncio.to_thread(tool.ask_of, collection, arguments)

    async def list_tools(context: Any, asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in offered.values()])

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tool = offered.get(asked.name)
            if tool is None:
                raise UsageError(_no_tool(asked.name, offered))
            text, failed = await answer(tool, asked.arguments or {}), False
        except LevadaError as error:
            text, failed = str(error), True
        except Exception:
            log.exception("answering %r", asked.name[:50])
            text, failed = "this failed inside Levada: its log says more", True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    async def list_templates(context: Any, asked: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="page",
            title="A stored page",
            uri_template=_RESOURCE,
            description='A stored page as Markdown, by its address: "levada://page?url=https%3A%2F%2Fexample.org%2F".',
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def list_resources(context: Any, asked: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read_resource(context: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        from mcp.shared.exceptions import MCPError

        uri = str(asked.uri)
        try:
            text = await answer(offered["page"], {"url": _address_in(uri), "length": 100_000})
        except LevadaError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        contents = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[contents])

    def _described(tool: Tool) -> types.Tool:
        hints = types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=tool.writes,
        )
        return types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.schema(),
            annotations=hints,
        )

    return Server(
        "levada",
        version=__version__,
        title="Levada",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _no_tool(name: str, offered: Iterable[str]) -> str:
    if name in tools(allow_check=True):
        return f"{name} is not allowed here: start the server with --allow-check"
    return f"there is no tool {name[:50]!r}: there are {', '.join(offered)}"


def resource_uri(url: str) -> str:
    """The resource of a page."""
    return f"levada://page?url={quote(url, safe='')}"


def _address_in(uri: str) -> str:
    parts = urlsplit(uri)
    urls = parse_qs(parts.query).get("url", [])
    if parts.scheme != "levada" or parts.netloc != "page" or len(urls) != 1:
        raise UsageError(f"{uri[:200]!r} is no resource: write {_RESOURCE.replace('{?url}', '?url=...')}")
    return urls[0]


def serve_stdio(collection: Collection, *, allow_check: bool = False) -> None:
    """Answer over standard input and output until the input ends."""
    server = language_model_server(collection, allow_check=allow_check)
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(run())


def serve_http(
    collection: Collection,
    door: socket.socket,
    access: Access,
    on_ready: Callable[[], None] = lambda: None,
    *,
    allow_check: bool = False,
) -> None:
    """Answer over streamable HTTP at `PATH` until Ctrl-C or SIGTERM."""
    server = language_model_server(collection, allow_check=allow_check)
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [*_LOCAL, door.getsockname()[0], *sorted(access.names)]
    forms = [form for host in hosts for form in (host, f"{host}:*")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=_MOST_BYTES,
        session_idle_timeout=_SESSION_SECONDS,
        max_sessions=_MOST_SESSIONS,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=forms,
            allowed_origins=[f"{scheme}://{form}" for form in forms for scheme in ("http", "https")],
        ),
    )
    guarded = KnownAskers(app, access, writes=allow_check)
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )

    async def run() -> None:
        on_ready()
        await uvicorn.Server(config).serve(sockets=[door])

    asyncio.run(run())


class KnownAskers:
    """Lets requests through that may read: with a token, or with a key that `levada keys` made.

    With `writes` they must also be allowed to control the crawl. Cookies do not count: a browser sends them unasked.
    """

    def __init__(self, app: ASGIApp, access: Access, *, writes: bool) -> None:
        self._app = app
        self._access = access
        self._writes = writes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}
        if refused.retry_after:
            headers["retry-after"] = str(refused.retry_after)
        await JSONResponse({"error": refused.message}, refused.status, headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> AccessRefusal | None:
        headers = {name: value for name, value in Headers(scope=scope).items() if name in _DECIDING}
        client = str(scope["client"][0]) if scope.get("client") else ""
        decision = self._access.decide("GET", _READING, headers, client)
        if decision.refused is None and self._writes and Right.CONTROL not in decision.asker.rights:
            return AccessRefusal(
                403, "no-right", f"{decision.asker.shown} may only read, and this server may also check"
            )
        return decision.refused
