"""The embedder contract, run on the built-in and on one of a few lines."""

from __future__ import annotations

from levada.core.protocols import Embedder
from levada.testing import EmbedderContract
from tests import needs
from tests.search.tiny_embedder import TinyEmbedder


class TestTiny(EmbedderContract):
    def make(self) -> Embedder:
        return TinyEmbedder()


class TestStatic(EmbedderContract):
    near = "The ferry leaves the harbour at noon and sails between the islands."
    query = "boat trip to an island"

    def make(self) -> Embedder:
        needs.package("wordllama")
        from levada.search.hybrid.static import StaticEmbedder

        return StaticEmbedder()
