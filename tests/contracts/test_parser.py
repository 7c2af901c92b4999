"""The parser contract, run on every parser."""

from __future__ import annotations

from levada.core.protocols import Parser
from levada.parser.inline import InlineParser
from levada.parser.pool import ParserPool
from levada.testing import ParserContract


class TestInline(ParserContract):
    def make(self) -> Parser:
        return InlineParser()


class TestPool(ParserContract):
    def make(self) -> Parser:
        return ParserPool(2)
