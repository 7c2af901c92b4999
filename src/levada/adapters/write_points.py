"""Which points does a write of a store pass? Those where a test may make it fail."""

from __future__ import annotations

__all__ = ["MOVING_POINTS", "WRITE_POINTS"]

_STEPS = {
    "add": ("links", "sites"),
    "lease": ("lapse", "leases", "turns"),
    "settle": ("fence", "page", "version", "links", "sites"),
    "release": ("leases", "sites"),
    "forget": ("lapse",),
    "save-site": ("site",),
    "bring-forward": ("pages", "sites"),
    "limit-waits": ("pages", "sites"),
}
_MOVING_STEPS = {
    "receive": ("links", "sites"),
    "delivered": ("outbox",),
    "fence": ("pages",),
    "take-in": ("pages", "sites"),
    "let-go": ("pages", "sites"),
    "open-up": ("pages",),
}


def _points(steps_of: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        f"{operation}.{step}"
        for operation, steps in steps_of.items()
        for step in ("begin", "begun", *steps, "before-commit", "after-commit")
    )


WRITE_POINTS = _points(_STEPS)
"""Every point that a write passes, in order; `begin` is before BEGIN, `begun` after it."""
MOVING_POINTS = _points(_MOVING_STEPS)
"""The same, of what only shards do: links delivered to each other, pages that move."""
