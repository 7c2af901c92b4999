"""A server that is not installed is never passed over in silence."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.servers.rabbitmq import Server

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture(autouse=True)
def _absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "installed", staticmethod(lambda: False))


def asked(folders: pytest.TempPathFactory) -> None:
    # Not imported above: pytest is to load its plugins itself.
    next(import_module("tests.servers.fixtures")._server("rabbitmq", folders))


def test_on_a_laptop_its_tests_are_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="rabbitmq is not installed: run tests/servers/install"):
        asked(tmp_path_factory)


def test_where_ci_runs_its_tests_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="rabbitmq is not installed: run tests/servers/install"):
        asked(tmp_path_factory)
