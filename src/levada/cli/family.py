"""How does a group of commands reach one of them without checking what nobody gave?"""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["Family"]


class Family(TyperGroup):
    """A group whose own options keep their defaults unchecked, and without their callbacks.

    They are right as they stand, and to check even that no help was asked for, Typer loads Pydantic, which takes as
    long as all of Typer. Not for options that may be repeated: Typer makes their default a list.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            _leave_default(param)
        return params


def _leave_default(param: Any) -> None:
    if "process_value" not in vars(param):
        process = param.process_value
        param.process_value = lambda ctx, value: value if value is param.default else process(ctx, value)
