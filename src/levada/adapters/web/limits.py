"""How much of our time and memory may one exchange take?"""

from __future__ import annotations

import msgspec

__all__ = ["FetchLimits"]

_MIB = 1024 * 1024


class FetchLimits(msgspec.Struct, frozen=True):
    """Bounds of an exchange, each with its own `Reason`; only the minimum rate can be switched off."""

    max_bytes: int = 10 * _MIB  # of the body on the wire
    max_decoded_bytes: int = 20 * _MIB  # of the body after gzip, br or zstd
    max_buffered_bytes: int = 96 * _MIB  # of all bodies under way together
    max_header_bytes: int = 64 * 1024
    seconds: float = 30.0  # from dialling to the last byte
    connect_seconds: float = 10.0  # name, connection and TLS
    min_rate: float = 100.0  # bytes per second, over `min_rate_seconds`; 0: none
    min_rate_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not (value > 0 or (name == "min_rate" and value == 0)):
                raise ValueError(f"{name} must be above 0, not {value}")
