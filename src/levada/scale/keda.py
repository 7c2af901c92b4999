"""External scaler for KEDA: a gRPC server that answers with the desired size of each stage.

The metric is the desired size itself and its target is 1, so the pod autoscaler arrives at exactly that size. A
ScaledObject names its stage as `stage` in the trigger's metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from levada.core.errors import LevadaError, MissingExtra
from levada.core.protocols import Clock
from levada.scale.sampler import StartingWorkers
from levada.scale.statistics import PoolStatistics

SERVICE = "externalscaler.ExternalScaler"
_REPEAT = 30.0  # seconds after which a stream repeats its answer: a silent one counts as dead
_MOST_BYTES = 64 * 1024  # of a request
_GRACE = 1.0


class DesiredSizes:
    """The desired number of workers of each stage."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._changed = asyncio.Event()

    @property
    def stages(self) -> list[str]:
        return list(self._sizes)

    def get(self, stage: str) -> int | None:
        """None if there is no such stage."""
        return self._sizes.get(stage)

    def set(self, stage: str, workers: int) -> None:
        if self._sizes.get(stage) != workers:
            self._sizes[stage] = workers
            self._changed.set()
            self._changed = asyncio.Event()

    async def change(self) -> None:
        """Return when any size has changed."""
        await self._changed.wait()


class KedaPool:
    """Workers that KEDA runs. KEDA reports nothing about them, so the number last asked for counts as on, and those
    of the last growth count as starting for `startup` seconds."""

    def __init__(self, stage: str, sizes: DesiredSizes, first: int, clock: Clock, startup: float = 0.0) -> None:
        self._stage = stage
        self._sizes = sizes
        self._clock = clock
        self._starting = StartingWorkers(startup)
        sizes.set(stage, first)

    async def poll(self) -> PoolStatistics:
        on = self._sizes.get(self._stage) or 0
        return PoolStatistics(on, starting=self._starting.count(on, self._clock.monotonic()))

    async def resize(self, wanted: int) -> None:
        self._sizes.set(self._stage, wanted)

    async def close(self) -> None:
        """The last size remains: KEDA asks again after a restart."""


def keda_messages() -> Any:
    """The module of KEDA's messages; its classes are made at import, so they have no static types."""
    try:
        from levada.scale import externalscaler_pb2
    except ImportError:
        raise MissingExtra("protobuf", "keda") from None
    return externalscaler_pb2


class KedaServer:
    """Answers KEDA's requests at `host` and `port`; port 0 takes a free one."""

    def __init__(self, sizes: DesiredSizes, host: str, port: int) -> None:
        try:
            import grpc.aio  # noqa: F401
        except ImportError:
            raise MissingExtra("grpcio", "keda") from None
        self._sizes = sizes
        self._messages = keda_messages()
        self._where = f"{host}:{port}"
        self._server: Any = None
        self.port = port

    async def start(self) -> None:
        import grpc

        options = (("grpc.max_receive_message_length", _MOST_BYTES), ("grpc.so_reuseport", 0))
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=200)
        self._server.add_generic_rpc_handlers((self._handlers(grpc),))
        try:
            self.port = self._server.add_insecure_port(self._where)
        except RuntimeError:
            await self._server.stop(None)
            raise LevadaError(f"cannot listen at {self._where}: name another host and port after --keda") from None
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(_GRACE)

    def _handlers(self, grpc: Any) -> Any:
        known = self._messages

        # The bytes are read here: what the library says of those that are no request is neither sentence nor code.
        def answers(method: Any, kind: Any) -> Any:
            async def answer(body: bytes, context: Any) -> Any:
                return await method(await _request(kind, body, context), context)

            return grpc.unary_unary_rpc_method_handler(answer, response_serializer=_bytes)

        async def stream(body: bytes, context: Any) -> AsyncIterator[Any]:
            async for answer in self._stream(await _request(known.ScaledObjectRef, body, context), context):
                yield answer

        methods = {
            "IsActive": answers(self._is_active, known.ScaledObjectRef),
            "GetMetricSpec": answers(self._spec, known.ScaledObjectRef),
            "GetMetrics": answers(self._metrics, known.GetMetricsRequest),
            "StreamIsActive": grpc.unary_stream_rpc_method_handler(stream, response_serializer=_bytes),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _is_active(self, ref: Any, context: Any) -> Any:
        _, wanted = await self._desired(ref, context)
        return self._messages.IsActiveResponse(result=wanted > 0)

    async def _stream(self, ref: Any, context: Any) -> AsyncIterator[Any]:
        sent: bool | None = None
        while True:
            changed = asyncio.ensure_future(self._sizes.change())  # first, so that no change is missed
            try:
                _, wanted = await self._desired(ref, context)
                if sent is not (wanted > 0):
                    sent = wanted > 0
                    yield self._messages.IsActiveResponse(result=sent)
                done, _ = await asyncio.wait((changed,), timeout=_REPEAT)
                if not done:
                    sent = None
            finally:
                changed.cancel()

    async def _spec(self, ref: Any, context: Any) -> Any:
        stage, _ = await self._desired(ref, context)
        spec = self._messages.MetricSpec(metricName=stage, targetSize=1, targetSizeFloat=1.0)
        return self._messages.GetMetricSpecResponse(metricSpecs=[spec])

    async def _metrics(self, request: Any, context: Any) -> Any:
        stage, wanted = await self._desired(request.scaledObjectRef, context)
        name = request.metricName or stage
        value = self._messages.MetricValue(metricName=name, metricValue=wanted, metricValueFloat=float(wanted))
        return self._messages.GetMetricsResponse(metricValues=[value])

    async def _desired(self, ref: Any, context: Any) -> tuple[str, int]:
        """The stage and its desired size; for an unknown stage, an error that names the known ones."""
        import grpc

        stage = ref.scalerMetadata.get("stage") or ref.name
        if not stage:
            words = "the request names no stage: set 'stage' in the trigger's metadata"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        wanted = self._sizes.get(stage)
        if wanted is None:
            known = self._sizes.stages
            words = f"no stage {stage[:100]!r}: set 'stage' in the trigger's metadata to one of {known}"
            await context.abort(grpc.StatusCode.NOT_FOUND, words)
        assert wanted is not None
        return stage, wanted


async def _request(kind: Any, body: bytes, context: Any) -> Any:
    """The request in these bytes; else an error that says what they should be."""
    import grpc
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(body)
    except (DecodeError, ValueError, RecursionError):
        words = f"the request is no {kind.DESCRIPTOR.full_name}: send it as in externalscaler.proto of KEDA"
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString())
