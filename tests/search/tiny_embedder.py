"""An embedder for tests: each number counts the words of one meaning."""

from __future__ import annotations

from collections.abc import Sequence

from levada.pages.folding import words

__all__ = ["TinyEmbedder"]

MEANINGS = (
    {"ferry", "boat", "ship", "vapur"},
    {"harbour", "port", "pier"},
    {"island", "isle"},
    {"tax", "duty", "levy"},
    {"tea", "cay"},
)


class TinyEmbedder:
    dimensions = len(MEANINGS)
    least_similarity = 0.5

    def __init__(self, model: str = "tiny 1") -> None:
        self.model = model
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        found = words(text)
        return [float(sum(word in meaning for word in found)) for meaning in MEANINGS]
