"""The built-in embedder: a static vector for each part of a word, and their mean for a text.

The vectors are those that the package `wordllama` carries (Miller 2024; 32,000 parts of words, 256 numbers each).
Nothing else of that package is imported, and nothing is fetched. A text of 150 words takes a third of a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from levada.core.errors import MissingExtra, StoreError

try:
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
except ImportError as error:
    raise MissingExtra(error.name or "numpy", "hybrid") from None

_PACKAGE = "wordllama"
if find_spec(_PACKAGE) is None:
    raise MissingExtra(_PACKAGE, "hybrid")
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_VECTORS = "weights/l2_supercat_256.safetensors"


class StaticEmbedder:
    """`levada.core.protocols.Embedder` by static vectors."""

    dimensions = 256
    least_similarity = 0.2

    def __init__(self) -> None:
        folder = _folder()
        for needed in (_TOKENIZER, _VECTORS):
            if not (folder / needed).is_file():
                raise StoreError(f"{folder / needed} is missing: pip install --force-reinstall {_PACKAGE}")
        self.model = f"{_PACKAGE} {version(_PACKAGE)}"
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        (self._vectors,) = load_file(folder / _VECTORS).values()

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        storable = [text.encode("utf-8", "replace").decode() for text in texts]
        return [self._mean(each.ids) for each in self._tokenizer.encode_batch(storable, add_special_tokens=False)]

    def embed_query(self, text: str) -> Sequence[float]:
        return self.embed([text])[0]

    def _mean(self, parts: list[int]) -> Sequence[float]:
        if not parts:
            return [0.0] * self.dimensions
        return self._vectors[parts].mean(axis=0, dtype=np.float32)  # type: ignore[no-any-return]


def _folder() -> Path:
    """Where the package lies. It is not imported: it would load a dozen others."""
    found = find_spec(_PACKAGE)
    assert found is not None
    return Path(next(iter(found.submodule_search_locations or ())))
