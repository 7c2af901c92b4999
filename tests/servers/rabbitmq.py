"""RabbitMQ as a private node with its own port mapper (epmd); for any user, root or not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Server"]

# Debian's /usr/sbin/rabbitmq-server insists on the system's own user and folders; what it calls does not.
_PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")


class Server:
    """`kill` and `revive` are for a test that has a node of its own: same port, same data."""

    def __init__(self, within: Sequence[str] = ()) -> None:
        """`within` is put before the command of the node, to run it on another host: then it listens to every other."""
        self._within = within
        self._children: list[Child] = []
        self._environment: dict[str, str] = {}

    @staticmethod
    def installed() -> bool:
        return _program() is not None and shutil.which("epmd") is not None

    def start(self, folder: Path) -> str:
        port, distribution, mapper = free_ports(3)
        self._environment = _environment(folder, port, distribution, mapper)
        if self._within:
            (folder / "node.conf").write_text("log.console = false\nloopback_users = none\n")
            self._environment["RABBITMQ_NODE_IP_ADDRESS"] = "0.0.0.0"
        self._children = [
            Child([*self._within, "epmd", "-port", str(mapper), "-address", "127.0.0.1"], self._environment)
        ]
        self.revive()
        return f"amqp://guest:guest@127.0.0.1:{port}/"

    def has_noted(self, queues: Sequence[str]) -> bool:
        """Whether the node has written down where the logs of these quorum queues lie.

        It does so some seconds after they are declared (3.10): a queue whose node dies before has no leader ever
        after, and has to be deleted by hand.
        """
        tables = [*Path(self._environment["RABBITMQ_MNESIA_BASE"]).rglob("quorum/**/*.dets")]
        noted = [table.read_bytes() for table in tables]
        return bool(noted) and all(name.encode() in table for table in noted for name in queues)

    def kill(self) -> None:
        """The node dies at once, as by kill -9."""
        self._children.pop().end()

    def revive(self) -> None:
        program = _program()
        assert program is not None
        self._children.append(Child([*self._within, program], self._environment))
        self._children[1].wait_for("completed with", 60.0)

    def stop(self) -> None:
        """In good order, two to three seconds; a node that does not answer is killed."""
        if len(self._children) == 2:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*self._within, _control(), "stop", self._environment["RABBITMQ_PID_FILE"]],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=20.0,
                )
        for child in reversed(self._children):
            child.end()


def _program() -> str | None:
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


def _control() -> str:
    """`rabbitmqctl` beside the server's program, for Debian's own in the path insists likewise."""
    program = _program()
    assert program is not None
    return str(Path(program).with_name("rabbitmqctl"))


def _environment(folder: Path, port: int, distribution: int, mapper: int) -> dict[str, str]:
    (folder / "plugins").write_text("[].\n")
    (folder / "node.conf").write_text("log.console = false\n")
    (folder / "environment.conf").touch()  # else the system's would be read
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
    return kept | {
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "environment.conf"),
        "RABBITMQ_CONFIG_FILE": str(folder / "node.conf"),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_NODENAME": f"levada-{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
    }
