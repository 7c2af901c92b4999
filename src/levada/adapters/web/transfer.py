"""What came back on this handle, and was it too much?

A handle is made once and used again and again: between two exchanges only the URL and, if they differ, the
headers are set. curl calls back for every piece; the pieces are put together once, at the end.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pycurl

from levada.adapters.guard import AddressGuard
from levada.adapters.web.buffers import SharedBuffer
from levada.adapters.web.failures import reason_of
from levada.adapters.web.head import header_lines, is_encoded, read_head
from levada.adapters.web.limits import FetchLimits
from levada.reasons import Reason
from levada.records import Request, Response

__all__ = ["Transfer"]

_ACCEPT = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5")
_ENOUGH = -1  # not the length of the piece: curl gives the exchange up
_WIRE_BYTES = getattr(pycurl, "SIZE_DOWNLOAD_T", None) or pycurl.SIZE_DOWNLOAD  # older pycurls know the second only


class Transfer:
    """One curl handle and the exchange that it makes now."""

    def __init__(self, curl: Any, limits: FetchLimits, guard: AddressGuard, buffer: SharedBuffer) -> None:
        self.curl = curl
        self.request = Request("")
        self.answer: asyncio.Future[Response] | None = None
        self._limits = limits
        self._guard = guard
        self._buffer = buffer
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._held = 0
        self._started = self._deadline = 0.0
        self.forget()
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.HEADERFUNCTION, self._take_head)
        curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        # Not curl's own MAXFILESIZE: whether it means bytes on the wire or decoded depends on curl's version.
        curl.setopt(pycurl.XFERINFOFUNCTION, self._count_wire)
        curl.setopt(pycurl.NOPROGRESS, 0)

    def begin(self, request: Request, answer: asyncio.Future[Response]) -> None:
        """Point the handle at `request`; ValueError or pycurl.error if it cannot be asked."""
        self.curl.setopt(pycurl.URL, request.url.encode("ascii"))
        if request.headers != self._headers:
            self._set_headers(request.headers)
        if request.body is not None:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.COPYPOSTFIELDS, request.body)
        elif self.request.body is not None:
            self.curl.setopt(pycurl.HTTPGET, 1)
        self.request, self.answer = request, answer
        self._started = time.monotonic()
        self._deadline = self._started + self._limits.seconds

    def end(self, code: int, message: str) -> Response:
        """The answer, from what was collected."""
        now = time.monotonic()
        info = self.curl.getinfo
        version, headers = read_head(self._head)
        reason, detail = self._failure(code, message, now)
        if reason is None and not version:
            reason, detail = Reason.PROTOCOL, "The head was cut short."
        return Response(
            url=self.request.url,
            status=info(pycurl.RESPONSE_CODE),
            headers=headers,
            body=b"".join(self._body) if reason is None else b"",
            reason=reason,
            detail=detail,
            address=info(pycurl.PRIMARY_IP),
            wire_bytes=int(info(_WIRE_BYTES)),
            seconds=now - self._started,
            http_version=version,
        )

    def forget(self) -> None:
        """Drop what was collected: the handle is ready for another exchange."""
        self._buffer.release(self._held)
        self._held = 0
        self._body: list[bytes] = []
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._refused = ""
        self._dialled = False
        self._stopped: tuple[Reason, str] | None = None
        self._kept_enough = False
        self.answer = None

    def _set_headers(self, headers: tuple[tuple[str, str], ...]) -> None:
        names = {name.lower() for name, _ in headers}
        first = () if "accept" in names else (_ACCEPT,)
        self.curl.setopt(pycurl.HTTPHEADER, header_lines((*first, *headers)))
        self.curl.setopt(pycurl.HTTP_CONTENT_DECODING, int("accept-encoding" not in names))
        self._headers = headers

    def _failure(self, code: int, message: str, now: float) -> tuple[Reason | None, str]:
        if not code or self._kept_enough:
            return None, ""
        if self._stopped is not None:
            return self._stopped
        if self._refused and not self._dialled:  # of a name's addresses, one that may be dialled is enough
            return Reason.ADDRESS, self._refused
        info = self.curl.getinfo
        reason = reason_of(
            code,
            name_found=info(pycurl.NAMELOOKUP_TIME) > 0,
            connected=info(pycurl.REQUEST_SIZE) > 0,  # times are 0 or misleading on a connection used again
            out_of_time=now >= self._deadline,
        )
        return reason, f"{message or self.curl.errstr() or f'curl error {code}'}."

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        ip, port = address.addr[:2]
        refusal = self._guard.refuses(ip, port)
        if refusal is not None:
            self._refused = refusal
            return pycurl.SOCKET_BAD
        self._dialled = True
        return _Dialled(address.family, address.socktype, address.protocol)

    def _take_head(self, line: bytes) -> int | None:
        self._head_bytes += len(line)
        if self._head_bytes > self._limits.max_header_bytes:
            return self._stop(Reason.HEADER_BYTES, f"The head exceeds {self._limits.max_header_bytes} bytes.")
        self._head.append(line)
        return None

    def _take_body(self, piece: bytes) -> int | None:
        limits, keep, held = self._limits, self.request.keep_bytes, self._held + len(piece)
        if time.monotonic() > self._deadline:
            return self._stop(Reason.SECONDS, f"The answer took longer than {limits.seconds:g} seconds.")
        if keep is not None and held > keep:
            self._body.append(piece[: max(0, keep - self._held)])
            self._kept_enough = True
            return _ENOUGH
        if held > limits.max_bytes and not is_encoded(self._head):
            return self._stop(Reason.BYTES, f"The body exceeds {limits.max_bytes} bytes.")
        if held > limits.max_decoded_bytes:
            return self._stop(Reason.DECODED_BYTES, f"The body exceeds {limits.max_decoded_bytes} decoded bytes.")
        if not self._buffer.admits(len(piece), held):
            return self._stop(Reason.BUFFERED_BYTES, "Too many large bodies were under way together.")
        self._held = held
        self._body.append(piece)
        return None

    def _count_wire(self, announced: int, received: int, _to_send: int, _sent: int) -> int | None:
        most = self._limits.max_bytes
        if received <= most and (announced <= most or self.request.keep_bytes is not None):
            return None
        if self._kept_enough or self._stopped is not None:
            return None
        return self._stop(Reason.BYTES, f"The body exceeds {most} bytes.")

    def _stop(self, reason: Reason, detail: str) -> int:
        self._stopped = reason, detail
        self._body.clear()
        return _ENOUGH


class _Dialled(socket.socket):
    """A socket that curl takes a duplicate of: ours ends with this object, quietly."""

    def __del__(self) -> None:
        self.close()
