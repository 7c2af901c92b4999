"""Pods of a Kubernetes Deployment as a worker pool, through the `scale` subresource of the plain API.

In a pod, the environment has the API's address, and a folder has a token and the certificate authority. The token
is read again each time, because Kubernetes rotates it. Needs the right to get and patch `deployments/scale`.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import ssl
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from levada.core.errors import LevadaError, UsageError
from levada.core.protocols import Clock
from levada.scale.sampler import StartingWorkers
from levada.scale.statistics import PoolStatistics

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

_Replicas = Annotated[int, Meta(ge=0, le=10**9)]


class _Numbers(msgspec.Struct):
    replicas: _Replicas = 0


class _Scale(msgspec.Struct):
    spec: _Numbers = msgspec.field(default_factory=_Numbers)
    status: _Numbers = msgspec.field(default_factory=_Numbers)


class KubernetesApi:
    """A client of the API. `account` is the folder of the pod's service account; a call may take `seconds`."""

    def __init__(
        self,
        account: Path = ACCOUNT,
        *,
        host: str | None = None,
        port: int | None = None,
        namespace: str | None = None,
        seconds: float = 5.0,
    ) -> None:
        self._account = account
        self._seconds = seconds
        self._host = host or os.environ.get("KUBERNETES_SERVICE_HOST", "")
        try:
            self._port = port or int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
            self._namespace = namespace or (account / "namespace").read_text(encoding="ascii").strip()
            self._trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
        except (OSError, ValueError) as error:
            raise UsageError(f"--kubernetes works in a pod with a service account ({error})") from None
        if not self._host:
            raise UsageError("--kubernetes works in a pod: KUBERNETES_SERVICE_HOST is not set")

    def scale(self, deployment: str, replicas: int | None = None) -> _Scale:
        """The scale of a Deployment; with `replicas`, it is set first."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}/scale"
        body = None if replicas is None else msgspec.json.encode({"spec": {"replicas": replicas}})
        try:
            token = (self._account / "token").read_text(encoding="ascii").strip()
            status, answer = self._exchange(path, token, body)
            if status == 200:
                return msgspec.json.decode(answer, type=_Scale)
        except (OSError, ValueError, http.client.HTTPException, msgspec.MsgspecError) as error:
            raise LevadaError(f"the Kubernetes API at {self._host}:{self._port} does not answer: {error}") from None
        advice = {
            401: "the token is refused",
            403: "allow get and patch on deployments/scale",
            404: "there is no such deployment",
        }.get(status, "try again later")
        raise LevadaError(f"Kubernetes answers {status} for the deployment {deployment}: {advice}")

    def _exchange(self, path: str, token: str, body: bytes | None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        api = http.client.HTTPSConnection(self._host, self._port, timeout=self._seconds, context=self._trust)
        try:
            api.request("GET" if body is None else "PATCH", path, body, headers)
            answer = api.getresponse()
            return answer.status, answer.read(_MOST_BYTES)
        finally:
            api.close()


class KubernetesPool:
    """The pods of one Deployment, which is changed only when the wanted number differs from its own.

    A scale counts pods that exist, ready or not, so those of the last growth count as starting for `startup`
    seconds. Which pods are ready is in the Deployment itself, and reading that would need another right.
    """

    def __init__(self, deployment: str, api: KubernetesApi, clock: Clock, startup: float = 0.0) -> None:
        if not _NAME.fullmatch(deployment):
            raise UsageError(
                f"{deployment[:100]!r} is not the name of a deployment: --stage name=queue,least,most,DEPLOYMENT"
            )
        self._deployment = deployment
        self._api = api
        self._clock = clock
        self._starting = StartingWorkers(startup)
        self._replicas: int | None = None

    async def poll(self) -> PoolStatistics:
        scale = await asyncio.to_thread(self._api.scale, self._deployment)
        on = self._replicas = scale.spec.replicas
        not_made = max(0, on - scale.status.replicas)
        return PoolStatistics(on, starting=max(not_made, self._starting.count(on, self._clock.monotonic())))

    async def resize(self, wanted: int) -> None:
        if wanted != self._replicas:
            scale = await asyncio.to_thread(self._api.scale, self._deployment, wanted)
            self._replicas = scale.spec.replicas

    async def close(self) -> None:
        """The last size remains."""
