"""`levada shard`, typed."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from levada.cli.app import app
from levada.core.errors import LevadaError

__all__ = ["refused", "shard"]


def shard(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["shard", *arguments])


def refused(*arguments: str) -> LevadaError:
    result = shard(*arguments)
    assert isinstance(result.exception, LevadaError), result.output
    assert "\n" not in str(result.exception)
    return result.exception
