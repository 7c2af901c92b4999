"""Hosts of their own on one machine: network namespaces with a real wire to the host of the engines.

Needs root, iproute2 and nftables. A host's packets can be lost or cut in either direction, by nftables within it;
what a relay carries can be late. Nothing is reachable from outside of this machine: no namespace has a way out.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.needs import missing

__all__ = ["ENGINES", "Host", "Network", "Relay", "network"]

ENGINES = "10.213.255.1"
"""Where every host of a network reaches the host of the engines."""

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


def _enter(namespace: Path) -> None:
    """Move this thread into a namespace: the sockets that it makes from now on belong there."""
    with namespace.open() as opened:
        _set(opened.fileno())


def _set(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "this thread cannot enter the network namespace")


def _own_namespace() -> Path:
    return Path(f"/proc/self/task/{threading.get_native_id()}/ns/net")


class Host:
    """A namespace with a loopback of its own; all but that of the engines have one wire, to the engines."""

    def __init__(self, name: str, relays: list[Relay]) -> None:
        self.name = name
        self._relays = relays

    @property
    def namespace(self) -> Path:
        return Path("/run/netns") / self.name

    @property
    def within(self) -> list[str]:
        """What to put before a command that runs on this host."""
        return ["ip", "netns", "exec", self.name]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread, and the threads that it starts, are on this host within the block."""
        with _own_namespace().open() as home:
            _enter(self.namespace)
            try:
                yield
            finally:
                _set(home.fileno())

    def late(self, seconds: float) -> None:
        """Carry what goes over the wire so much later in each direction; for a host with relays."""
        assert self._relays, "this host has a plain wire"
        for relay in self._relays:
            relay.delay = seconds

    def lose(self, percent: int) -> None:
        """Drop so many of a hundred packets, in both directions."""
        self._filter(f"numgen random mod 100 < {percent} drop", incoming=True, outgoing=True)

    def cut(self, *, incoming: bool = True, outgoing: bool = True) -> None:
        """Drop all packets over the wire, in silence."""
        self._filter("drop", incoming=incoming, outgoing=outgoing)

    def heal(self) -> None:
        self._filter("accept", incoming=True, outgoing=True)

    def _filter(self, rule: str, *, incoming: bool, outgoing: bool) -> None:
        text = "flush ruleset\ntable inet wire {\n"
        for hook, name, is_meant in (("input", "iifname", incoming), ("output", "oifname", outgoing)):
            said = f'{name} "wire" {rule}\n' if is_meant else ""
            text += f"chain {hook} {{ type filter hook {hook} priority 0;\n{said}}}\n"
        done = subprocess.run(
            [*self.within, "nft", "-f", "-"], input=text + "}\n", capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(f"nft: {done.stderr}")


class Network:
    """Every host reaches the engines at `ENGINES`; the engines' own host is made first."""

    def __init__(self) -> None:
        self._own = f"levada-{os.getpid()}"
        self._numbers = count(1)
        self._names: list[str] = []
        self._relays: list[Relay] = []
        self.engines = Host(self._made("engines"), [])
        _run("ip", "-n", self.engines.name, "address", "add", f"{ENGINES}/32", "dev", "lo")

    def host(self, name: str, *, relayed: Sequence[int] = ()) -> Host:
        """A host with a wire; or one whose wire is a relay for each of these ports, which can be late."""
        made, number = self._made(name), next(self._numbers)
        relays: list[Relay] = []
        if relayed:
            _run("ip", "-n", made, "address", "add", f"{ENGINES}/32", "dev", "lo")
            relays += [self.relay(Host(made, []), (ENGINES, port), self.engines, (ENGINES, port)) for port in relayed]
            return Host(made, relays)
        engines = f"10.213.{number}.1"
        wire = ("link", "add", "wire", "netns", made, "type", "veth", "peer", "name", f"wire{number}")
        _run("ip", *wire, "netns", self.engines.name)
        ends = ((made, "wire", f"10.213.{number}.2"), (self.engines.name, f"wire{number}", engines))
        for namespace, device, address in ends:
            _run("ip", "-n", namespace, "address", "add", f"{address}/30", "dev", device)
            _run("ip", "-n", namespace, "link", "set", device, "up")
        _run("ip", "-n", made, "route", "add", ENGINES, "via", engines)
        return Host(made, relays)

    def _made(self, name: str) -> str:
        full = f"{self._own}-{name}"
        _run("ip", "netns", "add", full)
        self._names.append(full)
        _run("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def relay(self, listens: Host, at: tuple[str, int], dials: Host | None, target: tuple[str, int]) -> Relay:
        """From an address of one host to one as another host (None: this machine) sees it."""
        made = Relay(listens.namespace, at, dials.namespace if dials else None, target)
        self._relays.append(made)
        return made

    def close(self) -> None:
        for relay in self._relays:
            relay.close()
        for name in self._names:
            _run("ip", "netns", "delete", name)


class Relay:
    """TCP from an address of one namespace to one of another, `delay` seconds late in each direction."""

    def __init__(self, listens: Path, at: tuple[str, int], dials: Path | None, target: tuple[str, int]) -> None:
        self.delay = 0.0
        self._target = target
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(listens, at, dials), daemon=True)
        self._thread.start()
        if not self._ready.wait(10.0):
            raise OSError("a relay does not start")

    def _run(self, listens: Path, at: tuple[str, int], dials: Path | None) -> None:
        with _own_namespace().open() as home:
            _enter(listens)
            listening = socket.create_server(at)
            _enter(dials) if dials else _set(home.fileno())
        server = self._loop.run_until_complete(asyncio.start_server(self._carry, sock=listening))
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        carrying = asyncio.all_tasks() - {asyncio.current_task()}
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        except asyncio.CancelledError:
            pass  # the relay ends: asyncio would log it
        finally:
            for side in (writer, far_writer):
                side.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1000)
        delivering = asyncio.ensure_future(self._deliver(under_way, writer))
        try:
            while data := await reader.read(1 << 16):
                await under_way.put((self._loop.time() + self.delay, data))
            await under_way.put((self._loop.time() + self.delay, b""))
            await delivering
        except OSError:
            writer.transport.abort()
        finally:
            delivering.cancel()

    async def _deliver(self, under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        """An empty piece says that the other side has nothing more to say."""
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - self._loop.time())
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)


@contextmanager
def network() -> Iterator[Network]:
    """A network of hosts that is gone after the block; skipped where it cannot be had."""
    if os.geteuid() != 0:
        missing("hosts of their own need root")
    for program in ("ip", "nft"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed: run tests/servers/install.sh as root")
    try:
        made = Network()
    except OSError as error:
        missing(f"no network namespaces here: {error}")
    try:
        yield made
    finally:
        made.close()
