"""A server with nothing around it: Starlette on uvicorn, a constant answer, and tantivy's own search.

    python benchmarks/peers/bare_server.py INDEX ANSWER_FILE

Prints its port, and serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from pathlib import Path

import msgspec
import tantivy
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from levada.search.tantivy.schema import register_analyzers, schema


def main() -> None:
    index = tantivy.Index(schema(), sys.argv[1], reuse=True)
    register_analyzers(index)
    searcher = index.searcher()
    constant = json.loads(Path(sys.argv[2]).read_bytes())

    def find(words: str) -> list[list[object]]:
        query = index.parse_query(words, ["title", "text"], conjunction_by_default=True)
        found = searcher.search(query, 10)
        return [[score, msgspec.msgpack.decode(searcher.doc(address)["card"][0])] for score, address in found.hits]

    async def search(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(find, request.query_params["q"]))

    async def page(_request: Request) -> Response:
        return JSONResponse(constant)

    app = Starlette(routes=[Route("/search", search), Route("/page", page)])
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))

    def end() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=[door]))


if __name__ == "__main__":
    main()
