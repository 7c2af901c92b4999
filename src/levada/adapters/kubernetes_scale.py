"""How is Kubernetes told how many pods a Deployment should have? By the `scale` of its plain API.

In a pod, the API's address is in the environment, and a token and the authority to trust lie in a folder. The token
is read again each time: Kubernetes changes it. Needs the right to get and patch `deployments/scale`.
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

from levada.errors import LevadaError, UsageError
from levada.ports import Clock
from levada.stages.looks import CrewLook
from levada.stages.newcomers import Newcomers

__all__ = ["KubernetesApi", "KubernetesCrew"]

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
    """`account` is the folder of the pod's service account; an answer may take `seconds`."""

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
        found = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        self._host = host or found
        try:
            self._port = port or int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
            self._namespace = namespace or (account / "namespace").read_text(encoding="ascii").strip()
            self._trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
        except (OSError, ValueError) as error:
            raise UsageError(f"--kubernetes works in a pod with a service account ({error})") from None
        if not self._host:
            raise UsageError("--kubernetes works in a pod: KUBERNETES_SERVICE_HOST is not set")

    def scale(self, deployment: str, replicas: int | None = None) -> _Scale:
        """What it is; or what it is told to be, with `replicas`."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}/scale"
        body = None if replicas is None else msgspec.json.encode({"spec": {"replicas": replicas}})
        try:
            token = (self._account / "token").read_text(encoding="ascii").strip()
            status, answer = self._exchange(path, token, body)
            if status == 200:
                return msgspec.json.decode(answer, type=_Scale)
        except (OSError, ValueError, http.client.HTTPException, msgspec.MsgspecError) as error:
            raise LevadaError(f"the Kubernetes API at {self._host}:{self._port} does not answer: {error}") from None
        advice = {401: "the token is refused", 403: "allow get and patch on deployments/scale", 404: "no such one"}
        said = advice.get(status, "try again later")
        raise LevadaError(f"Kubernetes says {status} about the deployment {deployment}: {said}")

    def _exchange(self, path: str, token: str, body: bytes | None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        line = http.client.HTTPSConnection(self._host, self._port, timeout=self._seconds, context=self._trust)
        try:
            line.request("GET" if body is None else "PATCH", path, body, headers)
            answer = line.getresponse()
            return answer.status, answer.read(_MOST_BYTES)
        finally:
            line.close()


class KubernetesCrew:
    """The pods of one Deployment; it is told a number only when that is another than it has.

    A scale counts pods that were made, ready or not: those of the last growth count as starting for `startup`
    seconds. Which are ready only the Deployment itself tells, and to read it would need another right.
    """

    def __init__(self, deployment: str, api: KubernetesApi, clock: Clock, startup: float = 0.0) -> None:
        if not _NAME.fullmatch(deployment):
            raise UsageError(
                f"{deployment[:100]!r} is no name of a deployment: --stage name=queue,least,most,DEPLOYMENT"
            )
        self._deployment = deployment
        self._api = api
        self._clock = clock
        self._newcomers = Newcomers(startup)
        self._told: int | None = None

    async def look(self) -> CrewLook:
        scale = await asyncio.to_thread(self._api.scale, self._deployment)
        self._told = scale.spec.replicas
        on = scale.spec.replicas
        not_made = max(0, on - scale.status.replicas)
        return CrewLook(on, starting=max(not_made, self._newcomers.among(on, self._clock.monotonic())))

    async def resize(self, wanted: int) -> None:
        if wanted != self._told:
            scale = await asyncio.to_thread(self._api.scale, self._deployment, wanted)
            self._told = scale.spec.replicas

    async def close(self) -> None:
        """The last size stands."""
