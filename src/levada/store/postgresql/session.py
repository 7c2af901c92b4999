"""A session of a PostgreSQL server that never waits longer than it may.

A server that is stopped, or cut off without a word, cannot end its own statements. So the client counts too, and
drops the connection when the time is over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

import psycopg

R = TypeVar("R")
_LOOK = 0.1  # seconds between two looks at the clock while nothing arrives


class Unanswered(psycopg.OperationalError):
    """The server did not answer in time; the connection is dropped."""


class Session(psycopg.Connection[Any]):
    """`patience` is how many seconds one exchange with the server may take; None: as long as it takes.

    `own_settings` are those that every transaction makes for itself, because a pool stands before the server.
    """

    patience: float | None = None
    own_settings: Mapping[str, str] | None = None

    def wait(self, gen: Generator[Any, Any, R], interval: float = _LOOK, timeout: float | None = None) -> R:
        if self.patience is None:
            return super().wait(gen, interval)
        try:
            return super().wait(_until(gen, monotonic() + self.patience, self.patience), interval)
        except Unanswered:
            self.pgconn.finish()
            raise

    def make(self, settings: Mapping[str, str], *, local: bool = False) -> None:
        """Make these settings, for the session or for the transaction alone."""
        chosen = dict(settings)
        if local:
            chosen["transaction_read_only"] = chosen.pop("default_transaction_read_only")
            del chosen["default_transaction_isolation"]  # a transaction that has begun has one
        calls = ", ".join(f"set_config(%s, %s, {local})" for _ in chosen)
        # A commit is durable when it returns, whatever the server's default; a stricter setting stays.
        self.execute(
            f"""SELECT {calls}, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, {local})""".encode(),
            [each for pair in chosen.items() for each in pair],
        )

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Statements inside have our settings, also behind a pool: there, as one transaction."""
        if self.own_settings is None:
            yield
            return
        with self.transaction():
            self.make(self.own_settings, local=True)
            yield

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Let the statements inside take as long as they need: they read or write whole tables."""
        patience, own = self.patience, self.own_settings
        self.patience = None
        try:
            if own is not None:
                self.own_settings = {**own, "statement_timeout": "0"}
            (before,) = self.execute("SELECT current_setting('statement_timeout')").fetchone() or ("0",)
            self.execute("SELECT set_config('statement_timeout', '0', false)")
            yield
            self.execute("SELECT set_config('statement_timeout', %s, false)", (before,))
        finally:
            self.patience, self.own_settings = patience, own

    @property
    def is_alive(self) -> bool:
        """False if the other side is known to have ended the connection while nobody used it. Costs no exchange."""
        if self.closed:
            return False
        try:
            self.pgconn.consume_input()
        except psycopg.Error:
            return False
        return self.pgconn.status == psycopg.pq.ConnStatus.OK


def milliseconds_of(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _until(gen: Generator[Any, Any, R], deadline: float, seconds: float) -> Generator[Any, Any, R]:
    """The same exchange, ended when it takes too long."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and monotonic() >= deadline:
                raise Unanswered(f"no answer within {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result
