"""The scale of a Deployment, read from and written to a local HTTPS server that plays the Kubernetes API."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from levada.core.errors import LevadaError, UsageError
from levada.scale.kubernetes import KubernetesApi, KubernetesPool
from levada.scale.statistics import PoolStatistics
from tests.fetch.certificates import Authority
from tests.manual_clock import ManualClock

PATH = "/apis/apps/v1/namespaces/crawl/deployments/fetcher/scale"


class Played(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replicas, self.up = 2, 1
        self.status = 200
        self.asked: list[tuple[str, str, str, bytes]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Played

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.command, self.path, self.headers["authorization"], body))
        if self.command == "PATCH" and self.server.status == 200:
            assert self.headers["content-type"] == "application/merge-patch+json"
            self.server.replicas = json.loads(body)["spec"]["replicas"]
        scale = {
            "kind": "Scale",
            "spec": {"replicas": self.server.replicas},
            "status": {"replicas": self.server.up},
        }
        answer = json.dumps(scale).encode() if self.server.status != 299 else b"<html>"
        self.send_response(200 if self.server.status == 299 else self.server.status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PATCH = _answer

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    authority = Authority(tmp_path)
    account = tmp_path / "account"
    account.mkdir()
    (account / "ca.crt").write_text(Path(authority.ca_file).read_text())
    (account / "token").write_text("secret\n")
    (account / "namespace").write_text("crawl")
    server = Played()
    server.socket = authority.server("127.0.0.1").wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def api(played: Played, tmp_path: Path) -> KubernetesApi:
    return KubernetesApi(tmp_path / "account", host="127.0.0.1", port=played.server_address[1])


def test_a_deployment_is_looked_at_and_told_only_what_is_new(played: Played, tmp_path: Path) -> None:
    pool = KubernetesPool("fetcher", api(played, tmp_path), ManualClock())

    async def story() -> None:
        assert await pool.poll() == PoolStatistics(2, starting=1)
        for wanted in (2, 5, 5):
            await pool.resize(wanted)

    asyncio.run(story())
    assert played.replicas == 5
    assert [(method, path) for method, path, _, _ in played.asked] == [("GET", PATH), ("PATCH", PATH)]
    assert {token for _, _, token, _ in played.asked} == {"Bearer secret"}


def test_pods_that_were_made_are_not_up_before_their_time(played: Played, tmp_path: Path) -> None:
    clock = ManualClock()
    pool = KubernetesPool("fetcher", api(played, tmp_path), clock, startup=10.0)

    async def story() -> None:
        played.up = 2
        assert await pool.poll() == PoolStatistics(2)
        await pool.resize(6)
        played.up = 6
        assert await pool.poll() == PoolStatistics(6, starting=4)
        clock.advance(10.0)
        assert await pool.poll() == PoolStatistics(6)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "token"), (403, "allow get and patch"), (404, "no such"), (500, "later"), (299, "does not answer")],
)
def test_what_goes_wrong_is_one_line_that_says_what_to_do(
    played: Played, tmp_path: Path, status: int, words: str
) -> None:
    played.status = status
    with pytest.raises(LevadaError, match=words) as trouble:
        asyncio.run(KubernetesPool("fetcher", api(played, tmp_path), ManualClock()).poll())
    assert "\n" not in str(trouble.value)
    assert "secret" not in str(trouble.value)


def test_an_api_that_nobody_vouches_for_is_not_told_the_token(played: Played, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "account" / "ca.crt").write_text(Path(Authority(other).ca_file).read_text())
    with pytest.raises(LevadaError, match="does not answer"):
        api(played, tmp_path).scale("fetcher")
    assert played.asked == []


def test_outside_a_pod_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(UsageError, match="works in a pod"):
        KubernetesApi(tmp_path)


@pytest.mark.parametrize("name", ["", "../secrets/x", "UPPER", "a b", "x?y", "-a"])
def test_a_name_that_is_none_never_gets_into_an_address(played: Played, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        KubernetesPool(name, api(played, tmp_path), ManualClock())
