"""How is RabbitMQ reached, and which of its errors pass by themselves?"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from levada.errors import BrokerAway, BrokerError, MissingExtra, UsageError

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

__all__ = ["away", "dial", "open_channel", "passing", "place", "require", "said"]


def require() -> None:
    try:
        import aio_pika  # noqa: F401
    except ImportError:
        raise MissingExtra("aio-pika", "rabbitmq") from None


def place(url: str) -> str:
    """Where that is, without the password."""
    try:
        parts = urlsplit(url)
        usual = {"amqp": 5672, "amqps": 5671}[parts.scheme]
        port = parts.port or usual
    except (KeyError, ValueError):
        raise UsageError("a broker's address looks like amqp://user:password@host:5672/") from None
    if (
        parts.netloc.count("@") > 1 or "@" in parts.path or parts.fragment
    ):  # a part of it would be taken for the host
        raise UsageError("a broker's address: in a password, write signs such as @ / # as %40 %2F %23")
    return f"{parts.hostname or 'localhost'}:{port}"


def passing() -> tuple[type[BaseException], ...]:
    """Errors after which a new connection may help."""
    from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

    return AMQPError, ChannelInvalidStateError, OSError


def said(trouble: BaseException) -> str:
    return f"{type(trouble).__name__}: {trouble}" if str(trouble) else type(trouble).__name__


def away(url: str, error: BaseException) -> BrokerAway:
    return BrokerAway(f"RabbitMQ at {place(url)} does not answer ({said(error)})")


async def dial(url: str, seconds: float) -> AbstractConnection:
    """A connection; `BrokerError` if it is refused for good, what is `passing` otherwise."""
    import aio_pika
    from aio_pika.exceptions import AuthenticationError, InvalidFrameError, ProbableAuthenticationError

    # A server that does not let one into a virtual host closes where the client expects to be let in.
    refusals = (AuthenticationError, ProbableAuthenticationError, InvalidFrameError)
    try:
        return await aio_pika.connect(url, timeout=seconds)
    except refusals as error:
        raise BrokerError(f"RabbitMQ at {place(url)} refused the user, password or virtual host") from error


async def open_channel(connection: AbstractConnection, seconds: float, *, confirms: bool) -> AbstractChannel:
    """With confirms, a message that no queue takes is an error."""
    channel = connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
    try:
        await channel.initialize(timeout=seconds)
    except RuntimeError as error:  # so the client calls a connection that has ended meanwhile
        raise ConnectionError(str(error)) from error
    return channel
