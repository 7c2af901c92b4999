"""What if a word of a query begins with a minus? Typer takes it for an option: its user is told how to write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any

from typer.core import TyperCommand

from levada.errors import UsageError

__all__ = ["MinusWordsCommand"]


class MinusWordsCommand(TyperCommand):
    """A command whose arguments are words to look for, and whose options, but for `-h`, have long names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_value = {name for param in self.params for name in param.opts if not getattr(param, "is_flag", False)}
        typed = list(_before_dashes(args, with_value))
        if minus := next((word for word in typed if _is_excluded(word, ctx.help_option_names)), None):
            query = " ".join(quote(word) for word in typed if not word.startswith("--"))
            raise UsageError(
                f"{minus!r} reads like an option: write options first and then --, as in "
                f"levada {self.name} -- {query}"
            )
        return super().parse_args(ctx, args)


def _before_dashes(args: Iterable[str], with_value: set[str]) -> Iterator[str]:
    """Words and options up to `--`, without the values of options."""
    words = iter(args)
    for word in words:
        if word == "--":
            return
        yield word
        if word in with_value:
            next(words, None)


def _is_excluded(word: str, help_names: Iterable[str]) -> bool:
    return len(word) > 1 and word[0] == "-" != word[1] and word not in help_names
