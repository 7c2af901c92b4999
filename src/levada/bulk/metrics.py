"""Prometheus metrics of a running load."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from levada.bulk.tasks import LoadStatus, progress_of
from levada.core.errors import UsageError


class LoadMetrics:
    """Metrics served on the loopback interface while the load runs."""

    def __init__(self, name: str, port: int) -> None:
        registry = CollectorRegistry()
        self._name = name
        self._rows = Gauge("levada_load_rows", "Rows of finished tasks.", ["load"], registry=registry)
        self._rate = Gauge("levada_load_rows_per_second", "Since the load began.", ["load"], registry=registry)
        self._left = Gauge("levada_load_seconds_left", "Until the load is done.", ["load"], registry=registry)
        self._tasks = Gauge("levada_load_tasks", "Tasks by state.", ["load", "state"], registry=registry)
        self._own = Gauge("levada_load_instance_rows", "Rows by instance.", ["load", "instance"], registry=registry)
        try:
            self._server, self._thread = start_http_server(port, "127.0.0.1", registry)
        except OSError as error:
            raise UsageError(f"--metrics-port {port} cannot be used: {error.strerror or error}") from error

    def show(self, status: LoadStatus) -> None:
        progress = progress_of(status)
        self._rows.labels(self._name).set(status.done.rows)
        self._rate.labels(self._name).set(progress.rows_per_second)
        self._left.labels(self._name).set(progress.seconds_left or 0.0)
        states = {
            "done": status.done.tasks,
            "leased": status.leased - status.expired,
            "expired": status.expired,
            "waiting": status.waiting,
        }
        for state, count in states.items():
            self._tasks.labels(self._name, state).set(count)
        for owner, (_, _, rows) in status.owners.items():
            self._own.labels(self._name, owner).set(rows)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
