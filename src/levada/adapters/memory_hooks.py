"""Who wants to be told of changes? The `Hooks` port in memory."""

from __future__ import annotations

from levada.records import Hook

__all__ = ["MemoryHooks"]


class MemoryHooks:
    def __init__(self) -> None:
        self._hooks: dict[str, Hook] = {}

    def hooks(self) -> list[Hook]:
        return [hook for _, hook in sorted(self._hooks.items())]

    def add(self, hook: Hook) -> None:
        self._hooks[hook.id] = hook

    def update(self, hook: Hook) -> bool:
        there = hook.id in self._hooks
        if there:
            self._hooks[hook.id] = hook
        return there

    def remove(self, id: str) -> bool:
        return self._hooks.pop(id, None) is not None

    def close(self) -> None:
        """Nothing is held that needs closing."""
