"""Properties say what is true, not how fast: no deadline per example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("levada", deadline=None)
settings.load_profile("levada")
