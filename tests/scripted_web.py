"""A web of scripted responses, for tests and simulated crawls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from levada.core.reasons import Reason
from levada.core.records import Request, Response

Answer = Response | Callable[[Request], Response]


class MemoryFetcher:
    """A `levada.core.protocols.Fetcher` that looks answers up by URL, and records its requests.

    Each answer of a sequence is given once, the last one repeatedly. A URL without a script gets 404 if another URL
    of its site has one; otherwise the host does not exist. `keep_bytes` works as on the network.
    """

    def __init__(self, script: Mapping[str, Answer | Sequence[Answer]] | None = None) -> None:
        self.requests: list[Request] = []
        self._script: dict[str, list[Answer]] = {}
        self._closed = False
        for url, answers in (script or {}).items():
            self.script(url, *(answers if isinstance(answers, Sequence) else (answers,)))

    def script(self, url: str, *answers: Answer) -> None:
        """Answer `url` with these from now on."""
        if not answers:
            raise ValueError(f"no answer for {url}")
        self._script[url] = list(answers)

    async def fetch(self, request: Request) -> Response:
        await asyncio.sleep(0)
        if self._closed:
            return _failure(request, Reason.CONNECT, "The fetcher is closed.")
        if not request.url[:8].lower().startswith(("http://", "https://")):
            return _failure(request, Reason.SCHEME, "Only http and https are supported.")
        self.requests.append(request)
        return _as_fetched(request, self._answer(request))

    async def close(self) -> None:
        self._closed = True

    def _answer(self, request: Request) -> Response:
        answers = self._script.get(request.url)
        if answers is None:
            return self._unscripted(request)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, Response) else answer(request)

    def _unscripted(self, request: Request) -> Response:
        site = _site(request.url)
        if any(_site(url) == site for url in self._script):
            return Response(url=request.url, status=404, http_version="1.1")
        return _failure(request, Reason.DNS, f"Could not resolve host: {site}.")


def _site(url: str) -> str:
    return urlsplit(url).netloc


def _as_fetched(request: Request, response: Response) -> Response:
    """The scripted answer with the requested URL, and no longer than wanted."""
    body = response.body if request.keep_bytes is None else response.body[: request.keep_bytes]
    return msgspec.structs.replace(response, url=request.url, body=body)


def _failure(request: Request, reason: Reason, detail: str) -> Response:
    return Response(url=request.url, status=0, reason=reason, detail=detail)
