"""The dashboard's own files: they lie in the package, nothing comes from elsewhere, nothing is built."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.dashboard.answers import error_answer

__all__ = ["page_routes"]

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}


def page_routes() -> list[Route]:
    held = {each.name: each.read_bytes() for each in (files(__package__) / "static").iterdir() if each.is_file()}

    def answer(request: Request, name: str) -> Response:
        body = held.get(name)
        if body is None:
            return error_answer(404, "no-such-path", "there is nothing at this path")
        tag = f'"{blake2b(body, digest_size=9).hexdigest()}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=_KINDS.get(name.rpartition(".")[2], "text/plain"))

    async def front(request: Request) -> Response:
        return answer(request, "index.html")

    async def part(request: Request) -> Response:
        return answer(request, request.path_params["name"])

    return [Route("/", front), Route("/static/{name}", part)]
