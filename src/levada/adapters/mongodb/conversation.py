"""Which queries does one client ask, by the bytes that it sends?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from levada.adapters.mongodb.commands import asked_of, command_name, is_query
from levada.adapters.mongodb.frames import LARGEST_MESSAGE, Frames, Unreadable
from levada.adapters.mongodb.messages import Silent, read_message
from levada.sharding.asked import AskedQuery

__all__ = ["FAULT", "Conversation", "Conversations", "Heard"]

FAULT = "a fault of Levada's own"
_TLS_HANDSHAKE = b"\x16\x03"
_MOST_REASONS = 100


class Heard(msgspec.Struct):
    """What all conversations together came to."""

    messages: int = 0
    queries: int = 0
    silent: int = 0  # messages that ask nothing: hello, authentication, the next batch, administration
    unreadable: dict[str, int] = {}  # messages, by what was wrong with them
    encrypted: int = 0  # connections under TLS: not decoded
    gaps: int = 0  # places where bytes were missing or senseless
    passed_over: int = 0  # bytes that belonged to no message

    def misread(self, why: str) -> None:
        known = why if why in self.unreadable or len(self.unreadable) < _MOST_REASONS else "other"
        self.unreadable[known] = self.unreadable.get(known, 0) + 1


class Conversation:
    """What one connection's client says; never raises, whatever it says."""

    def __init__(self, heard: Heard, largest: int = LARGEST_MESSAGE) -> None:
        self._heard = heard
        self._frames = Frames(largest)
        self._largest = largest
        self._first = b""
        self._encrypted = False

    @property
    def held(self) -> int:
        return self._frames.held

    def feed(self, data: bytes, at: float | None, source: str) -> Iterator[AskedQuery]:
        """The queries that are whole now; to be read to the end before the next call."""
        if self._encrypted or self._notices_tls(data):
            return
        for message in self._frames.feed(data):
            self._heard.messages += 1
            yield from self._read(message, at, source)

    def lose(self) -> None:
        """Some of its bytes are missing from here on."""
        self._first = self._first or b"?"
        self._frames.lose()

    def close(self) -> None:
        self._frames.close()
        self._heard.gaps += self._frames.gaps
        self._heard.passed_over += self._frames.passed_over

    def _notices_tls(self, data: bytes) -> bool:
        """A TLS client begins with a handshake record; as a length of MongoDB that would be no message."""
        if len(self._first) < len(_TLS_HANDSHAKE):
            self._first += data[: len(_TLS_HANDSHAKE)]
            if self._first.startswith(_TLS_HANDSHAKE):
                self._encrypted = True
                self._heard.encrypted += 1
        return self._encrypted

    def _read(self, message: bytes, at: float | None, source: str) -> Iterator[AskedQuery]:
        try:
            command = read_message(message, self._largest)
            if not is_query(command_name(command)):
                raise Silent
            for query in asked_of(command):
                self._heard.queries += 1
                yield msgspec.structs.replace(query, at=at, source=source)
        except Silent:
            self._heard.silent += 1
        except Unreadable as error:
            self._heard.misread(str(error))
        except MemoryError:
            self._heard.misread("there was no memory for it")
        except Exception as error:  # one message that we cannot cope with must not cost all that follow
            self._heard.misread(f"{FAULT}: {type(error).__name__}")


class Conversations:
    """All connections, by number; holds at most `memory` bytes of messages that are not whole yet."""

    def __init__(self, heard: Heard, source: str, memory: int = 128 << 20) -> None:
        self._heard = heard
        self._source = source
        self._memory = memory
        self._held = 0
        self._by_number: dict[int, Conversation] = {}

    def feed(self, number: int, data: bytes, at: float) -> Iterator[AskedQuery]:
        conversation = self._met(number)
        before = conversation.held
        yield from conversation.feed(data, at, self._source)
        self._held += conversation.held - before
        while self._held > self._memory:
            self._lose(max(self._by_number.values(), key=lambda each: each.held))

    def lose(self, number: int) -> None:
        self._lose(self._met(number))

    def close(self, number: int) -> None:
        conversation = self._by_number.pop(number, None)
        if conversation is not None:
            self._held -= conversation.held
            conversation.close()

    def close_all(self) -> None:
        for number in list(self._by_number):
            self.close(number)

    def _met(self, number: int) -> Conversation:
        if number not in self._by_number:
            self._by_number[number] = Conversation(self._heard)
        return self._by_number[number]

    def _lose(self, conversation: Conversation) -> None:
        self._held -= conversation.held
        conversation.lose()
