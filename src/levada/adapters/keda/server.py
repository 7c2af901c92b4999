"""How does KEDA learn how many workers there should be? By gRPC, as its external scalers are asked.

The figure is the wanted number itself and its target is 1, so that the pod autoscaler arrives at just that number.
A ScaledObject names its stage as `stage` in the trigger's metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from levada.adapters.keda.messages import SERVICE, KedaMessages, keda_messages
from levada.adapters.keda.wishes import KedaWishes
from levada.errors import LevadaError, MissingExtra

__all__ = ["KedaServer"]

_REPEAT = 30.0  # seconds after which a stream says again what it said: a silent one is taken for dead
_MOST_BYTES = 64 * 1024  # of a question
_GRACE = 1.0


class KedaServer:
    def __init__(self, wishes: KedaWishes, host: str, port: int) -> None:
        try:
            import grpc.aio  # noqa: F401
        except ImportError:
            raise MissingExtra("grpcio", "keda") from None
        self._wishes = wishes
        self._messages: KedaMessages = keda_messages()
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

        def answers(method: Any, question: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(
                method, request_deserializer=question.FromString, response_serializer=_bytes
            )

        methods = {
            "IsActive": answers(self._is_active, known.object_ref),
            "GetMetricSpec": answers(self._spec, known.object_ref),
            "GetMetrics": answers(self._metrics, known.request),
            "StreamIsActive": grpc.unary_stream_rpc_method_handler(
                self._stream, request_deserializer=known.object_ref.FromString, response_serializer=_bytes
            ),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _is_active(self, ref: Any, context: Any) -> Any:
        _, wanted = await self._asked(ref, context)
        return self._messages.is_active(result=wanted > 0)

    async def _stream(self, ref: Any, context: Any) -> AsyncIterator[Any]:
        said: bool | None = None
        while True:
            changed = asyncio.ensure_future(self._wishes.change())  # before the look: nothing is missed
            try:
                _, wanted = await self._asked(ref, context)
                if said is not (wanted > 0):
                    said = wanted > 0
                    yield self._messages.is_active(result=said)
                done, _ = await asyncio.wait((changed,), timeout=_REPEAT)
                if not done:
                    said = None
            finally:
                changed.cancel()

    async def _spec(self, ref: Any, context: Any) -> Any:
        stage, _ = await self._asked(ref, context)
        spec = self._messages.spec(metricName=stage, targetSize=1, targetSizeFloat=1.0)
        return self._messages.specs(metricSpecs=[spec])

    async def _metrics(self, request: Any, context: Any) -> Any:
        stage, wanted = await self._asked(request.scaledObjectRef, context)
        name = request.metricName or stage
        value = self._messages.value(metricName=name, metricValue=wanted, metricValueFloat=float(wanted))
        return self._messages.values(metricValues=[value])

    async def _asked(self, ref: Any, context: Any) -> tuple[str, int]:
        """The stage, and how many it should have; an error that names the stages if there is none like that."""
        import grpc

        stage = ref.scalerMetadata.get("stage") or ref.name
        wanted = self._wishes.wanted(stage)
        if wanted is None:
            words = (
                f"no stage {stage[:100]!r}: set 'stage' in the trigger's metadata to one of {self._wishes.stages}"
            )
            await context.abort(grpc.StatusCode.NOT_FOUND, words)
        assert wanted is not None
        return stage, wanted


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString())
