"""What does KEDA's interface consist of? Its messages, made from a description at run time.

The same as `externalscaler.proto` beside this file says; no generated code, and no compiler at installation.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from levada.errors import MissingExtra

__all__ = ["SERVICE", "KedaMessages", "description", "keda_messages"]

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"

_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "ScaledObjectRef": (("name", "string"), ("namespace", "string"), ("scalerMetadata", "map")),
    "IsActiveResponse": (("result", "bool"),),
    "MetricSpec": (("metricName", "string"), ("targetSize", "int64"), ("targetSizeFloat", "double")),
    "GetMetricSpecResponse": (("metricSpecs", "MetricSpec*"),),
    "GetMetricsRequest": (("scaledObjectRef", "ScaledObjectRef"), ("metricName", "string")),
    "MetricValue": (("metricName", "string"), ("metricValue", "int64"), ("metricValueFloat", "double")),
    "GetMetricsResponse": (("metricValues", "MetricValue*"),),
}
"""Message -> its fields in the order of their numbers; `*` is repeated, `map` of string to string."""

_METHODS = (
    ("IsActive", "ScaledObjectRef", "IsActiveResponse", False),
    ("StreamIsActive", "ScaledObjectRef", "IsActiveResponse", True),
    ("GetMetricSpec", "ScaledObjectRef", "GetMetricSpecResponse", False),
    ("GetMetrics", "GetMetricsRequest", "GetMetricsResponse", False),
)


class KedaMessages(NamedTuple):
    """The classes of the messages that are made or read here."""

    object_ref: Any
    is_active: Any
    spec: Any
    specs: Any
    request: Any
    value: Any
    values: Any


@cache
def keda_messages() -> KedaMessages:
    try:
        from google.protobuf import descriptor_pool, message_factory
    except ImportError:
        raise MissingExtra("protobuf", "keda") from None
    pool = descriptor_pool.DescriptorPool()
    pool.Add(description())
    names = (
        "ScaledObjectRef",
        "IsActiveResponse",
        "MetricSpec",
        "GetMetricSpecResponse",
        "GetMetricsRequest",
        "MetricValue",
        "GetMetricsResponse",
    )
    found = (pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in names)
    return KedaMessages(*map(message_factory.GetMessageClass, found))


def description() -> Any:
    """The interface as a file descriptor."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="externalscaler.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            _add_field(message, field, kind, number)
    service = file.service.add(name="ExternalScaler")
    for name, asked, answered, streams in _METHODS:
        method = service.method.add(
            name=name, input_type=f".{PACKAGE}.{asked}", output_type=f".{PACKAGE}.{answered}"
        )
        method.options.SetInParent()
        if streams:
            method.server_streaming = True
    return file


def _add_field(message: Any, name: str, kind: str, number: int) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    plain = {"string": Field.TYPE_STRING, "bool": Field.TYPE_BOOL, "int64": Field.TYPE_INT64}
    plain["double"] = Field.TYPE_DOUBLE
    field = message.field.add(name=name, number=number, json_name=name, label=Field.LABEL_OPTIONAL)
    if kind in plain:
        field.type = plain[kind]
        return
    field.type = Field.TYPE_MESSAGE
    if kind == "map":
        field.type_name = _add_map(message, name)
    else:
        field.type_name = f".{PACKAGE}.{kind.rstrip('*')}"
    if kind == "map" or kind.endswith("*"):
        field.label = Field.LABEL_REPEATED


def _add_map(message: Any, name: str) -> str:
    """A map is a repeated message of pairs, under a name that is laid down."""
    entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
    entry.options.map_entry = True
    _add_field(entry, "key", "string", 1)
    _add_field(entry, "value", "string", 2)
    return f".{PACKAGE}.{message.name}.{entry.name}"
