"""KEDA's calls, by a real gRPC client to a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from levada.core.errors import LevadaError
from levada.scale.keda import SERVICE, DesiredSizes, KedaPool, KedaServer, keda_messages
from levada.scale.statistics import PoolStatistics
from tests.manual_clock import ManualClock

PROTO = Path(__file__).parents[2] / "src/levada/scale/externalscaler.proto"


class Client:
    def __init__(self, channel: Any) -> None:
        known = keda_messages()

        def ask(method: str, answer: Any, *, stream: bool = False) -> Any:
            make = channel.unary_stream if stream else channel.unary_unary
            return make(
                f"/{SERVICE}/{method}",
                request_serializer=lambda question: question.SerializeToString(),
                response_deserializer=answer.FromString,
            )

        self.is_active = ask("IsActive", known.IsActiveResponse)
        self.stream = ask("StreamIsActive", known.IsActiveResponse, stream=True)
        self.spec = ask("GetMetricSpec", known.GetMetricSpecResponse)
        self.metrics = ask("GetMetrics", known.GetMetricsResponse)


def talk(story: Callable[[Client, DesiredSizes], Awaitable[None]]) -> None:
    async def run() -> None:
        sizes = DesiredSizes()
        server = KedaServer(sizes, "127.0.0.1", 0)
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            try:
                await asyncio.wait_for(story(Client(channel), sizes), 20.0)
            finally:
                await server.stop()

    asyncio.run(run())


def ref(stage: str = "fetch") -> Any:
    return keda_messages().ScaledObjectRef(name="scaled", namespace="default", scalerMetadata={"stage": stage})


def test_the_wanted_number_is_the_figure_and_its_target_is_one() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        await KedaPool("fetch", sizes, 1, ManualClock()).resize(7)
        (spec,) = (await client.spec(ref())).metricSpecs
        assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == ("fetch", 1, 1.0)
        question = keda_messages().GetMetricsRequest(scaledObjectRef=ref(), metricName="fetch")
        (value,) = (await client.metrics(question)).metricValues
        assert (value.metricName, value.metricValue, value.metricValueFloat) == ("fetch", 7, 7.0)

    talk(story)


def test_workers_that_were_just_asked_for_count_as_starting() -> None:
    async def story() -> None:
        clock = ManualClock()
        pool = KedaPool("fetch", DesiredSizes(), 1, clock, startup=5.0)
        assert await pool.poll() == PoolStatistics(1)
        await pool.resize(4)
        assert await pool.poll() == PoolStatistics(4, starting=3)
        clock.advance(5.0)
        assert await pool.poll() == PoolStatistics(4)

    asyncio.run(story())


def test_a_stage_is_active_while_somebody_is_wanted() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        sizes.set("fetch", 0)
        assert not (await client.is_active(ref())).result
        sizes.set("fetch", 1)
        assert (await client.is_active(ref())).result

    talk(story)


def test_a_stream_tells_at_once_and_at_each_change() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        sizes.set("fetch", 0)
        stream = client.stream(ref())
        told = [(await stream.read()).result]
        for wanted in (3, 5, 0):
            sizes.set("fetch", wanted)
            if wanted != 5:  # still active: nothing to tell
                told.append((await stream.read()).result)
        stream.cancel()
        assert told == [False, True, False]

    talk(story)


def test_a_stage_that_is_not_there_is_named_in_the_error() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        sizes.set("fetch", 1)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.is_active(ref("other"))
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert "one of ['fetch']" in refused.value.details()

    talk(story)


def test_bytes_that_are_no_question_break_nothing() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        sizes.set("fetch", 2)
        known = keda_messages()
        large = known.ScaledObjectRef(name="x" * 100_000)
        with pytest.raises(grpc.aio.AioRpcError):
            await client.is_active(large)
        assert (await client.is_active(ref())).result

    talk(story)


@pytest.mark.parametrize(
    "body", [b"\xff\xff\xff", b"\x0a\xff\x01x", b"\x0a\x02\xff\xfe"], ids=["tag", "length", "text"]
)
@pytest.mark.parametrize("method", ["IsActive", "GetMetricSpec", "GetMetrics", "StreamIsActive"])
def test_bytes_that_are_no_request_are_named_as_the_callers_fault(method: str, body: bytes) -> None:
    async def run() -> None:
        sizes = DesiredSizes()
        sizes.set("fetch", 2)
        server = KedaServer(sizes, "127.0.0.1", 0)
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            is_stream = method.startswith("Stream")
            call = (channel.unary_stream if is_stream else channel.unary_unary)(f"/{SERVICE}/{method}")(body)
            with pytest.raises(grpc.aio.AioRpcError, match=r"send it as in externalscaler\.proto") as refused:
                await (call.read() if is_stream else call)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        await server.stop()

    asyncio.run(run())


def test_a_request_that_names_no_stage_says_where_to_name_it() -> None:
    async def story(client: Client, sizes: DesiredSizes) -> None:
        sizes.set("fetch", 1)
        with pytest.raises(grpc.aio.AioRpcError, match="names no stage") as refused:
            await client.metrics(keda_messages().GetMetricsRequest())
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    talk(story)


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    async def run() -> None:
        first = KedaServer(DesiredSizes(), "127.0.0.1", 0)
        await first.start()
        try:
            with pytest.raises(LevadaError, match=r"cannot listen at 127\.0\.0\.1"):
                await KedaServer(DesiredSizes(), "127.0.0.1", first.port).start()
        finally:
            await first.stop()

    asyncio.run(run())


def test_the_messages_are_those_of_the_published_interface(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    protoc = pytest.importorskip(
        "grpc_tools.protoc", reason="the compiler of gRPC is only for those who change the interface: grpcio-tools"
    )
    out = tmp_path / "out"
    assert protoc.main(["", f"-I{PROTO.parent}", f"--descriptor_set_out={out}", str(PROTO)]) == 0
    (compiled,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    for message in compiled.message_type:
        for part in (message, *message.nested_type):
            for field in part.field:
                field.ClearField("json_name")  # generated modules leave it out: it follows from the name
    described = descriptor_pb2.FileDescriptorProto()
    keda_messages().DESCRIPTOR.CopyToProto(described)
    assert compiled == described
