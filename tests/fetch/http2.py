"""An HTTP/2 server over one socket, with the `h2` package."""

from __future__ import annotations

import socket

import h2.config
import h2.connection
import h2.events

from tests.fetch.servers import WebServer

__all__ = ["Http2Server"]

BODY = b"over http/2 "


class Http2Server(WebServer):
    """Answers every request with `BODY`, many times over for /long and endlessly for /endless."""

    def talk(self, connection: socket.socket) -> None:
        session = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        session.initiate_connection()
        connection.sendall(session.data_to_send())
        while data := connection.recv(65536):
            for event in session.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._answer(session, event)
                elif isinstance(event, h2.events.WindowUpdated):
                    self._go_on(session)
            connection.sendall(session.data_to_send())

    def _answer(self, session: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        path = dict(event.headers).get(b":path", b"")
        head = [(":status", "200"), ("content-type", "text/html"), ("x-kind", "h2")]
        session.send_headers(event.stream_id, head)
        if path == b"/endless":
            self._endless = event.stream_id
            self._go_on(session)
        else:
            session.send_data(event.stream_id, BODY * (1000 if path == b"/long" else 1), end_stream=True)

    _endless: int | None = None

    def _go_on(self, session: h2.connection.H2Connection) -> None:
        while self._endless is not None:
            room = min(session.local_flow_control_window(self._endless), session.max_outbound_frame_size)
            if room <= 0:
                return
            session.send_data(self._endless, bytes(room))
