"""Contract suite of the embedder, which turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.protocols import Embedder
from levada.testing.common import properties

_property = properties()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How near two vectors are: 1 in the same direction, 0 if they have nothing in common."""
    product = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    lengths = sqrt(sum(float(a) ** 2 for a in one)) * sqrt(sum(float(b) ** 2 for b in other))
    return product / lengths if lengths else 0.0


class EmbedderContract:
    """An embedder gives every text a vector of the same length, the same one each time.

    ```python
    class TestMyEmbedder(EmbedderContract):
        def make(self) -> Embedder:
            return MyEmbedder()
    ```
    """

    query = "boat to the island"
    """A query."""
    near = "The ferry leaves for the island at noon."
    """A text that answers the query."""
    far = "The tax is due in March."
    """A text that has nothing to do with the query."""

    def make(self) -> Embedder:
        raise NotImplementedError

    def assert_fits(self, vector: Sequence[float]) -> None:
        assert len(vector) == self.make().dimensions
        assert all(isfinite(number) for number in vector)

    def test_it_names_its_model_and_its_sizes(self) -> None:
        embedder = self.make()
        assert isinstance(embedder.model, str)
        assert embedder.model
        assert embedder.dimensions >= 1
        assert -1 <= embedder.least_similarity <= 1

    def test_every_text_gets_a_vector_in_its_order(self) -> None:
        embedder = self.make()
        together = embedder.embed([self.near, self.far, self.near])
        assert len(together) == 3
        for vector, text in zip(together, [self.near, self.far, self.near], strict=True):
            self.assert_fits(vector)
            assert list(vector) == pytest.approx(list(embedder.embed([text])[0]), abs=1e-3)

    def test_no_texts_get_no_vectors(self) -> None:
        assert len(self.make().embed([])) == 0

    def test_a_text_that_answers_a_query_is_nearer_than_one_that_does_not(self) -> None:
        embedder = self.make()
        near, far = (cosine(embedder.embed_query(self.query), each) for each in embedder.embed([self.near, self.far]))
        assert near >= embedder.least_similarity
        assert near > far

    def test_another_object_of_the_same_model_gives_the_same_vectors(self) -> None:
        assert self.make().model == self.make().model
        one, other = (list(self.make().embed_query(self.query)) for _ in range(2))
        assert one == pytest.approx(other, abs=1e-3)

    @_property
    @given(st.text(max_size=200) | st.sampled_from(["", " ", "\x00", "\ud800", "a" * 5_000]))
    def test_any_text_has_a_vector(self, text: str) -> None:
        embedder = self.make()
        self.assert_fits(embedder.embed_query(text))
        self.assert_fits(embedder.embed([text])[0])
