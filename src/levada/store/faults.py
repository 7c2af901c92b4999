"""Fault injection outside tests: there is none."""

from __future__ import annotations


class NoFaults:
    """Injects nothing (`levada.core.protocols.Faults`)."""

    def reach(self, point: str) -> None:
        pass
